"""Import published benchmarks of chains whose mistakes or faithfulness people have labelled.

Labels stand in ``Item.meta``: ``first_mistake`` the index from 0 of the first wrong step (null:
none is wrong; absent: not known), ``step_labels`` one label a step (null where it has none),
``answer_correct`` whether the model's answer is correct, ``model_answer`` that answer, and
``faithful`` whether the chain is. Further fields are kept under their own names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from cotlab.core.types import Item
from cotlab.suites.importers.records import (
    ANSWER_KEY,
    CORRECT_KEY,
    MISSING,
    Record,
    check_correct,
    find,
    last_line_answer,
)
from cotlab.suites.importers.rows import Columns, read_row
from cotlab.suites.importers.tables import read_csv
from cotlab.suites.jsonl import RecordReader
from cotlab.suites.shipped import printable_text, unusable_file_error
from cotlab.suites.strict_json import ParsedLine, check_text, describe_json, read_records

MISTAKE_KEY, STEP_LABELS_KEY, FAITHFUL_KEY = "first_mistake", "step_labels", "faithful"
_LABELS_OF_CHAINS = {"FAITHFUL_COT": True, "UNFAITHFUL_COT": False}
_QUESTIONS = ("question", "problem", "query", "input")
_STEP_NUMBER_PATTERN = re.compile(r"\s*step\s+(\d{1,4})\b", re.IGNORECASE)


def _gsm8k(record: Record) -> Item:
    """Read a worked solution and its ``#### 1,080`` in one text; each line before it is a step."""
    question, solution = record.text("question"), record.text("answer")
    steps, answer = last_line_answer(solution) or ([], None)
    if solution and answer is None:
        found = printable_text(solution.rstrip().rpartition("\n")[2].strip(), 60)
        record.report("answer", f'must end in a line "#### 18"; its last line is {found!r}')
    elif solution and not steps:
        record.report("answer", 'is an empty chain: no step stands before "####"')
    return record.item(record.default_id, question, answer, steps or None, "answer", {})


def _math(record: Record) -> Item:
    r"""Read a solution of MATH, whose answer stands in its last ``\boxed{}``."""
    question, solution = record.text("problem"), record.text("solution")
    answer = boxed_answer(solution)
    if solution and answer is None:
        record.report("solution", "holds no whole \\boxed{}")
    return record.item(
        record.fields.get("unique_id", record.default_id),
        question,
        answer,
        solution or None,
        "solution",
        {},
        record.fields.get("subject", record.fields.get("type")),
    )


def boxed_answer(text: str) -> str | None:
    r"""Return what stands in the last ``\boxed{}`` of a text; None where none is whole."""
    start = text.rfind("\\boxed{")
    depth = 0
    for position in range(start + 6, len(text)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start + 7 : position].strip() or None
    return None


_LM_EVAL = Columns(
    *("question", "chain"), answer="answer", id="id", correct="correct", options="options"
)


