"""Which of several numbers in a sentence answers the question.

"So he needs 12 boxes to pack all 96 eggs": the question counts boxes, "all 96 eggs" is what is
given. Where neither the question nor the sentence tells, no number does.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cotlab.text.answers.dates import find_dates
from cotlab.text.answers.inline_formulas import fraction_spans, outside_formulas
from cotlab.text.answers.quantities import (
    BELOW_ZERO_RE,
    Quantity,
    find_numbers,
    read_noun,
    read_quantity,
)
from cotlab.text.answers.question import TOGETHER, ExpectedAnswer, read_expected, word_stem
from cotlab.text.answers.reading import to_plain_text
from cotlab.text.answers.spelled_counts import has_spelled_count, spells_number
from cotlab.text.answers.verbs import (
    is_of_other_verb,
    spans_with_verb,
    stands_at_verb,
    verb_is_unnumbered,
)
from cotlab.text.steps import label_spans, sentence_spans

_MAX_CHARACTERS = 1000
"""Characters at the end of a sentence that are read."""
# "is ", "= ", "a total of ", "leaves " right before a number
_STATES_RE = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|been|equals?|becomes?|gives?|giving|yields?|gets?"
    r"|(?:leaves|leaving)(?: (?:it|him|her|them|us|me|you))?(?: with)?"
    r"|therefore|hence|thus|makes|making|comes? (?:out )?to|amounts? to|totals?"
    r"|(?:total|sum|equal|average) (?:of|to)"
    r")|[=≈:→])\s*(?:(?:about|approximately|roughly|around|exactly|only|just|at|a total of"
    r"|equal to|[*$\\(]){1,4}\s*)?$"
)
# "all ", "out of the ", "of his " before a number that is given
_GIVEN_RE = re.compile(
    r"(?i)(?:\b(?:all|out of|both)(?: of)?(?: the| his| her| its| their| these| those)?"
    r"|\b(?:of|on|in|over|for|with|from|by|at|to|each|every|after|before|than|during|within|per)"
    r" (?:the|his|her|its|their|our|my|your|these|those|each|every|all)(?: \w+)?"
    r"|\b(?:the|his|her|its|their|these|those) (?:other|first|last|remaining|original)"
    r")\s*[*$\\(]{0,3}$"
)
# "in ", "for each of the " before a number that says more about the one before
_PREPOSITION_RE = re.compile(
    r"(?i)\b(?:in|on|at|for|from|of|over|per|after|before|with|within|during|every|each|than|all"
    r"|among|across|by|per)\s(?:(?:the|all|each|every|his|her|its|their|a|an|of|these|those|about"
    r"|a total of|[a-z]{2,}ing)\s){0,3}[*$\\(]{0,3}$"
)
_MARKS_PATTERN = r"\s*(?:[^\w\s](?:\W?[^\w\s])?\s*)?"
"""At most three marks between blanks: " $", " \\(", "**"."""
# "= $" before the result of a computation
_EQUALS_RE = re.compile(rf"[=≈]{_MARKS_PATTERN}$")
# "48 + 16 = " before 64
_COMPUTATION_BEFORE_RE = re.compile(
    r"\d[^=≈\d\\^_{}]{0,20}?(?:[-+*/×÷]|\bx\b|\\times|\\cdot|\\div)[^=≈\d\\^_{}]{0,9}\d"
    rf"[^=≈\\^_{{}}]{{0,40}}[=≈]{_MARKS_PATTERN}$"
)
# " apples left", " dollars in total" after the number that a sentence comes to
_TOTAL_RE = re.compile(
    r"(?i)(?:\s[a-z-]+){0,3}?\s(?:left|remaining|remain|back|altogether"
    r"|(?:in|of) change|in (?:total|all))\b"
)
# "in ", "over the " before "5 weeks"
_PERIOD_RE = re.compile(
    r"(?i)\b(?:in|over|for|during|within|throughout|across|after|every|each|per)"
    r"\s(?:the\s|all\s|those\s)?(?:\w+\s)?$"
)
# " longer than" after "15 minutes"
_COMPARED_RE = re.compile(
    r"(?i)\s(?:longer|later|earlier|taller|older|younger|faster|slower) than\b"
)
# "by " of "rose by 20%", " increase" of "20% increase"
_BY_RE = re.compile(r"(?i)\bby\s(?:about |roughly |exactly |only |a total of )?[*$\\(]{0,3}$")
_CHANGE_RE = re.compile(
    r"(?i)[*$)\\]{0,3}\s(?:increase|decrease|rise|drop|fall|discount|reduction|gain|loss|growth"
    r"|more|less|higher|lower|cheaper)\b"
)
# "increase is " before 20%
_CHANGE_IS_RE = re.compile(
    r"(?i)\b(?:increase|decrease|rise|drop|fall|discount|reduction|gain|loss|growth|change)\s"
    r"(?:is|was|of|equals)\s[*$(\\]{0,3}$"
)
_MORE_THAN_RE = re.compile(r"(?i)\s(?:more|fewer|less)\s(?:[a-z]+\s){0,2}than\b")
_OPERATIONS = frozenset({"sum", "difference", "product", "quotient", "average", "mean", "ratio"})
# "is 2" after "the radius of 5 circles"
_IS_NUMBER_RE = re.compile(r"\b(?:is|are|was|were|equals?)\s\W{0,3}(?:about |exactly )?\d")
_MORE = frozenset({"more", "fewer", "less", "difference"})
_BOLD_RE = re.compile(r"\*\*[^*\n]{1,80}\*\*")
# " (40 regular and 5 overtime)." at the end of a sentence
_BRACKETS_AT_END_RE = re.compile(r"(?<=\w)\s\([^()]{3,200}\)[\s.!*]{0,4}$")
# ", " or " and " between clauses
# " because 10 - 4 = 6" after the answer
_BECAUSE_RE = re.compile(r"(?i)(?<=\w),?\s(?:because|since)\s(?=[^\w.,]{0,3}\d)")
_CLAUSE_END_RE = re.compile(r"[,;:]\s|\s(?:and|while|but|so|whereas)\s")
# " of which are red"
_OF_WHICH_RE = re.compile(
    r"(?i)\sof (?:which|them|whom|these|those) (?:is|are|was|were) ([a-z]{2,20})"
)
_PART_JOINT_RE = re.compile(r",?\s+(?:and\s+)?")
_LIST_JOINT_RE = re.compile(r"\s?(?:,|,?\s(?:and|or)\b)\s*")
# "<<16-3=13>>" of solutions that name their computations
_COMPUTATION_RE = re.compile(r"<<[^<>\n]{1,200}>>")


def find_main_value(text: str, question: str = "") -> tuple[int, int] | None:
    """Return the range of the number, date or time that the last sentence with one gives.

    Raises
    ------
    LookupError
        Where several compete and neither the sentence nor the question tells.
    """
    text = _without_labels(text)
    for i, (start, end) in enumerate(reversed(sentence_spans(text))):
        start = max(start, end - _MAX_CHARACTERS)
        if spans := _values(text[start:end], is_last=i == 0):
            expected = read_expected(question)
            chosen = _choose(text[start:end], spans, expected)
            if chosen is None or _is_uncertain(text[start:end], spans, chosen, expected):
                raise LookupError
            return outside_formulas(text, start + chosen[0], start + chosen[1])
    return None


def _values(sentence: str, *, is_last: bool) -> list[tuple[int, int]]:
    """Return the ranges of numbers, dates and times; "1 hour and 30 minutes" is one."""
    spans = [*find_dates(sentence), *(fraction_spans(sentence) if is_last else [])]
    spans += [
        span
        for span in find_numbers(sentence, mixed=True)
        if not any(start < span[1] and span[0] < end for start, end in spans)
    ]
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if below := BELOW_ZERO_RE.match(sentence, end):
            end = below.end()
        if (
            joined
            and _PART_JOINT_RE.fullmatch(sentence, joined[-1][1], start)
            and any(c.isalpha() for c in sentence[slice(*joined[-1])])
            and read_quantity(sentence[joined[-1][0] : end])
        ):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _choose(
    sentence: str, spans: list[tuple[int, int]], expected: ExpectedAnswer
) -> tuple[int, int] | None:
    """Return the one range that answers; None where that is not certain."""
    for reason in (_BRACKETS_AT_END_RE.search(sentence), _BECAUSE_RE.search(sentence)):
        stated = [span for span in spans if reason and span[0] < reason.start()]
        if not stated or stated == spans:
            continue
        is_computed = _COMPUTATION_BEFORE_RE.search(sentence[: spans[-1][0]])
        if is_computed and not any(_n_values(sentence, [span, spans[-1]]) == 1 for span in stated):
            return None  # "He can skip 4 because 10 - 4 = 6": which of them it is, is not certain
        spans = stated
    if _n_values(sentence, spans) == 1 or _EQUALS_RE.search(sentence[: spans[-1][0]]):
        return spans[-1]
    of_verb = spans_with_verb(sentence, spans, expected.verb, expected.question)
    if (
        of_verb
        and _n_values(sentence, of_verb) == 1
        and _may_count(sentence, spans, of_verb[-1], expected)
    ):
        return of_verb[-1]
    all_matching = _matching(sentence, spans, expected)
    if computed := [span for span in spans if _COMPUTATION_BEFORE_RE.search(sentence[: span[0]])]:
        later = [span for span in spans if span > computed[-1]]
        if computed[-1] in all_matching or not set(later) & set(all_matching):
            return computed[-1]
    matching = [
        span
        for span in all_matching
        if not (_GIVEN_RE.search(sentence[: span[0]]) or _is_difference(sentence, span, expected))
        or expected.label
    ]
    if matching and _n_values(sentence, matching) == 1:
        return matching[-1]
    candidates = matching or spans
    for marked in (_changes(sentence, candidates, expected), _bold(sentence, candidates)):
        if marked and _n_values(sentence, marked) == 1:
            return marked[-1]
    in_clause = _in_clause_of_question(sentence, candidates, expected)
    if in_clause and _n_values(sentence, in_clause) == 1:
        return in_clause[-1]
    not_given = [span for span in candidates if not _is_given(sentence, span)]
    if matching and not_given and _n_values(sentence, not_given) == 1:
        return not_given[-1]
    for i in range(len(spans) - 1, -1, -1):
        if spans[i] in candidates and _STATES_RE.search(sentence[: spans[i][0]]):
            return _list_from(sentence, spans[i:])
        if not (
            _PREPOSITION_RE.search(sentence[: spans[i][0]])
            or _is_given(sentence, spans[i])
            or _LIST_JOINT_RE.fullmatch(sentence[spans[i - 1][1] : spans[i][0]] if i else "")
            or (matching and spans[i] not in matching)
        ):
            break
    if not_given and _n_values(sentence, not_given) == 1:
        return not_given[-1]
    totals = [span for span in not_given if _TOTAL_RE.match(sentence, span[1])]
    if totals and _n_values(sentence, totals) == 1:
        return totals[-1]
    return None if any(c.isalpha() for c in sentence) else spans[-1]


def _may_count(
    sentence: str, spans: list[tuple[int, int]], span: tuple[int, int], expected: ExpectedAnswer
) -> bool:
    """Return whether a number counts what is asked for, or stands at the verb: "ate 7"."""
    if stands_at_verb(sentence, span, expected.verb):
        return True
    best = max(_fit(sentence, other, expected) for other in spans)
    return _fit(sentence, span, expected) == best > 0


def _is_uncertain(
    sentence: str, spans: list[tuple[int, int]], span: tuple[int, int], expected: ExpectedAnswer
) -> bool:
    """Return whether a chosen number of a question that counts may be of another verb."""
    is_computed = _EQUALS_RE.search(sentence[: span[0]]) or _BECAUSE_RE.search(sentence)
    if not expected.nouns or is_computed:
        return False
    if has_spelled_count(sentence, expected.nouns) and not _fit(sentence, span, expected):
        return True
    if re.search(r"(?i)\bof $", sentence[: span[0]]) and spells_number(sentence[span[1] :]):
        return True  # "Of 30 students, a dozen wear glasses"
    if _n_values(sentence, spans) == 1:
        return verb_is_unnumbered(sentence, span, expected.verb)
    return is_of_other_verb(sentence, spans, span, expected.verb, expected.question)


def _is_difference(sentence: str, span: tuple[int, int], expected: ExpectedAnswer) -> bool:
    """Return whether a number is a difference ("5 more than Bob") that the question leaves out."""
    if _COMPARED_RE.match(sentence, span[1]):
        return True
    return not expected.terms & _MORE and bool(_MORE_THAN_RE.match(sentence, span[1]))


def _changes(
    sentence: str, spans: list[tuple[int, int]], expected: ExpectedAnswer
) -> list[tuple[int, int]]:
    """Return the numbers by which something changes, where the question asks by how much."""
    if not expected.is_change:
        return []
    return [
        span
        for span in spans
        if _BY_RE.search(sentence[: span[0]])
        or _CHANGE_RE.match(sentence, span[1])
        or _CHANGE_IS_RE.search(sentence[: span[0]])
    ]


def _bold(sentence: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the numbers in bold ("**17 apples**")."""
    marked = [match.span() for match in _BOLD_RE.finditer(sentence)]
    return [span for span in spans if any(a <= span[0] < b for a, b in marked)]


