"""Page New run: form, and processes of runs."""