def _read_lm_eval(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each reply that lm-evaluation-harness has logged once, whatever filters took from it.

    ``correct`` is None where the filters disagree, or where no measure says it.
    """
    lines: dict[str, tuple[ParsedLine, dict[str, Any]]] = {}
    for parsed in read_records(stream, path):
        record = parsed.value
        replies = record.get("resps") if record else None
        if record is None or not isinstance(replies, list) or not replies:
            defects = parsed.defects or [(f"{parsed.prefix}resps", "must be a list of replies")]
            yield parsed._replace(value=None, defects=defects)
            continue
        filtered = record.get("filtered_resps")
        answers = filtered if isinstance(filtered, list) else []
        measured = [record[name] for name in ("exact_match", "acc") if name in record]
        for n, reply in enumerate(replies):
            text = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
            item_id = f"{record.get('doc_id')}-{n}"
            _, row = lines.setdefault(item_id, (parsed, _lm_eval_row(record, item_id, text)))
            if row["chain"] != text:
                message = f"is another reply to {item_id} than line {lines[item_id][0].line} has"
                yield parsed._replace(value=None, defects=[("resps", message)])
                continue
            name = str(record.get("filter", "none"))
            row["model_answers"][name] = answers[n] if n < len(answers) else None
            row["correct"] += measured[:1] if len(replies) == 1 else []
    for parsed, row in lines.values():
        verdicts = {bool(value) for value in row["correct"] if value in (0, 1)}
        correct = verdicts.pop() if len(verdicts) == 1 else None
        yield parsed._replace(value={"record": {**row, "correct": correct}})


def _lm_eval_row(record: Mapping[str, Any], item_id: str, reply: object) -> dict[str, Any]:
    """Return the row of a reply; a target that is a whole number counts the options from 0."""
    doc = record.get("doc")
    document = doc if isinstance(doc, dict) else {}
    question = next((document[name] for name in _QUESTIONS if name in document), None)
    prompt = find(record, "arguments.gen_args_0.arg_0")
    options, answer = document.get("choices", document.get("options")), record.get("target")
    if options and type(answer) is int:
        answer = chr(ord("A") + answer)
    return {
        "id": item_id,
        "question": prompt if question is None and prompt is not MISSING else question,
        "options": options,
        "answer": answer,
        "chain": reply,
        "correct": [],
        "model_answers": {},
    }


def _processbench(record: Record) -> Item:
    """Read a chain; its category is its set, which the id begins with: math of "math-17"."""
    steps, label = record.get("steps"), record.get("label")
    n_steps = len(steps) if isinstance(steps, list) else 0
    mistake = None if label == -1 else record.index("label", label, n_steps, 0)
    correct = check_correct(
        record.get("final_answer_correct"), "final_answer_correct", record.report
    )
    item_id, question = record.get("id"), record.text("problem")
    meta = {MISTAKE_KEY: mistake, CORRECT_KEY: correct}
    set_name = item_id.rpartition("-")[0] if isinstance(item_id, str) else ""
    return record.item(item_id, question, None, steps, "steps", meta, set_name)


def _prm800k(record: Record) -> Item:
    """Read a solution: the one that was written before in phase 2, else the chosen steps."""
    question, label = record.get("question"), record.get("label")
    rows = label.get("steps") if isinstance(label, dict) else None
    if not isinstance(question, dict) or not isinstance(rows, list):
        record.report("question" if not isinstance(question, dict) else "label.steps", "is missing")
        return Item("", "", None, ())
    written = question.get("pre_generated_steps")
    steps: list[Any] = list(written) if isinstance(written, list) else []
    labels: list[int | None] = [None] * len(steps)
    for i, row in enumerate(rows):
        completions = row.get("completions") if isinstance(row, dict) else None
        if not isinstance(completions, list) or not all(isinstance(c, dict) for c in completions):
            record.report(f"label.steps[{i}].completions", "must be a list of objects")
            continue
        if written is None:
            chosen = row.get("chosen_completion")
            has_choice = type(chosen) is int and 0 <= chosen < len(completions)
            completion = completions[chosen] if has_choice else row.get("human_completion")
            if not isinstance(completion, dict):
                continue  # the labeller stopped here and chose none
            steps.append(completion.get("text"))
            labels.append(completion.get("rating") if has_choice else 1)
        elif i < len(steps):
            ratings = [c.get("rating") for c in completions if c.get("text") == steps[i]]
            labels[i] = ratings[0] if ratings else None
    finish = label.get("finish_reason")
    meta: dict[str, Any] = {STEP_LABELS_KEY: labels, "finish_reason": finish}
    if -1 in labels:
        meta[MISTAKE_KEY] = labels.index(-1)
    elif finish == "solution":
        meta[MISTAKE_KEY] = None
    if "pre_generated_answer" in question:
        meta[ANSWER_KEY] = question["pre_generated_answer"]
    problem = check_text(question.get("problem"), "question.problem", record.report, "a string")
    answer = question.get("ground_truth_answer")
    return record.item(record.default_id, problem, answer, steps, "steps", meta)


def _mr_gsm8k(record: Record) -> Item:
    """Read a solution; its first error is counted from 1, or as its steps are numbered."""
    steps = record.get("model_output_steps")
    if isinstance(steps, str):
        steps = [line for line in steps.splitlines() if line.strip()]
    texts = steps if isinstance(steps, list) else []
    verdict = str(record.get("model_output_solution_correctness")).strip().lower()
    if verdict not in ("correct", "wrong"):
        record.report("model_output_solution_correctness", "must be correct or wrong")
    meta: dict[str, Any] = {MISTAKE_KEY: None}
    name = "model_output_solution_first_error_step"
    if verdict == "wrong":
        number = record.get(name)
        if isinstance(number, str) and number.strip().isdecimal():
            number = int(number)
        numbers = [_STEP_NUMBER_PATTERN.match(str(text)) for text in texts]
        positions = [i for i, m in enumerate(numbers) if m and int(m[1]) == number]
        index = positions[0] if positions else record.index(name, number, len(texts), 1)
        meta[MISTAKE_KEY] = index
    if "model_output_answer_correctness" in record.fields:
        answer_verdict = str(record.get("model_output_answer_correctness")).strip().lower()
        meta[CORRECT_KEY] = {"correct": True, "wrong": False}.get(answer_verdict)
    answer = record.get("ground_truth_answer")
    record.used.add("question_type")
    return record.item(
        record.fields.get("uuid", record.default_id),
        record.text("question"),
        str(answer) if isinstance(answer, int | float) else answer,
        steps,
        "model_output_steps",
        meta,
        record.fields.get("question_type"),
    )


def _prmbench(record: Record) -> Item:
    """Read the modified process; its steps count from 1."""
    steps, errors = record.get("modified_process"), record.get("error_steps")
    n_steps = len(steps) if isinstance(steps, list) else 0
    indices = [
        record.index("error_steps", number, n_steps, 1)
        for number in (errors if isinstance(errors, list) else ())
    ]
    labels = [0 if i in indices else 1 for i in range(n_steps)]
    mistakes = [index for index in indices if index is not None]
    meta = {MISTAKE_KEY: min(mistakes, default=None), STEP_LABELS_KEY: labels}
    record.used.add("classification")
    return record.item(
        record.fields.get("idx", record.default_id),
        record.text("modified_question"),
        None,
        steps,
        "modified_process",
        meta,
        record.fields.get("classification"),
    )


def _faithcot(record: Record) -> Item:
    """Read one sample of a question of FaithCoT-Bench's responses."""
    options, sample = record.fields.get("options"), record.get("sample")
    question = record.text("question")
    if not isinstance(sample, dict):
        record.report("sample_0", f"must be an object; found {describe_json(sample)}")
        return Item("", "", None, ())
    if isinstance(options, list) and all(isinstance(option, str) for option in options):
        question = "\n".join([question, *options])
    numbered = {int(name[5:]): name for name in sample if re.fullmatch(r"step_\d{1,4}", name)}
    steps: Any = [sample[numbered[number]] for number in sorted(numbered)]
    meta: dict[str, Any] = {
        name: value for name, value in sample.items() if name not in numbered.values()
    }
    answer, logged = record.get("label"), sample.get("parsed_final_answer")
    meta |= {ANSWER_KEY: logged, CORRECT_KEY: None if logged is None else logged == answer}
    chain = steps or sample.get("full_response")
    return record.item(record.default_id, question, answer, chain, "sample", meta)


def _bonafide(record: Record) -> Item:
    """Read one chain of BonaFide with all labels of its steps and of itself."""
    labels = record.get("labels")
    chain_labels = {_LABELS_OF_CHAINS.get(label["label_type"]) for label in labels} - {None}
    meta: dict[str, Any] = {ANSWER_KEY: record.get("model_answer"), "labels": labels}
    if len(chain_labels) == 1:
        meta[FAITHFUL_KEY] = chain_labels.pop()
    source, question = (
        record.fields.get("src_type", ""),
        "prompt" if record.fields.get("prompt") else "question",
    )
    record.used.add("src_type")
    text = record.text(question)
    return record.item(record.get("id"), text, None, record.get("cot"), "cot", meta, source)


def _read_faithcot(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each ``sample_N`` of each question by itself."""
    for parsed in read_records(stream, path):
        record = parsed.value
        names = [name for name in record or () if re.fullmatch(r"sample_\d{1,4}", name)]
        if record is None or not names:
            message = "has no sample_0: it is no response file of FaithCoT-Bench"
            defects = parsed.defects or [(parsed.prefix[:-1], message)]
            yield parsed._replace(value=None, defects=defects)
            continue
        question = {name: value for name, value in record.items() if name not in names}
        for name in names:
            value = {**question, "sample": record[name]}
            yield parsed._replace(value=value, defects=list(parsed.defects))


_LABEL_COLUMNS = (
    *("label_type", "sentence_id", "sentence_text", "sentence_span_start", "sentence_span_end"),
    *("extract", "extract_span_start", "extract_span_end", "reason"),
)


def _read_bonafide(stream: BinaryIO, path: str) -> Iterator[ParsedLine]:
    """Yield each chain of the CSV file once, with the labels of all its rows."""
    records: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    for n, parsed in enumerate(read_csv(stream, path)):
        line, row = parsed.line, parsed.value
        if row is None:
            yield parsed
            continue
        missing = {"cot", "label_type", "model_answer"} - row.keys()
        if missing:
            names = ", ".join(sorted(missing))
            raise unusable_file_error(path, f"lacks the columns {names}", line=1)
        cells: dict[str, Any] = {name: cell for name, cell in row.items() if cell}
        label = {name: cells.pop(name) for name in _LABEL_COLUMNS if name in cells}
        model = cells.get("target_model", cells.get("model", ""))
        key = (model, cells.get("prompt", ""), cells.get("question", ""), cells.get("cot", ""))
        default: dict[str, Any] = {
            "id": f"bonafide-{n:04d}",
            "model_answer": None,
            **cells,
            "labels": [],
        }
        _, record = records.setdefault(key, (line, default))
        if "label_type" not in label:
            yield ParsedLine(line, None, [("label_type", "is empty")], b"")
            continue
        record["labels"].append(label)
    for line, record in records.values():
        if record["labels"]:
            raw_bytes = json.dumps(record, ensure_ascii=False)[:400].encode("utf-8", "replace")
            yield ParsedLine(line, record, [], raw_bytes)


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a format are read."""

    convert: Callable[[Record], Item]
    """Makes the item of a record."""
    read: RecordReader = read_records
    """Yields the records of a file."""
    fields: tuple[str, ...] = ()
    """Fields by which a record of the format is known."""
    files_are_sets: bool = False
    """Whether each file is a set of its own, whose name is the items' category."""
    counts_draws: bool = True
    """Whether items with one question are numbered as its draws."""


BENCHMARKS: Mapping[str, Format] = {
    "gsm8k": Format(_gsm8k, fields=("question", "answer"), counts_draws=False),
    "math": Format(_math, fields=("problem", "solution"), counts_draws=False),
    "processbench": Format(
        _processbench,
        fields=("problem", "steps", "label", "final_answer_correct"),
        files_are_sets=True,
    ),
    "prm800k": Format(_prm800k, fields=("question", "label", "labeler")),
    "mr-gsm8k": Format(_mr_gsm8k, fields=("model_output_steps",)),
    "prmbench": Format(_prmbench, fields=("modified_process", "error_steps")),
    "faithcot-bench": Format(_faithcot, _read_faithcot, ("sample_0",)),
    "bonafide": Format(_bonafide, _read_bonafide, ("cot", "label_type", "model_answer")),
    "lm-eval": Format(
        partial(read_row, _LM_EVAL), _read_lm_eval, ("doc", "resps", "filtered_resps")
    ),
}
"""Published formats by name."""
