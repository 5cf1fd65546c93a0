"""What a reply says that a program prints, or that an expression evaluates to."""

from __future__ import annotations

import re

from cotlab.text.answers.reading import has_content
from cotlab.text.steps import sentence_spans

# "What does the following print?", "the output of this code", "what is the value of `7 / 2`"
_QUESTION_RE = re.compile(
    r"(?i)\b(?:outputs?|prints?|printed|evaluates?|returns?|logs?|logged|displays?|value|result"
    r"|what (?:is|does))\b"
)
_CODE_RE = re.compile(r"(?i)`|\w\(|\b(?:code|program|snippet|expression|python|javascript|java)\b")
# "so the output is:" before a block that ends the reply
_BLOCK_RE = re.compile(
    r"(?i)([^\n]{0,200}\b(?:output|result|prints?|printed|returns?|displays?)\b[^\n`:]{0,60}:)"
    r"[ \t]{0,9}\n{1,3}```[\w+-]{0,12}\n((?:[^\n`]{0,400}\n){1,20})```\s{0,9}$"
)
# "The output is `[0, 4, 16]`", "it prints `"object"`", "`7 / 2` evaluates to `3.5`"
_INLINE_RE = re.compile(
    r"(?i)\b(?:(?:output|result|value|answer)\s(?:is|will be|becomes)|prints?|outputs?"
    r"|returns?|evaluates\sto|gives|yields|logs|displays)(?:\s(?:the\s)?(?:string|value|list|number"
    r"|exactly))?\s?:?[*]{0,2}\s[*]{0,2}`([^`\n]{1,200})`"
)
# a block that ends a reply and is its only one
_LAST_BLOCK_RE = re.compile(r"\n```[\w+-]{0,12}\n((?:[^\n`]{0,400}\n){1,5})```\s{0,9}$")
_DOUBT_RE = re.compile(
    r"(?i)\b(?:not|never|instead of|rather than|may|might|would|could|if|think|expect|example)\b"
    r"|n['’]t\b"
)
_CONCLUDES_RE = re.compile(
    r"(?i)\b(?:so|then|thus|therefore|hence|finally|but|however|next|now|final|actually|prints?"
    r"|output)\b"
)
_MAX_CHARACTERS = 8000


def printed_output(text: str, question: str) -> str | None:
    """Return the code that a reply states as what is printed or returned; None where open.

    Only where the question asks for it of code, all such statements of the reply agree, and none
    is followed by a conclusion.
    """
    last = question[-2000:]
    if not (_QUESTION_RE.search(last) and _CODE_RE.search(last)) or len(text) > _MAX_CHARACTERS:
        return None
    if (block := _BLOCK_RE.search(text)) and has_content(block[2]):
        return None if _DOUBT_RE.search(block[1]) else block[2].strip()
    is_about_output = re.search(r"(?i)\b(?:outputs?|prints?|printed|displays?|logs?)\b", last)
    if is_about_output and text.count("```") == 2 and (block := _LAST_BLOCK_RE.search(text)):
        return block[1].strip() if block[1].strip() not in question else None
    matches = list(_INLINE_RE.finditer(text))
    stated = {match[1].strip().strip("'\"") for match in matches}
    if len(stated) != 1:
        return None
    sentences = [text[slice(*span)] for span in sentence_spans(text)]
    stated_in = [(s, m) for s in sentences if (m := _INLINE_RE.search(s))]
    is_doubted = any(_DOUBT_RE.search(sentence[: match.end()]) for sentence, match in stated_in)
    if is_doubted or _CONCLUDES_RE.search(text[matches[-1].end() :]):
        return None
    return stated.pop()
