"""What people give a run besides its id: a name, a note, archiving; and deleting it."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.store.database import Store, Writer
from cotlab.store.decisions import add_audit
from cotlab.store.live import LiveRunStore
from cotlab.store.write import has_run

MAX_RUN_NAME_CHARACTERS = 80
"""Longest name of a run."""
MAX_RUN_NOTE_CHARACTERS = 2000
"""Longest note on a run."""
_TABLES = (
    *("ended", "estimates", "constants", "server_checks", "queue_items", "run_names"),
    "run_replies",
)
"""Tables whose rows of a run go with it. Labels, decisions and the audit are only ever added, and
stay."""


class RunContent(NamedTuple):
    """How much the store holds of a run."""

    n_scores: int
    """Scores."""
    n_estimates: int
    """Estimates."""
    n_queued: int
    """Entries of label queues."""
    n_labels: int
    """Labels ever given on its items."""
    n_decisions: int
    """Decisions on its items."""

    @property
    def lost_text(self) -> str:
        """Say what is deleted with the run."""
        return (
            f"{self.n_scores:,} scores, {self.n_estimates:,} estimates and"
            f" {self.n_queued:,} entries of label queues"
        )

    @property
    def preserved_text(self) -> str:
        """Say what stays in the store."""
        judged_text = (
            f"; {self.n_labels:,} labels and {self.n_decisions:,} decisions given on it, whose"
            " chains cannot be opened any more"
            if self.n_labels or self.n_decisions
            else ""
        )
        return f"its suite, the replies in the log and its report files{judged_text}"


def edit_run(
    connection: Writer,
    run: str,
    author: str,
    *,
    name: str | None = None,
    note: str | None = None,
    is_archived: bool | None = None,
) -> None:
    """Change the name, the note or the archiving of a run; None leaves one as it is.

    Parameters
    ----------
    connection : Writer
        One of ``Store.writing()``.
    run : str
        Id of the run, which stays.
    author : str
        Who changes it; stored in the audit.
    name : str, optional
        The new name, of one line; "" removes it.
    note : str, optional
        The new note; "" removes it.
    is_archived : bool, optional
        Whether lists and pickers leave the run out.

    Raises
    ------
    UnknownName
        If the store has no such run.
    ConfigError
        If a text is too long or no UTF-8 text.
    """
    if not has_run(connection, run):
        raise UnknownName("run", run, ())
    connection.record(
        "INSERT INTO run_names SELECT ?, '', '', NULL WHERE NOT EXISTS"
        " (SELECT 1 FROM run_names WHERE run = ?)",
        [run, run],
    )
    [(old_name, old_note, was_archived)] = connection.execute(
        "SELECT name, note, archived_at IS NOT NULL FROM run_names WHERE run = ?", [run]
    ).fetchall()
    if name is not None and (name := " ".join(name.split())) != old_name:
        _require_text("name", name, MAX_RUN_NAME_CHARACTERS)
        connection.record("UPDATE run_names SET name = ? WHERE run = ?", [name, run])
        add_audit(connection, author, "run named", run, old_name, name, "")
    if note is not None and (note := note.strip()) != old_note:
        _require_text("note", note, MAX_RUN_NOTE_CHARACTERS)
        connection.record("UPDATE run_names SET note = ? WHERE run = ?", [note, run])
        add_audit(connection, author, "run noted", run, old_note, note, "")
    if is_archived is not None and is_archived is not was_archived:
        archived_at = datetime.now(UTC) if is_archived else None
        connection.record("UPDATE run_names SET archived_at = ? WHERE run = ?", [archived_at, run])
        action = "run archived" if is_archived else "run unarchived"
        add_audit(connection, author, action, run, was_archived, is_archived, "")


def count_run_content(store: Store, run: str) -> RunContent:
    """Return how much the store holds of a run."""
    [counts] = store.query_rows(
        "SELECT (SELECT count(*) FROM scores WHERE run = $run),"
        " (SELECT count(*) FROM estimates WHERE run = $run),"
        " (SELECT count(*) FROM queue_items WHERE run = $run),"
        " (SELECT count(*) FROM labels WHERE run = $run),"
        " (SELECT count(*) FROM decisions WHERE run = $run)",
        {"run": run},
    )
    return RunContent(*map(int, counts))


def is_run_deleted(store: Store, run: str) -> bool:
    """Return whether a run of this id was deleted, and none has it now."""
    rows = store.query_rows(
        "SELECT 1 FROM audit WHERE what = 'run deleted' AND subject = $run"
        " AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $run) LIMIT 1",
        {"run": run},
    )
    return bool(rows)


def delete_run(store: Store, run: str, author: str) -> RunContent:
    """Delete a run with its scores, and return how much the store held of it.

    Its labels, decisions and entries in the audit stay, and so do its suite and the replies in the
    log, which other runs may use.

    Raises
    ------
    UnknownName
        If the store has no such run.
    ConfigError
        If a process runs it, here or on another machine.
    """
    content = count_run_content(store, run)
    with store.writing() as connection:
        if not has_run(connection, run):
            raise UnknownName("run", run, ())
        with closing(LiveRunStore(store.log_path)) as live_store:
            live_run = live_store.get(run)
        if live_run is not None and (live_run.is_running or live_run.free_in_s > 0):
            raise ConfigError(f"Run {run} is running: stop it before it is deleted.")
        [(name,)] = connection.execute(
            "SELECT coalesce(max(name), '') FROM run_names WHERE run = ?", [run]
        ).fetchall()
        connection.execute("DELETE FROM scores WHERE run = ?", [run])
        # verdicts on runs of the same suite may compare with this one
        connection.execute(
            "DELETE FROM run_results WHERE run = $run OR kind = 'verdict' AND run IN"
            " (SELECT id FROM runs WHERE suite = (SELECT suite FROM runs WHERE id = $run))",
            {"run": run},
        )
        for table in _TABLES:
            connection.record(f"DELETE FROM {table} WHERE run = ?", [run])
        connection.record("DELETE FROM runs WHERE id = ?", [run])
        add_audit(
            connection, author, "run deleted", run, {"name": name, **content._asdict()}, None, ""
        )
    return content


def _require_text(kind: str, text: str, max_characters: int) -> None:
    """Raise ConfigError for a text that is too long, or that the store cannot hold."""
    if len(text) > max_characters:
        raise ConfigError(
            f"The {kind} of a run has at most {max_characters:,} characters; this one has"
            f" {len(text):,}."
        )
    if "\0" in text or re.search("[\ud800-\udfff]", text):
        raise ConfigError(f"The {kind} of a run has to be UTF-8 text without NUL characters.")
