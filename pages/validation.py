"""Validation: what each metric says of models whose faithfulness is known."""

from cotlab.ui import components as parts
from cotlab.ui import validation

parts.head("Validation", "Can the metrics be trusted?")
latest = validation.load_report()
if latest is not None:
    validation.render_overview(latest)
    metrics = validation.select_validation_metrics(latest)
    if len(metrics) == 1:
        validation.render_metric(latest, metrics[0])
    else:
        validation.render_gallery(latest, metrics)
