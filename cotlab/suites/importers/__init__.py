"""Importers of suites from other formats."""
