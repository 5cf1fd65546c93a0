"""Claims of a chain about the output of tools, checked against a log of the tool calls.

Nothing is evaluated: numbers are compared as fractions, quotations letter by letter without case
and spacing. Patterns are bounded; at most `MAX_CLAIMS` claims per step and `MAX_NUMBERS` numbers
per output are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from cotlab.text.answers.quantities import Quantity, free_numbers, read_quantity, same_quantity
from cotlab.text.steps import label_spans, sentence_spans

Verdict = Literal["matched", "contradicted", "unsupported"]
VERDICTS: tuple[Verdict, ...] = ("matched", "contradicted", "unsupported")
"""The log confirms a claim, denies it, or does neither."""
MAX_CLAIMS, MAX_NUMBERS = 200, 5000
_GENERIC = r"(?:(?:tool|api|lookup)(?:\s+(?:call|output|result))?|output)"
_REPORTING_VERBS = (
    r"(?:return(?:s|ed)?|gives?|gave|says?|said|shows?|showed|reports?|reported|outputs?|outputted"
    r"|prints?|printed|finds?|found|yields?|yielded|tells?|told|repl(?:y|ies|ied)"
    r"|responds?|responded|states?|stated|comput(?:es|ed)|produces?|produced"
    r"|confirms?|confirmed|answers?|answered|lists?|listed)"
)
# "“rain”", "`rain`", "'rain'"
_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|`([^`\n]{1,300})`|(?<!\w)'([^'\n]{2,300})'(?!\w)"
)
# " + ", " divided by ", "×"
_OPERATOR = re.compile(
    r"\s{0,2}(?:[+*/×÷^]|[-−–](?=\s)|(?:plus|minus|times|divided\s+by)\b)\s{0,2}", re.IGNORECASE
)
# "3 * 4 = 12", "(2 + 3) × 4 = $20"
_EQUATION = re.compile(
    r"([\d(][\d\s.,+*/×÷^()−–-]{1,120}?)\s{0,3}=\s{0,3}\$?(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
)
_FOLD = str.maketrans(
    {
        "×": "*",
        "÷": "/",
        "−": "-",
        "–": "-",
        "x": "*",
        "^": "*",
        ",": None,
        " ": None,
        "\t": None,
        "$": None,
    }
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    name: str
    """Name of the tool."""
    given: str
    """Input as text; other JSON values as JSON."""
    output: str
    """Output as text; other JSON values as JSON."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a step that a log can confirm."""

    start: int
    """First character of the step."""
    end: int
    """Character after the last."""
    text: str
    """The number or quotation as written."""
    kind: Literal["number", "quote"]
    """What is claimed."""
    attributed: bool
    """Whether the step names a tool as the source."""
    tool: str
    """Name of that tool; "" if there is none or it is unnamed ("the tool returns 12")."""
    verdict: Verdict
    """What the log says about it."""
    call: int | None
    """Index of the call that decides the verdict, if one does."""


def read_log(log: Any) -> tuple[Call, ...] | str:
    """Return the calls of a log, or what is wrong with it.

    Parameters
    ----------
    log : list of {"name": text, "input": any JSON value, "output": any JSON value}
        "arguments" or "args" may replace "input", "result" may replace "output".

    Returns
    -------
    tuple of Call or str
        Calls in order, none for an empty log. A str says which call is malformed.
    """
    if not isinstance(log, Sequence) or isinstance(log, str | bytes):
        return "the tool log is not a list of calls"
    calls = []
    for i, entry in enumerate(log):
        if not isinstance(entry, Mapping):
            return f"call {i} of the tool log is not an object with name, input and output"
        name = entry.get("name")
        output = next((entry[key] for key in ("output", "result") if key in entry), None)
        given = next((entry[key] for key in ("input", "arguments", "args") if key in entry), "")
        if not isinstance(name, str) or not name.strip() or output is None:
            return (
                f"call {i} of the tool log has no"
                f" {'output' if isinstance(name, str) and name.strip() else 'name'}"
            )
        calls.append(Call(name.strip(), _as_text(given), _as_text(output)))
    return tuple(calls)


