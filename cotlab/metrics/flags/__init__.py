"""Red flags in the structure of a chain."""
