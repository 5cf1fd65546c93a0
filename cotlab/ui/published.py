"""The page Suites, published scores: files of CMI, of unfaithfulness and of step scores as runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.metrics.mediation.published import published_summary
from cotlab.metrics.mediation.published_checks import first_warnings_by_kind
from cotlab.run.imports.mediation import ImportedRun, stated_model_name
from cotlab.run.imports.published import (
    import_status_text,
    read_mediation_files,
    store_mediation_files,
    store_report_files,
    store_unfaithfulness_files,
    summary_texts,
)
from cotlab.store.database import Store
from cotlab.suites.shipped import printable_text
from cotlab.ui import access, cached, components
from cotlab.ui.text import escape_markdown


class StoredFiles(NamedTuple):
    """What an import of published files stored, for the page to show."""

    runs: tuple[ImportedRun, ...]
    """The runs, each once."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the files."""
    summaries: pd.DataFrame | None = None
    """One row a file, as text; None where there is nothing to sum up."""


class PublishedKind(NamedTuple):
    """A kind of published files that this page imports."""

    label: str
    """Name of the kind."""
    hint: str
    """Which files it takes."""
    types: tuple[str, ...]
    """Endings of the files' names."""
    page: tuple[str, str]
    """File name and title of the page that shows such runs."""
    store_files: Callable[[Store, dict[str, Path], str], StoredFiles]
    """Stores files by name, with the model that was typed."""


def render_published_import() -> None:
    """Store uploaded files of published scores as runs, or show why they cannot be read."""
    if not access.has_role("admin"):
        st.info("Runs are stored for all users: importing some needs the role admin.")
        return
    kind_name = st.selectbox(
        "Kind",
        list(PUBLISHED_KINDS),
        format_func=lambda name: PUBLISHED_KINDS[name].label,
        key="published-kind",
    )
    kind = PUBLISHED_KINDS[kind_name]
    st.caption(kind.hint)
    files = st.file_uploader(
        "Files",
        type=list(kind.types),
        accept_multiple_files=True,
        key=f"published-files-{kind_name}",
    )
    model = ""
    if kind_name == "mediation":
        model = st.text_input(
            "Model (empty: what each file's name says)", key="published-model", max_chars=200
        ).strip()
    if not st.button(
        "Store as runs",
        type="primary",
        icon=":material/upload:",
        key="published-store",
        disabled=not files,
    ):
        return
    access.require_role("admin")
    with TemporaryDirectory() as folder:
        try:
            path_by_name = _write_files(Path(folder), files)
            stored = kind.store_files(cached.store(), path_by_name, model)
        except CotlabError as error:
            # the readers name a file by its path
            st.error(escape_markdown(str(error).replace(f"{folder}/", "")))
            return
        notes = [note.replace(f"{folder}/", "") for note in stored.notes]
    st.success(escape_markdown("\n".join(import_status_text(run) for run in stored.runs)))
    for note in notes:
        st.warning(escape_markdown(note))
    page_name, title = kind.page
    for run in stored.runs:
        label = escape_markdown(f"{title}: {run.model} on {run.suite}")
        components.page_link(page_name, label, "arrow_forward", {"run": run.run_id})
    if stored.summaries is not None:
        components.show_table(stored.summaries, "published-summaries")


def _write_files(folder: Path, files: Sequence[Any]) -> dict[str, Path]:
    """Write uploaded files into a folder, where the readers find them."""
    path_by_name: dict[str, Path] = {}
    for file in files:
        name = Path(file.name).name or "upload"
        if name in path_by_name:
            raise ConfigError(f"Two files are called {printable_text(name, 80)}: rename one.")
        path_by_name[name] = folder / name
        path_by_name[name].write_bytes(file.getvalue())
    return path_by_name


def _store_mediation(store: Store, path_by_name: dict[str, Path], model: str) -> StoredFiles:
    access.require_role("admin")
    read_files = read_mediation_files(path_by_name)
    unnamed = [file.name for file in read_files.files if not stated_model_name(file.name)]
    if unnamed and not model:
        raise ConfigError(f"{unnamed[0]}: its name says no model: type it in the field Model.")
    runs, duplicates = store_mediation_files(store, read_files.files, model=model or None)
    warnings = first_warnings_by_kind((*read_files.warnings, *duplicates))
    rows = [
        {"file": file.name, **summary_texts(published_summary(file, seed=0))}
        for file in read_files.files
    ]
    return StoredFiles(
        tuple(dict.fromkeys(runs)), (*read_files.summary_checks, *warnings), pd.DataFrame(rows)
    )


def _store_unfaithfulness(store: Store, path_by_name: dict[str, Path], _: str) -> StoredFiles:
    access.require_role("admin")
    stored = store_unfaithfulness_files(store, list(path_by_name.values()))
    left_out = tuple(f"Left out: {error}" for error in stored.left_out)
    if not stored.runs:
        raise ConfigError("\n".join(left_out))
    return StoredFiles(stored.runs, left_out)


def _store_reports(store: Store, path_by_name: dict[str, Path], _: str) -> StoredFiles:
    access.require_role("admin")
    paths = list(path_by_name.values())
    return StoredFiles(tuple(store_report_files(store, paths, use_folder_name=False)))


PUBLISHED_KINDS = {
    "mediation": PublishedKind(
        "Mediation scores (CMI)",
        "Every published form: items with their rows, suites and results with records, one record"
        " a line, one record; a summary together with the file of its rows. Each file is kept as a"
        " run; the same rows once.",
        ("json", "jsonl"),
        ("mediation", "Mediation"),
        _store_mediation,
    ),
    "unfaithfulness": PublishedKind(
        "Study or tables of unfaithfulness",
        "All JSON files of one study together (comparison, interpretability, analysis), or CSV"
        " tables: counts of classified responses by hint, or people's ratings of steps. One run a"
        " model.",
        ("json", "csv"),
        ("unfaithfulness", "Unfaithfulness"),
        _store_unfaithfulness,
    ),
    "ablation": PublishedKind(
        "Step scores of a report",
        "report.json of FaithCheck or cotlab: its step scores become a run, without the texts.",
        ("json",),
        ("run", "Run"),
        _store_reports,
    ),
}
"""Kind of published files → how it is imported."""
