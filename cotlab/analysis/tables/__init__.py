"""One function a table: for pages, reports, figures and files."""
