"""Placeholders, which a form has where its answer goes: "<answer>", "[your answer]"."""

from __future__ import annotations

import re

_LABEL_PATTERN = r"(?:answer|ans|number|integer|value|result|option|letter|choice)"
# "<answer>", "<the number of coins>", "[your answer]", "____"
_PLACEHOLDER_RE = re.compile(
    r"(?i)<\s?(?:(?:insert|put|your|the|an?|final|correct|numeric(?:al)?|single)[ _-]){0,4}"
    rf"{_LABEL_PATTERN}(?: of [a-z ]{{1,40}}|[ _-](?:goes )?here)?\s?>(?: [a-z]{{1,20}}){{0,3}}"
    r"|[\[{(]\s?(?:(?:insert|put|your|the|final|correct|numeric(?:al)?)[ _-]){0,4}answer"
    r"(?:[ _-](?:goes )?here)?\s?[\]})]"
    rf"|[\[{{(]\s?(?:insert|your)[ _-]{_LABEL_PATTERN}\s?[\]}})]"
    r"|(?:insert |put )?your (?:final )?answer(?: (?:goes )?here)?|_{2,80}"
)
# "answer" in a box or a tag
_LABEL_RE = re.compile(
    rf"(?i)(?:(?:your|the|final|correct)[ _-]){{0,3}}{_LABEL_PATTERN}(?:[ _-]here)?|\.{{3}}|…"
)
# "Answer:", "The final answer is", "So the answer is" of a reply that adds nothing to it
_CUE_ALONE_RE = re.compile(
    r"(?i)[*#_\s]{0,9}(?:(?:so|thus|therefore|hence),?\s)?(?:the\s)?(?:(?:final|correct)\s)?answer(?:\s?[*_]{0,3}:|\sis\b)[\W_]{0,20}"
)
# "HTML", "tag"
_MARKUP_WORD_RE = re.compile(r"(?i)\b(?:x?html|xml|markup|tags?|elements?)\b")
_TAG_IN_QUESTION_RE = re.compile(r"</?[A-Za-z][^<>\n]{0,60}>")


def is_placeholder(answer: str, question: str = "", *, is_in_form: bool = False) -> bool:
    """Return whether what stands for an answer is only the placeholder of one.

    In a box or between tags (``is_in_form``) a bare label is a placeholder too. Where the question
    is about markup, or has the text itself, what stands in brackets is an answer.
    """
    text = answer.strip(" \t\n.:*`\"'$#")
    if is_in_form and _LABEL_RE.fullmatch(text.strip("[](){}<> ")):
        return True
    is_in_question = _MARKUP_WORD_RE.search(question) is not None or (
        bool(text) and text in question
    )
    return not is_in_question and _PLACEHOLDER_RE.fullmatch(text) is not None


def is_about_markup(question: str) -> bool:
    """Return whether tags may be what a question asks for."""
    patterns = (_MARKUP_WORD_RE, _TAG_IN_QUESTION_RE)
    return any(pattern.search(question) is not None for pattern in patterns)


def has_only_cue(reply: str) -> bool:
    """Return whether a reply announces an answer and gives none: "The answer is"."""
    return _CUE_ALONE_RE.fullmatch(reply[:200]) is not None and len(reply) <= 200
