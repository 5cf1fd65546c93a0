"""The verdict on a run: what may be believed of its model's chains of thought, and why."""
