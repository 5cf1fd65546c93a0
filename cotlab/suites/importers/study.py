"""Read the files of a published study that fine-tuned a model on unfaithful reasoning.

There are three kinds of JSON file, told apart by their content: a comparison (prompts and the
responses of the base and a fine-tuned model), an interpretability file (one detector's score of
each prompt for one model), and an analysis (word counts and a judge's scores of one comparison). A
row has the same position in all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cotlab.core.errors import SuiteError
from cotlab.suites.shipped import printable_text, read_file_bytes

MAX_STUDY_BYTES = 64 * 2**20
MAX_ROWS = 100_000
_EPOCH_PATTERN = re.compile(r"epochs?[_-]?(\d{1,4})(?!\d)")
"""The epoch in an adapter's name: models/NAME_epoch1, epochs-3."""
JsonObject = Mapping[str, Any]
ModelKey = tuple[str, int]
"""Training set and epoch of a model; ("", 0) is the base model."""
BASE_MODEL: ModelKey = ("", 0)


@dataclass(slots=True)
class ModelResults:
    """What is published of one model. Sequences have one entry a row."""

    epoch: int
    """Epochs of fine-tuning; 0 is the base model."""
    model: str
    """Name of the model."""
    responses: tuple[str, ...] = ()
    """The model's responses."""
    scores_by_detector: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Detector → its scores."""
    n_failed_by_detector: dict[str, int] = field(default_factory=dict)
    """Detector → rows in which it failed; the study scored them."""
    process: tuple[int, ...] = ()
    """Counts of words about the process."""
    result: tuple[int, ...] = ()
    """Counts of words about the result."""
    judge_scores: tuple[float, ...] = ()
    """The judge's scores."""
    training_set: str = ""
    """Name of what the model was fine-tuned on; "" of the base model."""
    base_responses_by_comparison: dict[ModelKey, tuple[str, ...]] = field(default_factory=dict)
    """For the base model: (training set, epoch) of a comparison's other model → the base model's
    responses there, which may be different samples."""


@dataclass(frozen=True, slots=True)
class Study:
    """A published study."""

    base_model: str
    """Name of the base model."""
    prompts: tuple[str, ...]
    """Prompts by row; some occur in several rows."""
    model_results: tuple[ModelResults, ...]
    """The models by training set and epoch, the base model first."""

    @property
    def training_sets(self) -> tuple[str, ...]:
        """Names of the training sets."""
        return tuple(dict.fromkeys(m.training_set for m in self.model_results if m.epoch))


