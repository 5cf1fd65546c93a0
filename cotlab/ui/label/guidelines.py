"""The guidelines beside the labelling form: the shipped ones, or those of the store's folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

GUIDELINES_NAME = "guidelines.txt"
"""File in the store's folder that replaces the shipped guidelines."""
MAX_GUIDELINE_CHARS = 40_000
SHIPPED_PATH = Path(__file__).parent / GUIDELINES_NAME
_HEADING = "# "


class GuidelineSection(NamedTuple):
    """One section of the guidelines, as plain text."""

    title: str
    """Its heading."""
    text: str
    """What stands below it."""


def load_guidelines(folder: Path) -> tuple[GuidelineSection, ...]:
    """Return the guidelines of a store by section, the shipped ones where it has none.

    A file that cannot be read as UTF-8 text gives one section that says so: raters are not given
    other guidelines than those that were written for them.
    """
    path = folder / GUIDELINES_NAME
    try:
        text = (path if path.exists() else SHIPPED_PATH).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        problem = f"{GUIDELINES_NAME} in the store's folder cannot be read as UTF-8 text."
        return (GuidelineSection("Guidelines", problem),)
    return split_sections(text[:MAX_GUIDELINE_CHARS])


def split_sections(text: str) -> tuple[GuidelineSection, ...]:
    """Return the sections of a text; a line that begins with "# " is the heading of one."""
    sections: list[tuple[str, list[str]]] = [("Guidelines", [])]
    for line in text.splitlines():
        if line.startswith(_HEADING):
            sections.append((line.removeprefix(_HEADING).strip(), []))
        else:
            sections[-1][1].append(line)
    joined = (GuidelineSection(title, "\n".join(lines).strip()) for title, lines in sections)
    return tuple(section for section in joined if section.text)
