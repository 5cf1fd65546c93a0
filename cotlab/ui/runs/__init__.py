"""The pages Runs and Run."""
