"""Read files of published results and store them as runs: CMI, unfaithfulness, step scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.metrics.mediation.published import (
    MIN_TOTAL_DROP,
    PublishedFile,
    PublishedSummary,
    content_digest,
    read_published_cmi,
)
from cotlab.metrics.mediation.published_checks import check_published_means, published_warnings
from cotlab.run.imports.mediation import ImportedRun, store_published_file
from cotlab.run.imports.report import store_imported_report
from cotlab.run.imports.study import store_study, store_table
from cotlab.store.database import Store
from cotlab.suites.importers.cmi import read_cmi_file
from cotlab.suites.importers.question_answer import import_faithcheck_report
from cotlab.suites.importers.study import read_study
from cotlab.suites.importers.tables import UnknownTable, read_table
from cotlab.suites.shipped import printable_text


class MediationFiles(NamedTuple):
    """Files of published CMI, read together."""

    files: tuple[PublishedFile, ...]
    """Those with rows."""
    summary_checks: tuple[str, ...]
    """What summaries without rows say, against the rows of the other files."""
    warnings: tuple[str, ...]
    """What a reader must know of the rows, within files and between them."""


def read_mediation_files(
    path_by_name: Mapping[str, Path], *, least_drop: float = MIN_TOTAL_DROP
) -> MediationFiles:
    """Read files of published CMI, each score recomputed from its own drops.

    Parameters
    ----------
    path_by_name : mapping of str to Path
        Name of each file for messages → where it lies.
    least_drop : float, nats
        Total drop below which a CMI is undefined.

    Raises
    ------
    SuiteError
        If a file cannot be read, or is a summary of rows that none of the others holds.
    """
    contents = {printable_text(name): read_cmi_file(path) for name, path in path_by_name.items()}
    files = [
        read_published_cmi(name, content.rows_by_item, least_drop=least_drop)
        for name, content in contents.items()
        if not content.means_by_item
    ]
    checks = [
        check_published_means(name, content.means_by_item, files)
        for name, content in contents.items()
        if content.means_by_item
    ]
    return MediationFiles(tuple(files), tuple(checks), published_warnings(files))


def store_mediation_files(
    store: Store,
    files: Sequence[PublishedFile],
    *,
    model: str | None = None,
    least_drop: float = MIN_TOTAL_DROP,
) -> tuple[list[ImportedRun], list[str]]:
    """Store each file once.

    Parameters
    ----------
    store, files, model, least_drop
        As ``store_published_file``.

    Returns
    -------
    runs : list of ImportedRun
        One a file: the same where files hold the same rows.
    warnings : list of str
        Of rows that the store has under another name.
    """
    run_by_digest: dict[str, ImportedRun] = {}
    warnings = []
    for file in files:
        digest = content_digest(file)
        if digest in run_by_digest:
            continue
        run = store_published_file(store, file, model=model, least_drop=least_drop)
        run_by_digest[digest] = run
        if not run.is_new and run.suite != Path(file.name).stem:
            warnings.append(
                f"Duplicate file: {file.name} holds the rows of {run.suite}, run {run.run_id}; not"
                " stored again."
            )
    return [run_by_digest[content_digest(file)] for file in files], warnings


def summary_texts(summary: PublishedSummary) -> dict[str, str]:
    """Return what a summary of a file says, as text by name; "n/a" where there is no number."""
    mean = summary.mean
    interval_text, share_text = f"no interval: {mean.reason}", "n/a"
    if mean.lo is not None:
        interval_text = f"[{mean.lo:.3f}, {mean.hi:.3f}], n = {mean.n} items"
    if summary.compared:
        rate = summary.within / summary.compared
        share_text = f"{rate:.1%}, {summary.within} of {summary.compared}"
    return {
        "rows": str(summary.rows),
        "items": str(summary.items),
        "layers": str(summary.layers),
        "defined": str(summary.defined),
        "undefined: zero total drop": str(summary.zero),
        "undefined: below the threshold": str(summary.small),
        "mean CMI of defined rows": "n/a"
        if mean.point is None
        else f"{mean.point:.3f}, of {summary.defined / summary.rows:.1%} of the rows",
        "95% interval over items": interval_text,
        "published within .02, of rows with a drop": share_text,
    }


class UnfaithfulnessImport(NamedTuple):
    """Runs of a study or of tables of unfaithfulness."""

    runs: tuple[ImportedRun, ...]
    """One a model."""
    left_out: tuple[UnknownTable, ...]
    """Tables of no known kind."""


def store_unfaithfulness_files(store: Store, paths: Sequence[Path]) -> UnfaithfulnessImport:
    """Store published scores of unfaithfulness as runs, one for each model.

    Nothing is stored where a file cannot be read. Of several files the tables of no known kind are
    left out.

    Parameters
    ----------
    store : Store
    paths : sequence of Path
        JSON files, read together as one study of fine-tuning, and CSV tables.

    Raises
    ------
    SuiteError
        If a file cannot be read.
    """
    tables, left_out, study_paths = [], [], []
    for path in paths:
        if path.suffix.lower() != ".csv":
            study_paths.append(path)
            continue
        try:
            tables.append(read_table(path))
        except UnknownTable as error:
            if len(paths) == 1:
                raise
            left_out.append(error)
    study = read_study(study_paths) if study_paths else None
    runs = store_study(store, study) if study else []
    for table in tables:
        runs += store_table(store, table)
    return UnfaithfulnessImport(tuple(runs), tuple(left_out))


def store_report_files(
    store: Store, paths: Sequence[Path], *, use_folder_name: bool = True
) -> list[ImportedRun]:
    """Store the step scores of FaithCheck's or cotlab's reports as runs; all are read first.

    Parameters
    ----------
    store : Store
    paths : sequence of Path
    use_folder_name : bool
        Whether a file that is called report.json gives its folder's name to the suite.

    Raises
    ------
    SuiteError
        If a file is no such report.
    ConfigError
        If a report holds no step score.
    """
    reports = [(path, import_faithcheck_report(path)) for path in paths]
    for path, report in reports:
        if not report.scores:
            raise ConfigError(f"{path}: holds no step score: there is nothing to store.")
    runs = []
    for path, report in reports:
        is_unnamed = path.stem == "report" and use_folder_name
        name = path.absolute().parent.name if is_unnamed else path.stem
        runs.append(store_imported_report(store, report, name or path.stem))
    return runs


def import_status_text(run: ImportedRun) -> str:
    """Return whether a run was stored now or before, with its model and suite."""
    status = "Stored" if run.is_new else "In the store already"
    return f"{status}: run {run.run_id}, {run.model} on {run.suite}."
