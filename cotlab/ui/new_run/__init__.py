"""Page New run: form, planner of the number of items, and processes of runs."""
