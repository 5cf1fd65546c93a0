"""Strings only: how a chain divides into steps, what a reply gives as its answer, whether two answers are the same."""
