"""Make the plan of a run, open its providers or test them, and give scorers their parameters."""

from __future__ import annotations

import asyncio
import math
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    ProviderError,
    TimedOut,
    Unauthorised,
    Unavailable,
    UnknownName,
)
from cotlab.core.installation import DISTRIBUTION
from cotlab.core.keys import digest
from cotlab.core.program import Params, Scorer
from cotlab.core.provider import AnyProvider, SupportsModelList
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.resources import checkout_root
from cotlab.core.types import (
    IN_PROCESS_PROVIDERS,
    ModelRef,
    Plan,
    ScorerSpec,
    Suite,
)
from cotlab.providers.capabilities import provider_info
from cotlab.providers.keys import check_server, key_read_from
from cotlab.run.config import RunConfig, run_fields
from cotlab.run.role_servers import RoleServer, check_role_options, server_of
from cotlab.run.roles import NO_TEMPLATE, SERVER_TEMPLATE, chain_source, selected_scorers
from cotlab.run.secrets import load_key
from cotlab.run.transport.budget import context_window
from cotlab.run.transport.dispatcher import run_coroutine
from cotlab.run.transport.limits import Limits
from cotlab.text.steps import SPLITTER_VERSION

CHAIN_TOKENS_IN_PROCESS, CHAIN_TOKENS_REMOTE = 512, 2_048
"""Default limit of the output tokens of a chain; remote models write longer ones."""


def open_provider(
    ref: ModelRef, config: RunConfig | None = None, *, chat_template: str = SERVER_TEMPLATE
) -> AnyProvider:
    """Return the provider of a model; UnknownName or ConfigError where there is none.

    A model in this process is opened on the device, in the dtype and with the backend that the
    configuration names, and one that is asked by raw text with its chat template, which is
    ``chat_template`` without a configuration. A server that a file names, and not the user, gets no
    key of the user, and one of a role no key of another.
    """
    server = server_of(ref, config) if config is not None else RoleServer()
    if server.key_variable:
        load_key(server.key_variable)
    settings = {}
    if config is not None and ref.provider in IN_PROCESS_PROVIDERS:
        settings = {"device": config.device, "dtype": config.dtype, "backend": config.backend}
    elif config is not None and ref.provider == "prm":
        settings = {"device": config.device, "dtype": config.dtype}
    elif config is not None and ref.provider == "embedder":
        settings = {"dtype": config.embedder_dtype}
    template = config.chat_template if config is not None else chat_template
    if ref.endpoint == "completions" and template not in (SERVER_TEMPLATE, NO_TEMPLATE):
        settings = {"template_folder": template}
    with key_read_from(server.key_variable):
        check_server(
            ref.provider, ref.base_url, server.address_file, server.variable_file, server.role
        )
        provider: AnyProvider = PROVIDERS[ref.provider](ref, **settings)
    return provider


def configured_limits(config: RunConfig) -> Limits:
    """Return the limits of a configuration."""
    return Limits(
        concurrency=config.max_concurrent,
        requests_per_minute=config.max_requests_per_minute,
        tokens_per_minute=config.max_tokens_per_minute,
        cap_micro=round(config.max_cost * 1e6),
        max_tries=config.max_tries,
        timeout_s=config.timeout_s,
    )


def make_plan(config: RunConfig, suite: Suite, models: Mapping[str, ModelRef]) -> Plan:
    """Return what a run of ``config`` on ``suite`` does; every scorer checks its options here."""
    check_role_options(config)
    specs = []
    scorers = selected_scorers(config)
    scorer_names = list(
        dict.fromkeys(
            name for candidate in scorers for name in (candidate.name, *candidate.components)
        )
    )
    for name in config.set:
        if name.partition(".")[0] not in scorer_names:
            raise UnknownName("scorer in --set", name.partition(".")[0], tuple(scorer_names))
    for scorer in scorers:
        options = _scorer_options(config, scorer)
        scorer.validate_options(options, models["subject"])
        specs.append(ScorerSpec(scorer.name, scorer.version, options))
    settings = {name: getattr(config, name) for name in _shared_field_names(Plan, RunConfig)}
    settings["chain_tokens"] = _chain_tokens(config, models["subject"])
    return Plan(
        suite.name,
        suite.digest,
        dict(models),
        tuple(specs),
        tags=dict(sorted(config.tag.items())),
        splitter_version=SPLITTER_VERSION,
        **settings,
    )


