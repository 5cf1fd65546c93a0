"""Import published measurements, and pair the replies of two runs."""
