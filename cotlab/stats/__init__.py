"""Intervals and tests. statsmodels and scipy do the arithmetic; point and interval estimate the same quantity."""
