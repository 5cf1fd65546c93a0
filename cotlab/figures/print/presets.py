"""How wide a venue prints a figure and how large its words are there."""

from __future__ import annotations

from typing import NamedTuple

PT_PER_PX = 0.75
"""A printed page counts 96 px for an inch of 72 points."""
SMALLEST_PT = 7.0
"""No text of a printed figure is smaller."""


class Preset(NamedTuple):
    """A venue's figure: widths and text size in points, as they are on paper.

    ``column_pt`` is the width of one column, ``page_pt`` that of the whole page: a figure that
    needs more room than a column gives takes the page. ``text_pt`` is the size of axis titles; the
    title is larger, ticks are smaller, none below 7 pt. ``tall_pt`` is the most that a figure
    without named rows may be high.
    """

    name: str
    column_pt: float
    page_pt: float
    text_pt: float
    tall_pt: float | None = None

    @property
    def column_px(self) -> float:
        return self.column_pt / PT_PER_PX

    @property
    def page_px(self) -> float:
        return self.page_pt / PT_PER_PX


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("neurips", 396.0, 396.0, 8.0),  # one column of 5.5 in
        Preset("icml", 234.0, 486.0, 8.0),  # columns of 3.25 in, a page of 6.75 in
        Preset("nature", 252.0, 519.0, 7.5),  # columns of 89 mm, a page of 183 mm
        Preset("slide", 960.0, 960.0, 20.0, 540.0),  # 13.33 in, a slide of 16 to 9
    )
}
"""By name, as the style files and guides to authors of 2025 have them."""
