r"""Where a reply gives its final answer, by the conventions that prompts and benchmarks set.

An answer is what stands after the *last* marker: ``\boxed{}``, answer tags, JSON ``answer``,
``####``, "the answer is", "Answer:". Without one it is a reply or a last line that is only a value,
and at last the only value of the last sentence. Nothing else is an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from cotlab.core.reasoning import own_text, read_reasoning, unread_reason
from cotlab.core.text_safety import printable_line
from cotlab.text.answers.equality import read_number
from cotlab.text.answers.normal import MAX_ANSWER_CHARACTERS, tidy, unify_characters

MARKS = frozenset({"box", "tag", "json", "hash", "cue", "line", "before"})
"""Conventions by which a reply marks its answer; by any other it has only one text to offer."""
_MAX_MARKERS = 50
"""Markers of a kind that are read, the last ones of a reply."""
_MAX_WORDS_WITHOUT_MARKER = 6
"""Words of a whole reply that is taken for an answer."""


class Reading(NamedTuple):
    """The final answer of a reply."""

    value: str | None
    """The answer; None where the reply has none that can be read."""
    how: str
    """The convention that decided, or why there is no answer."""
    end: int = 0
    """Where the marker and its answer end in the reply's own text; 0 without an answer."""


class _Candidate(NamedTuple):
    start: int
    """Where the marker starts."""
    content: str
    """What follows it."""
    how: str
    """Its kind."""
    end: int
    """Where the content ends."""


