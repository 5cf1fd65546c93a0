"""Prompts and how their replies are read."""
