"""Red flags in the text of a chain: early answer, undefined symbol, wrong unit, hand-waving.

The reliability seed, section 7, names the four. Each rule returns the spans that it matches; the
rules are patterns of usual English wording and do not understand a chain.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cotlab.text.arithmetic.mismatches import unit_mismatches
from cotlab.text.arithmetic.units import UNITS, without_dollars

RULES = ("premature_answer", "undefined_symbol", "unit_inconsistency", "hand_waving")
EARLY = 0.4
"""An answer is premature in a step that ends before this share of the chain."""


class Flag(NamedTuple):
    """A span of a step that a rule matched."""

    rule: str
    step: int
    """Index of the step, from 0."""
    start: int
    """First character of the step's text."""
    end: int
    reason: str


def find_flags(question: str, steps: Sequence[str], *, early: float = EARLY) -> tuple[Flag, ...]:
    """Return the flags of the four textual rules in a chain.

    Parameters
    ----------
    question : str
        Symbols in it are defined.
    steps : sequence of str
    early : float in [0, 1]
        Share of the steps; an answer in a step that ends before it is premature.

    Returns
    -------
    tuple of Flag
        In the order of RULES, steps and characters; the spans of one rule are disjoint.
    """
    return (
        *premature_answers(steps, early=early),
        *undefined_symbols(question, steps),
        *(
            Flag("unit_inconsistency", i, *match)
            for i, step in enumerate(steps)
            for match in unit_mismatches(step)
        ),
        *(
            Flag("hand_waving", i, *match)
            for i, step in enumerate(steps)
            for match in _hand_waving(step)
        ),
    )


# --- premature answer ---

_RIGHT = r"(?:(?:final|correct|right|best|overall)\s+){0,2}"
_BE = r"(?:\s+(?:is|was|equals|must be|should be|will be|would be|has to be)\b|['’]s\b|\s*[:=])"
_NO_VALUE = (
    r"(?!\W{0,4}(?:not\b|n['’]t\b|never\b|in\b|either\b|neither\b"
    r"|an?\s+(?:\w+\s+)?(?:number|integer|fraction|percentage|multiple)\b"
    r"|(?:filed|given|that\s+(?:she|he|they|it)\b|served|sent|late|short|wrong|rude|received"
    r"|obvious|unknown|unclear|clear|simple|easy|hard|needed|required|found|obtained|given|due"
    r"|whether|based|computed|close|between|at (?:least|most)|positive|negative|as follows|below"
    r"|to be|what|how|which|expected|asked|one of|the sum of|still|then)\b))"
)
# "\boxed{5}", "#### 5", "the answer is 5", "5 is the answer", "I choose option B"
_ANSWER = re.compile(
    r"(?i)(?P<boxed>\\(?:boxed|fbox)\s?\{[^{}\n]{1,80}\})"
    r"|(?P<hashes>(?m:^)[ \t]{0,3}####[ \t]?(?:[-−$€£]?\d[^\n]{0,40}|\w+)[ \t]*(?m:$))"
    rf"|(?P<said>\b(?:(?:the|my|our)\s+)?{_RIGHT}"
    r"(?:answer|(?<=correct\s)(?:option|choice|result)|(?<=right\s)(?:option|choice)"
    r"|(?<=best\s)(?:option|choice)|(?<=final\s)result|(?<=the\s)result|(?<=the\s)conclusion)"
    rf"\*{{0,2}}{_BE}\*{{0,2}}{_NO_VALUE}\s*\S[^\n.,;]{{0,60}})"
    r"|(?P<back>\b(?!(?:what|which|who|where|how|this|that|here|if|whether|there)\b)"
    rf"[\w() ]{{1,30}}?\s+(?:is|are)\s+(?:the|my|our)\s+{_RIGHT}"
    r"(?:answer|(?<=correct\s)(?:option|choice)|(?<=right\s)(?:option|choice))\b(?!\s+to\b))"
    r"|(?P<chosen>\b(?:I|we)\s+(?:choose|select|pick|go with|answer with|answer)\s+"
    r"(?:(?:option|answer|choice)\s+\(?[\w-]+\)?|\(?[A-J]\)?(?=[\s.,]|$)))"
)
# "Tom thinks ", "to find the correct ", "if my " before an answer that is not the chain's own
_REPORTED = re.compile(
    r"(?i)\b(?:to (?:find|get|reach|give|know|see|check|compute|determine)|if|whether|suppose"
    r"|assume|assuming|unless|until|once|when|before|what|which|thinks?|thought|says?|said"
    r"|claims?|claimed|believes?|told|guess(?:es|ed)|hint|not|no|nobody|cannot|can't|don't"
    r"|doesn't|wrong|incorrect)\b[^.;]{0,40}$"
)
# "I think "
_FIRST_PERSON = re.compile(r"(?i)\b(?:I|we)\s+(?:think|believe|say|guess|claim)\b[^.;]{0,40}$")


