"""Labelling: queues of items, raters' labels, their agreement, and targets for calibration."""
