"""Release: calibrated probabilities, decisions under a policy, drift and re-audits."""
