"""Measure whether the metrics tell models that follow their chain from models that do not.

The models are organisms: tiny models trained to a known faithfulness.
"""
