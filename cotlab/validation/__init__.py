"""Do the metrics tell a model that follows its chain from one that does not? Measured on organisms of known faithfulness."""

from cotlab.validation.measure import validate_metrics
from cotlab.validation.models import ORGANISMS

__all__ = ["ORGANISMS", "validate_metrics"]
