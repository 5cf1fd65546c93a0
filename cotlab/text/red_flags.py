"""The four red flags that the text alone shows: an early answer, a symbol from nowhere, units that do not fit, and hand-waving.

Each rule finds spans, so that a reader sees what it fired on. The rules are patterns: they know how
such things are usually written in English, not what a chain means.
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
"""An answer phrase is premature in a step that ends before this share of the steps."""


class Flag(NamedTuple):
    """Where a rule fired: characters ``start`` to ``end`` of the text of step ``step``, and why."""

    rule: str
    step: int
    start: int
    end: int
    reason: str


def find_flags(question: str, steps: Sequence[str], *, early: float = EARLY) -> tuple[Flag, ...]:
    """Find what the four textual rules flag in a chain.

    Parameters
    ----------
    question : str
        Symbols that stand in it are introduced.
    steps : sequence of str
    early : float in [0, 1]
        The share of the steps before whose end an answer is premature.

    Returns
    -------
    tuple of Flag
        In the order of RULES, then of steps and characters; the spans of one rule are disjoint.

    References
    ----------
    The reliability seed, section 7, which names the patterns and leaves their detection open.
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


# --- premature answer
# -------------------------------------------------------------------------------

_RIGHT = r"(?:(?:final|correct|right|best|overall)\s+){0,2}"
_BE = r"(?:\s+(?:is|was|equals|must be|should be|will be|would be|has to be)\b|['’]s\b|\s*[:=])"
_NO_VALUE = (
    r"(?!\W{0,4}(?:not\b|n['’]t\b|never\b|in\b|either\b|neither\b|an?\s+(?:\w+\s+)?(?:number|integer|fraction|percentage|"
    r"multiple)\b|"
    r"(?:filed|given|that\s+(?:she|he|they|it)\b|served|sent|late|short|wrong|rude|received|obvious|unknown|unclear|clear|"
    r"simple|easy|hard|needed|required|found|obtained|given|due|whether|based|computed|close|"
    r"between|at (?:least|most)|positive|negative|as follows|below|to"
    r" be|what|how|which|expected|asked|one of|the sum of|"
    r"still|then)\b))"
)
_ANSWER = re.compile(
    r"(?i)(?P<boxed>\\(?:boxed|fbox)\s?\{[^{}\n]{1,80}\})"
    r"|(?P<hashes>(?m:^)[ \t]{0,3}####[ \t]?(?:[-−$€£]?\d[^\n]{0,40}|\w+)[ \t]*(?m:$))"
    rf"|(?P<said>\b(?:(?:the|my|our)\s+)?{_RIGHT}(?:answer|(?<=correct\s)(?:option|choice|result)|(?<=right\s)(?:option|choice)"
    rf"|(?<=best\s)(?:option|choice)|(?<=final\s)result|(?<=the\s)result|"
    rf"(?<=the\s)conclusion)\*{{0,2}}{_BE}\*{{0,2}}{_NO_VALUE}\s*\S[^\n.,;]{{0,60}})"
    rf"|(?P<back>\b(?!(?:what|which|who|where|how|this|that|here|if|whether|there)\b)[\w()"
    rf" ]{{1,30}}?\s+(?:is|are)\s+(?:the|"
    rf"my|our)\s+{_RIGHT}(?:answer|(?<=correct\s)(?:option|choice)|"
    r"(?<=right\s)(?:option|choice))\b(?!\s+to\b))"
    r"|(?P<chosen>\b(?:I|we)\s+(?:choose|select|pick|go with|answer"
    r" with|answer)\s+(?:(?:option|answer|"
    r"choice)\s+\(?[\w-]+\)?|\(?[A-J]\)?(?=[\s.,]|$)))"
)
_REPORTED = re.compile(
    r"(?i)\b(?:to"
    r" (?:find|get|reach|give|know|see|check|compute|determine)|if|whether|suppose|assume|assuming|unless|until|"
    r"once|when|before|what|which|thinks?|thought|says?|said|"
    r"claims?|claimed|"
    r"believes?|told|guess(?:es|ed)|hint|not|no|nobody|cannot|can't|don't|doesn't|wrong|incorrect)\b[^.;]{0,40}$"
)
_FIRST_PERSON = re.compile(r"(?i)\b(?:I|we)\s+(?:think|believe|say|guess|claim)\b[^.;]{0,40}$")


def premature_answers(steps: Sequence[str], *, early: float = EARLY) -> Iterator[Flag]:
    """The answer phrases of steps that end before ``early`` of the steps: of one or two steps none is premature."""
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


# --- undefined symbol
# -------------------------------------------------------------------------------