def premature_answers(steps: Sequence[str], *, early: float = EARLY) -> Iterator[Flag]:
    """Yield answers in steps that end before ``early`` of the chain; none for one or two steps."""
    for i, step in enumerate(steps):
        if (i + 1) / len(steps) >= early:
            return
        for match in _ANSWER.finditer(step):
            lead = step[max(0, match.start() - _NEAR) : match.start()]
            clause = re.split(r"[.;\n]", lead)[-1]
            if (
                match["boxed"]
                or match["hashes"]
                or _FIRST_PERSON.search(clause)
                or not _REPORTED.search(clause)
            ):
                end = match.start() + len(match[0].rstrip(" *"))
                yield Flag(
                    "premature_answer",
                    i,
                    match.start(),
                    end,
                    f"an answer in step {i + 1} of {len(steps)}",
                )


# --- undefined symbol ---

_GREEK = "αβγδεζηθκλνξρστφχψωΓΘΛΦΨΩ"
# "x", "P_0", "n2", "α"
_SYMBOL = re.compile(
    r"(?<![\w\\.'’&@#_])(?:[A-Za-z](?:_\w{1,8}|_\{\w{1,8}\}|\d{1,2})?"
    rf"|[{_GREEK}](?:_\w{{1,8}}|\d{{1,2}})?)(?![\w'’&@_])"
)
# "3x"
_COEFFICIENT = re.compile(r"(?<![\w.])\d+(?:\.\d+)?([b-df-hj-zA-Z])(?![\w'’])")
# "- 4ac": letters multiplied without a sign
_IMPLICIT = re.compile(r"[-+*/=(−]\s?\d+([a-z]{2,3})(?![\w'’])")
_NO_PRODUCT = frozenset({"st", "nd", "rd", "th", "ths", "rds", "am", "pm", *UNITS})
_PRODUCT = re.compile(r"\(\s?\d+(?:\.\d+)?\s?[-+−]")  # "(3 + " of "P(3 + x)"
# "N/A", "w/o"
_SHORTENED = re.compile(
    r"(?<![\w/=+*^(])(?:N/A|n/a|[wc]/o|A/C|I/O|A/B(?=\s+test))(?![\w/]|\s?[=+*×^<>≈])"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")  # "\frac"
_UNIT_LETTERS = frozenset("mglhsdkLNJWVACFKBM%")
# "5 ", "5 km/", "per ", "$5/" before a letter that is a unit
_AFTER_NUMBER = re.compile(
    r"(?:\d|[½¼¾²³)])[\s\u00a0]?(?:°\s?)?$|(?:\d\s?[A-Za-zµ]{1,5}|\bper)\s?/\s?$"
    r"|\b(?:per|each|every|square|cubic)\s+$|[$€£]\d[\d.,]*\s?/\s?$"
)
# " + 3", "^2", " = 5", " times", "(x + 1)"
_OPERATOR_AFTER = re.compile(
    r"\s?(?:\^|\*\*|[+*/×·÷=<>≤≥≈²³!](?!\w*-)|−)|\s[-–]\s(?=[\dA-Za-z(])|\((?=[\w+ -]{1,20}\))"
    r"|\s(?:times|plus|minus|divided|squared|cubed)\b"
)
# "= ", "5 × ", "times "
_OPERATOR_BEFORE = re.compile(
    r"(?:[+*/×·÷=<>≤≥≈^(−]|\s[-–])\s?(?:\d+(?:\.\d+)?\s?)?$|\b(?:times|plus|minus|by)\s$"
)
# "5 " before x and " 3" after it: x is a multiplication sign
_TIMES = re.compile(r"[\d)²³½¼¾%]\s?$|\w\s$")
_FACTOR = re.compile(r"\s?[\d($€£.½¼¾]|\s[a-z]{3,}\s(?:of|per)\b")
# "point " of "point A"
_LABEL = re.compile(
    r"(?:^|[\s(\"“])(?!(?:the|and|for|but|with|than|are|was|has|have|had|its|his|her|is|by|then"
    r"|that|where|let|equals|times|plus|minus|gives?|from|into|sum|product|of|or|to|in|at|as|if|so"
    r"|on|be|we|need|mean|find)\s)[A-Za-z]{3,}\s$",
    re.IGNORECASE,
)
# "the price " of "the price p"
_DETERMINED = re.compile(
    r"(?i)\b(?:the|an?|his|her|its|their|our|this|that|each|unknown|variable|parameter|quantity)\s+"
    r"(?:(?!(?:is|are|was|were|be|equals|by|of|has|have|to|and|or|than|times|plus|minus|from|in|at"
    r"|for)\b)[a-z-]+\s+){0,3}(?:(?!(?:is|are|was|were|be|equals|by|of|has|have|to|and|or|than"
    r"|times|plus|minus|from|in|at|for|the|an?)\b)[a-z-]{3,}\s+)$"
)
# "Let ", "for all ", "denoted by "
_INTRODUCES = re.compile(
    r"(?i)\b(?:let|suppose|assume|consider|say|define|defining|denote[ds]?|denoting"
    r"|call(?:ed|ing)?|name[ds]?|represented by|writ(?:e|ing)|for (?:all|any|each|every|some)"
    r"|there (?:is|are|exists?) (?:an?|some))\b[^.;=]{0,80}$"
)
# " is the ", " := ", " denotes " after a symbol
_LATER = (
    r"(?:\s+(?:is|are|be|being|denotes?|means|stands? for|represents?|counts?|was|gives)\s+"
    r"(?:the|an?|its|our|his|her|their|how|what|some|any|number)\b"
    r"|\s*(?::=|≔)|\s+(?:the|its)\s+[a-z]|\s+(?:counts?|denotes?|stands? for|represents?)\s)"
)
# ", ", "so ", "\(" before "x = 5"
_SET = re.compile(r"(?:^|[^\w\s+*/×·÷=<>≤≥≈^()−-]|[A-Za-z]{2,}\s|\\\(|\$)\s?$")
_CLAUSE = re.compile(r"\b(?:if|where|with|when|for)\s")  # "where "
_NEAR, _FAR = 120, 600
"""Characters before a symbol or a word that a rule reads; the second for reasons."""
_IDLE = frozenset({"a", "A", "I", "i", "o", "O"})
_KNOWN_FUNCTION = frozenset({"P", "E", "O"})


def undefined_symbols(question: str, steps: Sequence[str]) -> Iterator[Flag]:
    """Yield the first occurrence of each symbol that is not defined before or in its step.

    A symbol is a letter, with or without an index, that is used as a variable: a capital letter
    next to an operator, or a small or Greek letter that is no word, unit, list mark, initial or
    part of a hyphenated word. It is defined by an earlier occurrence, by words (let x be, where P
    is, the price p), or by an equation that gives it a value (x = …).
    """
    known = {match[0] for match in _SYMBOL.finditer(question)} | {
        match[1] for match in _COEFFICIENT.finditer(question)
    }
    for i, step in enumerate(steps):
        plain = _COMMAND.sub(lambda match: " " * len(match[0]), without_dollars(step))
        for start, symbol, stands in _symbols(plain):
            if stands and symbol not in known and not _introduced(plain, start, symbol):
                yield Flag(
                    "undefined_symbol",
                    i,
                    start,
                    start + len(symbol),
                    f"{symbol} stands here for the first time",
                )
            known.add(symbol)


def _symbols(text: str) -> list[tuple[int, str, bool]]:
    """Return (start, symbol, is variable) of the letters that are or name something."""
    symbols = {}
    for match in _SYMBOL.finditer(text):
        stands = _is_symbol(text, match.start(), match.end())
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if stands or (
            match[0][0].isupper() and match[0] not in _IDLE and not _AFTER_NUMBER.search(before)
        ):
            symbols[match.start()] = (match[0], stands)
    for match in _COEFFICIENT.finditer(text):
        if match[1] not in _UNIT_LETTERS and not (
            match[1] == "x" and _FACTOR.match(text, match.end())
        ):
            symbols[match.start(1)] = (match[1], True)
    for match in _IMPLICIT.finditer(text):
        if match[1] not in _NO_PRODUCT:
            symbols |= {match.start(1) + k: (letter, True) for k, letter in enumerate(match[1])}
    return [(start, *symbols[start]) for start in sorted(symbols)]


def _is_symbol(text: str, start: int, end: int) -> bool:
    """Return whether a letter of a text is a variable."""
    symbol, before, after = text[start:end], text[max(0, start - 60) : start], text[end : end + 12]
    if any(
        match.start() <= start < match.end()
        for match in _SHORTENED.finditer(text, max(0, start - 2), end + 12)
    ):
        return False
    if after[:1] in ("-", "‑") and after[1:2].isalpha() and after[2:3].isalpha():  # X-ray, p-value
        return False
    if before.endswith("-") and before[-2:-1].isalpha():  # vitamin-D
        return False
    if after.startswith(".") and (
        after[1:2].isalpha()
        or re.match(r"\.\s[A-Z\d]", after)
        and symbol in "pvcdnfh"
        or re.search(r"[A-Za-z]\.$", before)
    ):
        return False  # e.g., p. 5
    if before.endswith("(") and after.startswith(")") and not before[-2:-1].isalpha():  # (b)
        return False
    if (
        after.startswith(")") and not before.rstrip(" ") and "(" not in before
    ):  # a) at the start of a line
        return False
    if (
        symbol[0] in "xX"
        and _TIMES.search(before)
        and (symbol[1:].isdigit() or _FACTOR.match(after))
    ):
        return False
    operated = bool(_OPERATOR_AFTER.match(after) or _OPERATOR_BEFORE.search(before))
    if symbol[0] in _UNIT_LETTERS and _AFTER_NUMBER.search(before):
        return False
    if symbol in _KNOWN_FUNCTION and after.startswith("(") and not _PRODUCT.match(after):
        return False
    if (
        symbol == "e"
        and re.match(r"\s?(?:\^|\*\*)", after)
        or symbol == "p"
        and re.match(r"\s?[<>=≤]\s?0?\.\d", after)
    ):
        return False
    if symbol in _IDLE:
        return bool(
            re.match(r"\s?[=^*+/<>]", after) or re.search(r"[=*+/^]\s?$", before)
        ) and not after.startswith(" (")
    if symbol[0].isupper() and symbol.isascii():
        return operated
    return True


def _introduced(text: str, start: int, symbol: str) -> bool:
    """Return whether the step itself defines the symbol."""
    sentence = max(text.rfind(mark, 0, start) for mark in (". ", "; ", "\n")) + 1
    before, after = text[max(sentence, start - _NEAR) : start], text[start + len(symbol) :]
    if (
        _INTRODUCES.search(before)
        or _DETERMINED.search(before)
        or (symbol[0].isupper() and _LABEL.search(before))
    ):
        return True
    if re.match(r"\s?(?:=(?!=)|:=)", after) and _SET.search(before):
        return True
    name = rf"(?<![\w\\.]){re.escape(symbol)}"
    if re.search(rf"{name}{_LATER}", text[start:]) or re.search(
        rf"(?i:\b(?:let|and))\s+{name}\s+be\b", text[:start]
    ):
        return True
    clause = _CLAUSE.search(text, start)
    return clause is not None and re.search(rf"{name}\s?=(?!=)", text[clause.start() :]) is not None


# --- hand-waving ---

# "clearly", "it is obvious that", "needless to say"
_WAVE = re.compile(
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
_REASON = re.compile(
    r"(?i)\b(?:because|since|as|given|due to|owing to|for|by|from|due|after|considering|seeing"
    r"|in view of|in light of|thanks to)\b"
    r"|[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bequals\b"
)
_DERIVATION = re.compile(r"(?i)[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bbecause\b")  # "x = 5"
_SENTENCE_END = re.compile(r"(?i)(?:[.!?]\s+|\n)")  # ". "
# " visible" of "clearly visible"
_MANNER = re.compile(
    r"(?i)\s+(?:visible|legible|audible|readable|marked|labelled|labeled|written|stated|states?"
    r"|shown|shows?|seen|defined|identified|displayed|documented|disclosed|printed|explained"
    r"|indicated|communicated|outlined|specified|articulated|distinguish\w*|audibly|erroneous|on"
    r"|to|from|in|at|and|enough|occurring|hedged|grown|aspirated|aged|sourced|dressed|spoken"
    r"|present(?:ed)?|replenished|produced)\b"
)
# "speak " of "speak clearly"
_MANNER_VERB = re.compile(
    r"(?i)\b(?:speaks?|spoke|write|wrote|writes|reads?|see|saw|seen|heard?|explain(?:s|ed)?|think"
    r"|thought|show(?:s|n|ed)?|states?|stated|mark(?:s|ed)?|communicate[sd]?|look(?:s|ed)?"
    r"|act(?:s|ed)?)\s+(?:\w+\s+){0,2}$"
)
# "not ", "is it ", an opening quotation mark
_NEGATED = re.compile(
    r"(?i)(?:\b(?:not|n['’]t|never|far from|less|how|too|whether|if|nothing|hardly|barely)\s+"
    r"(?:\w+\s+)?|\bis it\s+|[\"“'‘])$"
)
_ADVERBS = re.compile(r"(?i)^(?:clearly|plainly|naturally|evidently|certainly|obviously)$")


def _hand_waving(step: str) -> Iterator[tuple[int, int, str]]:
    """Yield words that assert without arguing, unless a reason or an equation precedes them."""
    ends = [0, *(end.end() for end in _SENTENCE_END.finditer(step))]
    for match in _WAVE.finditer(step):
        k, start = bisect_right(ends, match.start()) - 1, match.start()
        before = step[max(0, start - _NEAR) : start]
        sentence = step[max(ends[k], start - _FAR) : start]
        previous = step[max(ends[max(k - 1, 0)], ends[k] - _FAR) : ends[k]]
        if _NEGATED.search(before) or (
            _ADVERBS.match(match[0]) and _is_manner(step, sentence, match)
        ):
            continue
        if step.startswith("!", match.end()):  # an exclamation: Certainly!
            continue
        if match[0].lower() == "of course" and re.match(r"\s+(?:of|in|on)\b", step[match.end() :]):
            continue
        if _justified(sentence, previous):
            continue
        yield match.start(), match.end(), "no reason stands before it"


def _is_manner(step: str, sentence: str, match: re.Match[str]) -> bool:
    """Return whether an adverb says how something is done: clearly visible, speak clearly."""
    if not sentence.strip(" \t*-#>") and step[match.end() : match.end() + 1] == ",":
        return False
    if _MANNER.match(step, match.end()) and (
        sentence.strip() or step.startswith(" occurring", match.end())
    ):
        return True
    return bool(
        _MANNER_VERB.search(sentence)
        or (sentence.strip() and re.match(r"\s*[.!?]?\s*$", step[match.end() :]))
    )


def _justified(sentence: str, previous: str) -> bool:
    """Return whether a sentence has a reason, or the one before it a derivation."""
    label = re.match(r"(?i)\s*(?:step\s+\d+|\d+)\s*[:.)]\s*", sentence)
    body = sentence[label.end() :] if label else sentence
    return bool(_REASON.search(body) or _DERIVATION.search(previous))
