"""Consistency of chains across paraphrases of a question."""
