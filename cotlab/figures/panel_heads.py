"""What stands above the panels of a figure, and the room that its texts take."""

from __future__ import annotations

import html
import re
from typing import Any

from cotlab.figures import style

LETTER_WIDTH = 0.54
"""Mean width of a letter relative to its size, measured on axis labels."""
_MARKUP_TAG_RE = re.compile(r"<[^<>]*>")  # "<br>"


def text_width_px(text: str, font_size: float) -> float:
    """Estimate the width of a text in px."""
    lines = text.split("<br>")
    return (
        max(len(html.unescape(_MARKUP_TAG_RE.sub("", line))) for line in lines)
        * LETTER_WIDTH
        * font_size
    )


def _panel_heads(figure: Any) -> list[Any]:
    """Return the annotations that stand above the panels of a figure."""
    return [
        note
        for note in figure.layout.annotations
        if (note.xref, note.yref, note.yanchor) == ("paper", "paper", "bottom")
    ]


def head_height_px(figure: Any) -> float:
    """Return the height of what stands above the uppermost panels."""
    return max(
        (
            (note.text.count("<br>") + 1) * 1.3 * float(note.font.size or style.SMALL_TEXT_SIZE)
            + float(note.yshift or 0)
            for note in _panel_heads(figure)
            if note.y > 1 - 1e-6
        ),
        default=0.0,
    )


def heads_width_px(figure: Any) -> float:
    """Return the width of the plot at which the heads of panels stand side by side."""
    heads = sorted(_panel_heads(figure), key=lambda note: (-note.y, note.x))
    widths = [
        text_width_px(note.text, 1.08 * float(note.font.size or style.SMALL_TEXT_SIZE))
        for note in heads
    ]
    required = 0.0
    for i, (note, width) in enumerate(zip(heads, widths, strict=True)):
        is_left = note.xanchor == "left"
        if i + 1 < len(heads) and heads[i + 1].y == note.y:
            needed = width if is_left else (width + widths[i + 1]) / 2
            required = max(required, (needed + 10) / (heads[i + 1].x - note.x))
        elif is_left and note.x < 1:
            required = max(required, width / (1 - note.x))
    return required
