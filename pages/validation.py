"""Validation: what each metric says of models whose faithfulness is known."""

from cotlab.ui import components as parts
from cotlab.ui import validation

parts.head("Validation", "Can the metrics be trusted?")
found = validation.report()
if found is not None:
    validation.overview(found)
    metrics = validation.choose(found)
    if len(metrics) == 1:
        validation.one(found, metrics[0])
    else:
        validation.gallery(found, metrics)