def read_json_object(path: str | Path) -> dict[str, Any]:
    """Read the object of a JSON file.

    Raises
    ------
    SuiteError
        If the file cannot be read or holds no object.
    """
    name = printable_text(str(path))
    try:
        value = json.loads(read_file_bytes(path, MAX_STUDY_BYTES).decode("utf-8-sig"))
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
        whose comparison is missing; the message says what is missing.
    """
    files: list[tuple[str, JsonObject]] = [
        (printable_text(str(path)), read_json_object(path)) for path in paths
    ]
    results_by_model: dict[ModelKey, ModelResults] = {}
    analysis_files: list[tuple[str, JsonObject]] = []
    prompts: tuple[str, ...] = ()
    base_model = ""
    for name, content in files:
        # Analyses are read last, as they belong to the responses of the other files.
        if "process_vs_result" in content or "llm_judge" in content:
            analysis_files.append((name, content))
            continue
        metadata = _require_section(content, "metadata", name)
        results = _require_section(content, "results", name)
        model_name = _require_line(metadata.get("base_model"), name, "metadata.base_model")
        if base_model and model_name != base_model:
            model_names = [printable_text(model, 60) for model in (model_name, base_model)]
            message = f"is {model_names[0]}; the other files are of {model_names[1]}"
            raise SuiteError(name, None, "metadata.base_model", message)
        base_model = model_name
        if "base_responses" in results:
            file_prompts = _add_comparison(results, metadata, results_by_model, name)
        else:
            file_prompts = _add_detector(content, results, metadata, results_by_model, name)
        if prompts and file_prompts != prompts:
            raise SuiteError(
                name,
                None,
                "results.prompts",
                "are not the prompts of the other files: rows cannot be matched",
            )
        prompts = file_prompts
    if not prompts:
        raise SuiteError(
            files[0][0] if files else "",
            None,
            "",
            "no prompts: a comparison or interpretability file is missing",
        )
    for name, content in analysis_files:
        _add_analysis(content, results_by_model, len(prompts), name)
    _check_results(results_by_model, files[0][0])
    return Study(
        base_model, prompts, tuple(results_by_model[key] for key in sorted(results_by_model))
    )


def _add_comparison(
    results: JsonObject,
    metadata: JsonObject,
    results_by_model: dict[ModelKey, ModelResults],
    name: str,
) -> tuple[str, ...]:
    prompts = _require_texts(results.get("prompts"), name, "results.prompts", None)
    base_texts, tuned_texts = (
        _require_texts(results.get(key), name, f"results.{key}", len(prompts))
        for key in ("base_responses", "finetuned_responses")
    )
    epoch = _read_epoch(metadata, name)
    if not epoch:
        raise SuiteError(
            name, None, "metadata.adapter_path", "names no epoch, like models/NAME_epoch1"
        )
    key = (_read_training_set(metadata), epoch)
    base_results = results_by_model.setdefault(BASE_MODEL, _empty_results(metadata, BASE_MODEL))
    base_results.base_responses_by_comparison[key] = base_texts
    base_results.responses = base_results.base_responses_by_comparison[
        min(base_results.base_responses_by_comparison)
    ]
    tuned_results = results_by_model.setdefault(key, _empty_results(metadata, key))
    if tuned_results.responses not in ((), tuned_texts):
        message = f"is a second comparison of {_model_text(key)}, with other responses"
        raise SuiteError(name, None, "metadata", message)
    tuned_results.responses = tuned_texts
    return prompts


def _add_detector(
    content: JsonObject,
    results: JsonObject,
    metadata: JsonObject,
    results_by_model: dict[ModelKey, ModelResults],
    name: str,
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
    score_key = "overall_unfaithful_score"
    detectors = sorted({key for row in rows for key in row} - {"prompt", score_key})
    if len(detectors) != 1:
        message = f"must hold one detector's part; found {', '.join(detectors) or 'none'}"
        raise SuiteError(name, None, "results.prompts[0]", message)
    detector = detectors[0]
    is_base = content.get("model_type") == "base"
    epoch = 0 if is_base else _read_epoch(metadata, name)
    if not is_base and not epoch:
        raise SuiteError(name, None, "metadata.epochs", "is missing, and model_type is not base")
    scores = tuple(
        _require_number(row.get(score_key), 0, 1, name, f"results.prompts[{i}].{score_key}")
        for i, row in enumerate(rows)
    )
    key = (_read_training_set(metadata), epoch) if epoch else BASE_MODEL
    model_results = results_by_model.setdefault(key, _empty_results(metadata, key))
    if model_results.scores_by_detector.get(detector, scores) != scores:
        message = f"is a second file of {detector} of {_model_text(key)}, with other scores"
        raise SuiteError(name, None, "metadata", message)
    model_results.scores_by_detector[detector] = scores
    detector_records = [row.get(detector) for row in rows]
    model_results.n_failed_by_detector[detector] = sum(
        isinstance(record, dict) and "error" in record for record in detector_records
    )
    return _require_texts([row.get("prompt") for row in rows], name, "results.prompts", None)


def _add_analysis(
    content: JsonObject,
    results_by_model: Mapping[ModelKey, ModelResults],
    n_prompts: int,
    name: str,
) -> None:
    """Add word counts and a judge's scores to the model whose responses have these lengths."""
    lengths = _require_section(content, "avg_length", name).get("finetuned_lengths")
    matches = [
        (model_results, texts)
        for model_results in results_by_model.values()
        for texts in (model_results.responses, *model_results.base_responses_by_comparison.values())
        if texts and [len(text) for text in texts] == lengths
    ]
    if not matches:
        raise SuiteError(
            name,
            None,
            "avg_length.finetuned_lengths",
            "are of no responses among the files: the comparison that this analysis is of is"
            " missing",
        )
    if len({(results.training_set, results.epoch) for results, _ in matches}) > 1:
        raise SuiteError(
            name, None, "avg_length.finetuned_lengths", "fit the responses of several models"
        )
    model_results, texts = matches[0]
    model_results.responses = texts
    word_counts = _require_section(content, "process_vs_result", name)
    for word_kind in ("process", "result"):
        counts_key = f"finetuned_{word_kind}_per_response"
        counts = _require_list(
            word_counts.get(counts_key), name, f"process_vs_result.{counts_key}", n_prompts
        )
        values = (
            _require_number(count, 0, 1e7, name, f"process_vs_result.{counts_key}")
            for count in counts
        )
        setattr(model_results, word_kind, tuple(map(int, values)))
    if model_results.epoch:  # the base model is not judged: it would be compared with itself
        judge_values = _require_list(
            _require_section(content, "llm_judge", name).get("scores"),
            name,
            "llm_judge.scores",
            n_prompts,
        )
        model_results.judge_scores = tuple(
            _require_number(score, -10, 10, name, "llm_judge.scores") for score in judge_values
        )


