"""The report of a run as text, written item by item: report.json and report.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, TextIO

from cotlab.analysis.markdown import item_lines, render_markdown
from cotlab.analysis.report_items import (
    FurtherScores,
    ItemScores,
    StepScore,
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
    items = _written_items(view, markdown_file) if "items" in report else iter(())
    if json_file is None:
        for _ in items:  # each writes its lines of Markdown
            pass
        return
    separator = "{\n "
    for name, value in report.items():
        json_file.write(f"{separator}{_json_text(name)}: ")
        separator = ",\n "
        if name == "items":
            _write_list(json_file, (_item_text(item, 2) for item in items), 2)
        elif name == "further_scores":
            _write_further_scores(json_file, further_scores(view))
        else:
            json_file.write(_json_text(value, 1))
    json_file.write("\n}\n")


def _written_items(view: RunView, markdown_file: TextIO | None) -> Iterator[ItemScores]:
    """Yield the items, each with its lines of Markdown written."""
    for item in report_items(view):
        if markdown_file is not None:
            markdown_file.write("\n" + "\n".join(item_lines(item.as_json())))
        yield item


def _write_further_scores(file: TextIO, sections: Iterable[FurtherScores]) -> None:
    separator, end = "[\n  ", "[]"
    for part in sections:
        mode, metric = _json_text(part.mode), _json_text(part.metric)
        file.write(f'{separator}{{\n   "mode": {mode},\n   "metric": {metric},\n   "items": ')
        _write_list(file, (_item_text(item, 4) for item in part.items), 4)
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


def _item_text(item: ItemScores, indent: int) -> str:
    """Return an item as ``json.dumps`` with an indent of 1 does, at a depth, in less time."""
    steps = [_step_text(step, _json_text(item.metric), indent + 2) for step in item.steps]
    fields = [
        f'"item_id": {_json_text(item.item_id)}',
        f'"step_scores": {_block("[]", steps, indent + 1)}',
        *(f'"{name}": {_json_text(value, indent + 1)}' for name, value in item.outputs.items()),
    ]
    return _block("{}", fields, indent)


def _step_text(step: StepScore, metric: str, indent: int) -> str:
    score, reasons = "null", []
    if step.score is None:
        reasons = [f'"reason": {_json_text(step.reason)}']
    elif math.isfinite(step.score):
        score = repr(step.score)
    else:
        raise ValueError("a score must be finite")
    fields = (
        f'"step_index": {"null" if step.step is None else step.step}',
        f'"score": {score}',
        f'"metric": {metric}',
        f'"status": {_json_text(step.status)}',
        *reasons,
    )
    return _block("{}", fields, indent)


def _block(brackets: str, texts: Sequence[str], indent: int) -> str:
    """Return texts within brackets, one a line, at a depth."""
    if not texts:
        return brackets
    space = "\n" + " " * (indent + 1)
    return f"{brackets[0]}{space}{f',{space}'.join(texts)}\n{' ' * indent}{brackets[1]}"


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=1)


def _json_text(value: Any, indent: int = 0) -> str:
    """Return a value as JSON text at a depth; line breaks within texts are escaped."""
    if value is None or isinstance(value, str):
        return "null" if value is None else encode_basestring(value)
    text = _ENCODER.encode(value)
    return text.replace("\n", "\n" + " " * indent) if indent else text
