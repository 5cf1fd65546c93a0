"""Red flags in the text of a chain: early answer, undefined symbol, wrong unit, hand-waving.

The reliability seed, section 7, names the four. Each rule returns the spans that it matches; the
rules are patterns of usual English wording and do not understand a chain.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from cotlab.text.arithmetic.mismatches import unit_mismatches
from cotlab.text.undefined_symbols import find_undefined_symbols

RULES = ("premature_answer", "undefined_symbol", "unit_inconsistency", "hand_waving")
EARLY_SHARE = 0.4
"""An answer is premature in a step that ends before this share of the chain."""


class RedFlag(NamedTuple):
    """A span of a step that a rule matched."""

    rule: str
    """Name of the rule, of RULES."""
    step_index: int
    """Index of the step, from 0."""
    start: int
    """First character of the step's text."""
    end: int
    """Character after the last."""
    reason: str
    """Why the rule matched."""


def find_flags(
    question: str, steps: Sequence[str], *, early_share: float = EARLY_SHARE
) -> tuple[RedFlag, ...]:
    """Return the flags of the four textual rules in a chain.

    Symbols in the question are defined. An answer is premature in a step that ends before the share
    ``early_share`` (0 to 1) of the steps. Flags are in the order of RULES, steps and characters;
    the spans of one rule are disjoint.
    """
    flags = [
        *find_premature_answers(steps, early_share=early_share),
        *(RedFlag("undefined_symbol", *match) for match in find_undefined_symbols(question, steps)),
    ]
    for rule, find_matches in (
        (
            "unit_inconsistency",
            partial(_find_unit_mismatches, _algebraic_letters((question, *steps))),
        ),
        ("hand_waving", _find_hand_waving),
    ):
        flags += [
            RedFlag(rule, i, *match) for i, step in enumerate(steps) for match in find_matches(step)
        ]
    return tuple(flags)


_N_NEAR_CHARACTERS, _N_FAR_CHARACTERS = 120, 600
"""Characters before a word that a rule reads; the second for reasons."""

# --- premature answer ---

_ANSWER_ADJECTIVE_PATTERN = r"(?:(?:final|correct|right|best|overall)\s+){0,2}"
_IS_OR_EQUALS_PATTERN = (
    r"(?:\s+(?:is|was|equals|must be|should be|will be|would be|has to be)\b|['’]s\b|\s*[:=])"
)
_NO_VALUE_PATTERN = (
    r"(?!\W{0,4}(?:not\b|n['’]t\b|never\b|in\b|either\b|neither\b"
    r"|an?\s+(?:\w+\s+)?(?:number|integer|fraction|percentage|multiple)\b"
    r"|(?:filed|given|that\s+(?:she|he|they|it)\b|served|sent|late|short|wrong|rude|received"
    r"|obvious|unknown|unclear|clear|simple|easy|hard|needed|required|found|obtained|given|due"
    r"|whether|based|computed|close|between|at (?:least|most)|positive|negative|as follows|below"
    r"|correct|incorrect|different|actually|surprising\w*|right|accurate|valid|often|usually"
    r"|consistent|by following|an?\s+(?:\w+\s+){1,3}\w+"
    r"|to be|what|how|which|expected|asked|one of|the sum of|still|then)\b))"
)
# "\boxed{5}", "#### 5", "the answer is 5", "5 is the answer", "I choose option B"
_ANSWER_RE = re.compile(
    r"(?i)(?P<boxed>\\(?:boxed|fbox)\s?\{[^{}\n]{1,80}\})"
    r"|(?P<hashes>(?m:^)[ \t]{0,3}####[ \t]?(?:[-−$€£]?\d[^\n]{0,40}|\w+)[ \t]*(?m:$))"
    rf"|(?P<said>\b(?:(?:the|my|our)\s+)?{_ANSWER_ADJECTIVE_PATTERN}"
    r"(?:answer|(?<=correct\s)(?:option|choice|result)|(?<=right\s)(?:option|choice)"
    r"|(?<=best\s)(?:option|choice)|(?<=final\s)result|(?<=the\s)result)"
    rf"\*{{0,2}}{_IS_OR_EQUALS_PATTERN}\*{{0,2}}{_NO_VALUE_PATTERN}\s*\S[^\n.,;]{{0,60}})"
    r"|(?P<back>\b(?![\w ()]{0,40}\b(?:why|explain|what|not)\b)"
    r"(?!(?:which|who|where|how|this|that|here|if|whether|there)\b)"
    rf"[\w() ]{{1,30}}?\s+(?:is|are)\s+(?:the|my|our)\s+{_ANSWER_ADJECTIVE_PATTERN}"
    r"(?:answer|(?<=correct\s)(?:option|choice)|(?<=right\s)(?:option|choice))\b(?!\s+to\b))"
    r"|(?P<chosen>\b(?:I|we)\s+(?:choose|select|pick|go with|answer with|answer)\s+"
    r"(?:(?:option|answer|choice)\s+\(?[\w-]+\)?|\(?[A-J]\)?(?=[\s.,]|$)))"
)
# "Tom thinks ", "to find the correct ", "if my " before an answer that is not the chain's own
_REPORTED_ANSWER_RE = re.compile(
    r"(?i)\b(?:to (?:find|get|reach|give|know|see|check|compute|determine)|if|whether|suppose"
    r"|assume|assuming|unless|until|once|when|before|what|which|thinks?|thought|says?|said"
    r"|claims?|claimed|believes?|told|guess(?:es|ed)|hint|not|no|nobody|cannot|can't|don't"
    r"|doesn't|wrong|incorrect|why|how|with|from|like|format|form|write|put)\b[^.;]{0,40}$|['’]s\s+$"
)
# "I think "
_FIRST_PERSON_RE = re.compile(r"(?i)\b(?:I|we)\s+(?:think|believe|say|guess|claim)\b[^.;]{0,40}$")
# "Answer: All cats are animals, and since": a sentence that argues
_LABELLED_SENTENCE_RE = re.compile(
    r"(?i)[\w ]{0,20}answer\*{0,2}:\*{0,2}\s*(?:[^\s.,;]+\s+){4}[^\s.,;]"
    r"|[\w ]{0,20}answer\*{0,2}:[^.\n]{1,60},\s+(?:and|since|because|which|as)\b"
)
# "= 12", "because", "3 * 4": reasoning
_REASONING_RE = re.compile(
    r"(?i)[=≈⇒]|\d\s?[-+−*/×·÷^]\s?\d|\b(?:because|since|(?:which|this|that) means|if|implies"
    r"|times|plus|minus|divid\w*|multipl\w*|subtract\w*|calculat\w*|comput\w*|reason\w*)\b"
)
_MAX_WORDS_BEFORE = 15
"""Words before an answer from which they are taken for its reasoning."""


