"""Suites: read and written as JSONL, shipped with cotlab, or imported from other formats."""

from cotlab.suites.importers.logs import import_inspect
from cotlab.suites.importers.question_answer import import_gsm8k, import_qa
from cotlab.suites.jsonl import load_suite, parse_suite, write_suite
from cotlab.suites.shipped import file_sha256, find_suite, shipped_suites

__all__ = [
    "file_sha256",
    "find_suite",
    "import_gsm8k",
    "import_inspect",
    "import_qa",
    "load_suite",
    "parse_suite",
    "shipped_suites",
    "write_suite",
]
