"""Models in this process: any Hugging Face folder or hub id, and the organisms that ship with the project."""
