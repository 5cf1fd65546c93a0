"""A model as judge of pairs of responses."""