_EMPHASIS = r"[*_`\" ]{0,6}"
_TAG_RE = re.compile(r"(?i)<(/?)(?:(?:final_?)?answer|output|solution)>")
_JSON_RE = re.compile(
    r'(?i)"(?:final_?|correct_?)?answer"\s{0,5}:\s{0,5}'
    r'("(?:[^"\\\n]|\\.){0,400}"|\[[^\[\]\n]{0,200}\]|-?[\d.eE+]{1,40}|true|false|null)'
)
_BACKSLASH_RE = re.compile(r"\\(?![\"\\/n]|u[\da-fA-F]{4})(?<!\\\\)")
_HASH_RE = re.compile(r"(?m)####[ \t]{0,3}(\S[^\n]{0,300})")
# "the answer is", "Final answer:", "the correct option is"
_CUE_RE = re.compile(
    rf"(?i)\b(?:the|my|our|final|correct|right|best|is|so|,)?\s?{_EMPHASIS}"
    rf"(?:answer(?: choice| option)?|(?:correct|right|best|closest) (?:option|choice)|final result)"
    rf"{_EMPHASIS}(?:\s(?:to|for) [^.:\n]{{1,60}}?)?"
    rf"{_EMPHASIS}(?:\bis\b|\bare\b|\b(?:would|must|should) be\b|[:：=]|\n)\s{{0,3}}"
    rf"(?:therefore|thus|then|indeed|option|choice|clearly)?{_EMPHASIS}[:：]?{_EMPHASIS}"
)
# "A:", "Ans:", "Answer:" at the start of a line
_LINE_RE = re.compile(
    r"(?m)^[ \t>*_#-]{0,8}(?:A|Ans|ANSWER|Answer|Final Answer|FINAL ANSWER)[*_]{0,2}[ \t]?[:：]"
    r"[ \t*_]{0,6}"
)
_OPTION_B_RE = re.compile(r"(?m)^\W{0,3}B[.:)]\s")
# "18 is the answer", "option (B) is correct"
_BEFORE_RE = re.compile(
    r"(?i)(?:^|[.,;\n]|\bso\b|\bthus\b|\btherefore\b|\bhence\b)[\s*_]{0,6}"
    r"((?:option |choice )?[^\n.,;]{1,60}?)[*_ ]{0,4} (?:is|are) the"
    r" (?:final |correct |right |best )?(?:answer|option|choice)\b"
    r"|\b((?:option|choice) \(?[A-Z]\)?) is (?:correct|right)\b"
)
_POINTING_RE = re.compile(r"(?i)\b(?:this|that|which|what|it|not)$")
# "not the answer is", "if the answer is", "Tom thinks the answer is": no statement of an answer
_NO_CUE_RE = re.compile(
    r"(?i)\b(?:(?:can)?not|never|wrong|incorrect|if|whether|suppose|thinks|says)\b|n['’]t\b"
    r"|(?:\b(?:to|can|could|will|would|your|an|is|are)|\b(?:step|part)\s\d{1,3})\s*(?:the\s)?$|\"$"
)
# where the clause begins in which a cue stands
_CLAUSE_RE = re.compile(r"(?i)[.,;:!?\n]|\b(?:so|thus|hence|therefore|but)\b")
# "<answer>", "[your answer]", "$": a form that was not filled in
_EMPTY_RE = re.compile(
    r"(?i)[\s*$_.\\]*"
    r"|[<\[{(]?\s?(?:your|the|final|insert)?[ _]?(?:answer|value|number|letter|option)(?: here)?\s?"
    r"[>\]})]?"
)
_DENIED_RE = re.compile(r"(?i)(?:not|null|unclear|incorrect|impossible to)\b")
# "as follows", "based on": the answer stands elsewhere
_ELSEWHERE_RE = re.compile(
    r"(?i)(?:as follows|below|based on|found|obtained|given|determined|calculated|derived|correct"
    r"|that|we |the same|in the|helpful|reasonable|complete|consistent|clear)\b"
)
_SENTENCE_END_RE = re.compile(
    r"(?<!\b[SDM][trs])(?<!\bMrs)(?<!\bft)(?<!\blb)(?<!\bapprox)(?<=\S)[.!?。](?=\s|$)(?!\s[A-Z]\.)|\n|;(?!\s?\d)"
)
_FORMULA_START_RE = re.compile(
    r"(?s)(\\\[.{1,600}?\\\]|\$\$.{1,600}?\$\$|\\\(.{1,600}?\\\)|\$[^$\n]{1,300}\$)(?=[\s.,;!*]|$)"
)
# " because …", ", so …" after an answer
_REASON_RE = re.compile(
    r"(?s)(?<=\S)\s+\(?(?:because|since|as (?:it|the|they))\b.*"
    r"|,\s+(?:because|since|so|which|where|while|as|not)\b.*"
)
_VALUE_LINE_RE = re.compile(
    r"(?i)^[\s*_>#`\"]{0,8}(?:[A-Za-z][\w'()]{0,6}\s?[=≈]\s?)?"
    r"([-+]?[$€£₹]?-?\s?\d[\d,]*(?:\.\d+)?(?:\s?/\s?\d+)?"
    r"\s?(?:%|[A-Za-z°$€£]+(?:\s[A-Za-z]+){0,2})?|yes|no|true|false|\(?[A-J]\)?)[\s*_.`\"]{0,6}$"
)
_FORMULA_LINE_RE = re.compile(
    r"(?s)^\s*(\$[^$]{1,300}\$|\\\(.{1,300}?\\\)|\\\[.{1,300}?\\\]|\$\$.{1,300}?\$\$)\s*\.?$"
)
_REFUSAL_RE = re.compile(
    r"(?i)\b(?:i (?:do not|don['’]t|cannot|can['’]t|am unable|am not able)|unable to"
    r"|i['’]?m not sure|no idea|cannot be determined|not enough information|as an ai)\b"
)
_ANSWER_WORD_RE = re.compile(r"(?i)\banswer\b")
# "Step 2:", "2." at the start of a line
_LABEL_RE = re.compile(r"(?i)^[\s*#_>-]{0,6}(?:step\s\d+[.:)]?|\d+[.)])\s")
_NEXT_QUESTION_RE = re.compile(r"\n(?:Q|Question|User|Human):")
# "- ", "1. " of a list
_BULLET_RE = re.compile(r"^(?:[-•>]|\d{1,2}[.)])\s+")
_BOX_RE = re.compile(r"\\(?:boxed|fbox)\s?\{")
_BETWEEN_BOXES_RE = re.compile(
    r"(?:[\s$,\\()]|\\q?quad){0,10}(?:and|or|\\text\{\s?(?:and|or)\s?\})?(?:[\s$,\\()]|\\q?quad){0,10}"
)
# a sentence that denies, supposes or checks states no answer
_UNCERTAIN_RE = re.compile(
    r"(?i)\b(?:(?:can)?not|never|if|would|could|at (?:least|most)|(?:more|less|fewer|greater) than"
    r"|wrong|incorrect|check\w*|verif\w*|assum\w*)\b|n['’]t\b"
)
_BOLD_RE = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_FORMULA_RE = re.compile(r"\\\((.{1,200}?)\\\)|\$([^$\n]{1,200})\$")
_NUMBER_RE = re.compile(
    r"(?<![A-Za-z0-9_.])-?[$€£₹]?\s?\d(?:[\d,]*\d)?(?:\.\d+)?(?:/\d+)?"
    r"(?:\s?(?:%|(?:hour|minute|second|day|week|month|year|mile|meter|metre|dollar|cent|inch|pound"
    r"|gram|liter|litre|degree)(?:e?s)?\b|(?:feet|foot|[ckm]m|k?g)\b))?(?![A-Za-z0-9_/])"
)
# " is 34" at the end of a sentence
_STATED_RE = re.compile(r"(?<=\s)(?:is|are|was|were|equals|be)\s([^,;]{1,80})$")


