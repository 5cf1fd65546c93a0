"""What a reply says that a program prints, or that an expression evaluates to."""

from __future__ import annotations

import re

from cotlab.text.answers.reading import has_content

# "What does the following print?", "the output of this code", "what is the value of `7 / 2`"
_QUESTION_RE = re.compile(
    r"(?i)\b(?:outputs?|prints?|printed|evaluates?|returns?|logs?|logged|displays?)\b"
    r"|\bpython|javascript|\bjava\b|\bin (?:c|c\+\+|ruby|rust|go)\b"
)
# "so the output is:" before a block
_BLOCK_RE = re.compile(
    r"(?i)\b(?:output|result|prints?|printed|returns?|displays?)\b[^\n`:]{0,60}:[ \t]{0,9}\n{1,3}"
    r"```[\w+-]{0,12}\n((?:[^\n`]{0,400}\n){1,20})```(?=[^`]*$)"
)
# "The output is `[0, 4, 16]`", "it prints `"object"`", "`7 / 2` evaluates to `3.5`"
_INLINE_RE = re.compile(
    r"(?i)\b(?:(?:output|result|value|answer)\s(?:is|will be|would be|becomes)|prints?|outputs?"
    r"|returns?|evaluates\sto|gives|yields|logs|displays)(?:\s(?:the\s)?(?:string|value|list|number"
    r"|exactly))?\s?:?\s[*]{0,2}`([^`\n]{1,200})`"
)
# a block that ends a reply and is its only one
_LAST_BLOCK_RE = re.compile(r"\n```[\w+-]{0,12}\n((?:[^\n`]{0,400}\n){1,5})```\s{0,9}$")
_DENIAL_RE = re.compile(r"(?i)\b(?:not|never|instead of|rather than)\s*$|n['’]t\s*$")
_MAX_CHARACTERS = 8000


def printed_output(text: str, question: str) -> str | None:
    """Return the code that a reply states as what is printed or returned; None where open.

    Only where the question asks for it, and all such statements of the reply agree.
    """
    if not _QUESTION_RE.search(question[-2000:]) or len(text) > _MAX_CHARACTERS:
        return None
    if (block := _BLOCK_RE.search(text)) and has_content(block[1]):
        return block[1].strip()
    if text.count("```") == 2 and (block := _LAST_BLOCK_RE.search(text)):
        return block[1].strip() if block[1].strip() not in question else None
    stated = {
        match[1].strip().strip("'\"")
        for match in _INLINE_RE.finditer(text)
        if not _DENIAL_RE.search(text[max(0, match.start() - 20) : match.start()])
    }
    return stated.pop() if len(stated) == 1 else None
