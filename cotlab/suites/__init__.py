"""Suites: read and written as JSONL, shipped with cotlab, or imported from other formats."""

from cotlab.suites.importers.formats import import_suite_file
from cotlab.suites.importers.logs import import_inspect
from cotlab.suites.jsonl import load_suite, write_suite
from cotlab.suites.shipped import file_sha256, find_suite, shipped_suites

__all__ = [
    "file_sha256",
    "find_suite",
    "import_inspect",
    "import_suite_file",
    "load_suite",
    "shipped_suites",
    "write_suite",
]