@lru_cache(1024)  # a reply is read for several scores, one after the other
def read_answer(reply: str) -> Reading:
    """Find the final answer of a reply by its last marker, or say why there is none."""
    if markup := read_reasoning(reply).unread:
        return Reading(None, unread_reason(markup))
    text = unify_characters(own_text(reply))
    if (turn := _NEXT_QUESTION_RE.search(text)) and text[: turn.start()].strip():
        text = text[: turn.start()]
    if not printable_line(text):
        return Reading(None, "the reply is empty")
    for candidate in sorted(_candidates(text), key=lambda c: c.start, reverse=True):
        content, how = candidate.content, candidate.how
        if inner := _boxes(content):
            content = ", ".join(box.content for box in inner)
        if how in ("cue", "line"):
            content = _REASON_RE.sub("", content)
        value = tidy(content)
        if not printable_line(value) or _EMPTY_RE.fullmatch(value):
            continue
        if how in ("cue", "line") and _ELSEWHERE_RE.match(value):
            continue
        if (how != "box" and _DENIED_RE.match(value)) or _REFUSAL_RE.match(value):
            return Reading(None, "the last marker denies an answer")
        is_sentence = len(value.split()) > 3 and not _FORMULA_RE.fullmatch(content.strip(" ."))
        if how in ("cue", "line") and is_sentence and read_number(value) is None:
            value = _only_value(content) or value  # "Final answer: the largest n is 34"
        return Reading(value, how, candidate.end)
    if _REFUSAL_RE.search(text[:400]) and len(text) < 600:
        return Reading(None, "the reply declines to answer")
    return _read_unmarked(text)


def stated_answer_text(reply: str) -> str:
    """Return the part of a cut-off reply that ends with its answer; "" where it states none.

    Only a marker states one: the last number of a text that did not end is no answer, nor is what
    the cut itself ends.
    """
    reading, text = read_answer(reply), unify_characters(own_text(reply))
    rest, last = text[reading.end :], (reading.value or "")[-1:]
    is_closed = reading.how in ("box", "tag", "json") or bool(rest.strip(" .*$\\)"))
    is_closed = is_closed or (rest.startswith(".") and not last.isdigit())  # "7." may become "7.5"
    return text[: reading.end] if reading.how in MARKS and is_closed else ""


def _read_unmarked(text: str) -> Reading:
    """Read a reply without a marker: a value alone, or the only value of its last sentence."""
    end = len(text)
    lines = [line for line in text.split("\n") if line.strip() and line.strip()[:3] != "```"]
    if not lines:
        return Reading(None, "the reply is empty")
    if match := _VALUE_LINE_RE.match(lines[-1]):
        return Reading(tidy(match[1]), "value line", end)
    if match := _FORMULA_LINE_RE.match(lines[-1]):
        return Reading(tidy(match[1]), "formula line", end)
    is_short = len(lines) == 1 and len(text.split()) <= _MAX_WORDS_WITHOUT_MARKER
    if is_short and read_number(text):
        return Reading(tidy(text), "whole reply", end)
    if value := _only_value(lines[-1]):
        return Reading(value, "only value", end)
    is_answer = is_short and not _ANSWER_WORD_RE.search(text) and not text.strip().endswith("?")
    if is_answer and any(c.isalnum() for c in text):
        return Reading(tidy(text), "whole reply", end)
    return Reading(None, "no marker, and no single value at the end")


