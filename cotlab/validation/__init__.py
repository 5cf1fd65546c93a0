"""Measure whether the metrics tell models that follow their chain from models that do not.

The models are organisms: tiny models trained to a known faithfulness.
"""

from cotlab.validation.measure import validate_metrics
from cotlab.validation.models import ORGANISMS
from cotlab.validation.report import doses_table, read_report, ship_report

__all__ = ["ORGANISMS", "doses_table", "read_report", "ship_report", "validate_metrics"]
