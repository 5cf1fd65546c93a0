"""Review by people: labels and their queues, calibration, decisions and drift."""
