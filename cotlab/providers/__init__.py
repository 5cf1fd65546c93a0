"""Providers answer requests, one vendor a file; their errors become ``ProviderError``."""
