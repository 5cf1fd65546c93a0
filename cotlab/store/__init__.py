"""The store: suites, runs and scores in DuckDB; replies and live state in SQLite."""
