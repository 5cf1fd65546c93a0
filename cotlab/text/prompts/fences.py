"""Text from outside in a prompt: fenced by lines that it cannot contain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotlab.core.keys import digest


class FencedText(NamedTuple):
    """Sections of a prompt between lines that carry one code."""

    text: str
    """All sections with their lines, a blank line between two."""
    code: str
    """16 hexadecimal digits that occur in no section."""


def fence_sections(sections: Sequence[tuple[str, str]]) -> FencedText:
    """Put each section, a name and a text, between two lines with a code made from all texts.

    No text can contain the line that ends its section: the code occurs in none of them.
    """
    code = unused_code(*(text for _, text in sections))
    blocks = (f"[begin {name} {code}]\n{text}\n[end {name} {code}]" for name, text in sections)
    return FencedText("\n\n".join(blocks), code)


def unused_code(*texts: str) -> str:
    """Return 16 hexadecimal digits that occur in none of the texts."""
    attempt = 0
    while any((code := digest([attempt, *texts])[:16]) in text for text in texts):
        attempt += 1
    return code
