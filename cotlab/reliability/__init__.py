"""From composite score to decision: calibration, weights, thresholds, policy, choice of labels."""