@cache
def _shared_field_names(
    target_class: type[Plan | Params], source_class: type[Plan | RunConfig]
) -> tuple[str, ...]:
    """Return the fields of a plan or of parameters that have the name of a field they come from."""
    source_names = (
        RunConfig.model_fields if source_class is RunConfig else Plan.__dataclass_fields__
    )
    return tuple(field.name for field in fields(target_class) if field.name in source_names)


def _chain_tokens(config: RunConfig, subject: ModelRef) -> int:
    """Return the limit of the output tokens of a chain, never above a context that is known.

    Raises
    ------
    ConfigError
        If the configuration asks for more than the context of the model.
    """
    if provider_info(subject.provider).in_process:
        return config.chain_tokens or CHAIN_TOKENS_IN_PROCESS
    context_tokens = context_window(subject)
    if config.chain_tokens and context_tokens and config.chain_tokens > context_tokens:
        raise ConfigError(
            f"--chain-tokens {config.chain_tokens}: {subject} has a context of {context_tokens:,}"
            " tokens."
        )
    return config.chain_tokens or min(CHAIN_TOKENS_REMOTE, context_tokens or CHAIN_TOKENS_REMOTE)


def _scorer_options(config: RunConfig, scorer: Scorer) -> dict[str, Any]:
    """Return a scorer's options: its defaults, then fields of the configuration, then ``--set``."""
    value_by_option: dict[str, Any] = {
        field.setting.scorer_option: getattr(config, field.name)
        for field in run_fields().values()
        if field.setting.scorer_option
    }
    value_by_option["chain"] = chain_source(config, scorer)
    value_by_option |= {
        name: list(dict.fromkeys(value_by_option[name])) for name in ("modes", "sources")
    }
    if config.profile:
        value_by_option["profile"] = config.profile
    if config.weights and "weights" in scorer.options:
        value_by_option["weights"] = _read_weights(Path(config.weights))
    value_by_option["parts"] = {
        name: _scorer_options(config, SCORERS[name]) for name in scorer.components
    }
    return {
        key: value_by_option.get(key, value) for key, value in scorer.options.items()
    } | _explicit_options(config, scorer)


def _read_weights(file: Path) -> dict[str, dict[str, Any]]:
    """Return the weights by category of a YAML file; ConfigError where they are no mappings."""
    try:
        weights_by_category = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"--weights {file}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(weights_by_category, dict) or not all(
        isinstance(part_weights, dict) for part_weights in weights_by_category.values()
    ):
        raise ConfigError(
            f"--weights {file}: write a category (or default), and under it a part and its weight,"
            " like C: 0.3"
        )
    return {
        str(category): {str(part): weight for part, weight in part_weights.items()}
        for category, part_weights in weights_by_category.items()
    }


def _explicit_options(config: RunConfig, scorer_definition: Scorer) -> dict[str, Any]:
    """Return the options of one scorer that ``--set`` gives, each of the type of its default.

    Raises
    ------
    UnknownName, ConfigError
        If an option is named that the scorer lacks, or the value is of another type.
    """
    options = {}
    for name, text in config.set.items():
        scorer, _, option = name.partition(".")
        if scorer != scorer_definition.name:
            continue
        if option not in scorer_definition.options:
            raise UnknownName(f"option of {scorer}", option, tuple(scorer_definition.options))
        options[option] = _parse_option(scorer_definition.options[option], text, name)
    return options


def _parse_option(default: Any, text: str, name: str) -> Any:
    """Parse a value of the type of ``default``: true or false, number, text, texts by commas."""
    if isinstance(default, list | tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(default, str) or default is None:
        return text
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.strip().lower()]
        number = type(default)(text)
        if math.isfinite(number):
            return number
    except (KeyError, ValueError, OverflowError):
        pass
    type_text = {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]
    raise ConfigError(f"--set {name}={text}: {name} is {type_text}.")


def params_of(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any] | None = None) -> Params:
    """Return what a scorer of a plan is given: the plan's settings, its options and constants."""
    settings = {name: getattr(plan, name) for name in _shared_field_names(Params, Plan)}
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
