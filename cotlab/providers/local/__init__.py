"""Models in this process: Hugging Face folders or hub ids, and the shipped organisms."""
