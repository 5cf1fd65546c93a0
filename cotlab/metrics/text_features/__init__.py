"""Features of a chain as a text, each a metric: raw material of a combined fit, never a verdict."""
