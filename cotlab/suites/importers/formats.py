"""Import a suite file of any format, by the format's name."""

from __future__ import annotations

from pathlib import Path

from cotlab.core.errors import UnknownName
from cotlab.core.types import Suite
from cotlab.suites.importers.benchmarks import BENCHMARKS, import_benchmark
from cotlab.suites.importers.chains import ChainFields, SplitSteps, import_chains
from cotlab.suites.importers.question_answer import import_gsm8k, import_qa

IMPORT_FORMATS = ("gsm8k", "qa", "inspect", "chains", *BENCHMARKS)
"""Formats that become suites."""
FORMATS_WITH_FIELDS = ("qa", "chains")
"""Formats whose fields have names of their own."""


def import_suite_file(
    kind: str,
    path: str | Path,
    fields: ChainFields | None = None,
    *,
    split: SplitSteps,
    good_lines: bool = False,
) -> Suite:
    """Import a file of a format.

    Parameters
    ----------
    kind : str
        One of ``IMPORT_FORMATS``.
    path : str or Path
    fields : ChainFields, optional
        Names of the fields, for ``FORMATS_WITH_FIELDS``.
    split : callable
        Text of a chain -> texts of its steps.
    good_lines : bool
        Leave out defective records instead of rejecting the file; a log of Inspect has none.

    Raises
    ------
    UnknownName
        If there is no such format.
    SuiteErrors
        Every defect of the file.
    """
    fields = fields or ChainFields()
    if kind == "gsm8k":
        return import_gsm8k(path, good_lines=good_lines)
    if kind == "qa":
        return import_qa(
            path,
            question=fields.question,
            chain=fields.chain,
            answer=fields.answer or "answer",
            id=fields.id,
            split=split,
            good_lines=good_lines,
        )
    if kind == "chains":
        return import_chains(path, fields, split=split, good_lines=good_lines)
    if kind in BENCHMARKS:
        return import_benchmark(kind, path, split=split, good_lines=good_lines)
    if kind != "inspect":
        raise UnknownName("format", kind, IMPORT_FORMATS)
    from cotlab.suites.importers.logs import import_inspect

    return import_inspect(path, split=split)
