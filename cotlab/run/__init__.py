"""Carry out a plan: send its requests, store its scores, compute its estimates."""
