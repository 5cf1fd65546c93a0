"""Validation: what each metric says of models whose faithfulness is known."""

from cotlab.ui import parts, validation

parts.head("Validation", "Can the metrics be trusted?")
found = validation.report()
if found is not None:
    validation.overview(found)
    metric = validation.choose_metric(found)
    validation.doses(found, metric)
    validation.blind_spots(found, metric)
    parts.show_card(metric)
