"""From the composite to a decision: calibrated probability, weights, policy, what to label next. No store, no clock."""
