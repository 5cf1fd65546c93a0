"""The page Figures: a figure of a run at its printed size, its caption, and its files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from cotlab.analysis.tables.catalogue import FIGURE_TABLES
from cotlab.analysis.tables.declare import FigureChoice, FigureData, MissingFigure, UnknownChoice
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.export import bundle
from cotlab.export import recipe as export_recipes
from cotlab.export.chrome import NO_CHROME_MESSAGE, DrawingError, find_chrome
from cotlab.export.recipe import FigureRecipe, recipe_to_json
from cotlab.figures.layout import required_width_px
from cotlab.figures.presets import (
    PRESETS,
    PT_PER_PX,
    WIDTH_RANGE_PT,
    FigurePreset,
    customize_preset,
    print_options,
)
from cotlab.ui import cached, components
from cotlab.ui.address import bind_number, bind_switch, report_unknown_value
from cotlab.ui.metric_names import metric_name
from cotlab.ui.navigation import default_run
from cotlab.ui.pickers import run_labels, select_option, warn_of_unknown_runs, without_archived
from cotlab.ui.text import escape_markdown, shorten

CHOICE_LABELS = {
    "metric": "Metric",
    "mode": "Mode",
    "setting": "Source and control",
    "perturbation": "Perturbation",
    "classifier": "Classifier",
    "item": "Item",
    "span": "Layers",
    "domain": "Domain",
    "thresholds": "Thresholds",
    "runs": "Runs",
}
"""Labels of what a figure can show, by the names of `FigureChoice`."""
VENUE_LABELS = {
    "neurips": "NeurIPS",
    "icml": "ICML",
    "nature": "Nature",
    "slide": "Slide (16 to 9)",
}
FILE_LABELS = {
    "csv": "Numbers (CSV)",
    "recipe.json": "Recipe (JSON)",
    "caption.txt": "Caption",
    "tex": "Table (LaTeX)",
    "md": "Table (Markdown)",
}


class ChosenFigure(NamedTuple):
    """A figure of a run with its table."""

    run: RunView
    """The run."""
    name: str
    """Name of the figure among those of a run."""
    data: FigureData
    """The table, and what was chosen."""


def select_figure_run() -> RunView | None:
    """Choose a run, the newest by default; None (with a message) where there is none."""
    rows = cached.stored_runs()
    if not rows:
        components.render_empty_state("There is no run yet.", "new_run", "Start a run")
        return None
    if warn_of_unknown_runs(rows, "run"):
        return None
    rows = without_archived(rows, "run")
    if not rows:
        st.info("All runs are archived.")
        return None
    labels = run_labels(rows)
    default = default_run(next(iter(labels)), labels)
    chosen_id = select_option("Run", labels, "run", default)
    row: RunView = next(row for row in rows if row.id == chosen_id)
    components.warn_if_partial(row)
    return row


def select_figure(row: RunView) -> ChosenFigure | None:
    """Choose a figure, and what it shows; None (with a message) where it has no data.

    What it shows (an item, a metric, a mode) is in the address under the names of
    `FigureChoice`, as the link "Use in paper" of another page gives it.
    """
    view = cached.cached_run_view(row)
    names = [name for name in FIGURE_TABLES if FIGURE_TABLES[name].is_possible_for(view)]
    labels = {name: name.replace("_", " ") for name in names}
    name = select_option("Figure", labels, "figure", cleared_params=tuple(CHOICE_LABELS))
    result = _requested_figure_table(row, name)
    if isinstance(result, MissingFigure):
        st.info(escape_markdown(shorten(f"{labels[name]}: n/a, {result.reason}", 300)))
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for key, options in result.options.items():
            if len(options) > 1:
                chosen = getattr(result.choice, key)
                _select_choice(key, options, chosen)
    return ChosenFigure(row, name, result)


def _requested_figure_table(row: RunView, name: str) -> FigureData | MissingFigure:
    """Return the table of what the address asks for, without what the figure cannot show of it."""
    requested = {key: st.query_params[key] for key in CHOICE_LABELS if key in st.query_params}
    known = dict(requested)
    while True:
        try:
            result = cached.run_figure_table(row, name, FigureChoice(**known))
            break
        except UnknownChoice as error:
            del known[error.name]
        except ConfigError as error:
            st.warning(escape_markdown(shorten(f"{error} The first is shown.", 300)))
            return cached.run_figure_table(row, name)
    for key, value in requested.items():
        is_met = key in known and (
            isinstance(result, MissingFigure) or getattr(result.choice, key) == value
        )
        if not is_met:
            report_unknown_value(key, value)
    return result


def _select_choice(key: str, options: Sequence[str], chosen: str | None) -> None:
    """Choose one of the things that a figure can show; the address has it."""
    label_of = metric_name if key == "metric" else str
    labels = {option: label_of(option) or "none" for option in options}
    select_option(CHOICE_LABELS[key], labels, key, chosen)


def select_preset() -> FigurePreset:
    """Choose the venue, the width, and whether title and colours are printed."""
    labels = {name: VENUE_LABELS.get(name, name) for name in PRESETS}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        venue = PRESETS[select_option("Venue", labels, "preset")]
        lo, hi = WIDTH_RANGE_PT
        width_pt = st.number_input(
            "Width in pt",
            lo,
            hi,
            step=1.0,
            format="%g",
            **bind_number(f"width-{venue.name}", venue.column_width_pt, lo, hi),
            width=150,
            help="By default the column of the venue; a figure whose labels do not fit there is as"
            " wide as the page. A width of your own is kept as it is.",
        )
        has_title = st.toggle("Title", **bind_switch("title", False))
        is_grey = st.toggle(
            "Shades of grey",
            **bind_switch("grey", False),
            help="For print without colour. The two sides of a scale with a sign look alike; the"
            " numbers in its cells have the sign.",
        )
    options: dict[str, Any] = {"has_title": has_title, "is_grey": is_grey}
    if width_pt != venue.column_width_pt:
        options["width_pt"] = width_pt
    return customize_preset(venue, options)


def make_recipe(chosen: ChosenFigure, preset: FigurePreset) -> FigureRecipe:
    """Return what draws a figure again, at any time, from its numbers."""
    view = cached.cached_run_view(chosen.run)
    return export_recipes.make_recipe(view, chosen.name, chosen.data, preset)


def render_figure(recipe: FigureRecipe, preset: FigurePreset) -> None:
    """Show the figure as it is printed, and its caption."""
    paper_figure = _make_figure(recipe_to_json(recipe), preset, recipe)
    layout = paper_figure.layout
    width, height = layout.width * preset.scale, layout.height * preset.scale
    with st.container(border=True, width=layout.width + 34):
        st.plotly_chart(
            paper_figure,
            theme=None,
            key=f"paper-{recipe.name}-{recipe.run}-{preset}",
            width="content",
            config={"staticPlot": True},
        )
    width_note = (
        " It spans the width of the printed page."
        if width * PT_PER_PX > preset.column_width_pt + 1
        else ""
    )
    if "width_pt" in print_options(preset):
        needed_pt = required_width_px(paper_figure) * preset.scale * PT_PER_PX
        if needed_pt > preset.column_width_pt:
            width_note = f" Its labels need {needed_pt:.0f} pt: look for texts that meet."
    st.caption(
        f"{width * PT_PER_PX:.0f} × {height * PT_PER_PX:.0f} pt on paper, no text below 7 pt;"
        f" shown here at {1 / preset.scale:.0%}.{width_note} The details of each mark are in the"
        " numbers."
    )
    with st.container(width=round(max(width, 560))):
        st.text(bundle.figure_caption(recipe, paper_figure))


@st.cache_resource(show_spinner=False, max_entries=32)
def _make_figure(recipe_text: str, preset: FigurePreset, _recipe: FigureRecipe) -> Any:
    """Return the figure of a recipe as it is printed, before the scale; no caller may change it."""
    return _recipe.draw(preset.look)


def render_downloads(recipe: FigureRecipe, preset: FigurePreset) -> None:
    """Offer each file of the figure; those that need a browser are drawn on demand."""
    st.header("Files")
    if find_chrome() is None:
        st.warning(f"{NO_CHROME_MESSAGE}. HTML, numbers and recipe are available.")
    key = f"{recipe.name}-{preset.name}-{hash((preset, recipe_to_json(recipe)))}"
    files = _files_on_demand("Draw the files", "draw", key, partial(_draw_files, [recipe], preset))
    if files is None:
        st.caption(
            "PDF, SVG, PNG (300 dpi), interactive HTML, numbers, caption, tables and recipe; all as"
            " one zip."
        )
        return
    zip_name = bundle.archive_name(recipe.name, preset.name)
    _render_zip_download("All files (zip)", bundle.zip_files(files), zip_name)
    with st.container(horizontal=True):
        for name, content in files.items():
            suffix = name.removeprefix(f"{recipe.name}.")
            label = FILE_LABELS.get(suffix, suffix.upper())
            components.download_button(label, content, name, f"get-{name}")


def _files_on_demand(
    label: str, icon: str, key: str, draw: Callable[[], Mapping[str, bytes] | None]
) -> Mapping[str, bytes] | None:
    """Return files that were drawn at the press of a button; None before it.

    The session keeps those of one key.
    """
    name = f"files-{icon}"
    stored: dict[str, Mapping[str, bytes]] = st.session_state.get(name, {})
    if key not in stored and st.button(label, key=f"draw-{key}", icon=f":material/{icon}:"):
        files = draw()
        if files is not None:
            st.session_state[name] = {key: files}
            st.rerun()
    return stored.get(key)


def render_command(chosen: ChosenFigure, preset: FigurePreset) -> None:
    """Show the command that draws the figure of the run without the dashboard."""
    st.caption("The same from a terminal; without --figure, every figure of the run:")
    arguments = ["cotlab figures", shlex.quote(chosen.run.id), "--figure", chosen.name]
    arguments += [
        f"--choose {shlex.quote(f'{k}={v}')}" for k, v in chosen.data.choice.as_dict().items()
    ]
    arguments += ["--format pdf,svg,png,html", f"--preset {preset.name}"]
    options = print_options(preset)
    if "width_pt" in options:
        arguments.append(f"--width-pt {options['width_pt']:g}")
    arguments += ["--title"] * preset.has_title + ["--grey"] * preset.is_grey
    st.code(" ".join(arguments), language=None, wrap_lines=True)


def render_all_figures(row: RunView, preset: FigurePreset) -> None:
    """Offer all figures of the run as one archive."""
    view = cached.cached_run_view(row)

    def draw() -> dict[str, bytes] | None:
        return _draw_files(export_recipes.make_recipes(view, preset=preset)[0], preset)

    key = f"all-{row.id}-{hash((id(view), preset))}"
    files = _files_on_demand("Draw every figure of this run", "photo_library", key, draw)
    if files is not None:
        name = bundle.archive_name(row.id, preset.name)
        _render_zip_download("Every figure (zip)", bundle.zip_files(files), name)


def _draw_files(recipes: Sequence[FigureRecipe], preset: FigurePreset) -> dict[str, bytes] | None:
    """Draw the files of some figures, with a progress bar; None (with a message) on failure."""
    progress_bar = st.progress(0.0, "Starting the browser")

    def on_progress(n_done: int, n_total: int, name: str) -> None:
        progress_bar.progress(
            n_done / n_total, f"{n_done + 1} of {n_total}: {name.replace('_', ' ')}"
        )

    try:
        return bundle.export_figures(recipes, bundle.EXPORT_FORMATS, preset, on_progress).files
    except DrawingError as error:
        st.error(escape_markdown(shorten(str(error), 300)))
        return None
    finally:
        progress_bar.empty()


def _render_zip_download(label: str, content: bytes, name: str) -> None:
    components.download_button(label, content, name, f"get-{name}", is_primary=True)
