"""Widths and text sizes of the venues that figures are printed for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.figures.style import GREY_COLOURS, Look

PT_PER_PX = 0.75
"""Points per pixel: an inch has 72 points and 96 px."""


class FigurePreset(NamedTuple):
    """Widths and text size of a venue's figures, in points on paper."""

    name: str
    """Name of the venue."""
    column_width_pt: float
    """Width of one column."""
    page_width_pt: float
    """Width of the page, for figures that do not fit a column."""
    scale: float = 0.85
    """Size in print relative to the screen; 0.85 leaves no text below 7 pt."""
    max_height_pt: float | None = None
    """Largest height of a figure without named rows."""
    has_title: bool = False
    """Whether the title stands above the figure; papers have it in the caption."""
    is_grey: bool = False
    """Whether the figure is in shades of grey."""

    @property
    def look(self) -> Look:
        """The look that a figure is printed in; its sizes are those before the scale."""
        pt_per_px = PT_PER_PX * self.scale
        return Look(
            GREY_COLOURS if self.is_grey else {},
            is_grey=self.is_grey,
            widths_px=(self.column_width_pt / pt_per_px, self.page_width_pt / pt_per_px),
            max_height_px=None if self.max_height_pt is None else self.max_height_pt / pt_per_px,
            has_title=self.has_title,
        )


PRESETS = {
    preset.name: preset
    for preset in (
        FigurePreset("neurips", 396.0, 396.0),  # one column of 5.5 in
        FigurePreset("icml", 234.0, 486.0),  # columns of 3.25 in, a page of 6.75 in
        FigurePreset("nature", 252.0, 519.0),  # columns of 89 mm, a page of 183 mm
        FigurePreset("slide", 960.0, 960.0, 2.05, 540.0),  # 13.33 in, a slide of 16 to 9
    )
}
"""Presets by name, from the style files and author guides of 2025."""

WIDTH_RANGE_PT = (60.0, 2000.0)
"""Least and greatest width of a figure, in points."""
PRINT_OPTIONS = ("width_pt", "has_title", "is_grey")
"""Names of what ``customize_preset`` sets."""


def customize_preset(preset: FigurePreset, options: Mapping[str, Any]) -> FigurePreset:
    """Return a preset with a width, without a title or in grey.

    Parameters
    ----------
    preset : FigurePreset
    options : mapping
        Any of ``width_pt`` (exact width, 60 to 2000 pt), ``has_title`` and ``is_grey``.

    Raises
    ------
    ConfigError
        If the width is out of range, or an option is unknown.
    """
    unknown_names = set(options) - set(PRINT_OPTIONS)
    if unknown_names:
        raise ConfigError(
            f"no such option of print: {', '.join(sorted(unknown_names))};"
            f" known: {', '.join(PRINT_OPTIONS)}."
        )
    lo, hi = WIDTH_RANGE_PT
    width_pt = options.get("width_pt")
    if width_pt is not None:
        if isinstance(width_pt, bool) or not isinstance(width_pt, int | float):
            raise ConfigError("the width of a figure is a number of points.")
        if not lo <= width_pt <= hi:
            raise ConfigError(f"a figure is {lo:g} to {hi:g} pt wide, not {width_pt:g}.")
        preset = preset._replace(column_width_pt=float(width_pt), page_width_pt=float(width_pt))
    return preset._replace(
        has_title=bool(options.get("has_title", preset.has_title)),
        is_grey=bool(options.get("is_grey", preset.is_grey)),
    )


def print_options(preset: FigurePreset) -> dict[str, Any]:
    """Return in what a preset differs from its venue's, as ``customize_preset`` takes it."""
    venue = PRESETS.get(preset.name, preset)
    options: dict[str, Any] = {}
    if preset.column_width_pt != venue.column_width_pt:
        options["width_pt"] = preset.column_width_pt
    if preset.has_title != venue.has_title:
        options["has_title"] = preset.has_title
    if preset.is_grey != venue.is_grey:
        options["is_grey"] = preset.is_grey
    return options
