"""``cotlab report`` and ``cotlab figures``: show and export what is stored."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TextIO

import typer

from cotlab.cli.options import explain_write_errors
from cotlab.core.errors import ConfigError, UnknownName


def report_command(
    run: Annotated[str, typer.Argument(help="The run's id; `cotlab runs` lists them.")],
    format: Annotated[
        str, typer.Option(help="json, md, csv or parquet; the last two hold one row a score.")
    ] = "md",
    output: Annotated[
        Optional[Path], typer.Option(help="File to write (default: standard output).")
    ] = None,
    html: Annotated[
        Optional[Path],
        typer.Option(help="Write verdict, figures and methods on one page that needs no network."),
    ] = None,
    pdf: Annotated[
        Optional[Path],
        typer.Option(help="Write that page as a PDF of one A4 sheet; needs a Chrome or Chromium."),
    ] = None,
) -> None:
    """Print the report of a stored run, or write it as a page to send on (--html, --pdf)."""
    from cotlab.analysis.report import build_report
    from cotlab.analysis.report_text import write_report_texts
    from cotlab.analysis.view import RunView
    from cotlab.export.tabular import REPORT_FORMATS, write_scores_csv, write_scores_parquet
    from cotlab.store.check import missing_reply_lines
    from cotlab.store.database import Store

    if format not in REPORT_FORMATS:
        raise UnknownName("format", format, REPORT_FORMATS)
    store = Store()
    missing_lines = missing_reply_lines(store, RunView.read(store, run).id)
    if html is not None or pdf is not None:
        _write_pages(store, run, html, pdf)
    if (html is not None or pdf is not None) and output is None and format == "md":
        pass
    elif format == "parquet":
        if output is None:
            raise ConfigError("parquet is not text: give --output FILE.parquet")
        run_id = RunView.read(store, run).id
        with explain_write_errors(f"--output {output}"):
            write_scores_parquet(store, run_id, output)
    elif format == "csv":
        run_id = RunView.read(store, run).id
        with _output_file(output, newline="") as file:
            write_scores_csv(store, run_id, file)
    else:
        summary, view = build_report(store, run), RunView.read(store, run)
        with _output_file(output) as file:
            texts = {"markdown_file" if format == "md" else "json_file": file}
            write_report_texts(summary, view, **texts)
    if missing_lines:
        print(*(f"error: {line}" for line in missing_lines), sep="\n", file=sys.stderr)
        raise typer.Exit(3)


def _write_pages(store: Store, run: str, html: Path | None, pdf: Path | None) -> None:
    """Write the report of a run as a page of HTML, as a PDF, or both."""
    from cotlab.export.chrome import NoChrome, print_page
    from cotlab.export.run_report.page import report_html

    page_html = report_html(store, run)
    if html is not None:
        with explain_write_errors(f"--html {html}"):
            html.write_text(page_html, "utf-8")
        print(f"{html}: the report on one page")
    if pdf is not None:
        try:
            pdf_bytes = print_page(page_html)
        except NoChrome as error:
            print(f"error: {error}", file=sys.stderr)
            print("--html FILE writes the same page; any browser prints it.", file=sys.stderr)
            raise typer.Exit(3) from error
        with explain_write_errors(f"--pdf {pdf}"):
            pdf.write_bytes(pdf_bytes)
        print(f"{pdf}: the report as one A4 sheet")


@contextmanager
def _output_file(path: Path | None, newline: str | None = None) -> Iterator[TextIO]:
    """Open a text file to write; standard output where none is named."""
    if path is None:
        yield sys.stdout
        return
    with (
        explain_write_errors(f"--output {path}"),
        path.open("w", encoding="utf-8", newline=newline) as file,
    ):
        yield file


if TYPE_CHECKING:
    from cotlab.analysis.tables.declare import FigureChoice
    from cotlab.export.recipe import FigureRecipe
    from cotlab.store.database import Store


def figures_command(
    run: Annotated[
        Optional[str], typer.Argument(help="The run's id; `cotlab runs` lists them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("figures"),
    format: Annotated[str, typer.Option(help="pdf, svg, png and html, with commas.")] = "pdf",
    preset: Annotated[
        Optional[str], typer.Option(help="neurips, icml, nature or slide (default: neurips).")
    ] = None,
    figure: Annotated[
        Optional[list[str]], typer.Option(help="A figure's name; may be repeated (default: all).")
    ] = None,
    item: Annotated[
        Optional[str], typer.Option(help="The item of figures of one item (default: the first).")
    ] = None,
    metric: Annotated[
        Optional[str],
        typer.Option(help="The metric of figures of one metric (default: the first)."),
    ] = None,
    classifier: Annotated[
        Optional[str],
        typer.Option(help="Whose rates of unfaithful responses (default: the first)."),
    ] = None,
    choose: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="NAME=VALUE",
            help="What a figure shows: mode, setting, perturbation, span, domain, thresholds or"
            " runs, as its address on the page Figures has it; may be repeated (default: the first"
            " of each).",
        ),
    ] = None,
    width_pt: Annotated[
        Optional[float], typer.Option(help="Width in points, 60 to 2000 (default: the venue's).")
    ] = None,
    title: Annotated[
        Optional[bool],
        typer.Option("--title/--no-title", help="Print the title above the figure (default: not)."),
    ] = None,
    grey: Annotated[
        Optional[bool],
        typer.Option("--grey/--colour", help="Print in shades of grey (default: in colour)."),
    ] = None,
    recipe: Annotated[
        Optional[Path], typer.Option(help="Draw this recipe again; no run is read.")
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the figures that the run has, and why others are not."),
    ] = False,
) -> None:
    """Export figures with their numbers, captions, tables and recipes, and all of it as one zip."""
    from cotlab.analysis.tables.catalogue import FIGURE_TABLES
    from cotlab.analysis.tables.declare import FigureChoice
    from cotlab.analysis.view import RunView
    from cotlab.export import bundle
    from cotlab.export import recipe as recipe_module
    from cotlab.figures.presets import customize_preset
    from cotlab.store.database import Store

    formats = bundle.parse_formats(format)
    if (run is None) is (recipe is None) and not (list_ and run is None and recipe is None):
        raise ConfigError("Give either a run, as in cotlab figures RUN, or --recipe FILE.")
    absence_reason_by_name: dict[str, str] = {}
    flags = {"width_pt": width_pt, "has_title": title, "is_grey": grey}
    print_options = {name: value for name, value in flags.items() if value is not None}
    if recipe is not None:
        recipes = [_read_recipe(recipe)]
        if preset is None:
            print_options = {**recipes[0].print_options, **print_options}
        figure_preset = customize_preset(
            bundle.find_preset(preset or recipes[0].preset or "neurips"), print_options
        )
        source_name = recipes[0].name
    else:
        figure_preset = customize_preset(bundle.find_preset(preset or "neurips"), print_options)
        source_name = run or ""
        if run is None:
            print("\n".join(FIGURE_TABLES))
            return
        for name in figure or ():
            FIGURE_TABLES.require(name)
        run_view = RunView.read(Store(), run)
        choice = FigureChoice(item=item, metric=metric, classifier=classifier)
        recipes, absence_reason_by_name = recipe_module.make_recipes(
            run_view, figure or (), _with_choices(choice, choose or ()), figure_preset
        )
    if list_:
        for entry in recipes:
            print(entry.name)
        for name, reason in absence_reason_by_name.items():
            print(f"{name}: n/a, {reason}")
        return
    if not recipes:
        raise ConfigError(
            f"run {run} has no figure to export:"
            f" {'; '.join(dict.fromkeys(absence_reason_by_name.values()))}."
        )
    figure_export = bundle.export_figures(
        recipes, formats, figure_preset, _print_progress if sys.stderr.isatty() else None
    )
    written_files = bundle.write_files(
        figure_export.files, out, bundle.archive_name(source_name, figure_preset.name)
    )
    print(
        f"{len(recipes)} figure{'s' * (len(recipes) > 1)}, {len(written_files)} files in {out}; all"
        f" of them: {written_files[-1]}"
    )
    if figure_export.missing_reason:
        print(f"error: {figure_export.missing_reason}", file=sys.stderr)
        print("HTML, CSV and recipe were written all the same.", file=sys.stderr)
        raise typer.Exit(3)


def _with_choices(choice: FigureChoice, texts: Sequence[str]) -> FigureChoice:
    """Return a choice with those of ``--choose``; ConfigError for one that it does not have."""
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in choice._fields:
            raise ConfigError(
                f"--choose {text}: NAME=VALUE is expected; names: {', '.join(choice._fields)}."
            )
        choice = choice._replace(**{name: value})
    return choice


def _read_recipe(path: Path) -> FigureRecipe:
    from cotlab.export.recipe import recipe_from_json

    try:
        return recipe_from_json(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--recipe {path}: cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _print_progress(n_done: int, n_figures: int, name: str) -> None:
    print(f"{n_done + 1} of {n_figures}: {name}", file=sys.stderr)
