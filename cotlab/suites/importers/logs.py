"""Import suites from logs of Inspect AI, by the optional package ``inspect-ai``."""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cotlab.core.errors import MissingExtra, SuiteError, SuiteErrors
from cotlab.core.types import Item, Step, Suite
from cotlab.suites.importers.question_answer import Split
from cotlab.suites.shipped import open_suite_file, printable, unusable_file
from cotlab.suites.strict_json import check_id, check_text, json_defects

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ChatMessageAssistant

MAX_UNPACKED_BYTES = 2**30
"""Most bytes that an archive may unpack to."""

_ANSWER_LINE = re.compile(
    r"\W*(?:so |thus |therefore,? )?(?:the )?(?:final )?answer\b|####|.*\\boxed\b", re.IGNORECASE
)
"""The line of the final answer: ANSWER: 18, So the answer is 18, #### 18, \\boxed{18}."""


def import_inspect(path: str | Path, split: Split) -> Suite:
    """Import the chains that a model wrote in an Inspect AI log (``.eval`` or ``.json``).

    The question is the sample's input (of a conversation its user turns; of one with earlier
    replies its last user turn), followed by the choices where it has some; the answer is its
    target, of several the first. The chain is the reasoning content of the model's messages or,
    where they hold none that can be read, the model's text before its final answer line ("ANSWER:
    18", "#### 18", a boxed result). An item without either has no steps.

    Parameters
    ----------
    path : str or Path
    split : callable
        Text of a chain -> texts of its steps.

    Returns
    -------
    Suite
        An item a sample and epoch, id ``<sample id>-epoch<epoch>``; ``meta`` holds model, task,
        sample_id, epoch and the model's reply, and where they exist targets, choices, system and
        error.

    Raises
    ------
    MissingExtra
        If inspect-ai is not installed.
    SuiteErrors
        If the file is no such log, unpacks to more than 1 GiB, or holds samples that cannot be
        items (all of them are listed).
    """
    log = _read_log(path)
    errors: list[SuiteError] = []
    items: dict[str, Item] = {}
    for i, sample in enumerate(log.samples or ()):

        def report(field: str, message: str, i: int = i) -> None:
            errors.append(SuiteError(printable(str(path)), None, f"samples[{i}].{field}", message))

        item_id = check_id(f"{sample.id}-epoch{sample.epoch}", "id", report)
        question = check_text(_question(sample), "input", report, "text")
        targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
        texts = [step for step in split(_chain(sample)) if step.strip()]
        meta = _meta(log, sample, targets)
        for field, fault in json_defects(
            {"input": question, "output": texts, "target": targets, "meta": meta}
        ):
            report(field, fault)
        answer = next((target for target in targets if target.strip()), None)
        item = Item(
            item_id,
            question,
            answer,
            tuple(Step(k, text) for k, text in enumerate(texts)),
            meta=meta,
        )
        if items.setdefault(item_id, item) is not item:
            report("id", f"{printable(item_id, 60)!r} is the id of another sample too")
    if errors:
        raise SuiteErrors(errors, 0)
    if not items:
        raise unusable_file(path, "holds no samples; a run that is over has some", "samples")
    return Suite.of(Path(path).stem, items.values())


def _read_log(path: str | Path) -> EvalLog:
    try:
        from inspect_ai.log import read_eval_log
    except ModuleNotFoundError as missing:
        raise MissingExtra("Inspect logs", "inspect-ai") from missing
    packed = Path(path).suffix != ".json"
    try:
        with open_suite_file(path) as stream:
            if packed:
                _check_size(stream.name, path)
        return read_eval_log(
            Path(path).absolute(),
            format="eval" if packed else "json",
            resolve_attachments="core",
            exclude_fields={"events", "store"},
        )
    except zipfile.BadZipFile as exc:
        raise unusable_file(path, "is not an Inspect log: no whole .eval archive") from exc
    except _log_read_errors() as exc:
        message = printable(" ".join(str(exc).split()), 200)
        raise unusable_file(
            path, f"is not an Inspect log that can be read ({type(exc).__name__}: {message})"
        ) from exc


def _log_read_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of reading a damaged log; two libraries have their own."""
    zstd = getattr(sys.modules.get("zstandard"), "ZstdError", zlib.error)
    json = getattr(sys.modules.get("ijson.common"), "JSONError", ValueError)
    return (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        EOFError,
        AssertionError,
        RecursionError,
        NotImplementedError,
        zlib.error,
        zstd,
        json,
        ExceptionGroup,
    )


def _check_size(name: str, path: str | Path) -> None:
    """Reject an archive that unpacks to more than MAX_UNPACKED_BYTES, or is damaged."""
    with zipfile.ZipFile(name) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > MAX_UNPACKED_BYTES:
            raise unusable_file(
                path,
                f"unpacks to {size:,} bytes, more than the {MAX_UNPACKED_BYTES:,} that are read",
            )
        if broken := archive.testzip():
            raise unusable_file(
                path, f"is damaged: {printable(broken, 60)} does not match its checksum"
            )


def _question(sample: EvalSample) -> str:
    if isinstance(sample.input, str):
        text = sample.input
    else:
        turns = [message.text for message in sample.input if message.role == "user"]
        replied = any(message.role == "assistant" for message in sample.input)
        text = (turns[-1] if replied else "\n\n".join(turns)) if turns else ""
    choices = "\n".join(f"{chr(65 + k)}) {choice}" for k, choice in enumerate(sample.choices or ()))
    return f"{text}\n\n{choices}" if choices and text.strip() else text


def _chain(sample: EvalSample) -> str:
    """Return the text of the model's reasoning in all its turns; "" where there is none."""
    given = (
        0
        if isinstance(sample.input, str)
        else sum(message.role == "assistant" for message in sample.input)
    )
    turns = _assistant(sample.messages)[given:]
    if not turns and sample.output.choices:
        turns = [sample.output.choices[0].message]
    if reasoned := [text for turn in turns for text in _reasoning(turn)]:
        return "\n".join(reasoned)
    lines = "\n".join(turn.text for turn in turns).rstrip().splitlines()
    return "\n".join(lines[:-1] if lines and _ANSWER_LINE.match(lines[-1]) else lines)


def _assistant(messages: list[ChatMessage]) -> list[ChatMessageAssistant]:
    return [message for message in messages if message.role == "assistant"]


def _reasoning(message: ChatMessageAssistant) -> list[str]:
    """Return the reasoning texts of a message, summaries where they are redacted."""
    blocks = (
        []
        if isinstance(message.content, str)
        else [part for part in message.content if part.type == "reasoning"]
    )
    texts = [
        (part.summary or "") if part.redacted else (part.reasoning or part.summary or "")
        for part in blocks
    ]
    return [text for text in texts if text.strip()]


def _meta(log: EvalLog, sample: EvalSample, targets: list[str]) -> dict[str, Any]:
    system = (
        []
        if isinstance(sample.input, str)
        else [m.text for m in sample.input if m.role == "system"]
    )
    optional = {
        "targets": targets if len(targets) > 1 else None,
        "choices": list(sample.choices) if sample.choices else None,
        "system": "\n\n".join(system) or None,
        "error": sample.error.message if sample.error else None,
    }
    return {
        "model": log.eval.model,
        "task": log.eval.task,
        "sample_id": sample.id,
        "epoch": sample.epoch,
        "reply": sample.output.completion,
        **{key: value for key, value in optional.items() if value is not None},
    }