def _in_clause_of_question(
    sentence: str, spans: list[tuple[int, int]], expected: ExpectedAnswer
) -> list[tuple[int, int]]:
    """Return the numbers whose clause says what the question says: "in April", "together"."""
    if any(
        _LIST_JOINT_RE.fullmatch(sentence, first[1], second[0]) for first, second in pairwise(spans)
    ):
        return []
    ends = [m.start() for m in _CLAUSE_END_RE.finditer(sentence)] + [len(sentence)]
    clauses: list[tuple[tuple[int, int], frozenset[str]]] = []
    subject = ""
    for span in spans:
        start = max((end for end in ends if end < span[0]), default=0)
        end = min(end for end in ends if end >= span[0])
        if re.search(r"[a-z]{2,}", _CLAUSE_END_RE.sub("", sentence[start : span[0]]).lower()):
            clause_start = sentence[start : span[0]]
            has_subject = bool(
                re.search(r"[A-Z]|\b(?:the|an?|his|her|its|their|each|every)\s", clause_start)
            )
            subject = clause_start if has_subject else f"{subject} {clause_start}"
        tokens = re.findall(r"[a-z]{3,}", f"{subject} {sentence[span[0] : end]}".lower())
        terms = frozenset("together" if token in TOGETHER else word_stem(token) for token in tokens)
        clauses.append((span, terms & expected.terms))
    if "together" in expected.terms:
        return [span for span, terms in clauses if "together" in terms]
    common = frozenset.intersection(*(terms for _, terms in clauses))
    best = [span for span, terms in clauses if terms - common]
    return best if len(best) < len(spans) else []


