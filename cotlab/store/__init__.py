"""What is kept: suites, runs, scores and estimates in DuckDB; replies and live state in SQLite. The only database imports."""
