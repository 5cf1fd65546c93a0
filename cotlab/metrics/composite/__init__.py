"""The composite reliability score."""
