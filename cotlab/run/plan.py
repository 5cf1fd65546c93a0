"""Give scorers of a plan their parameters, name the version of the code, test a connection."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    TimedOut,
    Unauthorised,
    Unavailable,
)
from cotlab.core.installation import DISTRIBUTION
from cotlab.core.keys import digest
from cotlab.core.program import Params
from cotlab.core.provider import SupportsModelList
from cotlab.core.resources import checkout_root
from cotlab.core.types import (
    ModelRef,
    Plan,
    ScorerSpec,
)
from cotlab.run.resolved import open_provider
from cotlab.run.transport.dispatcher import run_coroutine


@cache
def _params_names() -> tuple[str, ...]:
    """Return the fields of parameters that have the name of a field of the plan."""
    names = Plan.__dataclass_fields__
    return tuple(field.name for field in fields(Params) if field.name in names)


def params_of(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any] | None = None) -> Params:
    """Return what a scorer of a plan is given: the plan's settings, its options and constants."""
    settings = {name: getattr(plan, name) for name in _params_names()}
    return Params(options=spec.params, constants=constants or {}, **settings)


def params_digest(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any]) -> str:
    """Return the digest that must be equal for stored scores to count as done."""
    return digest([spec.version, params_of(plan, spec, constants)])


@cache
def code_version() -> str:
    """Return the package's version, and the commit and state of a checkout that it runs from."""
    try:
        package_version = version(DISTRIBUTION)
    except PackageNotFoundError:
        package_version = "0.1.0"
    root = checkout_root()
    if root is None or not (root / ".git").exists():
        return package_version
    result = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        f"{package_version}+{result.stdout.strip()}"
        if result.returncode == 0 and result.stdout.strip()
        else package_version
    )


CONNECT_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class ConnectionResult:
    """A vendor that answered."""

    models: tuple[str, ...]
    """Models that the key reaches."""
    duration_s: float
    """Seconds until the answer."""


def check_connection(provider: str, base_url: str | None = None) -> ConnectionResult:
    """Ask a vendor for its models.

    Raises
    ------
    ConfigError
        If the key is missing, the address unusable, or the provider has no list of models.
    ProviderError
        If the vendor cannot be reached or refuses the key, or a server that the user names gives no
        list of its models.
    """
    opened_provider = open_provider(ModelRef(provider, "-", base_url=base_url or None))
    if not isinstance(opened_provider, SupportsModelList):
        raise ConfigError(f"The provider {provider} has no list of models to ask for.")
    model_lister: SupportsModelList = opened_provider

    async def list_models() -> ConnectionResult:
        started_at = time.monotonic()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                models = await model_lister.models()
        except TimeoutError as late:
            raise TimedOut(f"no reply within {CONNECT_TIMEOUT_S:.0f} s") from late
        except ProviderError as error:
            cause = error.__cause__
            status = getattr(cause, "status_code", None) or getattr(cause, "code", None)
            is_refused = isinstance(error, Unauthorised) and status != 404
            if base_url and (status or isinstance(error, BadReply)) and not is_refused:
                raise Unavailable(f"{error}. {_no_list_hint(provider, base_url)}") from error
            raise
        finally:
            await opened_provider.close()
        return ConnectionResult(tuple(models), time.monotonic() - started_at)

    connection_result: ConnectionResult = run_coroutine(list_models)
    if not connection_result.models:
        hint = f". {_no_list_hint(provider, base_url)}" if base_url else ""
        raise Unavailable(f"the server answered, but lists no model{hint}")
    return connection_result


def _no_list_hint(provider: str, base_url: str) -> str:
    """Return what to do where a server that is reached lists no models."""
    return (
        "This server gives no list of its models, so name the one to check: cotlab doctor"
        f" --connect {provider}/MODEL --base-url {base_url}"
    )
