"""Read the files of a published study that fine-tuned a model on unfaithful reasoning.

There are three kinds of JSON file, told apart by their content: a comparison (prompts and the
responses of the base and a fine-tuned model), an interpretability file (one detector's score of
each prompt for one model), and an analysis (word counts and a judge's scores of one comparison).
A row has the same position in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cotlab.core.errors import SuiteError, SuiteErrors
from cotlab.suites.shipped import open_suite_file, printable

MAX_BYTES = 64 * 2**20
MAX_ROWS = 100_000
_EPOCH = re.compile(r"epochs?[_-]?(\d{1,4})(?!\d)")
"""The epoch in an adapter's name: models/NAME_epoch1, epochs-3."""
Row = Mapping[str, Any]


@dataclass(slots=True)
class State:
    """What is published of one model. Sequences have one entry a row."""

    epoch: int
    """Epochs of fine-tuning; 0 is the base model."""
    model: str
    """Name of the model."""
    responses: tuple[str, ...] = ()
    """The model's responses."""
    detectors: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Detector → its scores."""
    failed: dict[str, int] = field(default_factory=dict)
    """Detector → rows in which it failed; the study scored them."""
    process: tuple[int, ...] = ()
    """Counts of words about the process."""
    result: tuple[int, ...] = ()
    """Counts of words about the result."""
    judge: tuple[float, ...] = ()
    """The judge's scores."""
    base_responses: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """For the base model: epoch of a comparison's other model → the base model's responses there,
    which may be different samples."""


@dataclass(frozen=True, slots=True)
class Study:
    """A published study."""

    base_model: str
    """Name of the base model."""
    prompts: tuple[str, ...]
    """Prompts by row; some occur in several rows."""
    states: tuple[State, ...]
    """The models by epoch."""


def read_json(path: str | Path) -> dict[str, Any]:
    """Read the object of a JSON file.

    Raises
    ------
    SuiteError
        If the file cannot be read or holds no object.
    """
    name = printable(str(path))
    try:
        with open_suite_file(path, limit=MAX_BYTES) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except SuiteErrors as exc:
        raise exc.errors[0] from exc
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as exc:
        raise SuiteError(name, None, "", "is not JSON in UTF-8") from exc
    if not isinstance(value, dict):
        raise SuiteError(name, None, "", "must be a JSON object")
    return value


def read_study(paths: Sequence[str | Path]) -> Study:
    """Combine the files of a study, in any order.

    Raises
    ------
    SuiteError
            If a file is of no known kind, has other prompts than the others, or belongs to a model
        whose
        comparison is missing; the message says what is missing.
    """
    files: list[tuple[str, Row]] = [(printable(str(path)), read_json(path)) for path in paths]
    states: dict[int, State] = {}
    analyses: list[tuple[str, Row]] = []
    prompts: tuple[str, ...] = ()
    base_model = ""
    for name, content in files:
        # Analyses are read last, as they belong to the responses of the other files.
        if "process_vs_result" in content or "llm_judge" in content:
            analyses.append((name, content))
            continue
        metadata, results = _section(content, "metadata", name), _section(content, "results", name)
        model_name = _require_line(metadata.get("base_model"), name, "metadata.base_model")
        if base_model and model_name != base_model:
            other = (
                f"is {printable(model_name, 60)}; the other files are of"
                f" {printable(base_model, 60)}"
            )
            raise SuiteError(name, None, "metadata.base_model", other)
        base_model = model_name
        rows_prompts = (
            _comparison(results, metadata, states, name) if "base_responses" in results else None
        )
        rows_prompts = rows_prompts or _detector(content, results, metadata, states, name)
        if prompts and rows_prompts != prompts:
            raise SuiteError(
                name,
                None,
                "results.prompts",
                "are not the prompts of the other files: rows cannot be matched",
            )
        prompts = rows_prompts
    if not prompts:
        raise SuiteError(
            files[0][0] if files else "",
            None,
            "",
            "no prompts: a comparison or interpretability file is missing",
        )
    for name, content in analyses:
        _analysis(content, states, len(prompts), name)
    _check_states(states, files[0][0])
    return Study(base_model, prompts, tuple(states[epoch] for epoch in sorted(states)))


def _comparison(
    results: Row, metadata: Row, states: dict[int, State], name: str
) -> tuple[str, ...]:
    prompts = _require_texts(results.get("prompts"), name, "results.prompts", None)
    base = _require_texts(
        results.get("base_responses"), name, "results.base_responses", len(prompts)
    )
    tuned = _require_texts(
        results.get("finetuned_responses"), name, "results.finetuned_responses", len(prompts)
    )
    epoch = _epoch(metadata, name)
    if not epoch:
        raise SuiteError(
            name, None, "metadata.adapter_path", "names no epoch, like models/NAME_epoch1"
        )
    first = states.setdefault(0, _state(metadata, 0))
    first.base_responses[epoch] = base
    first.responses = first.base_responses[min(first.base_responses)]
    state = states.setdefault(epoch, _state(metadata, epoch))
    if state.responses not in ((), tuned):
        raise SuiteError(
            name, None, "metadata", f"is a second comparison of epoch {epoch}, with other responses"
        )
    state.responses = tuned
    return prompts


