"""Step ablation: which steps of a chain the answer depends on."""
