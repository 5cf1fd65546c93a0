"""Seeded edits of steps: ablations, perturbations and other names."""
