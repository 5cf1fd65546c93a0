"""Numbers, equations and units in chains: read, checked and recomputed."""