def _detector(
    content: Row, results: Row, metadata: Row, states: dict[int, State], name: str
) -> tuple[str, ...]:
    """Add one detector's scores and return the prompts.

    Every row holds the prompt, the detector's own part, and the score that the study used.
    """
    rows = results.get("prompts")
    if (
        not isinstance(rows, list)
        or not 0 < len(rows) <= MAX_ROWS
        or not all(isinstance(row, dict) for row in rows)
    ):
        raise SuiteError(
            name,
            None,
            "results.prompts",
            "must list one object a prompt, or base_responses are missing",
        )
    detectors = sorted(
        {key for row in rows for key in row} - {"prompt", "overall_unfaithful_score"}
    )
    if len(detectors) != 1:
        raise SuiteError(
            name,
            None,
            "results.prompts[0]",
            f"must hold one detector's part; found {', '.join(detectors) or 'none'}",
        )
    base = content.get("model_type") == "base"
    epoch = 0 if base else _epoch(metadata, name)
    if not base and not epoch:
        raise SuiteError(name, None, "metadata.epochs", "is missing, and model_type is not base")
    scores = tuple(
        _require_number(
            row.get("overall_unfaithful_score"),
            0,
            1,
            name,
            f"results.prompts[{i}].overall_unfaithful_score",
        )
        for i, row in enumerate(rows)
    )
    state = states.setdefault(epoch, _state(metadata, epoch))
    if state.detectors.get(detectors[0], scores) != scores:
        raise SuiteError(
            name,
            None,
            "metadata",
            f"is a second file of {detectors[0]} at epoch {epoch}, with other scores",
        )
    state.detectors[detectors[0]] = scores
    state.failed[detectors[0]] = sum(
        isinstance(row.get(detectors[0]), dict) and "error" in row[detectors[0]] for row in rows
    )
    return _require_texts([row.get("prompt") for row in rows], name, "results.prompts", None)


def _analysis(content: Row, states: Mapping[int, State], n: int, name: str) -> None:
    """Add word counts and a judge's scores to the model whose responses have these lengths."""
    lengths = _section(content, "avg_length", name).get("finetuned_lengths")
    candidates = [
        (state, texts)
        for state in states.values()
        for texts in (state.responses, *state.base_responses.values())
    ]
    matches = [
        (state, texts)
        for state, texts in candidates
        if texts and [len(text) for text in texts] == lengths
    ]
    if not matches:
        raise SuiteError(
            name,
            None,
            "avg_length.finetuned_lengths",
            "are of no responses among the files: the comparison that "
            "this analysis is of is missing",
        )
    if len({state.epoch for state, _ in matches}) > 1:
        raise SuiteError(
            name, None, "avg_length.finetuned_lengths", "fit the responses of several models"
        )
    state, texts = matches[0]
    state.responses = texts
    word_counts = _section(content, "process_vs_result", name)
    for side in ("process", "result"):
        field_ = f"finetuned_{side}_per_response"
        counts = _require_list(word_counts.get(field_), name, f"process_vs_result.{field_}", n)
        values = (
            _require_number(count, 0, 1e7, name, f"process_vs_result.{field_}") for count in counts
        )
        setattr(state, side, tuple(map(int, values)))
    if state.epoch:  # the base model is not judged: it would be compared with itself
        judged = _require_list(
            _section(content, "llm_judge", name).get("scores"), name, "llm_judge.scores", n
        )
        state.judge = tuple(
            _require_number(score, -10, 10, name, "llm_judge.scores") for score in judged
        )


def _check_states(states: Mapping[int, State], name: str) -> None:
    for epoch, state in states.items():
        if epoch and not (state.responses or state.detectors):
            raise SuiteError(name, None, "", f"nothing is there of the model of epoch {epoch}")
    lengths = {len(row) for state in states.values() for row in state.detectors.values()}
    if len(lengths) > 1:
        raise SuiteError(
            name,
            None,
            "",
            f"the detectors' files have different numbers of rows: {sorted(lengths)}",
        )


def _state(metadata: Row, epoch: int) -> State:
    adapter, base = metadata.get("adapter_path"), metadata.get("base_model")
    name = adapter.rsplit("/", 1)[-1] if epoch and isinstance(adapter, str) else base
    return State(
        epoch, name if isinstance(name, str) and name.isprintable() and name else f"epoch {epoch}"
    )


def _epoch(metadata: Row, name: str) -> int:
    """Return the epochs by the metadata or the adapter's name; 0 where neither says."""
    epochs, adapter = metadata.get("epochs"), metadata.get("adapter_path")
    if isinstance(epochs, str | int) and re.fullmatch(r"\d{1,4}", str(epochs)):  # 3 or "3"
        return int(epochs)
    match = _EPOCH.search(adapter) if isinstance(adapter, str) else None
    return int(match[1]) if match else 0


def _section(content: Row, key: str, name: str) -> Row:
    part = content.get(key)
    if not isinstance(part, dict):
        raise SuiteError(
            name,
            None,
            key,
            "is missing: no comparison, interpretability or analysis file of a study",
        )
    return part


def _require_line(value: object, name: str, location: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise SuiteError(name, None, location, "must be a line of text")
    return value


def _require_list(value: object, name: str, location: str, n: int | None) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ROWS:
        raise SuiteError(name, None, location, "must be a list with an entry a prompt")
    if n is not None and len(value) != n:
        raise SuiteError(name, None, location, f"has {len(value)} entries for {n} prompts")
    return value


def _require_texts(value: object, name: str, location: str, n: int | None) -> tuple[str, ...]:
    texts = _require_list(value, name, location, n)
    if not all(isinstance(text, str) for text in texts):
        raise SuiteError(name, None, location, "must hold texts alone")
    return tuple(
        text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�") for text in texts
    )


def _require_number(value: object, lo: float, hi: float, name: str, location: str) -> float:
    # NaN is in no range.
    if isinstance(value, bool) or not isinstance(value, int | float) or not lo <= value <= hi:
        raise SuiteError(
            name,
            None,
            location,
            f"must be a number in [{lo:g}, {hi:g}]; found {printable(repr(value), 40)}",
        )
    return float(value)
