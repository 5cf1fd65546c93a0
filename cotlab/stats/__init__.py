"""Intervals and tests: every number with its interval, or the reason why it has none.

Statsmodels and scipy do the arithmetic; point and interval estimate the same quantity.
"""
