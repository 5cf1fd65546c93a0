"""Calibration: whether calibrated scores mean what they say, the labels behind them, and the versions of the calibrator."""

from cotlab.ui import components as parts
from cotlab.ui.calibration import fit as calibration
from cotlab.ui.calibration import versions as calibration_versions

parts.head("Calibration", "Does a score of 0.8 mean that 8 of 10 such chains are acceptable?")
shown = calibration.found()
if shown is not None:
    calibration.answer(shown)
    calibration.labels(shown)
    calibration.histogram(shown)
    calibration.methods(shown)
    calibration.domains(shown)
    calibration.weights(shown)
    calibration_versions.versions(shown)
    calibration.fine_print(shown)
