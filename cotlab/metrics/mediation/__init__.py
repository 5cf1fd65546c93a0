"""Mediation through the activations at the chain's positions."""
