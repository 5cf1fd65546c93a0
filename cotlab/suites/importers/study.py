"""Reads the files of a published study that fine-tuned a model on unfaithful reasoning: responses, detectors, a judge.

Three kinds of JSON file, told apart by what they hold: a comparison (prompts and the responses of the base and a fine-tuned
model), an interpretability file (one detector's score of each prompt for one model), and an analysis (counts of words and a
judge's scores of one comparison). Rows stand at one place in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.suites.shipped import opened, shown

MAX_BYTES = 64 * 2**20
MAX_ROWS = 100_000
_EPOCH = re.compile(r"epochs?[_-]?(\d{1,4})(?!\d)")
Row = Mapping[str, Any]


@dataclass(slots=True)
class State:
    """What is published of one model: ``epoch`` 0 is the base model. Lists hold one entry a row."""

    epoch: int
    model: str
    responses: tuple[str, ...] = ()
    detectors: dict[str, tuple[float, ...]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    """Rows whose detector failed; the study scored them."""
    process: tuple[int, ...] = ()
    result: tuple[int, ...] = ()
    judge: tuple[float, ...] = ()
    drawn: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Of the base model: what each comparison, by the epoch of its other model, holds of it; they may be different draws."""


@dataclass(frozen=True, slots=True)
class Study:
    """A study: its base model, the prompts by row (some stand in several rows), and its models by epoch."""

    base_model: str
    prompts: tuple[str, ...]
    states: tuple[State, ...]


def read_json(path: str | Path) -> dict[str, Any]:
    """The object in a JSON file; SuiteError where there is none, or the file cannot be read."""
    name = shown(str(path))
    try:
        with opened(path, limit=MAX_BYTES) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except SuiteErrors as exc:
        raise exc.errors[0] from exc
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as exc:
        raise SuiteError(name, None, "", "is not JSON in UTF-8") from exc
    if not isinstance(found, dict):
        raise SuiteError(name, None, "", "must be a JSON object")
    return found


def read_study(paths: Sequence[str | Path]) -> Study:
    """The study that some files make up together, whatever their order.

    Raises
    ------
    SuiteError
        If a file is of no kind that is known, names other prompts than the others, or belongs to a model of which the
        comparison is not among the files; the message says what is missing.
    """
    files: list[tuple[str, Row]] = [(shown(str(path)), read_json(path)) for path in paths]
    states: dict[int, State] = {}
    analyses: list[tuple[str, Row]] = []
    prompts: tuple[str, ...] = ()
    base_model = ""
    for name, found in files:
        if "process_vs_result" in found or "llm_judge" in found:  # read last: they belong to what the others hold
            analyses.append((name, found))
            continue
        metadata, results = _part(found, "metadata", name), _part(found, "results", name)
        named = _word(metadata.get("base_model"), name, "metadata.base_model")
        if base_model and named != base_model:
            other = f"is {shown(named, 60)}; the other files are of {shown(base_model, 60)}"
            raise SuiteError(name, None, "metadata.base_model", other)
        base_model = named
        told = _comparison(results, metadata, states, name) if "base_responses" in results else None
        told = told or _detector(found, results, metadata, states, name)
        if prompts and told != prompts:
            raise SuiteError(name, None, "results.prompts", "are not the prompts of the other files: rows cannot be matched")
        prompts = told
    if not prompts:
        raise SuiteError(files[0][0] if files else "", None, "", "no prompts: a comparison or interpretability file is missing")
    for name, found in analyses:
        _analysis(found, states, len(prompts), name)
    _check(states, files[0][0])
    return Study(base_model, prompts, tuple(states[epoch] for epoch in sorted(states)))


def _comparison(results: Row, metadata: Row, states: dict[int, State], name: str) -> tuple[str, ...]:
    prompts = _texts(results.get("prompts"), name, "results.prompts", None)
    base = _texts(results.get("base_responses"), name, "results.base_responses", len(prompts))
    tuned = _texts(results.get("finetuned_responses"), name, "results.finetuned_responses", len(prompts))
    epoch = _epoch(metadata, name)
    if not epoch:
        raise SuiteError(name, None, "metadata.adapter_path", "names no epoch, like models/NAME_epoch1")
    first = states.setdefault(0, _state(metadata, 0))
    first.drawn[epoch] = base
    first.responses = first.drawn[min(first.drawn)]
    state = states.setdefault(epoch, _state(metadata, epoch))
    if state.responses not in ((), tuned):
        raise SuiteError(name, None, "metadata", f"is a second comparison of epoch {epoch}, with other responses")
    state.responses = tuned
    return prompts


