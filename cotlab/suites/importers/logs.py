"""Import suites and recorded replies from logs of Inspect AI, by the package ``inspect-ai``."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cotlab.core.errors import CotlabError, MissingExtra, SuiteError, SuiteErrors
from cotlab.core.requests import Response
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.importers.log_samples import (
    MAX_MESSAGE_CHARACTERS,
    json_value,
    needs_all_targets,
    question_text,
    read_reply,
    recorded_response,
    sample_meta,
    target_texts,
)
from cotlab.suites.importers.records import SplitSteps
from cotlab.suites.shipped import open_suite_file, printable_text, unusable_file_error
from cotlab.suites.strict_json import check_id, check_text, record_defects

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

MAX_UNPACKED_BYTES = 2**30
"""Most bytes that an archive may unpack to."""
MAX_SAMPLE_BYTES = 2**28
"""Most bytes that one file of an archive, such as a sample, may unpack to."""
MAX_RATIO, MIN_RATIO_BYTES = 200, 2**23
"""A file of an archive may unpack to so many times its packed size, or to so many bytes."""
EVALUATION_FIELDS = (
    *("task_version", "task_args", "solver", "solver_args", "tags", "model_generate_config"),
    *("revision", "packages", "scorers", "metrics"),
)
"""Fields of a log's ``eval`` that are kept; arguments of the model may hold keys, and are not."""
LOG_FIELDS = ("plan", "results", "stats", "error")
"""Parts of a log that are kept."""
LOG_FACTS_KEY = "inspect_log"
"""Key of the meta of a log's first item under which its facts are."""
TOO_LONG_KEY = "left_out"
"""Key of the parts that are left out for their length."""
_LOG_NAME_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}T.*\.json")  # 2026-11-22T19-19-53_task_id.json


@dataclass(frozen=True, slots=True)
class InspectLog:
    """One log of Inspect: its items, and what the model wrote to each."""

    path: str
    """The file, as a message shows it."""
    model: str
    """The model, as Inspect names it."""
    task: str
    """Name of the task."""
    items: tuple[Item, ...]
    """An item a sample and epoch, with the model's chain as its steps."""
    chains: Mapping[str, str]
    """Item id → the model's chain as one text."""
    replies: Mapping[str, Response]
    """Item id → the model's reply; a sample that ended before one has none."""
    header: Mapping[str, str]
    """What the log says of itself: file, eval_id, run_id, created, status, temperature …"""

    @property
    def n_errors(self) -> int:
        """How many samples ended in an error."""
        return sum("error" in item.meta for item in self.items)


def import_inspect(path: str | Path, split: SplitSteps) -> Suite:
    """Import the chains that a model wrote in Inspect AI logs (``.eval`` or ``.json``).

    The question is the sample's input (of a conversation its user turns; of one with earlier
    replies its last user turn), with images by name and followed by the choices where it has some;
    the answer is its target, of several the first, and of several right choices all. The chain is
    the model's reasoning and its text before the answer; a submitted answer is no part of it. An
    item without either has no steps.

    Parameters
    ----------
    path : str or Path
        A log, or a folder of logs, whose items then are in one suite.
    split : callable
        Text of a chain -> texts of its steps.

    Returns
    -------
    Suite
        An item a sample and epoch, id ``<sample id>-epoch<epoch>``, of a folder with the name of
        its log before it. ``meta`` holds the sample's other fields (see the guide on suites);
        ``cluster`` names the question that several items share.

    Raises
    ------
    MissingExtra
        If inspect-ai is not installed.
    SuiteErrors
        If a file is no such log, unpacks to too much, holds no sample without an error, or holds
        samples that cannot be items (all of them are listed).
    """
    paths = log_paths(path)
    logs = [read_inspect_log(log_path, split) for log_path in paths]
    if not Path(path).is_dir():
        return Suite.from_items(Path(path).stem, logs[0].items)
    items = [
        replace(item, id=f"{log_path.stem}/{item.id}")
        for log_path, log in zip(paths, logs, strict=True)
        for item in log.items
    ]
    return Suite.from_items(Path(path).resolve().name or "logs", with_clusters(items))