def find_premature_answers(
    steps: Sequence[str], *, early_share: float = EARLY_SHARE
) -> Iterator[RedFlag]:
    """Yield answers in steps before ``early_share`` of the chain that no reasoning precedes.

    None for one or two steps. Reasoning is an equation, an operation, a reason, or many words.
    """
    text_before = ""
    for i, step in enumerate(steps):
        if (i + 1) / len(steps) >= early_share or _has_reasoning(text_before):
            return
        for match in _ANSWER_RE.finditer(step):
            start = match.start()
            clause = re.split(r"[.;\n]", step[max(0, start - _N_NEAR_CHARACTERS) : start])[-1]
            is_asserted = _FIRST_PERSON_RE.search(clause) or not _REPORTED_ANSWER_RE.search(clause)
            if _has_reasoning(text_before + step[:start]):
                break
            is_placeholder = "..." in match[0] or "format" in clause
            if _LABELLED_SENTENCE_RE.match(step, start):
                continue
            if not is_placeholder and (match["boxed"] or match["hashes"] or is_asserted):
                end, reason = start + len(match[0].rstrip(" *")), f"an answer in step {i + 1} of"
                yield RedFlag("premature_answer", i, start, end, f"{reason} {len(steps)}")
        text_before += step + "\n"


def _has_reasoning(text: str) -> bool:
    """Return whether a text argues, or is long enough to."""
    return bool(_REASONING_RE.search(text)) or len(text.split()) > _MAX_WORDS_BEFORE


# --- unit inconsistency ---

_LETTER_UNIT_RE = re.compile(r"\d\s?([A-Za-z])(?![A-Za-z])")  # "8m", "5 s"
# "m" of "for m:", "s" of "6s^2", "m" of "16m (m - n)"
_ALGEBRAIC_LETTER_RE = re.compile(
    r"(?<![\w'’.°])(?<!\d\s)([A-Za-z])(?![\w'’])(?!\.\w)|\d([A-Za-z])(?:\^|²|³|\s?\()"
)
# "after 1 week + " before "9 inches": the unit of a phrase and not of the sum
_PHRASE_OPERAND_RE = re.compile(
    r"(?i)\b(?:after|for|in|within|by|at|per|every|each|first|next|last)\s+(?:the\s+)?"
    r"(?:(?:first|next|last)\s+)?[\d.,]{1,40}\s?[-\w]{1,40}\s*[+−-]\s*$"
)
_QUOTIENT_END_RE = re.compile(
    r"[/÷×*·]\s*(?:\w+\s+){0,3}$"
)  # "Distance / relative " before "speed"


