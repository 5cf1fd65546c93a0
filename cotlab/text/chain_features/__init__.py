"""Features of chains and of their steps as texts: length, wording, numbers, overlap, equations."""
