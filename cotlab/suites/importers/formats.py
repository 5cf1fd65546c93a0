"""Import a suite file of any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cotlab.core.errors import UnknownName
from cotlab.core.types import Item, Suite
from cotlab.suites.importers.benchmarks import BENCHMARKS, Format
from cotlab.suites.importers.door import INSPECT, OWN_FORMAT, ROWS, Form
from cotlab.suites.importers.records import Record, SplitSteps, number_draws
from cotlab.suites.importers.rows import read_row, read_rows
from cotlab.suites.jsonl import collect_items, load_suite
from cotlab.suites.shipped import open_suite_file, unusable_file_error
from cotlab.suites.strict_json import DefectReporter

IMPORT_FORMATS = (OWN_FORMAT, ROWS, INSPECT, *BENCHMARKS)
"""Formats that become suites."""


def import_suite_file(
    form: Form | str, path: str | Path, *, split: SplitSteps, good_lines: bool = False
) -> Suite:
    """Import a file of a format, or a folder of a benchmark's files.

    Parameters
    ----------
    form : Form or str
        What `detect_form` says of the file, or one of ``IMPORT_FORMATS`` whose fields have names
        of their own.
    path : str or Path
        JSON, JSON Lines, CSV or Parquet, or as a benchmark is published; of a folder, its ``.json``
        files in the order of their names. Where each file is a set, as always of a folder of
        several, its name is the category of items that have none.
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
    form = Form(form) if isinstance(form, str) else form
    if form.format == INSPECT:
        from cotlab.suites.importers.logs import import_inspect

        return import_inspect(path, split=split)
    if form.format == OWN_FORMAT:
        return load_suite(path, good_lines=good_lines, chain="own")
    file_format, folder = _find_format(form, path), Path(path)
    files = [folder]
    if form.format in BENCHMARKS and folder.is_dir():
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


def _find_format(form: Form, path: str | Path) -> Format:
    if form.format != ROWS:
        if form.format not in BENCHMARKS:
            raise UnknownName("format", form.format, IMPORT_FORMATS)
        return BENCHMARKS[form.format]
    if form.columns.question is None:
        names = ", ".join(form.fields)
        raise unusable_file_error(
            path, f"no column is named as a question is; say which it is. The columns are {names}"
        )
    return Format(partial(read_row, form.columns), partial(read_rows, form.columns))
