"""What was found of the servers of runs, and which of it is still of use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.store.run_results import drop_results

if TYPE_CHECKING:
    from cotlab.store.database import Store

_SELECT_CHECKS = (
    "SELECT provider, model, base_url, form, endpoint, server_version, findings, n_requests,"
    " epoch_us(checked_at) FROM server_checks"
)
KEEP_TIME = timedelta(days=1)
"""How long a finding is used again for the same address, model and version of the server."""


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What was found of one model's server."""

    model: ModelRef
    """The model; its revision is not kept."""
    server_version: str
    """Software and settings that the server names; "" where it names none."""
    findings: Mapping[str, Finding]
    """Findings by name of the check."""
    n_requests: int
    """Requests that were sent for it; 0 where all findings were kept from before."""
    checked_at: datetime
    """Time of the oldest of the findings."""


def add_server_check(store: Store, run_id: str, check: ServerCheck) -> None:
    """Store the check of a server for a run; ``run_id`` is "" outside of runs."""
    findings_json = json.dumps({name: asdict(finding) for name, finding in check.findings.items()})
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO server_checks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                run_id,
                *_model_columns(check.model),
                check.server_version,
                findings_json,
                check.n_requests,
                check.checked_at,
                datetime.now(UTC),
            ],
        )
        drop_results(connection, run_id)  # the verdict rests on the checks too


def list_server_checks(store: Store, run_id: str) -> list[ServerCheck]:
    """Return the checks of a run's servers, the first one first; a resumed run may have several."""
    return _query_checks(store, f"{_SELECT_CHECKS} WHERE run = ? ORDER BY recorded_at", [run_id])


def find_recent_check(store: Store, ref: ModelRef, server_version: str) -> ServerCheck | None:
    """Return the newest check of a server that is not too old; None where there is none."""
    checks = _query_checks(
        store,
        f"{_SELECT_CHECKS} WHERE provider = ? AND model = ? AND base_url = ? AND form = ?"
        " AND endpoint = ? AND server_version = ? AND checked_at > ? ORDER BY recorded_at",
        [*_model_columns(ref), server_version, datetime.now(UTC) - KEEP_TIME],
    )
    return checks[-1] if checks else None


def find_latest_check(store: Store, ref: ModelRef) -> ServerCheck | None:
    """Return the newest check of any version that a server names, if it is not too old."""
    checks = _query_checks(
        store,
        f"{_SELECT_CHECKS} WHERE provider = ? AND model = ? AND base_url = ? AND form = ?"
        " AND endpoint = ? AND server_version != '' AND checked_at > ? ORDER BY recorded_at",
        [*_model_columns(ref), datetime.now(UTC) - KEEP_TIME],
    )
    return checks[-1] if checks else None


def _query_checks(store: Store, sql: str, parameters: Sequence[object]) -> list[ServerCheck]:
    rows = store.query_rows(sql, parameters)
    return [
        ServerCheck(
            ModelRef(provider, name, base_url=base_url or None, form=form, endpoint=endpoint),
            server_version,
            {name: Finding(**finding) for name, finding in json.loads(findings).items()},
            n_requests,
            datetime.fromtimestamp(checked_at_us / 1e6, UTC),
        )
        for (
            provider,
            name,
            base_url,
            form,
            endpoint,
            server_version,
            findings,
            n_requests,
            checked_at_us,
        ) in rows
    ]


def _model_columns(ref: ModelRef) -> tuple[str, ...]:
    """Return what identifies a model at its server; chat with and without a prefix is the same."""
    form = "continuation" if ref.form == "continuation" else "chat"
    return ref.provider, ref.name, ref.base_url or "", form, ref.endpoint