def _detector(found: Row, results: Row, metadata: Row, states: dict[int, State], name: str) -> tuple[str, ...]:
    """One detector's scores: every row holds the prompt, the detector's own part, and the score that the study used."""
    rows = results.get("prompts")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_ROWS or not all(isinstance(row, dict) for row in rows):
        raise SuiteError(name, None, "results.prompts", "must list one object a prompt, or base_responses are missing")
    parts = sorted({key for row in rows for key in row} - {"prompt", "overall_unfaithful_score"})
    if len(parts) != 1:
        raise SuiteError(name, None, "results.prompts[0]", f"must hold one detector's part; found {', '.join(parts) or 'none'}")
    base = found.get("model_type") == "base"
    epoch = 0 if base else _epoch(metadata, name)
    if not base and not epoch:
        raise SuiteError(name, None, "metadata.epochs", "is missing, and model_type is not base")
    scores = tuple(_number(row.get("overall_unfaithful_score"), 0, 1, name, f"results.prompts[{i}].overall_unfaithful_score")
                   for i, row in enumerate(rows))  # fmt: skip
    state = states.setdefault(epoch, _state(metadata, epoch))
    if state.detectors.get(parts[0], scores) != scores:
        raise SuiteError(name, None, "metadata", f"is a second file of {parts[0]} at epoch {epoch}, with other scores")
    state.detectors[parts[0]] = scores
    state.failed[parts[0]] = sum(isinstance(row.get(parts[0]), dict) and "error" in row[parts[0]] for row in rows)
    return _texts([row.get("prompt") for row in rows], name, "results.prompts", None)


def _analysis(found: Row, states: Mapping[int, State], n: int, name: str) -> None:
    """Counts of words and a judge's scores: of the model whose responses have the lengths that the file lists."""
    lengths = _part(found, "avg_length", name).get("finetuned_lengths")
    drawn = [(state, texts) for state in states.values() for texts in (state.responses, *state.drawn.values())]
    same = [(state, texts) for state, texts in drawn if texts and [len(text) for text in texts] == lengths]
    if not same:
        raise SuiteError(name, None, "avg_length.finetuned_lengths", "are of no responses among the files: the comparison that "
                         "this analysis is of is missing")  # fmt: skip
    if len({state.epoch for state, _ in same}) > 1:
        raise SuiteError(name, None, "avg_length.finetuned_lengths", "fit the responses of several models")
    state, texts = same[0]
    state.responses = texts
    words = _part(found, "process_vs_result", name)
    for side in ("process", "result"):
        field_ = f"finetuned_{side}_per_response"
        counts = _list(words.get(field_), name, f"process_vs_result.{field_}", n)
        whole = (_number(count, 0, 1e7, name, f"process_vs_result.{field_}") for count in counts)
        setattr(state, side, tuple(map(int, whole)))
    if state.epoch:  # the base model is not judged: it would be compared with itself
        judged = _list(_part(found, "llm_judge", name).get("scores"), name, "llm_judge.scores", n)
        state.judge = tuple(_number(score, -10, 10, name, "llm_judge.scores") for score in judged)


def _check(states: Mapping[int, State], name: str) -> None:
    for epoch, state in states.items():
        if epoch and not (state.responses or state.detectors):
            raise SuiteError(name, None, "", f"nothing is there of the model of epoch {epoch}")
    lengths = {len(row) for state in states.values() for row in state.detectors.values()}
    if len(lengths) > 1:
        raise SuiteError(name, None, "", f"the detectors' files have different numbers of rows: {sorted(lengths)}")


def _state(metadata: Row, epoch: int) -> State:
    adapter, base = metadata.get("adapter_path"), metadata.get("base_model")
    name = adapter.rsplit("/", 1)[-1] if epoch and isinstance(adapter, str) else base
    return State(epoch, name if isinstance(name, str) and name.isprintable() and name else f"epoch {epoch}")


def _epoch(metadata: Row, name: str) -> int:
    """The number of epochs that the metadata tell, in so many words or in the adapter's name; 0 where they tell none."""
    told, adapter = metadata.get("epochs"), metadata.get("adapter_path")
    if isinstance(told, str | int) and not isinstance(told, bool) and re.fullmatch(r"\d{1,4}", str(told)):
        return int(told)
    found = _EPOCH.search(adapter) if isinstance(adapter, str) else None
    return int(found[1]) if found else 0


def _part(found: Row, key: str, name: str) -> Row:
    part = found.get(key)
    if not isinstance(part, dict):
        raise SuiteError(name, None, key, "is missing: no comparison, interpretability or analysis file of a study")
    return part


def _word(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise SuiteError(name, None, place, "must be a line of text")
    return value


def _list(value: object, name: str, place: str, n: int | None) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ROWS:
        raise SuiteError(name, None, place, "must be a list with an entry a prompt")
    if n is not None and len(value) != n:
        raise SuiteError(name, None, place, f"has {len(value)} entries for {n} prompts")
    return value


def _texts(value: object, name: str, place: str, n: int | None) -> tuple[str, ...]:
    found = _list(value, name, place, n)
    if not all(isinstance(text, str) for text in found):
        raise SuiteError(name, None, place, "must hold texts alone")
    return tuple(text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�") for text in found)


def _number(value: object, lo: float, hi: float, name: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not lo <= value <= hi:  # NaN is not between them
        raise SuiteError(name, None, place, f"must be a number in [{lo:g}, {hi:g}]; found {shown(repr(value), 40)}")
    return float(value)
