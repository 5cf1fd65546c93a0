"""Stored metrics of labelled chains, held against the labels."""