def _check_results(results_by_model: Mapping[ModelKey, ModelResults], name: str) -> None:
    for key, model_results in results_by_model.items():
        if key[1] and not (model_results.responses or model_results.scores_by_detector):
            raise SuiteError(name, None, "", f"nothing is there of the model of {_model_text(key)}")
    lengths = {
        len(row)
        for model_results in results_by_model.values()
        for row in model_results.scores_by_detector.values()
    }
    if len(lengths) > 1:
        raise SuiteError(
            name,
            None,
            "",
            f"the detectors' files have different numbers of rows: {sorted(lengths)}",
        )


def _empty_results(metadata: JsonObject, key: ModelKey) -> ModelResults:
    training_set, epoch = key
    adapter_path, base_model = metadata.get("adapter_path"), metadata.get("base_model")
    name = (
        adapter_path.rsplit("/", 1)[-1] if epoch and isinstance(adapter_path, str) else base_model
    )
    is_name = isinstance(name, str) and name.isprintable() and name
    return ModelResults(
        epoch, str(name) if is_name else f"epoch {epoch}", training_set=training_set
    )


def _model_text(key: ModelKey) -> str:
    training_set, epoch = key
    return f"epoch {epoch}" + (f" of {printable_text(training_set, 60)}" if training_set else "")


def _read_training_set(metadata: JsonObject) -> str:
    """Return the adapter's name without its epoch, else the size of the corpus; else ""."""
    adapter_path, corpus_size = metadata.get("adapter_path"), metadata.get("corpus_size")
    if isinstance(adapter_path, str) and adapter_path.isprintable():
        return _EPOCH_PATTERN.sub("", adapter_path.rsplit("/", 1)[-1]).strip("_- ")
    return corpus_size if isinstance(corpus_size, str) and corpus_size.isprintable() else ""


def _read_epoch(metadata: JsonObject, name: str) -> int:
    """Return the epochs by the metadata or the adapter's name; 0 where neither says."""
    epochs, adapter_path = metadata.get("epochs"), metadata.get("adapter_path")
    if isinstance(epochs, str | int) and re.fullmatch(r"\d{1,4}", str(epochs)):  # 3 or "3"
        return int(epochs)
    match = _EPOCH_PATTERN.search(adapter_path) if isinstance(adapter_path, str) else None
    return int(match[1]) if match else 0


def _require_section(content: JsonObject, key: str, name: str) -> JsonObject:
    section = content.get(key)
    if not isinstance(section, dict):
        raise SuiteError(
            name,
            None,
            key,
            "is missing: no comparison, interpretability or analysis file of a study",
        )
    return section


def _require_line(value: object, name: str, location: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise SuiteError(name, None, location, "must be a line of text")
    return value


def _require_list(value: object, name: str, location: str, n_prompts: int | None) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_ROWS:
        raise SuiteError(name, None, location, "must be a list with an entry a prompt")
    if n_prompts is not None and len(value) != n_prompts:
        raise SuiteError(name, None, location, f"has {len(value)} entries for {n_prompts} prompts")
    return value


def _require_texts(
    value: object, name: str, location: str, n_prompts: int | None
) -> tuple[str, ...]:
    texts = _require_list(value, name, location, n_prompts)
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
            f"must be a number in [{lo:g}, {hi:g}]; found {printable_text(repr(value), 40)}",
        )
    return float(value)
