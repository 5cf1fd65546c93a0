"""The ids of runs, and the claim of a process on the run that it works on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from cotlab.core.errors import ConfigError, StoreError
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.live import LiveRunStore

RUN_ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def check_new_run_id(store: Store, run_id: str) -> None:
    """Raise ConfigError where a new run cannot have this id."""
    if not RUN_ID_PATTERN.fullmatch(run_id):
        raise ConfigError(
            "--run-id takes up to 80 letters, digits, dots, dashes and underscores, got"
            f" {run_id!r}."
        )
    if run_id in set(read.list_runs(store)["id"]):
        raise run_exists_error(run_id)


def run_exists_error(run_id: str) -> ConfigError:
    """Return the error for an id that a run has."""
    return ConfigError(
        f"There is a run {run_id!r} already: --resume goes on with it, another --run-id starts a"
        " new one."
    )


def claim_run(store: Store, run_id: str) -> None:
    """Claim a run for this process; ConfigError where another process may still run it."""
    with closing(LiveRunStore(store.log_path)) as live_runs:
        holder = live_runs.claim(run_id)
    if holder is not None:
        host_text = resume_hint = ""
        if not holder.is_local:
            host_text = f" on {holder.host}"
            resume_hint = f" If it was killed, the run can be resumed in {holder.free_in_s:.0f} s."
        raise ConfigError(
            f"Run {run_id} is still going, in process {holder.pid}{host_text}: stop it before it is"
            f" resumed.{resume_hint}"
        )


@contextmanager
def released_on_error(store: Store, run_id: str) -> Iterator[None]:
    """Release the claim of a run that ends in an error, so that any machine can resume it."""
    try:
        yield
    except BaseException:
        with suppress(StoreError), closing(LiveRunStore(store.log_path)) as live_runs:
            live_runs.release(run_id)
        raise
