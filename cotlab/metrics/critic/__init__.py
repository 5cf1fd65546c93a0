"""A model as critic of one chain."""
