"""Figures as files: formats, captions, tables and one archive of them."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.registry import FIGURES
from cotlab.export import tabular
from cotlab.export.chrome import Chrome, ImageFormat, NoChrome
from cotlab.export.html import html_page
from cotlab.export.recipe import FigureRecipe, recipe_to_json
from cotlab.figures.presets import PRESETS, FigurePreset
from cotlab.figures.text_width import strip_markup

EXPORT_FORMATS = ("pdf", "svg", "png", "html")
IMAGE_FORMATS: tuple[ImageFormat, ...] = ("pdf", "svg", "png")
"""Formats that a Chrome draws."""
_FIGURE_CSS = "body{margin:24px}p{max-width:640px;white-space:pre-wrap}"
_ZIP_TIMESTAMP = (2020, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same figures give the same archive."""


class ExportedFiles(NamedTuple):
    """The files of some figures."""

    files: dict[str, bytes]
    """Contents by name of the file."""
    missing_reason: str
    """Why some formats are absent; "" where none is."""


def parse_formats(text: str) -> list[str]:
    """Parse formats separated by commas; UnknownName for an unknown one."""
    names = [part.strip().lower() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in EXPORT_FORMATS:
            raise UnknownName("format", name, EXPORT_FORMATS)
    if not names:
        raise ConfigError(f"--format names no format; known: {', '.join(EXPORT_FORMATS)}.")
    return list(dict.fromkeys(names))


def find_preset(name: str) -> FigurePreset:
    """Return a venue by name; UnknownName where there is none."""
    if name not in PRESETS:
        raise UnknownName("preset", name, tuple(PRESETS))
    return PRESETS[name]


def figure_caption(recipe: FigureRecipe, figure: Any | None = None) -> str:
    """Return a figure's caption as plain text: title, model and suite, what it shows, n, method."""
    meta = (figure if figure is not None else recipe.draw()).layout.meta
    notes = [_add_full_stop(strip_markup(text)) for text in meta["subtitle"]]
    title = strip_markup(meta["title"]).rstrip(".")
    sentences = [
        f"{title}." if title else "",
        f"{recipe.source}." if recipe.source else "",
        FIGURES[recipe.figure].caption,
        *notes,
    ]
    if "n = " not in " ".join(notes):
        sentences += _describe_counts(recipe.table)
    # a sweep has every threshold, and one that is chosen
    is_sweep = {"threshold", "chosen"} <= set(recipe.table.columns)
    for prefix, texts in (
        ("Intervals: ", _values(recipe.table, "method")),
        ("Threshold: ", _values(recipe.table, "chosen" if is_sweep else "threshold")),
    ):
        told = " ".join(sentences)
        sentences += [f"{prefix}{text}." for text in texts if text not in told and text != "none"]
    return " ".join(sentence for sentence in sentences if sentence)


def _add_full_stop(sentence: str) -> str:
    return sentence if not sentence or sentence[-1] in ".!?" else f"{sentence}."


def _describe_counts(table: pd.DataFrame) -> Iterator[str]:
    for column, unit in (("n", "items"), ("draws", "draws")):
        if column in table.columns and len(counts := table[column].dropna()):
            ends = dict.fromkeys((int(counts.min()), int(counts.max())))
            yield f"n = {' to '.join(map(str, ends))} {unit}."


def _values(table: pd.DataFrame, column: str) -> list[str]:
    """Return the texts of a column, each once."""
    values = table[column].dropna() if column in table.columns else ()
    texts = (value if isinstance(value, str) else f"{float(value):g}" for value in values)
    return [text for text in dict.fromkeys(texts) if text]


def export_figures(
    recipes: Sequence[FigureRecipe],
    formats: Iterable[str],
    preset: FigurePreset,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> ExportedFiles:
    """Draw figures and write their files into memory.

    Parameters
    ----------
    recipes : sequence of FigureRecipe
    formats : iterable of str
        Of ``EXPORT_FORMATS``. Numbers, caption, tables and recipe come with every one of them.
    preset : FigurePreset
    on_progress : function of (number of figures drawn, number in all, name of the next), optional

    Returns
    -------
    ExportedFiles
        Where no Chrome is, the formats that it would draw are missing, and a page of HTML is there
        in their place.
    """
    requested_formats, missing_reason = list(dict.fromkeys(formats)), ""
    files: dict[str, bytes] = {}
    chrome: Chrome | None = None
    with ExitStack() as stack:
        if set(requested_formats) & set(IMAGE_FORMATS):
            try:
                chrome = stack.enter_context(Chrome())
            except NoChrome as error:
                missing_reason = str(error)
                requested_formats = [
                    name for name in requested_formats if name not in IMAGE_FORMATS
                ] or ["html"]
        for i, recipe in enumerate(recipes):
            if on_progress is not None:
                on_progress(i, len(recipes), recipe.name)
            files |= _make_figure_files(recipe, requested_formats, preset, chrome)
    return ExportedFiles(files, missing_reason)


def _make_figure_files(
    recipe: FigureRecipe, formats: Sequence[str], preset: FigurePreset, chrome: Chrome | None
) -> dict[str, bytes]:
    figure, name = recipe.draw(), recipe.name
    caption, columns = figure_caption(recipe, figure), FIGURES[recipe.figure].columns
    files: dict[str, bytes] = {}
    if chrome is not None:
        paper_figure = recipe.draw(preset.look)
        files |= {
            f"{name}.{image_format}": chrome.draw(paper_figure, image_format, preset.scale)
            for image_format in IMAGE_FORMATS
            if image_format in formats
        }
    if "html" in formats:
        body = figure.to_html(
            full_html=False,
            include_plotlyjs=True,
            include_mathjax=False,
            config={"displaylogo": False, "responsive": True},
        )
        body = f"{body}\n<p>{html.escape(caption)}</p>"
        files[f"{name}.html"] = html_page(name, body, _FIGURE_CSS, with_script=True).encode()
    texts = {
        "csv": tabular.table_to_csv(recipe.table),
        "recipe.json": recipe_to_json(recipe),
        "caption.txt": caption + "\n",
        "tex": tabular.table_to_latex(recipe.table, columns, caption, name),
        "md": tabular.table_to_markdown(recipe.table, columns, caption),
    }
    return files | {
        f"{name}.{suffix}": text.encode("utf-8", "surrogatepass") for suffix, text in texts.items()
    }


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """All files as one zip, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(
                zipfile.ZipInfo(name, _ZIP_TIMESTAMP), files[name], zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def write_files(files: Mapping[str, bytes], folder: Path, zip_name: str) -> list[Path]:
    """Write files and their archive into a folder; ConfigError where it cannot be written."""
    all_files = {**files, zip_name: zip_files(files)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in all_files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"--out {folder}: cannot be written: {error.strerror or error}."
        ) from error
    return [folder / name for name in all_files]


def archive_name(run_id: str, preset_name: str) -> str:
    """Return the name of an archive."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{run_id or 'figures'}-{preset_name}") + ".zip"
