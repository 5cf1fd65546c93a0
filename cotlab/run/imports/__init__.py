"""Import logs of other tools, and pair the replies of two runs."""
