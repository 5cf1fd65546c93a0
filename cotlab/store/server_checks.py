"""What was found of the servers of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cotlab.core.provider import Finding
from cotlab.core.types import ModelRef
from cotlab.store.run_results import drop_results

if TYPE_CHECKING:
    from cotlab.store.database import Store

_SELECT_CHECKS = (
    "SELECT provider, model, base_url, form, endpoint, findings, n_requests, epoch_us(checked_at)"
    " FROM server_checks WHERE run = ? ORDER BY recorded_at"
)


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """What was found of one model's server."""

    model: ModelRef
    """The model; its revision is not kept."""
    findings: Mapping[str, Finding]
    """Findings by name of the check."""
    n_requests: int
    """Requests that were sent for it; 0 where an older run took findings over."""
    checked_at: datetime
    """When the server was asked."""


def add_server_check(store: Store, run_id: str, check: ServerCheck) -> None:
    """Store the check of a server for a run."""
    findings_json = json.dumps({name: asdict(finding) for name, finding in check.findings.items()})
    with store.writing() as connection:
        connection.record(
            "INSERT INTO server_checks (run, provider, model, base_url, form, endpoint, findings,"
            " n_requests, checked_at, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                run_id,
                *_model_columns(check.model),
                findings_json,
                check.n_requests,
                check.checked_at,
                datetime.now(UTC),
            ],
        )
        drop_results(connection, run_id)  # the verdict rests on the checks too


def list_server_checks(store: Store, run_id: str) -> list[ServerCheck]:
    """Return the checks of a run's servers, the first one first; a resumed run may have several."""
    return [
        ServerCheck(
            ModelRef(provider, name, base_url=base_url or None, form=form, endpoint=endpoint),
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
            findings,
            n_requests,
            checked_at_us,
        ) in store.query_rows(_SELECT_CHECKS, [run_id])
    ]


def _model_columns(ref: ModelRef) -> tuple[str, ...]:
    """Return what identifies a model at its server; chat with and without a prefix is the same."""
    form = "continuation" if ref.form == "continuation" else "chat"
    return ref.provider, ref.name, ref.base_url or "", form, ref.endpoint
