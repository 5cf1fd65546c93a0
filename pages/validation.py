"""Validation: the metrics tested on models of known faithfulness."""

from cotlab.ui import components, validation

components.head("Validation", "Can the metrics be trusted?")
latest = validation.load_report()
if latest is not None:
    validation.render_overview(latest)
    metrics = validation.select_validation_metrics(latest)
    if len(metrics) == 1:
        validation.render_metric(latest, metrics[0])
    else:
        validation.render_gallery(latest, metrics)
