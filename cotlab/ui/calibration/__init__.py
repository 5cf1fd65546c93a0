"""The tab Calibrate."""