def claims_of(
    steps: Sequence[str], calls: Sequence[Call], question: str = ""
) -> tuple[tuple[Claim, ...], ...]:
    """Return the claims of each step with their verdicts.

    Parameters
    ----------
    steps : sequence of str
    calls : sequence of Call
    question : str
        Its numbers need no tool.

    Returns
    -------
    tuple of tuples of Claim, one per step, in the order of the text

    Notes
    -----
    A claim is (1) a number or a quotation whose source is a named tool ("the calculator returns
    12", "search says "rain""), or (2) the first occurrence of any other number that is not in the
    question. It is *matched* if the output of a call contains it: of the named tool, else of any.
    It is *contradicted* if the named tool was called and none of its outputs contains the claim, or
    if the step writes a call's input as an equation with another result. Otherwise it is
    *unsupported*. An output that rounds to the decimals of the claim is a match.
    """
    known = _quantities(question)
    outputs = [_quantities(call.output) for call in calls]
    inputs = [quantity for call in calls for quantity in _quantities(call.given)]
    tools = tuple(dict.fromkeys(call.name for call in calls))
    judged = []
    for step in steps:
        claims: list[Claim] = []
        equations = {result: (lhs, call) for lhs, result, call in _equations(step, calls)}
        named = tuple(_named(step, tools))
        for start, end, text, kind in _candidates(step):
            source = next((name for at, until, name in named if at <= start < until), None)
            if kind == "quote" and source is None:
                continue
            value = read_quantity(text) if kind == "number" else None
            if kind == "number":
                operand = _operand(step, start, end)
                if value is None or (operand and _contains_quantity(inputs, value)):
                    continue  # what a tool was given
                source = None if operand else source
                if source is None and _contains_quantity(known, value):
                    continue
            pool = [i for i, call in enumerate(calls) if not source or call.name == source]
            hit = next(
                (i for i in pool if _output_supports(calls[i], outputs[i], text, value)), None
            )
            called = equations.get(start)
            verdict: Verdict = "matched" if hit is not None else "unsupported"
            if called is not None:
                hit = called[1]
                verdict = (
                    "matched"
                    if _output_supports(calls[hit], outputs[hit], text, value)
                    else "contradicted"
                )
            elif hit is None and source is not None and pool:
                verdict, hit = "contradicted", _mentioned(step, calls, pool)
            claims.append(
                Claim(start, end, text, kind, source is not None, source or "", verdict, hit)
            )
            if value is not None:
                known.append(value)
            if len(claims) == MAX_CLAIMS:
                break
        judged.append(tuple(claims))
    return tuple(judged)


def _as_text(value: Any) -> str:
    """Return a text as it is and another JSON value as JSON."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )


def _quantities(text: str) -> list[Quantity]:
    """Return the distinct numbers of a text, from its first `MAX_NUMBERS`."""
    spans = islice(free_numbers(text), MAX_NUMBERS)
    readings = (
        read_quantity(written) for written in dict.fromkeys(text[start:end] for start, end in spans)
    )
    return [quantity for quantity in readings if quantity is not None]


def _candidates(step: str) -> Iterator[tuple[int, int, str, Literal["number", "quote"]]]:
    """Yield (start, end, text, kind) of the numbers and quotations of a step, in order.

    Its label is left out; a number within a quotation belongs to the quotation.
    """
    labels = [span for span in label_spans(step) if not step[: span[0]].strip()]
    quotes = [m.span() for m in _QUOTED.finditer(step)]
    numbers = [
        span
        for span in free_numbers(step)
        if not any(start <= span[0] < end for start, end in (*labels[:1], *quotes))
    ]
    listed: list[tuple[int, int, str, Literal["number", "quote"]]] = []
    for start, end in quotes:
        inner = step[start + 1 : end - 1]
        quantity = read_quantity(inner)
        listed.append((start + 1, end - 1, inner, "quote" if quantity is None else "number"))
    listed += [(start, end, step[start:end], "number") for start, end in numbers]
    yield from sorted(listed)


def _named(step: str, tools: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, tool) of the passages whose source is a tool; "" for an unnamed tool."""
    names = sorted(tools, key=len, reverse=True)
    spelt = [
        (name, r"[\s_-]{0,2}".join(re.escape(part) for part in re.split(r"[\s_-]+", name) if part))
        for name in names
    ]
    sources = [(name, _source(pattern)) for name, pattern in (*spelt, ("", _GENERIC)) if pattern]
    for start, end in sentence_spans(step):
        for name, pattern in sources:
            if match := pattern.search(step[start:end]):
                yield start if match["back"] else start + match.end(), end, name
                break


