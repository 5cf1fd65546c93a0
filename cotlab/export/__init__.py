"""What a run can be taken away as: which figures it has, their tables, captions and recipes, and the files of each."""
