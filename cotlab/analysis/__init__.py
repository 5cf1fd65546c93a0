"""Runs as stored: views, tables, comparisons and reports."""
