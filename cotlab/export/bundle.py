"""The files of a figure: drawn for a venue, with its numbers, caption, table and recipe; and all of them in one archive."""

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
from cotlab.export import tabular as sheets
from cotlab.export.chrome import Chrome, Format, NoChrome
from cotlab.export.recipe import Recipe, recipe_to_json
from cotlab.figures import style
from cotlab.figures.printed import PRESETS, Preset, printed_figure, web_page

FORMATS = ("pdf", "svg", "png", "html")
IMAGE_FORMATS: tuple[Format, ...] = ("pdf", "svg", "png")
"""Formats that a Chrome draws."""
_TAG = re.compile(r"<[^>]*>")
_DATE = (2020, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same figures give the same archive."""


class Exported(NamedTuple):
    """The files of some figures by name, and why some formats are not among them ("" where none is missing)."""

    files: dict[str, bytes]
    missing: str


def parse_formats(text: str) -> list[str]:
    """Parse formats separated by commas; UnknownName for an unknown one."""
    names = [part.strip().lower() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in FORMATS:
            raise UnknownName("format", name, FORMATS)
    if not names:
        raise ConfigError(f"--format names no format; known: {', '.join(FORMATS)}.")
    return list(dict.fromkeys(names))


def find_preset(name: str) -> Preset:
    """Return a venue by name; UnknownName where there is none."""
    if name not in PRESETS:
        raise UnknownName("preset", name, tuple(PRESETS))
    return PRESETS[name]


def figure_caption(recipe: Recipe, figure: Any | None = None) -> str:
    """Return a figure's caption as plain text: title, what it shows, n, interval method, note."""
    builder = FIGURES[recipe.figure]
    meta = (figure if figure is not None else recipe.draw()).layout.meta or {}
    small = [_ended(adapt_to_paper(strip_markup(text))) for text in meta.get("subtitle", ())]
    title = strip_markup(str(meta.get("title", ""))).rstrip(".")
    sentences = [f"{title}." if title else "", builder.caption, *small]
    sentences += [text for text in _counted(recipe.table) if "n = " not in " ".join(small)]
    joined = " ".join(sentences)
    sentences += [
        f"Intervals: {method}." for method in _methods(recipe.table) if method not in joined
    ]
    sentences += [
        f"Threshold: {limit:g}."
        for limit in _thresholds(recipe.table)
        if f"{limit:g}" not in joined
    ]
    return " ".join(part for part in sentences if part)


def adapt_to_paper(text: str) -> str:
    """Reword a subtitle for paper: what a screen shows on hover is in the plotted numbers."""
    paper_text = text.replace("on hover and in the data", "in the data").replace(
        "on hover", "in the data"
    )
    return paper_text.replace("; hover on a number for the reason", "; reasons are in the data")


def _ended(sentence: str) -> str:
    return sentence if not sentence or sentence[-1] in ".!?" else f"{sentence}."


def strip_markup(text: str) -> str:
    """Text of a figure without its markup."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _counted(table: pd.DataFrame) -> Iterator[str]:
    for column, unit in (("n", "items"), ("draws", "draws")):
        if column in table.columns and len(known := table[column].dropna()):
            low, high = int(known.min()), int(known.max())
            yield f"n = {low}{f' to {high}' if high > low else ''} {unit}."


def _methods(table: pd.DataFrame) -> list[str]:
    methods = table["method"].dropna() if "method" in table.columns else ()
    return [text for text in dict.fromkeys(map(str, methods)) if text and text != "none"]


def _thresholds(table: pd.DataFrame) -> list[float]:
    column = (
        "chosen" if "chosen" in table.columns else "threshold"
    )  # a sweep has every threshold, and one that is chosen
    values = table[column].dropna() if column in table.columns else ()
    return list(dict.fromkeys(map(float, values)))


def export_figures(
    recipes: Sequence[Recipe],
    formats: Iterable[str],
    preset: Preset,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Exported:
    """Draw figures and write their files into memory.

    Parameters
    ----------
    recipes : sequence of Recipe
    formats : iterable of str
        Of ``FORMATS``. Numbers, caption, tables and recipe come with every one of them.
    preset : Preset
    tell : function of (how many are done, of how many, the figure that is next), optional

    Returns
    -------
    Exported
        Where no Chrome is, the formats that it would draw are missing, and a page of HTML is there
        in their place.
    """
    requested, missing = list(dict.fromkeys(formats)), ""
    files: dict[str, bytes] = {}
    chrome: Chrome | None = None
    with ExitStack() as stack:
        if set(requested) & set(IMAGE_FORMATS):
            try:
                chrome = stack.enter_context(Chrome())
            except NoChrome as error:
                missing = str(error)
                requested = [name for name in requested if name not in IMAGE_FORMATS] or ["html"]
        for i, recipe in enumerate(recipes):
            if on_progress is not None:
                on_progress(i, len(recipes), recipe.name)
            files |= _files(recipe, requested, preset, chrome)
    return Exported(files, missing)


def _files(
    recipe: Recipe, formats: Sequence[str], preset: Preset, chrome: Chrome | None
) -> dict[str, bytes]:
    figure, name = recipe.draw(), recipe.name
    caption, columns = figure_caption(recipe, figure), FIGURES[recipe.figure].columns
    files: dict[str, bytes] = {}
    if chrome is not None:
        paper = printed_figure(figure, preset)
        files |= {
            f"{name}.{kind}": chrome.draw(paper, kind) for kind in IMAGE_FORMATS if kind in formats
        }
    if "html" in formats:
        files[f"{name}.html"] = web_page(figure, name, caption, style.FONT).encode()
    texts = {
        "csv": sheets.as_csv(recipe.table),
        "recipe.json": recipe_to_json(recipe),
        "caption.txt": caption + "\n",
        "tex": sheets.as_latex(recipe.table, columns, caption, name),
        "md": sheets.as_markdown(recipe.table, columns, caption),
    }
    return files | {
        f"{name}.{ending}": text.encode("utf-8", "surrogatepass") for ending, text in texts.items()
    }


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """All files as one zip, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name in sorted(files):
            zipped.writestr(zipfile.ZipInfo(name, _DATE), files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write_files(files: Mapping[str, bytes], folder: Path, zip_name: str) -> list[Path]:
    """Write files and their archive into a folder, which is made; ConfigError where it cannot be written."""
    every = {**files, zip_name: zip_files(files)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in every.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"--out {folder}: cannot be written: {error.strerror or error}."
        ) from error
    return [folder / name for name in every]


def archive_name(run: str, preset: str) -> str:
    """Return the name of an archive."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{run or 'figures'}-{preset}") + ".zip"
