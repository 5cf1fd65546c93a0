"""Classifiers of unfaithful responses."""