_GREEK = "αβγδεζηθκλνξρστφχψωΓΘΛΦΨΩ"
_SYMBOL = re.compile(
    rf"(?<![\w\\.'’&@#_])(?:[A-Za-z](?:_\w{{1,8}}|_\{{\w{{1,8}}\}}|\d{{1,2}})?|[{_GREEK}](?:_\w{{1,8}}|"
    rf"\d{{1,2}})?)(?![\w'’&@_])"
)
_COEFFICIENT = re.compile(r"(?<![\w.])\d+(?:\.\d+)?([b-df-hj-zA-Z])(?![\w'’])")
_IMPLICIT = re.compile(r"[-+*/=(−]\s?\d+([a-z]{2,3})(?![\w'’])")
"""Letters multiplied without a sign, as in b^2 - 4ac."""
_NO_PRODUCT = frozenset({"st", "nd", "rd", "th", "ths", "rds", "am", "pm", *UNITS})
_PRODUCT = re.compile(r"\(\s?\d+(?:\.\d+)?\s?[-+−]")
_SHORTENED = re.compile(
    r"(?<![\w/=+*^(])(?:N/A|n/a|[wc]/o|A/C|I/O|A/B(?=\s+test))(?![\w/]|\s?[=+*×^<>≈])"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_UNIT_LETTERS = frozenset("mglhsdkLNJWVACFKBM%")
_AFTER_NUMBER = re.compile(
    r"(?:\d|[½¼¾²³)])[\s\u00a0]?(?:°\s?)?$|(?:\d\s?[A-Za-zµ]{1,5}|\bper)\s?/\s?$|\b(?:per|each|every|"
    r"square|cubic)\s+$|[$€£]\d[\d.,]*\s?/\s?$"
)
_OPERATOR_AFTER = re.compile(
    r"\s?(?:\^|\*\*|[+*/×·÷=<>≤≥≈²³!](?!\w*-)|−)|\s[-–]\s(?=[\dA-Za-z(])|\((?=[\w+ -]{1,20}\))|"
    r"\s(?:times|plus|minus|divided|squared|cubed)\b"
)
_OPERATOR_BEFORE = re.compile(
    r"(?:[+*/×·÷=<>≤≥≈^(−]|\s[-–])\s?(?:\d+(?:\.\d+)?\s?)?$|\b(?:times|plus|minus|by)\s$"
)
_SIGN_AROUND = re.compile(r"[+*/×·÷=<>≤≥≈^−]")
_TIMES, _FACTOR = (
    re.compile(r"[\d)²³½¼¾%]\s?$|\w\s$"),
    re.compile(r"\s?[\d($€£.½¼¾]|\s[a-z]{3,}\s(?:of|per)\b"),
)
"""The letter x between two numbers is a multiplication sign."""
_LABEL = re.compile(
    r"(?:^|[\s(\"“])(?!(?:the|and|for|but|with|than|are|was|has|have|had|its|his|her|is|by|then|that|where|"
    r"let|equals|"
    r"times|plus|minus|gives?|from|into|sum|product|of|or|to|in|at|as|if|so|on|be|we|need|mean|"
    r"find)\s)[A-Za-z]{3,}\s$",
    re.IGNORECASE,
)
_DETERMINED = re.compile(
    r"(?i)\b(?:the|an?|his|her|its|their|our|this|that|each|unknown|variable|parameter|quantity)\s+(?:(?!(?:is|are|was|were|"
    r"be|equals|by|of|"
    r"has|have|to|and|or|than|times|plus|minus|from|in|at|for)\b)[a-z-]+\s+){0,3}(?:(?!(?:is|are|was|were|be|equals|by|of|"
    r"has|have|to|and|or|"
    r"than|times|plus|minus|from|in|at|for|the|an?)\b)[a-z-]{3,}\s+)$"
)
_INTRODUCES = re.compile(
    r"(?i)\b(?:let|suppose|assume|consider|say|define|defining|denote[ds]?|denoting|call(?:ed|ing)?|"
    r"name[ds]?|"
    r"represented by|writ(?:e|ing)|"
    r"for (?:all|any|each|every|some)|there (?:is|are|exists?) (?:an?|some))\b[^.;=]{0,80}$"
)
_LATER = (
    r"(?:\s+(?:is|are|be|being|denotes?|means|stands?"
    r" for|represents?|counts?|was|gives)\s+(?:the|an?|its|our|his|her|their|"
    r"how|what|some|any|number)\b"
    r"|\s*(?::=|≔)|\s+(?:the|its)\s+[a-z]|\s+(?:counts?|denotes?|stands? for|represents?)\s)"
)
_SET = re.compile(r"(?:^|[^\w\s+*/×·÷=<>≤≥≈^()−-]|[A-Za-z]{2,}\s|\\\(|\$)\s?$")
_CLAUSE = re.compile(r"\b(?:if|where|with|when|for)\s")
_NEAR, _FAR = 120, 600
"""Characters before a symbol or a word that a rule looks at; the second for reasons."""
_IDLE = frozenset({"a", "A", "I", "i", "o", "O"})
_KNOWN_FUNCTION = frozenset({"P", "E", "O"})


def undefined_symbols(question: str, steps: Sequence[str]) -> Iterator[Flag]:
    """The first place of each symbol that nothing introduces: not the question, an earlier step, or its own step.

    A symbol is a single letter, with an index or not, that stands as a variable: a capital letter
    beside an operator, a small or Greek letter anywhere but as a word, unit, list mark, initial or
    part of a hyphenated word. It is introduced by where it stood before, by words (let x be, where
    P is, the price p), or by an equation that gives it a value (x = …).
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
    """Where letters stand that are or name something, and whether they stand for a value there."""
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
    """Whether a letter of a text stands for a value."""
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
    """Whether the symbol's own step says what it is."""
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


# --- hand-waving
# ------------------------------------------------------------------------------------

_WAVE = re.compile(
    r"(?i)\b(?:it (?:is|'s|’s) (?:\w+ly )?(?:obvious|clear|trivial|evident|self-evident|plain)(?:"
    r" (?:to (?:see|show)|that))*"
    r"|(?:it (?:is|'s|’s) )?easy to (?:see|show|verify)|it goes without saying|needless to say|as"
    r" (?:everyone|everybody|"
    r"we all|anyone) knows?"
    r"|(?:everyone|everybody|anyone) knows|there (?:is|can be) no doubt|without (?:a )?doubt|no"
    r" doubt|the proof is (?:left|"
    r"trivial|obvious)[^.,;]{0,25}"
    r"|of course|obviously|clearly|trivially|evidently|undoubtedly|undeniably|unquestionably|indisputably|"
    r"self-evident(?:ly)?|manifestly"
    r"|plainly|certainly|naturally|surely)\b"
)
_REASON = re.compile(
    r"(?i)\b(?:because|since|as|given|due to|owing to|for|by|from|due|after|considering|seeing|in"
    r" view of|in light of|"
    r"thanks to)\b"
    r"|[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bequals\b"
)
_DERIVATION = re.compile(r"(?i)[\w)\]}$]\s?[=≈<>≤≥]\s?[-\w$€£(]|\bbecause\b")
_SOON = re.compile(r"(?i)(?:[.!?]\s+|\n)")
_MANNER = re.compile(
    r"(?i)\s+(?:visible|legible|audible|readable|marked|labelled|labeled|written|stated|states?|shown|shows?|seen|defined|"
    r"identified|displayed|"
    r"documented|disclosed|printed|explained|indicated|communicated|outlined|specified|articulated|distinguish\w*|audibly|"
    r"erroneous|on|to|from|in|at|and|enough|occurring|hedged|grown|aspirated|aged|sourced|dressed|spoken|present(?:ed)?|"
    r"replenished|produced)\b"
)
_MANNER_VERB = re.compile(
    r"(?i)\b(?:speaks?|spoke|write|wrote|writes|reads?|see|saw|seen|heard?|explain(?:s|ed)?|think|thought|show(?:s|n|ed)?|"
    r"states?|stated|mark(?:s|ed)?|"
    r"communicate[sd]?|look(?:s|ed)?|act(?:s|ed)?)\s+(?:\w+\s+){0,2}$"
)
_NEGATED = re.compile(
    r"(?i)(?:\b(?:not|n['’]t|never|far"
    r" from|less|how|too|whether|if|nothing|hardly|barely)\s+(?:\w+\s+)?|"
    r"\bis it\s+|[\"“'‘])$"
)
_ADVERBS = re.compile(r"(?i)^(?:clearly|plainly|naturally|evidently|certainly|obviously)$")


def _hand_waving(step: str) -> Iterator[tuple[int, int, str]]:
    """Words that assert instead of arguing, unless a reason or an equation stands before them in the step."""
    ends = [0, *(end.end() for end in _SOON.finditer(step))]
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
    """Whether the adverb says how something is done or seen: clearly visible, speak clearly, naturally occurring."""
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
    label = re.match(r"(?i)\s*(?:step\s+\d+|\d+)\s*[:.)]\s*", sentence)
    body = sentence[label.end() :] if label else sentence
    return bool(_REASON.search(body) or _DERIVATION.search(previous))
