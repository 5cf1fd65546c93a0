"""Claims of a chain about the output of tools, checked against a log of the tool calls.

Nothing is evaluated: numbers are compared as fractions, quotations letter by letter without case
and spacing. Patterns are bounded; at most `MAX_CLAIMS` claims per step and `MAX_NUMBERS` numbers
per output are read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from cotlab.text.steps import label_spans, sentence_spans
from cotlab.text.written_numbers import NUMBER_PATTERN, read_number

ClaimVerdict = Literal["matched", "contradicted", "unsupported"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = ("matched", "contradicted", "unsupported")
"""The log confirms a claim, denies it, or does neither."""
MAX_CLAIMS_PER_STEP, MAX_NUMBERS_PER_TEXT = 200, 5000
_GENERIC_TOOL_PATTERN = r"(?:(?:tool|api|lookup)(?:\s+(?:call|output|result))?|output)"
_REPORTING_VERB_PATTERN = (
    r"(?:return(?:s|ed)?|gives?|gave|says?|said|shows?|showed|reports?|reported|outputs?|outputted"
    r"|prints?|printed|finds?|found|yields?|yielded|tells?|told|repl(?:y|ies|ied)"
    r"|responds?|responded|states?|stated|comput(?:es|ed)|produces?|produced"
    r"|confirms?|confirmed|answers?|answered|lists?|listed)"
)
# "-1,200.5", "25%", "1.2 thousand"
_NUMBER_RE = re.compile(
    rf"(?<![\w.,])(?:[-−](?=[.\d]))?{NUMBER_PATTERN}(?:\s?%|\s(?:thousand|million|billion)\b)?(?!\w)"
)
_FACTOR_BY_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
# "“rain”", "`rain`", "'rain'"
_QUOTATION_RE = re.compile(
    r"\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|`([^`\n]{1,300})`|(?<!\w)'([^'\n]{2,300})'(?!\w)"
)
# " + ", " divided by ", "×"
_OPERATOR_RE = re.compile(
    r"\s{0,2}(?:[+*/×÷^]|[-−–](?=\s)|(?:plus|minus|times|divided\s+by)\b)\s{0,2}", re.IGNORECASE
)
# "3 * 4 = 12", "(2 + 3) × 4 = $20"
_EQUATION_RE = re.compile(
    rf"([\d(][\d\s.,+*/×÷^()−–-]{{1,120}}?)\s{{0,3}}=\s{{0,3}}\$?(-?{NUMBER_PATTERN})"
)
_OPERATOR_TRANSLATION = str.maketrans("×÷−–x^", "*/--**", ", \t$")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    """Name of the tool."""
    input_text: str
    """Input as text; other JSON values as JSON."""
    output_text: str
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
    tool_name: str
    """Name of that tool; "" if there is none or it is unnamed ("the tool returns 12")."""
    verdict: ClaimVerdict
    """What the log says about it."""
    call_index: int | None
    """Index of the call that decides the verdict, if one does."""


def read_tool_log(log: Any) -> tuple[ToolCall, ...] | str:
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
    for i, entry in enumerate(log, 1):
        if not isinstance(entry, Mapping):
            return f"call {i} of the tool log is not an object with name, input and output"
        name = entry.get("name")
        output = next((entry[key] for key in ("output", "result") if key in entry), None)
        input_value = next(
            (entry[key] for key in ("input", "arguments", "args") if key in entry), ""
        )
        if not isinstance(name, str) or not name.strip() or output is None:
            return (
                f"call {i} of the tool log has no"
                f" {'output' if isinstance(name, str) and name.strip() else 'name'}"
            )
        calls.append(ToolCall(name.strip(), _to_text(input_value), _to_text(output)))
    return tuple(calls)


def find_claims(
    steps: Sequence[str], calls: Sequence[ToolCall], question: str = ""
) -> tuple[tuple[Claim, ...], ...]:
    """Return the claims of each step with their verdicts.

    Parameters
    ----------
    steps : sequence of str
    calls : sequence of ToolCall
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
    known_values = set(_values_of(question))
    output_values = [_values_of(call.output_text) for call in calls]
    input_values = frozenset[Fraction]().union(*(_values_of(call.input_text) for call in calls))
    tool_names = tuple(dict.fromkeys(call.name for call in calls))
    claims_by_step = []
    for step in steps:
        claims: list[Claim] = []
        call_by_result = dict(_call_equations(step, calls))
        passages = tuple(_attributed_passages(step, tool_names))
        passage_starts = [start for start, _, _ in passages]
        for start, end, text, kind in _claim_candidates(step):
            # at most one a sentence, in the order of the text
            passage = passages[bisect_right(passage_starts, start) - 1] if passages else None
            source = passage[2] if passage and passage[0] <= start < passage[1] else None
            if kind == "quote" and source is None:
                continue
            values = _read_values(text) if kind == "number" else frozenset()
            if kind == "number":
                is_operand = _is_operand(step, start, end)
                if is_operand and values & input_values:
                    continue  # what a tool was given
                source = None if is_operand else source
                if source is None and values & known_values:
                    continue
            candidate_indices = [
                i for i, call in enumerate(calls) if not source or call.name == source
            ]
            is_supported = [
                _supports(call, outputs, text, values)
                for call, outputs in zip(calls, output_values, strict=True)
            ]
            deciding_index = next((i for i in candidate_indices if is_supported[i]), None)
            equation_call = call_by_result.get(start)
            verdict: ClaimVerdict = "matched" if deciding_index is not None else "unsupported"
            if equation_call is not None:
                deciding_index = equation_call
                verdict = "matched" if is_supported[equation_call] else "contradicted"
            elif deciding_index is None and source is not None and candidate_indices:
                verdict = "contradicted"
                deciding_index = _mentioned_call_index(step, calls, candidate_indices)
            claims.append(Claim(start, end, text, kind, source or "", verdict, deciding_index))
            known_values |= values
            if len(claims) == MAX_CLAIMS_PER_STEP:
                break
        claims_by_step.append(tuple(claims))
    return tuple(claims_by_step)


