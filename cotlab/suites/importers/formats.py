"""Import a suite file of any format, by the format's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.errors import UnknownName
from cotlab.core.types import Item, Suite
from cotlab.suites.importers.benchmarks import BENCHMARKS, Format, read_gsm8k
from cotlab.suites.importers.chains import ChainFields, read_chain, read_chains, read_question
from cotlab.suites.importers.records import Record, SplitSteps, number_draws
from cotlab.suites.jsonl import collect_items
from cotlab.suites.shipped import open_suite_file, unusable_file_error
from cotlab.suites.strict_json import DefectReporter

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
    """Import a file of a format, or a folder of a benchmark's files.

    Parameters
    ----------
    kind : str
        One of ``IMPORT_FORMATS``.
    path : str or Path
        A JSON array of objects or JSONL, or as a benchmark is published; of a folder, its ``.json``
        files in the order of their names. Where each file is a set, as always of a folder of
        several, its name is the category of items that have none.
    fields : ChainFields, optional
        Names of the fields, for ``FORMATS_WITH_FIELDS``.
    split : callable
        Text of a chain -> texts of its steps.
    good_lines : bool
        Leave out defective records instead of rejecting the file; a log of Inspect has none.

    Returns
    -------
    Suite
        Fields that are not read are ``Item.meta``; one that is a field of our own format gets the
        prefix ``source_``. Without an id of its own an item has the file's stem and its position,
        ``stem-0000`` first.

    Raises
    ------
    UnknownName
        If there is no such format.
    SuiteErrors
        Every defect of the file with its field.
    """
    if kind == "inspect":
        from cotlab.suites.importers.logs import import_inspect

        return import_inspect(path, split=split)
    file_format, folder = _find_format(kind, fields or ChainFields()), Path(path)
    files = [folder]
    if kind in BENCHMARKS and folder.is_dir():
        files = sorted(folder.glob("*.json"))
    if not files:
        raise unusable_file_error(path, "holds no .json file")
    items: list[Item] = []
    for file in files:

        def convert(
            record: Mapping[str, Any], position: int, report: DefectReporter, stem: str = file.stem
        ) -> Item:
            default_id = f"{stem}-{position:04d}"
            return file_format.convert(Record(record, report, default_id, split))

        with open_suite_file(file) as stream:
            file_items = collect_items(
                stream, str(file), convert, good_lines=good_lines, read=file_format.read
            )
        names_set = file_format.files_are_sets or len(files) > 1
        items += [
            replace(item, category=item.category or (file.stem if names_set else ""))
            for item in file_items
        ]
    return Suite.from_items(folder.stem, number_draws(items) if file_format.counts_draws else items)


def _find_format(kind: str, fields: ChainFields) -> Format:
    if kind == "gsm8k":
        return Format(read_gsm8k, counts_draws=False)
    if kind == "qa":
        return Format(partial(read_question, fields), counts_draws=False)
    if kind == "chains":
        return Format(partial(read_chain, fields), partial(read_chains, fields))
    if kind not in BENCHMARKS:
        raise UnknownName("format", kind, IMPORT_FORMATS)
    return BENCHMARKS[kind]