def _find_unit_mismatches(
    algebraic_letters: frozenset[str], step: str
) -> Iterator[tuple[int, int, str]]:
    """Yield the mismatches of quantities, without letters of algebra and phrases within a sum."""
    for start, end, reason in unit_mismatches(step):
        text_before = step[max(0, start - _N_FAR_CHARACTERS) : start]
        near_text = step[max(0, start - 60) : end + 20]
        if algebraic_letters & {match[1] for match in _LETTER_UNIT_RE.finditer(near_text)}:
            continue
        if " added to " in reason and _PHRASE_OPERAND_RE.search(text_before):
            continue
        _, _, measure = reason.partition(" for ")
        measure_index = text_before.lower().rfind(measure) if measure else -1
        if measure_index >= 0 and _QUOTIENT_END_RE.search(text_before[:measure_index]):
            continue
        yield start, end, reason


def _algebraic_letters(texts: Sequence[str]) -> frozenset[str]:
    """Return the letters that stand for a number somewhere, and so are no units."""
    return frozenset(
        match[1] or match[2] for text in texts for match in _ALGEBRAIC_LETTER_RE.finditer(text)
    )


# --- hand-waving ---

# "clearly", "it is obvious that", "needless to say"
_HAND_WAVING_RE = re.compile(
    r"(?i)\b(?:it (?:is|'s|’s) (?:\w+ly )?(?:obvious|clear|trivial|evident|self-evident|plain)"
    r"(?: (?:to (?:see|show)|that))*"
    r"|(?:it (?:is|'s|’s) )?easy to (?:see|show|verify)|it goes without saying|needless to say"
    r"|as (?:everyone|everybody|we all|anyone) knows?|(?:everyone|everybody|anyone) knows"
    r"|there (?:is|can be) no doubt|without (?:a )?doubt|no doubt"
    r"|the proof is (?:left|trivial|obvious)[^.,;]{0,25}"
    r"|of course|obviously|clearly|trivially|evidently|undoubtedly|undeniably|unquestionably"
    r"|indisputably|self-evident(?:ly)?|manifestly|plainly|certainly|naturally|surely)\b"
)
# "because", "due to", "x = 5"
_REASON_RE = re.compile(
    r"(?i)\b(?:because|since|as|given|due to|owing to|for|by|from|due|after|considering|seeing"
    r"|in view of|in light of|thanks to)\b"
    r"|[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bequals\b"
)
_DERIVATION_RE = re.compile(r"(?i)[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bbecause\b")  # "x = 5"
_SENTENCE_END_RE = re.compile(r"(?i)(?:[.!?]\s+|\n)")  # ". "
# " visible" of "clearly visible"
_MANNER_RE = re.compile(
    r"(?i)\s+(?:visible|legible|audible|readable|marked|labelled|labeled|written|stated|states?"
    r"|shown|shows?|seen|defined|identified|displayed|documented|disclosed|printed|explained"
    r"|indicated|communicated|outlined|specified|articulated|distinguish\w*|audibly|erroneous|on"
    r"|to|from|in|at|and|enough|occurring|hedged|grown|aspirated|aged|sourced|dressed|spoken"
    r"|present(?:ed)?|replenished|produced)\b"
)
# "speak " of "speak clearly"
_MANNER_VERB_RE = re.compile(
    r"(?i)\b(?:speaks?|spoke|write|wrote|writes|reads?|see|saw|seen|heard?|explain(?:s|ed)?|think"
    r"|thought|show(?:s|n|ed)?|states?|stated|mark(?:s|ed)?|communicate[sd]?|look(?:s|ed)?"
    r"|act(?:s|ed)?)\s+(?:\w+\s+){0,2}$"
)
# "not ", "is it ", an opening quotation mark
_NEGATION_RE = re.compile(
    r"(?i)(?:\b(?:not|n['’]t|never|far from|less|how|too|whether|if|nothing|hardly|barely)\s+"
    r"(?:\w+\s+)?|\bis it\s+|[\"“'‘])$"
)
# ", ", " the result", " 91 is" after an adverb that a clause begins with
_CLAUSE_AFTER_RE = re.compile(
    r",|\s+(?:the|this|that|these|those|an?|it|he|she|they|we|you|I|there|no|not|all|both|each|every"
    r"|only|any|some|neither|nobody|nothing|his|her|its|their|our|one|two|three|if|for|\d|[$\\(])"
)
# "So ", "- Step 2: " before an adverb that its clause begins with
_CLAUSE_BEFORE_RE = re.compile(
    r"(?i)(?:step\s+\d{1,9}|\d{1,9}[.)]|\b(?:so|and|but|then|thus|hence|now)|[,;:\s*#>-])*$"
)
# "is ", "must be " before an adverb that says how sure the clause is
_COPULA_BEFORE_RE = re.compile(r"(?i)(?:\b(?:is|are|was|were|be|has|have|had)|['’]s)\s+$")
# " labelled", ".", " and": the adverb says how something is done
_MANNER_AFTER_RE = re.compile(r"\s+(?:and\b|[a-z]+(?:ed|ing)\b)|\s*(?:[.,;:!?)\n]|$)")
_FAULT_AFTER_RE = re.compile(
    r"(?i)[^.\n]{0,300}\b(?:mistake|error|contradiction|wrong|miscalculation)\b"
)
_REASON_AFTER_RE = re.compile(r"(?i)[^.\n]{0,300}\b(?:because|since|due to|given that|as there)\b")
_MANNER_ADVERBS = ("clearly", "plainly", "naturally")
"""Adverbs that within a clause usually say how something is done."""
# "clearly": adverbs that can also say how something is done
_ADVERB_RE = re.compile(r"(?i)^(?:clearly|plainly|naturally|evidently|certainly|obviously)$")