@lru_cache(256)
def _source(tool: str) -> re.Pattern[str]:
    """Compile a pattern that finds a tool named as a source.

    It is the source of what follows, or of the whole sentence if group ``back`` matched.
    """
    called = rf"(?<!\w){tool}(?!\w)(?:['’]s)?(?:\([^()\n]{{0,200}}\))?"
    noun = "" if tool == _GENERIC else r"(?:output|result|answer|value)s?"
    return re.compile(
        rf"(?i){called}[^.!?\n]{{0,80}}?(?<!\w){_REPORTING_VERBS}(?!\w)"  # the calculator returns …
        # calculator(3 * 4) = …
        rf"|{called}\s{{0,3}}(?:(?:output|result|answer|value)s?\s{{0,3}})?(?::|=|→|->)"
        rf"|{called}\s{{0,3}}{noun}\s+(?:is|was|are|were)(?!\w)"  # the calculator's result is …
        # … returned by the calculator
        rf"|(?P<back>(?<!\w){_REPORTING_VERBS}\s+by\s+(?:the\s+|a\s+)?{tool}(?!\w))"
        rf"|(?<!\w)(?:according\s+to|from)\s+(?:the\s+|a\s+)?{tool}(?!\w)"
    )


def _operand(step: str, start: int, end: int) -> bool:
    """Return whether a number is the operand of an operator."""
    if _OPERATOR.match(step, end):
        return True
    lead = step[max(0, start - 12) : start]
    return bool(
        re.search(rf"{_OPERATOR.pattern}$", lead, re.IGNORECASE)
        and not re.search(r"[=≈]\s*[-−]?\s*$", lead)
    )


def _equations(step: str, calls: Sequence[Call]) -> Iterator[tuple[str, int, int]]:
    """Yield (left side, start of result, call) of equations whose left side is a call's input."""
    given = {
        call.given.strip().rstrip("=").translate(_FOLD): i
        for i, call in reversed(list(enumerate(calls)))
    }
    for match in _EQUATION.finditer(step):
        call = given.get(match[1].translate(_FOLD))
        if call is not None:
            at = match.start(2)
            yield match[1], at - (step[at - 1 : at] == "$"), call


def _contains_quantity(known: Sequence[Quantity], value: Quantity) -> bool:
    """Return whether one of the quantities equals ``value``."""
    return any(same_quantity(candidate, value) for candidate in known)


def _output_supports(
    call: Call, outputs: Sequence[Quantity], text: str, value: Quantity | None
) -> bool:
    """Return whether an output contains the words, or the number as it is or rounded."""
    if value is None:
        return _folded(text) in _folded(call.output)
    return any(
        same_quantity(quantity, value) or _rounds_to(quantity, value, text) for quantity in outputs
    )


def _rounds_to(output: Quantity, value: Quantity, text: str) -> bool:
    """Return whether an output rounds to the decimals of a claim."""
    match = re.search(r"(\d[\d,]{0,40})?\.(\d{1,30})", text)
    if match is None or (value.units and output.units and value.units != output.units):
        return False
    digits = Fraction(match[0].replace(",", ""))
    # a decimal of 2.1 million is 100,000
    scale = abs(value.value / digits) if digits else Fraction(1)
    return (
        abs(output.value - value.value) <= scale / (2 * 10 ** len(match[2]))
        and output.value != value.value
    )


def _mentioned(step: str, calls: Sequence[Call], pool: Sequence[int]) -> int | None:
    """Return the call whose input the step repeats, or the only call."""
    step_text = _folded(step)
    matches = [
        i for i in pool if len(_folded(calls[i].given)) > 1 and _folded(calls[i].given) in step_text
    ]
    return matches[0] if matches else pool[0] if len(pool) == 1 else None


def _folded(text: str) -> str:
    """Return a text without case, repeated blanks and outer punctuation."""
    return re.sub(r"\s+", " ", text).strip().strip(".,;:!?").casefold()
