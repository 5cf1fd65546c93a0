"""The report of a run as text, written item by item: report.json and report.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from json.encoder import encode_basestring
from typing import Any, TextIO

from cotlab.analysis.markdown import item_lines, render_markdown
from cotlab.analysis.report_items import (
    FurtherScores,
    StepTable,
    further_scores,
    report_items,
)
from cotlab.analysis.view import RunView


def write_report_texts(
    report: Mapping[str, Any],
    view: RunView,
    json_file: TextIO | None = None,
    markdown_file: TextIO | None = None,
) -> None:
    """Write a report as JSON, as Markdown or both, and read its items meanwhile.

    Parameters
    ----------
    report : mapping
        As ``build_report`` gives it.
    view : RunView
        The run, whose items are written one by one.
    json_file, markdown_file : text file, optional
        Where each goes.
    """
    if markdown_file is not None:
        markdown_file.write(render_markdown(report))
    if json_file is None:
        if markdown_file is not None and "items" in report:
            markdown_file.writelines(map(_item_markdown, report_items(view)))
        return
    separator = "{\n "
    for name, value in report.items():
        json_file.write(f"{separator}{_json_text(name)}: ")
        separator = ",\n "
        if name == "items":
            _write_list(json_file, _item_pieces(view, markdown_file), 2)
        elif name == "further_scores":
            _write_further_scores(json_file, further_scores(view))
        else:
            json_file.write(_json_text(value, 1))
    json_file.write("\n}\n")


def _item_markdown(item: Mapping[str, Any]) -> str:
    return "\n" + "\n".join(item_lines(item))


def _item_pieces(view: RunView, markdown_file: TextIO | None) -> Iterator[str]:
    """Yield the text of each item, and write its lines of Markdown."""
    for item in report_items(view):
        if markdown_file is not None:
            markdown_file.write(_item_markdown(item))
        yield _item_text(item, 2)


def _write_further_scores(file: TextIO, sections: Iterable[FurtherScores]) -> None:
    separator, end = "[\n  ", "[]"
    for part in sections:
        mode, metric = _json_text(part.mode), _json_text(part.metric)
        file.write(f'{separator}{{\n   "mode": {mode},\n   "metric": {metric},\n   "items": ')
        _write_list(file, _scored_item_texts(part.table, 4), 4)
        file.write("\n  }")
        separator, end = ",\n  ", "\n ]"
    file.write(end)


def _write_list(file: TextIO, texts: Iterable[str], indent: int) -> None:
    """Write texts of JSON values as a list whose entries are indented by ``indent``."""
    separator, end = f"[\n{' ' * indent}", "[]"
    for text in texts:
        file.write(f"{separator}{text}")
        separator, end = f",\n{' ' * indent}", f"\n{' ' * (indent - 1)}]"
    file.write(end)


def _item_text(item: Mapping[str, Any], indent: int) -> str:
    """Return an item as ``json.dumps`` with an indent of 1 does, at a depth, in less time."""
    space = "\n" + " " * (indent + 1)
    entries = []
    for name, value in item.items():
        if name == "step_scores":
            texts = [_record_text(record, indent + 2) for record in value]
            text = f"[{space} {f',{space} '.join(texts)}{space}]" if texts else "[]"
        elif isinstance(value, dict):
            texts = [f"{_json_text(key)}: {_json_text(text)}" for key, text in value.items()]
            text = f"{{{space} {f',{space} '.join(texts)}{space}}}" if texts else "{}"
        else:
            text = _json_text(value)
        entries.append(f'{space}"{name}": {text}')
    return f"{{{','.join(entries)}\n{' ' * indent}}}"


def _scored_item_texts(table: StepTable, indent: int) -> Iterator[str]:
    """Yield each item with the scores of its steps, as ``_item_text`` has them.

    Millions of steps have few texts: each is made once, as long as there is room.
    """
    space, end = "\n" + " " * (indent + 1), "\n" + " " * indent
    texts = _StepTexts(table.metric, indent + 2)
    steps = zip(table.steps, table.scores, table.statuses, table.reasons, strict=True)
    step_texts = map(texts.__getitem__, steps)
    for item_id, entries in table.item_slices():
        own_texts = islice(step_texts, entries.stop - entries.start)
        steps_text = f"[{space} {f',{space} '.join(own_texts)}{space}]"
        item_text = f'{space}"item_id": {encode_basestring(item_id)}'
        yield f'{{{item_text},{space}"step_scores": {steps_text}{end}}}'


class _StepTexts(dict[tuple[Any, ...], str]):
    """The texts of steps of one metric by (step, score, status, reason), made where missing."""

    def __init__(self, metric: str, indent: int) -> None:
        super().__init__()
        self._metric, self._indent = metric, indent

    def __missing__(self, key: tuple[Any, ...]) -> str:
        if len(self) > _MAX_TEXTS:
            self.clear()
        step, score, status, reason = key
        known_reason = reason if score is None else _NO_REASON
        self[key] = text = _step_text(step, score, self._metric, status, known_reason, self._indent)
        return text


def _record_text(record: Mapping[str, Any], indent: int) -> str:
    """Return the score of a step, a flat object of numbers and texts."""
    return _step_text(
        record["step_index"],
        record["score"],
        record["metric"],
        record["status"],
        record.get("reason", _NO_REASON),
        indent,
    )


def _step_text(
    step: int | None,
    score: float | None,
    metric: str,
    status: str,
    reason: str | None | object,
    indent: int,
) -> str:
    before, after = _around_score(step, metric, status, reason, indent)
    if score is None:
        return f"{before}null{after}"
    if not math.isfinite(score):
        raise ValueError("a score must be finite")
    return f"{before}{float.__repr__(score)}{after}"


@lru_cache(maxsize=4096)
def _around_score(
    step: int | None, metric: str, status: str, reason: str | None | object, indent: int
) -> tuple[str, str]:
    """Return the text of a step before and after its score: few of them are in a report."""
    space = "\n" + " " * (indent + 1)
    before = f'{{{space}"step_index": {_json_text(step)},{space}"score": '
    after = f',{space}"metric": {_json_text(metric)},{space}"status": {_json_text(status)}'
    if reason is not _NO_REASON:
        after += f',{space}"reason": {_json_text(reason)}'
    return before, f"{after}\n{' ' * indent}}}"


_MAX_TEXTS = 100_000
"""Texts of steps that are remembered."""
_NO_REASON = object()
"""Stands for the reason of a step that has a score."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)


def _json_text(value: Any, indent: int = 0) -> str:
    """Return a value as JSON text at a depth; line breaks within texts are escaped."""
    if value is None or isinstance(value, str):
        return "null" if value is None else encode_basestring(value)
    text = _ENCODER.encode(value)
    return text.replace("\n", "\n" + " " * indent) if indent else text
