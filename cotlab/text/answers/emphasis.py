"""What a reply without a marker puts in bold as its answer."""

from __future__ import annotations

import re

from cotlab.text.answers import reading
from cotlab.text.answers.closing_formulas import is_one_expression
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.restated import restates_question
from cotlab.text.steps import sentence_spans

# "**Thursday**"
BOLD_RE = re.compile(r"(?<![*\w])\*\*(?=\S)([^*\n]{1,60}?)(?<=[^\s:])\*\*(?![*\w:])")
_AMOUNT_RE = re.compile(
    r"(?i)\bhow\s(?!do|does|did|can)|\bpercent"
    r"|\bwhat (?:is|are) the (?:total|sum|value|number|price|cost)"
)
NEGATION_RE = re.compile(
    r"(?i)\b(?:not|never|no|nor|neither|cannot|rather than|instead|except|without|unlike)\b"
    r"|n['’]t\b"
)
# "is ", "was developed by ", "after ", ", " of "on November 9, " before what is in bold
_BEFORE_RE = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|been|by|in|on|after|called|named|equals?|becomes?|get|have|has)"
    r"(?:\s(?:the|an?|about|approximately|exactly))?|:|[=≈]|\d,)\s*$"
)
_DOUBT_RE = re.compile(
    r"(?i)\b(?:false|untrue|wrong|incorrect|whether|if|unless|would|might|could|may|suppose\w*)\b"
)
_CONCLUDES_RE = re.compile(
    r"(?i)\b(?:so|thus|therefore|hence|then|next|now|finally|total|altogether|means|gives|giving"
    r"|leaves|leaving|remain\w*|answer|but|however|actually|wait)\b|[=≈→⟹]"
)
_CONCLUSION_RE = re.compile(r"(?i)[\s*_#>-]{0,9}(?:so|thus|therefore|hence|in total|altogether)\b")
_TITLE_QUESTION_RE = re.compile(
    r"(?i)\b(?:which|what)\s(?:\w+\s){0,3}?(?:novel|book|film|movie|song|play|poem|album|opera|painting"
    r"|magazine|newspaper|series|show)\b"
)
# "*Moby-Dick*", "**Othello**"
_ITALICS_RE = re.compile(
    r"\b(?:of|is|was|called|titled|named|novel|book|film|movie|song|play)\s"
    r"\*{1,2}(?=[A-Z\d])([^*\n]{1,80}?)(?<=[^\s*])\*{1,2}(?![*\w])"
)
# "the announced winner was **La La Land**, but"
_OTHER_TITLE_RE = re.compile(
    r"(?i)\b(?:but|however|although|confuse\w*|announced|mistak\w+|after the|before the"
    r"|title (?:figure|character|role))\b"
)
_MAX_TERMS = 6
_MAX_CHARACTERS = 4000


def is_about_amount(question: str) -> bool:
    """Return whether a question asks for a number of something."""
    return _AMOUNT_RE.search(question) is not None


def bold_text(sentence: str, question: str) -> str | None:
    """Return the words that alone are in bold in a sentence, where no number is asked for."""
    bold = BOLD_RE.findall(sentence)
    if len(bold) != 1 or re.search(r"\d", bold[0]) or len(bold[0].split()) > _MAX_TERMS:
        return None
    if is_about_amount(question) or NEGATION_RE.search(sentence):
        return None
    return reading.tidy_answer(bold[0]) if reading.has_content(bold[0]) else None


def bold_value(sentence: str) -> str | None:
    """Return the value that alone is in bold in a sentence; None for other text."""
    bold = BOLD_RE.findall(sentence)
    if len(bold) != 1 or NEGATION_RE.search(sentence):
        return None
    value = reading.tidy_answer(bold[0])
    if not re.search(r"\d", value) and not read_quantity(value):
        return None
    if _other_years(value, sentence.replace(f"**{bold[0]}**", "")):
        return None
    plain = reading.to_plain_text(value)
    is_value = reading.read_answer(plain) is not None or is_one_expression(plain)
    return value if is_value else None


def only_bold(text: str, question: str) -> str | None:
    """Return what alone is in bold in a reply, where the sentences after it only add to it.

    "The symbol is **Au**, from the Latin word. Its number is 79." says Au. Where the question asks
    for an amount, the sentence has to draw a conclusion, or be the first one of a reply without any
    other number: of a number within the reasoning others are computed.
    """
    bold = list(BOLD_RE.finditer(text)) if question and len(text) <= _MAX_CHARACTERS else []
    if not bold or text.count("**") != 2 * len(bold):
        return None
    keys = {reading.answer_key(match[1]) for match in bold}
    match = bold[-1]
    spans = [span for span in sentence_spans(text) if span[0] <= match.start() < span[1]]
    if len(keys) != 1 or len(match[1].split()) > _MAX_TERMS or not spans:
        return None
    start, end = spans[0]
    before, after = text[start : match.start()], text[end:]
    if not restates_question(text[start:end].replace("**", ""), question):
        return None
    if _other_years(match[1], f"{before} {text[match.end() : end]}"):
        return None  # "launched in **1911**, sank in 1912"
    if (
        NEGATION_RE.search(before)
        or _DOUBT_RE.search(before)
        or not _BEFORE_RE.search(before)
        or _CONCLUDES_RE.search(after)
    ):
        return None
    if is_about_amount(question):
        plain = reading.to_plain_text(reading.tidy_answer(match[1]))
        is_first = not start and not re.search(r"\d", f"{before}{after}")
        if reading.read_answer(plain) is None or not (is_first or _CONCLUSION_RE.match(before)):
            return None
    return reading.tidy_answer(match[1]) if reading.has_content(match[1]) else None


def _other_years(year: str, sentence: str) -> list[str]:
    """Return the other numbers of four digits of a sentence, beside one of four digits."""
    return re.findall(r"\b\d{4}\b", sentence) if re.fullmatch(r"\d{4}", year) else []


def only_title(text: str, question: str) -> str | None:
    """Return the only title in italics of a reply to a question for a book, a film or a song."""
    if not _TITLE_QUESTION_RE.search(question) or len(text) > _MAX_CHARACTERS:
        return None
    if NEGATION_RE.search(text) or _OTHER_TITLE_RE.search(text):
        return None
    titles = {match[1] for match in _ITALICS_RE.finditer(text)}
    title = titles.pop() if len(titles) == 1 else ""
    return reading.tidy_answer(title) if title and title not in question else None