def _find_hand_waving(step: str) -> Iterator[tuple[int, int, str]]:
    """Yield words that assert without arguing, unless a reason or an equation is beside them."""
    sentence_starts = [0, *(end_match.end() for end_match in _SENTENCE_END_RE.finditer(step))]
    for match in _HAND_WAVING_RE.finditer(step):
        sentence_index, start = bisect_right(sentence_starts, match.start()) - 1, match.start()
        text_before = step[max(0, start - _N_NEAR_CHARACTERS) : start]
        sentence_start = sentence_starts[sentence_index]
        sentence = step[max(sentence_start, start - _N_FAR_CHARACTERS) : start]
        previous_start = sentence_starts[max(sentence_index - 1, 0)]
        previous_sentence = step[
            max(previous_start, sentence_start - _N_FAR_CHARACTERS) : sentence_start
        ]
        if _NEGATION_RE.search(text_before) or (
            _ADVERB_RE.match(match[0]) and _is_manner_adverb(step, sentence, match)
        ):
            continue
        if step.startswith("!", match.end()):  # an exclamation: Certainly!
            continue
        if match[0].lower() == "of course" and re.match(r"\s+(?:of|in|on)\b", step[match.end() :]):
            continue
        has_reason_after = _REASON_AFTER_RE.match(step, match.end())
        if has_reason_after or _FAULT_AFTER_RE.match(step, match.end()):
            continue
        if _has_reason(sentence, previous_sentence):
            continue
        yield match.start(), match.end(), "no reason stands beside it"


def _is_manner_adverb(step: str, sentence: str, match: re.Match[str]) -> bool:
    """Return whether an adverb says how something is done: clearly visible, speak clearly."""
    if _CLAUSE_BEFORE_RE.fullmatch(sentence):
        return not _CLAUSE_AFTER_RE.match(step, match.end())
    if match[0].lower() in _MANNER_ADVERBS and (
        not _COPULA_BEFORE_RE.search(sentence) or _MANNER_AFTER_RE.match(step, match.end())
    ):
        return True
    if _MANNER_RE.match(step, match.end()) and (
        sentence.strip() or step.startswith(" occurring", match.end())
    ):
        return True
    return bool(
        _MANNER_VERB_RE.search(sentence)
        or (sentence.strip() and re.match(r"\s*[.!?]?\s*$", step[match.end() :]))
    )


def _has_reason(sentence: str, previous_sentence: str) -> bool:
    """Return whether a sentence has a reason, or the one before it a derivation."""
    label_match = re.match(r"(?i)\s*(?:step\s+\d+|\d+)\s*[:.)]\s*", sentence)
    body = sentence[label_match.end() :] if label_match else sentence
    return bool(_REASON_RE.search(body) or _DERIVATION_RE.search(previous_sentence))
