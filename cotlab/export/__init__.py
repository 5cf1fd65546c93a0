"""Files to take away: figures with their recipes, tables as CSV, LaTeX and Markdown."""
