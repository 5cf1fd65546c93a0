"""The page Figures: a figure of a run at its printed size, its caption, and its files."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.analysis.tables.catalogue import TABLES, figure_table
from cotlab.analysis.tables.declare import Choice, FigureData, NoFigure
from cotlab.analysis.view import RunView
from cotlab.core.errors import ConfigError
from cotlab.core.resources import page
from cotlab.export import bundle
from cotlab.export import recipe as export_recipes
from cotlab.export.chrome import MISSING, DrawingFailed, find_chrome
from cotlab.export.recipe import Recipe, recipe_to_json
from cotlab.figures.printed import PRESETS, PT_PER_PX, Preset, printed_figure
from cotlab.store import read
from cotlab.ui import cached, components
from cotlab.ui.pickers import run_labels, select_option
from cotlab.ui.text import as_code, shorten

Stamp = tuple[tuple[str, int], ...]
LABELS = {"neurips": "NeurIPS", "icml": "ICML", "nature": "Nature", "slide": "Slide (16 to 9)"}
MIME = {
    "pdf": "application/pdf",
    "svg": "image/svg+xml",
    "png": "image/png",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "txt": "text/plain",
    "tex": "application/x-tex",
    "md": "text/markdown",
}
NAMES = {
    "csv": "Numbers (CSV)",
    "recipe.json": "Recipe (JSON)",
    "caption.txt": "Caption",
    "tex": "Table (LaTeX)",
    "md": "Table (Markdown)",
}


def select_figure_run() -> dict[str, Any] | None:
    """Choose a run, the newest by default; None (with a message) where there is none."""
    rows = {row["id"]: row for row in read.list_runs(cached.store()).to_dict("records")}
    if not rows:
        components.empty("There is no run yet.", page("new_run"), "Start one")
        return None
    row: dict[str, Any] = rows[select_option("Run", run_labels(list(rows.values())), "run")]
    components.partial_banner(row)
    return row


def select_figure(row: dict[str, Any]) -> Recipe | None:
    """Choose a figure, and its item where it needs one; None (with a message) without data."""
    source = _source(row)
    names = [name for name in TABLES if TABLES[name].can_be_in(source)]
    name = select_option("Figure", {name: name.replace("_", " ") for name in names}, "figure")
    item: str | None = None
    if TABLES[name].of == "item":
        if not source.items:
            components.empty(
                "No item of this run has been scored yet.",
                page("run"),
                "See the run",
                {"run": row["id"]},
            )
            return None
        item = select_option("Item", {item_id: item_id for item_id in source.items}, "item")
    result = _table(str(source.store.folder), row["id"], _stamp(row), name, item)
    if isinstance(result, NoFigure):
        st.info(as_code(shorten(f"{name.replace('_', ' ')}: n/a, {result.reason}", 300)))
        return None
    return export_recipes.recipe_of(source, name, result)


def select_preset() -> Preset:
    """Choose the venue, whose column width and font the figure is printed with."""
    labels = {
        name: f"{LABELS.get(name, name)}, {preset.column_pt:g} pt"
        for name, preset in PRESETS.items()
    }
    return PRESETS[select_option("Venue", labels, "preset")]


def render_figure(recipe: Recipe, preset: Preset) -> None:
    """Show the figure at its printed size, and its caption."""
    figure = recipe.draw()
    paper = printed_figure(figure, preset)
    width, height = float(paper.layout.width), float(paper.layout.height)
    with st.container(border=True, width=round(width) + 34):
        st.plotly_chart(
            paper,
            theme=None,
            key=f"paper-{recipe.name}-{preset.name}",
            width="content",
            config={"staticPlot": True},
        )
    width_note = " It spans the width of the printed page." if width > preset.column_px + 1 else ""
    st.caption(
        f"{width * PT_PER_PX:.0f} × {height * PT_PER_PX:.0f} pt on paper, no text below 7"
        f" pt; at true size where this page is wide enough.{width_note} The details of each"
        " mark are in the numbers."
    )
    st.subheader("Caption")
    with st.container(width=round(max(width, 560))):
        st.text(bundle.figure_caption(recipe, figure))


def render_downloads(recipe: Recipe, preset: Preset) -> None:
    """Offer each file of the figure; those that need a browser are drawn on demand."""
    st.subheader("Files")
    if find_chrome() is None:
        st.warning(f"{MISSING}. HTML, numbers and recipe are available.")
    key = f"{recipe.name}-{preset.name}-{hash(recipe_to_json(recipe))}"
    made: dict[str, bytes] | None = st.session_state.get("figure-files", {}).get(key)
    if made is None and st.button(
        "Draw the files", key=f"draw-{key}", icon=":material/draw:", type="primary"
    ):
        made = _draw([recipe], preset)
        if made is not None:
            st.session_state["figure-files"] = {key: made}
            st.rerun()
    if made is None:
        st.caption(
            "PDF, SVG, PNG (300 dpi), interactive HTML, numbers, caption, tables and recipe; all as"
            " one zip."
        )
        return
    zipped = bundle.archive_name(recipe.name, preset.name)
    _download("All files (zip)", bundle.zip_files(made), zipped, "application/zip", primary=True)
    with st.container(horizontal=True):
        for name, content in made.items():
            ending = name.removeprefix(f"{recipe.name}.")
            label = NAMES.get(ending, ending.upper())
            _download(label, content, name, MIME[ending.split(".")[-1]])


def render_all_figures(row: dict[str, Any], preset: Preset) -> None:
    """Offer all figures of the run as one archive."""
    st.divider()
    source, key = _source(row), f"all-{row['id']}-{hash(_stamp(row))}-{preset.name}"
    made: bytes | None = st.session_state.get("run-files", {}).get(key)
    if made is None and st.button(
        "Draw every figure of this run", key=key, icon=":material/photo_library:"
    ):
        recipes, _ = export_recipes.recipes_of(source, preset=preset.name)
        files = _draw(recipes, preset)
        if files is not None:
            made = bundle.zip_files(files)
            st.session_state["run-files"] = {key: made}
            st.rerun()
    if made is not None:
        _download(
            "Every figure (zip)",
            made,
            bundle.archive_name(row["id"], preset.name),
            "application/zip",
            primary=True,
        )
    st.caption("The same from a terminal:")
    st.code(
        f"cotlab figures {row['id']} --out figures --format pdf,svg,png,html --preset"
        f" {preset.name}",
        language="text",
    )


def _draw(recipes: list[Recipe], preset: Preset) -> dict[str, bytes] | None:
    """Draw the files of some figures, with a progress bar; None (with a message) on failure."""
    bar = st.progress(0.0, "Starting the browser")

    def on_progress(done: int, of: int, name: str) -> None:
        bar.progress(done / of, f"{done + 1} of {of}: {name.replace('_', ' ')}")

    try:
        done = bundle.export_figures(recipes, bundle.FORMATS, preset, on_progress)
    except DrawingFailed as error:
        st.error(as_code(shorten(str(error), 300)))
        return None
    finally:
        bar.empty()
    return done.files


def _download(label: str, content: bytes, name: str, mime: str, *, primary: bool = False) -> None:
    st.download_button(
        label,
        content,
        file_name=name,
        mime=mime,
        key=f"get-{name}",
        icon=":material/download:",
        on_click="ignore",
        type="primary" if primary else "secondary",
    )


def _source(row: dict[str, Any]) -> RunView:
    return _sources(str(cached.store().folder), row["id"], _stamp(row))


def _stamp(row: dict[str, Any]) -> Stamp:
    """Return the revisions of the run and of the other runs on its suite, as a cache key."""
    rows = read.list_runs(cached.store())
    return tuple(
        (str(r["id"]), int(r["revision"]))
        for r in rows[rows["suite"] == row["suite"]].to_dict("records")
    )


@st.cache_resource(show_spinner="Reading the run", max_entries=4)
def _sources(folder: str, run_id: str, stamp: Stamp) -> RunView:
    return RunView.read(cached.store(), run_id)


@st.cache_data(show_spinner="Making the table", max_entries=64)
def _table(
    folder: str, run_id: str, stamp: Stamp, name: str, item: str | None
) -> FigureData | NoFigure:
    try:
        return figure_table(_sources(folder, run_id, stamp), name, Choice(item=item))
    except ConfigError as error:  # this item does not have the figure
        return NoFigure(str(error))