def _candidates(text: str) -> Iterator[_Candidate]:
    """Yield what follows each marker of a text."""
    boxes = _boxes(text)
    if boxes:
        joined, start = [boxes[-1].content], boxes[-1].start
        for box in reversed(boxes[:-1]):
            if not _BETWEEN_BOXES_RE.fullmatch(text[box.end : start]):
                break
            joined.insert(0, box.content)
            start = box.start
        yield _Candidate(boxes[-1].start, ", ".join(joined), "box", boxes[-1].end)
    for opening, closing in pairwise(_TAG_RE.finditer(text)):
        if closing[1] and not opening[1]:
            content = text[opening.end() : closing.start()]
            yield _Candidate(opening.start(), content, "tag", closing.end())
    for match in _JSON_RE.finditer(text):
        content = match[1].strip("[]")
        if match[1][0] == '"':  # whose LaTeX models do not escape: "\\sqrt{2}"
            content = json.loads(_BACKSLASH_RE.sub(r"\\\\", match[1]), strict=False)
        yield _Candidate(match.start(), content, "json", match.end())
    for match in _HASH_RE.finditer(text):
        if text[match.end() :].strip() and read_number(match[1]) is None:
            continue  # a heading
        yield _Candidate(match.start(), match[1], "hash", match.end())
    for match in list(_CUE_RE.finditer(text))[-_MAX_MARKERS:]:
        before = _CLAUSE_RE.split(text[max(0, match.start() - 60) : match.start()])[-1]
        if not _NO_CUE_RE.search(before):
            yield _after(match, text, "cue")
    if not _OPTION_B_RE.search(text):  # else "A:" is an option
        for match in list(_LINE_RE.finditer(text))[-_MAX_MARKERS:]:
            yield _after(match, text, "line")
    for match in list(_BEFORE_RE.finditer(text))[-_MAX_MARKERS:]:
        content = match[1] or match[2]
        if not _POINTING_RE.search(content.strip()):
            yield _Candidate(match.start(), content, "before", match.end())


def _after(match: re.Match[str], text: str, how: str) -> _Candidate:
    """Return the first sentence or line after a marker; a formula stays whole."""
    rest = text[match.end() : match.end() + MAX_ANSWER_CHARACTERS]
    body = rest.lstrip(" \t\r\n:*_")
    if "\n" in rest[: len(rest) - len(body)]:
        body = _BULLET_RE.sub("", body)
    start = match.end() + len(rest) - len(body)
    if formula := _FORMULA_START_RE.match(body):
        tail = re.match(r"[^\n.]{0,40}", body[formula.end() :])
        more = tail[0] if tail and re.match(r"\s?(?:and|or|,)?\s?[\w$\\]", tail[0]) else ""
        content = formula[0] + more
    else:
        end = _SENTENCE_END_RE.search(body)
        content = body[: end.start()] if end else body
    return _Candidate(match.start(), content, how, start + len(content))


def _boxes(text: str) -> list[_Candidate]:
    r"""Return every ``\boxed{...}`` whose braces are closed, the last ones of a text."""
    found = []
    for match in list(_BOX_RE.finditer(text))[-_MAX_MARKERS:]:
        depth, position = 1, match.end()
        while position < len(text) and depth and position - match.end() < MAX_ANSWER_CHARACTERS:
            if text[position - 1] != "\\":
                depth += {"{": 1, "}": -1}.get(text[position], 0)
            position += 1
        if not depth:
            content = text[match.end() : position - 1]
            found.append(_Candidate(match.start(), content, "box", position))
    return found


def _only_value(line: str) -> str | None:
    """Return the only bold text, formula or number of the last sentence; None if it denies."""
    line = _LABEL_RE.sub("", re.sub(r"<<[^<>\n]*>>", "", line.strip()))
    sentences = [s for s in re.split(r"(?<=[^\d\s][.!?])\s+(?=[A-Z$\\*])", line) if s.strip()]
    sentence = sentences[-1] if sentences else ""
    if _UNCERTAIN_RE.search(sentence) or sentence.rstrip(" *").endswith(("?", ":", ",")):
        return None
    stated = _STATED_RE.search(sentence.rstrip(" .!"))
    if stated and (read_number(stated[1]) or _FORMULA_RE.fullmatch(stated[1].strip())):
        return tidy(stated[1])
    bold, formulas = _BOLD_RE.findall(sentence), _FORMULA_RE.findall(sentence)
    if len(bold) == 1 and re.search(r"\d", bold[0]) and len(bold[0].split()) <= 4:
        return tidy(bold[0])
    if len(formulas) == 1 and not re.search(r"\d", _FORMULA_RE.sub(" ", sentence)):
        value = "".join(formulas[0])
        is_value = re.search(r"[\d\\]", value) and not re.search(
            r"[<>]|\\[gl]eq?\b|\\(?:ne|not|in)\b", value
        )
        return tidy(value.rpartition("=")[2]) if is_value else None
    if formulas or re.search(r"\\[a-z]", sentence):
        return None
    if not re.search(r"[,;]|\b(?:and|or)\b", sentence.rpartition("=")[0]):
        sentence = sentence.rpartition("=")[2]
    numbers = [match[0].strip() for match in _NUMBER_RE.finditer(sentence)]
    is_only = len(numbers) == 1 and len(re.findall(r"\d[\d,.]*", sentence)) == 1
    return tidy(numbers[0]) if is_only else None
