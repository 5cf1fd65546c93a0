"""Angles in degrees, minutes and seconds of arc: 30' and "30 arcminutes", 22°30'15"."""

from __future__ import annotations

import re
from fractions import Fraction

_MAX_CHARACTERS = 60
_SIGN_REPLACEMENTS = (
    (re.compile(r"\^?\{?\\(?:circ|degree)\b\}?"), "°"),
    (re.compile(r"\^?\{?\s?\\prime\s?\\prime\s?\}?|''|″|”|“"), '"'),
    (re.compile(r"\^?\{?\s?\\prime\s?\}?|′|’"), "'"),
    (re.compile(r"\\[,;: ]|[$*{}]"), ""),
)
_NUMBER = r"(\d{1,6}(?:\.\d{1,9})?)"
_JOINT = r"(?:\s|,\s(?:and\s)?|\sand\s)?"
# "22°30'15\"", "30 arcminutes", "30 minutes of arc", "22 degrees and 30 minutes"
_ARC_RE = re.compile(
    rf"(?:{_NUMBER}\s?(?:°|degrees?\b))?{_JOINT}"
    rf"(?:{_NUMBER}\s?(?:'|(?:arc[- ]?)?min(?:ute)?s?\b\.?(?:\sof\sarc)?))?{_JOINT}"
    rf"(?:{_NUMBER}\s?(?:\"|(?:arc[- ]?)?sec(?:ond)?s?\b\.?(?:\sof\sarc)?))?",
    re.IGNORECASE | re.ASCII,
)
_ANGLE_RE = re.compile(
    r"(?i)\b(?:of arc|arc[- ]?(?:min|sec)\w*|angles?|angular|degrees?|latitude|longitude)\b"
    r"|\bparallax\b|°|\\circ"
)


def same_arc(first: str, second: str, question: str) -> bool | None:
    """Return whether two angles in minutes or seconds of arc are the same.

    Parameters
    ----------
    first, second : str
        Two answers as written.
    question : str
        The question: only where it speaks of angles is 30' neither 30 feet nor a derivative.

    Returns
    -------
    bool or None
        True where degrees, minutes and seconds are the same, False where the angles differ; None
        where either is no such angle, and for one angle in other units (30' and 1800").
    """
    if not _ANGLE_RE.search(question):
        return None
    arcs = [_read_arc(text) for text in (first, second)]
    if arcs[0] is None or arcs[1] is None:
        return None
    sizes = [sum(n * 60 ** (2 - i) for i, n in enumerate(arc)) for arc in arcs if arc]
    return True if arcs[0] == arcs[1] else (None if sizes[0] == sizes[1] else False)


def _read_arc(text: str) -> tuple[Fraction, Fraction, Fraction] | None:
    """Return degrees, minutes and seconds; None without minutes or seconds."""
    if len(text) > _MAX_CHARACTERS:
        return None
    for pattern, sign in _SIGN_REPLACEMENTS:
        text = pattern.sub(sign, text)
    match = _ARC_RE.fullmatch(text.strip(" ."))
    if match is None or not (match[2] or match[3]):
        return None
    return Fraction(match[1] or 0), Fraction(match[2] or 0), Fraction(match[3] or 0)