def _to_text(value: Any) -> str:
    """Return a text as it is and another JSON value as JSON."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )


def _values_of(text: str) -> frozenset[Fraction]:
    """Return the values of the numbers of a text, from its first `MAX_NUMBERS_PER_TEXT`."""
    matches = islice(_NUMBER_RE.finditer(text), MAX_NUMBERS_PER_TEXT)
    return frozenset[Fraction]().union(*(_read_values(match[0]) for match in matches))


@lru_cache(4096)
def _read_values(text: str) -> frozenset[Fraction]:
    """Return what a number may stand for, nothing for other text: 25% is 25 and 0.25."""
    if not _NUMBER_RE.fullmatch(text):
        return frozenset()
    digits, _, scale = text.lstrip("-−").replace("%", " %").partition(" ")
    value = read_number(digits).value * (-1 if text[0] in "-−" else 1)
    scale = scale.strip()
    if scale == "%":
        return frozenset({value, value / 100})
    return frozenset({value * _FACTOR_BY_SCALE.get(scale, 1)})


def _claim_candidates(step: str) -> Iterator[tuple[int, int, str, Literal["number", "quote"]]]:
    """Yield (start, end, text, kind) of the numbers and quotations of a step, in order.

    Its label is left out; a number within a quotation belongs to the quotation.
    """
    label_ranges = [span for span in label_spans(step) if not step[: span[0]].strip()]
    quote_spans = [m.span() for m in _QUOTATION_RE.finditer(step)]
    quote_starts = [start for start, _ in quote_spans]
    number_spans = []
    for span in (match.span() for match in _NUMBER_RE.finditer(step)):
        quote_index = bisect_right(quote_starts, span[0]) - 1
        nearest = (*label_ranges[:1], *quote_spans[max(0, quote_index) : quote_index + 1])
        if not any(start <= span[0] < end for start, end in nearest):
            number_spans.append(span)
    candidates: list[tuple[int, int, str, Literal["number", "quote"]]] = []
    for start, end in quote_spans:
        quoted_text = step[start + 1 : end - 1]
        is_number = bool(_read_values(quoted_text))
        candidates.append((start + 1, end - 1, quoted_text, "number" if is_number else "quote"))
    candidates += [(start, end, step[start:end], "number") for start, end in number_spans]
    yield from sorted(candidates)


def _attributed_passages(step: str, tool_names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, tool) of the passages whose source is a tool; "" for an unnamed tool."""
    names = sorted(tool_names, key=len, reverse=True)
    name_patterns = [
        (name, r"[\s_-]{0,2}".join(re.escape(part) for part in re.split(r"[\s_-]+", name) if part))
        for name in names
    ]
    source_patterns = [
        (name, _source_pattern(pattern))
        for name, pattern in (*name_patterns, ("", _GENERIC_TOOL_PATTERN))
        if pattern
    ]
    for start, end in sentence_spans(step):
        for name, pattern in source_patterns:
            if match := pattern.search(step[start:end]):
                yield start if match["back"] else start + match.end(), end, name
                break