def log_paths(path: str | Path) -> list[Path]:
    """Return the logs of a folder and its folders by name, or the one log that a path names."""
    folder = Path(path)
    if not folder.is_dir():
        return [folder]
    paths = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix == ".eval" or _LOG_NAME_PATTERN.fullmatch(file.name)
    )
    if not paths:
        raise unusable_file_error(path, "holds no Inspect log: no .eval file")
    return paths


def read_inspect_log(path: str | Path, split: SplitSteps) -> InspectLog:
    """Read one log; raises as `import_inspect`."""
    log = _read_log(path)
    errors: list[SuiteError] = []
    items: dict[str, Item] = {}
    chains: dict[str, str] = {}
    replies: dict[str, Response] = {}
    header = _log_header(log, path)
    for i, sample in enumerate(log.samples or ()):

        def report(field: str, message: str, i: int = i) -> None:
            errors.append(
                SuiteError(printable_text(str(path)), None, f"samples[{i}].{field}", message)
            )

        item_id = check_id(f"{sample.id}-epoch{sample.epoch}", "id", report)
        question = check_text(question_text(sample), "input", report, "text")
        reply = read_reply(sample.input, sample.messages, sample.output)
        texts = [step for step in split(reply.chain) if step.strip()]
        meta = {"model": log.eval.model, "task": log.eval.task, **sample_meta(sample, reply)}
        meta["log"] = {name: header[name] for name in ("file", "eval_id") if name in header}
        if i == 0:
            meta[LOG_FACTS_KEY] = log_facts(log)
        for field, message in record_defects(
            {"input": question, "output": texts, "target": target_texts(sample), "meta": meta}
        ):
            report(field, message)
        category = sample.metadata.get("category")
        item = Item(
            item_id,
            question,
            _ground_truth(sample),
            tuple(Step(k, text) for k, text in enumerate(texts)),
            category=category if isinstance(category, str) else "",
            meta=meta,
        )
        if items.setdefault(item_id, item) is not item:
            report("id", f"{printable_text(item_id, 60)!r} is the id of another sample too")
        chains[item_id] = reply.chain
        if reply.n_turns:
            replies[item_id] = recorded_response(sample, reply)
    if errors:
        raise SuiteErrors(errors, 0)
    _require_samples(log, path, items, replies)
    return InspectLog(
        printable_text(str(path)),
        printable_text(log.eval.model, 200),
        printable_text(log.eval.task, 200),
        with_clusters(list(items.values())),
        chains,
        replies,
        header,
    )


