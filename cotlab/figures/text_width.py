"""The width of texts as they are drawn, and titles broken at that width."""

from __future__ import annotations

import html
import re

_MARKUP_TAG_RE = re.compile(r"<[^<>]*>")  # "<br>"
_FIRST_CHAR = 32
# Advance widths of the characters 32 to 126 in thousandths of the text size, read from Liberation
# Sans with Pillow's ``ImageFont.getlength``; Arial and Helvetica have the same.
_WIDTHS, _BOLD_WIDTHS = (
    tuple(map(int, text.split()))
    for text in (
        """
278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556
556 556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667
556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556
556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722
500 500 500 334 260 334 584
""",
        """
278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556
556 556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722
611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556
611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778
556 556 500 389 280 389 584
""",
    )
)
_OTHER_WIDTHS = {"−": 584, "–": 556, "…": 1000, "·": 333, "≥": 549, "≤": 549}
_OTHER_WIDTH, _WIDE_WIDTH = 700, 1000  # other letters; from U+2E80 on, Chinese characters and so on


def strip_markup(text: str) -> str:
    """Return a figure's text as plain text on one line, without tags and entities."""
    return " ".join(html.unescape(_MARKUP_TAG_RE.sub(" ", text)).split())


def text_width_px(text: str, text_size: float, *, is_bold: bool = False) -> float:
    """Return the width of a text's widest line as browsers draw it in Arial; tags have none.

    Parameters
    ----------
    text : str
        With plotly's markup; ``<br>`` ends a line.
    text_size : float, pixels
    is_bold : bool

    Returns
    -------
    float, pixels
        Other characters than those of ASCII are taken to be wide.
    """
    widths = _BOLD_WIDTHS if is_bold else _WIDTHS
    lines = (html.unescape(_MARKUP_TAG_RE.sub("", line)) for line in text.split("<br>"))
    widest = max(sum(_char_width(char, widths) for char in line) for line in lines)
    return widest / 1000 * text_size


def wrap_to_width(text: str, width: float, text_size: float, *, is_bold: bool = False) -> list[str]:
    """Break a text between words into lines that are no wider than ``width`` pixels.

    A word that is wider has a line of its own.
    """
    lines: list[str] = []
    for word in text.split():
        longer_line = f"{lines[-1]} {word}" if lines else word
        if lines and text_width_px(longer_line, text_size, is_bold=is_bold) <= width:
            lines[-1] = longer_line
        else:
            lines.append(word)
    return lines


def _char_width(char: str, widths: tuple[int, ...]) -> int:
    index = ord(char) - _FIRST_CHAR
    if 0 <= index < len(widths):
        return widths[index]
    return _OTHER_WIDTHS.get(char, _WIDE_WIDTH if ord(char) >= 0x2E80 else _OTHER_WIDTH)
