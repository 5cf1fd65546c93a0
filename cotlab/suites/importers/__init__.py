"""Importers of suites and published results from other formats."""