def with_clusters(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return items that name their question, ``cluster``, where several are draws of one."""
    names = [f"{item.meta['task']}/{item.meta['sample_id']}" for item in items]
    n_items = Counter(names)
    return tuple(
        replace(item, meta={**item.meta, "cluster": name}) if n_items[name] > 1 else item
        for item, name in zip(items, names, strict=True)
    )


def _ground_truth(sample: EvalSample) -> str | None:
    """Return the first target; of multiple choice with several right choices all, like A,C."""
    targets = [target for target in target_texts(sample) if target.strip()]
    if needs_all_targets(sample):
        return ",".join(targets)
    return targets[0] if targets else None


def _require_samples(
    log: EvalLog, path: str | Path, items: Mapping[str, Item], replies: Mapping[str, Response]
) -> None:
    """Raise SuiteErrors for a log without samples, or whose samples all ended in an error."""
    if not items:
        reason = "a run that is over has some"
        if log.error is not None:
            reason = f"its run ended in an error: {printable_text(log.error.message, 200)}"
        raise unusable_file_error(path, f"holds no samples; {reason}", "samples")
    first_error = next((item.meta["error"] for item in items.values() if "error" in item.meta), "")
    if all("error" in item.meta for item in items.values()):
        raise unusable_file_error(
            path,
            f"each of its {len(items)} samples ended in an error, the first in:"
            f" {printable_text(first_error, 200)}",
            "samples",
        )
    if not replies:
        raise unusable_file_error(path, "none of its samples holds a reply of a model", "samples")


def _log_header(log: EvalLog, path: str | Path) -> dict[str, str]:
    """Return what a log says of its evaluation, as texts."""
    generate_config = log.plan.config.merge(log.eval.model_generate_config)
    values: dict[str, Any] = {
        "file": Path(path).name,
        "eval_id": log.eval.eval_id,
        "run_id": log.eval.run_id,
        "created": log.eval.created,
        "status": log.status,
        "task_version": log.eval.task_version,
        "dataset": log.eval.dataset.name,
        "solver": ", ".join(step.solver for step in log.plan.steps),
        "temperature": generate_config.temperature,
        "seed": generate_config.seed,
        "max_tokens": generate_config.max_tokens,
        "revision": log.eval.revision.commit if log.eval.revision else None,
        "inspect_ai": log.eval.packages.get("inspect_ai"),
    }
    return {
        name: printable_text(str(value), 200)
        for name, value in values.items()
        if value not in (None, "")
    }


def log_facts(log: EvalLog) -> dict[str, Any]:
    """Return what a log says of itself, as JSON values, by the names that Inspect has for it.

    A part of more than ``MAX_MESSAGE_CHARACTERS`` characters is left out, and named.
    """
    evaluation = log.eval.model_dump(mode="json", include=set(EVALUATION_FIELDS), exclude_none=True)
    facts: dict[str, Any] = {"eval": json_value(evaluation)}
    for name in LOG_FIELDS:
        part = getattr(log, name)
        if part is not None:
            facts[name] = json_value(part.model_dump(mode="json", exclude_none=True))
    too_long = [
        name
        for name, part in facts.items()
        if len(json.dumps(part, ensure_ascii=False)) > MAX_MESSAGE_CHARACTERS
    ]
    short_facts = {name: part for name, part in facts.items() if name not in too_long and part}
    return {**short_facts, **({TOO_LONG_KEY: too_long} if too_long else {})}


def _read_log(path: str | Path) -> EvalLog:
    try:
        from inspect_ai.log import read_eval_log
    except ModuleNotFoundError as import_error:
        raise MissingExtra("Inspect logs", "inspect-ai") from import_error
    is_archive = Path(path).suffix != ".json"
    try:
        with open_suite_file(path) as stream:
            if is_archive:
                _check_archive(stream.name, path)
        return read_eval_log(
            Path(path).absolute(),
            format="eval" if is_archive else "json",
            resolve_attachments="core",
            exclude_fields={"events", "store"},
        )
    except zipfile.BadZipFile as exc:
        raise unusable_file_error(path, "is not an Inspect log: no whole .eval archive") from exc
    except CotlabError:
        raise
    except Exception as exc:  # noqa: BLE001  a damaged log fails in the way of the library that reads it
        message = printable_text(" ".join(str(exc).split()), 200)
        raise unusable_file_error(
            path, f"is not an Inspect log that can be read ({type(exc).__name__}: {message})"
        ) from exc


def _check_archive(name: str, path: str | Path) -> None:
    """Reject an archive that unpacks to too much, by its directory alone, or is damaged."""
    with zipfile.ZipFile(name) as archive:
        for member in archive.infolist():
            n_bytes, n_packed_bytes = member.file_size, member.compress_size
            member_name = printable_text(member.filename, 60)
            if n_bytes > MAX_SAMPLE_BYTES:
                raise unusable_file_error(
                    path,
                    f"{member_name} unpacks to {n_bytes:,} bytes, more than the"
                    f" {MAX_SAMPLE_BYTES:,} of one sample that are read",
                )
            if n_bytes > max(MIN_RATIO_BYTES, MAX_RATIO * n_packed_bytes):
                raise unusable_file_error(
                    path,
                    f"{member_name} unpacks from {n_packed_bytes:,} to {n_bytes:,} bytes, more than"
                    f" {MAX_RATIO} times as many: it is no log that a model wrote",
                )
        n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > MAX_UNPACKED_BYTES:
            raise unusable_file_error(
                path,
                f"unpacks to {n_bytes:,} bytes, more than the {MAX_UNPACKED_BYTES:,} that are read",
            )
        if damaged_member := archive.testzip():
            raise unusable_file_error(
                path,
                f"is damaged: {printable_text(damaged_member, 60)} does not match its checksum",
            )