def _is_given(sentence: str, span: tuple[int, int]) -> bool:
    """Return whether a number is of what is given ("all 96 eggs"), or a period ("in 5 weeks")."""
    before = sentence[: span[0]]
    if _GIVEN_RE.search(before):
        return True
    quantity = read_quantity(sentence[slice(*span)]) if _PERIOD_RE.search(before) else None
    return quantity is not None and any(
        dims[0][0] in ("time", "month") for dims, _ in quantity.units if len(dims) == 1
    )


def _list_from(sentence: str, spans: list[tuple[int, int]]) -> tuple[int, int] | None:
    """Return a stated number with those that it is listed with ("2 and 5"), to the end."""
    first, *others = spans
    end = first[1]
    for start, next_end in others:
        if not _LIST_JOINT_RE.fullmatch(sentence, end, start):
            break
        end = next_end
    if end == first[1]:
        return first
    return (first[0], end) if not sentence[end:].strip(" .!*$)") else None


def _matching(
    sentence: str, spans: list[tuple[int, int]], expected: ExpectedAnswer
) -> list[tuple[int, int]]:
    """Return the ranges that are of the kind that is asked for; all that fit best."""
    if expected.is_date:
        return [span for span in spans if span in set(find_dates(sentence))]
    if expected.label:
        label = re.escape(expected.label)
        after_label = re.compile(
            rf"(?i)\b{label}s?\s(?:(of)|is|was|are|were|will be|=|:|at)\s\W{{0,3}}$"
        )
        matches = [(span, after_label.search(sentence[: span[0]])) for span in spans]
        labelled_spans = [
            span
            for span, match in matches
            if match and not (match[1] and _is_operand(sentence, span, expected))
        ]
        if labelled_spans:
            return labelled_spans
    scores = [_fit(sentence, span, expected) for span in spans]
    best = max(scores)
    return [span for span, score in zip(spans, scores, strict=True) if score == best > 0]


