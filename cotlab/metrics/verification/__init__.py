"""Verification of the links of a chain."""

from cotlab.metrics.verification.scorer import first_mistake

__all__ = ["first_mistake"]