@lru_cache(256)
def _source_pattern(tool_pattern: str) -> re.Pattern[str]:
    """Compile a pattern that finds a tool named as a source.

    It is the source of what follows, or of the whole sentence if group ``back`` matched.
    """
    call_pattern = rf"(?<!\w){tool_pattern}(?!\w)(?:['’]s)?(?:\([^()\n]{{0,200}}\))?"
    noun_pattern = (
        "" if tool_pattern == _GENERIC_TOOL_PATTERN else r"(?:output|result|answer|value)s?"
    )
    return re.compile(
        # the calculator returns …
        rf"(?i){call_pattern}[^.!?\n]{{0,80}}?(?<!\w){_REPORTING_VERB_PATTERN}(?!\w)"
        # calculator(3 * 4) = …
        rf"|{call_pattern}\s{{0,3}}(?:(?:output|result|answer|value)s?\s{{0,3}})?(?::|=|→|->)"
        # the calculator's result is …
        rf"|{call_pattern}\s{{0,3}}{noun_pattern}\s+(?:is|was|are|were)(?!\w)"
        # … returned by the calculator
        rf"|(?P<back>(?<!\w){_REPORTING_VERB_PATTERN}\s+by\s+(?:the\s+|a\s+)?{tool_pattern}(?!\w))"
        rf"|(?<!\w)(?:according\s+to|from)\s+(?:the\s+|a\s+)?{tool_pattern}(?!\w)"
    )


def _is_operand(step: str, start: int, end: int) -> bool:
    """Return whether a number is the operand of an operator."""
    if _OPERATOR_RE.match(step, end):
        return True
    text_before = step[max(0, start - 12) : start]
    return bool(
        re.search(rf"{_OPERATOR_RE.pattern}$", text_before, re.IGNORECASE)
        and not re.search(r"[=≈]\s*[-−]?\s*$", text_before)
    )


def _call_equations(step: str, calls: Sequence[ToolCall]) -> Iterator[tuple[int, int]]:
    """Yield (start of result, call) of equations whose left side is a call's input."""
    call_index_by_input = {
        call.input_text.strip().rstrip("=").translate(_OPERATOR_TRANSLATION): i
        for i, call in reversed(list(enumerate(calls)))
    }
    for match in _EQUATION_RE.finditer(step):
        call = call_index_by_input.get(match[1].translate(_OPERATOR_TRANSLATION))
        if call is not None:
            yield match.start(2), call


def _supports(
    call: ToolCall,
    output_values: frozenset[Fraction],
    text: str,
    values: frozenset[Fraction],
) -> bool:
    """Return whether an output contains the words, or the number as it is or rounded."""
    if not values:
        return _fold_text(text) in _fold_text(call.output_text)
    if values & output_values:
        return True
    decimals = re.search(r"\.(\d{1,30})", text)
    scales = [scale for word, scale in _FACTOR_BY_SCALE.items() if word in text]
    half_unit = Fraction(max(scales, default=1), 2 * 10 ** len(decimals[1])) if decimals else 0
    return bool(decimals) and any(abs(x - y) <= half_unit for x in output_values for y in values)


def _mentioned_call_index(
    step: str, calls: Sequence[ToolCall], candidate_indices: Sequence[int]
) -> int | None:
    """Return the call whose input the step repeats, or the only call."""
    step_text = _fold_text(step)
    for i in candidate_indices:
        input_text = _fold_text(calls[i].input_text)
        if len(input_text) > 1 and input_text in step_text:
            return i
    return candidate_indices[0] if len(candidate_indices) == 1 else None


def _fold_text(text: str) -> str:
    """Return a text without case, repeated blanks and outer punctuation."""
    return re.sub(r"\s+", " ", text).strip().strip(".,;:!?").casefold()