def _is_operand(sentence: str, span: tuple[int, int], expected: ExpectedAnswer) -> bool:
    """Return whether "the sum of 1" may have a number that is added: one that the question gives.

    So may any after a label that names an operation, and before "is 2".
    """
    if _IS_NUMBER_RE.search(sentence[span[1] :]):
        return True
    is_operation = expected.label.split()[-1] in _OPERATIONS
    return is_operation or bool(
        set(re.findall(r"\d(?:[\d.,]*\d)?", sentence[slice(*span)])) & expected.numbers
    )


def _fit(sentence: str, span: tuple[int, int], expected: ExpectedAnswer) -> int:
    """Return how many of the nouns that are asked for follow a number, or that its unit fits."""
    value = sentence[slice(*span)]
    digits_end = max((m.end() for m in re.finditer(r"\d", value)), default=0)
    rest = re.split(r"[,.;:!?()]", sentence[span[0] + digits_end :][:80])[0].strip("*$\\ ")
    nouns, _ = read_noun(rest)
    quantity = read_quantity(to_plain_text(value))
    which = _OF_WHICH_RE.match(sentence, span[1])
    if which and which[1].lower().removesuffix("s") in expected.nouns:  # "3 of which are red"
        before = re.findall(r"[a-z]{3,}", sentence[: span[0]].lower())
        nouns |= {word.removesuffix("s") for word in before} | {which[1].lower()}
    score = len(nouns & expected.nouns)
    if quantity and any(
        base in expected.dimensions for dims, _ in quantity.units for base, _ in dims
    ):
        score += 1
    return score


def _n_values(sentence: str, spans: list[tuple[int, int]]) -> int:
    """Return how many different values ranges have; "18" and "$18" are the same."""
    readings = [read_quantity(to_plain_text(sentence[slice(*span)])) for span in spans]
    return len(
        {
            reading.value if isinstance(reading, Quantity) else sentence[slice(*span)]
            for reading, span in zip(readings, spans, strict=True)
        }
    )


def _without_labels(text: str) -> str:
    """Return a text of the same length without step labels and named computations."""
    text = _COMPUTATION_RE.sub(lambda match: "=" + " " * (len(match[0]) - 1), text)
    characters = list(text)
    for start, end in label_spans(text):
        characters[start:end] = " " * (end - start)
    return "".join(characters)
