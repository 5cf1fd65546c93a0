"""Make the plan of a run, open its providers, and give its scorers their parameters."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.keys import digest
from cotlab.core.program import Params, Scorer
from cotlab.core.provider import AnyProvider
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.resources import checkout
from cotlab.core.types import ModelRef, Plan, ScorerSpec, Suite
from cotlab.core.vocabulary import IN_PROCESS, UNLIMITED
from cotlab.providers.keys import check_server
from cotlab.run.config import RunConfig, run_fields
from cotlab.run.roles import selected_scorers
from cotlab.run.transport.budget import context_window

CHAIN_TOKENS_IN_PROCESS, CHAIN_TOKENS_REMOTE = 512, 2_048
"""Default limit of the output tokens of a chain; remote models write longer ones."""


def open_provider(ref: ModelRef, config: RunConfig | None = None) -> AnyProvider:
    """Return the provider of a model; UnknownName or ConfigError where there is none.

    A model in this process is opened on the device, in the dtype and with the backend that the
    configuration names. A server that a file names, and not the user, gets no key of the user.
    """
    if config is not None:
        check_server(ref.provider, ref.base_url, config.server_named_by)
    local = config is not None and ref.provider in IN_PROCESS
    settings = (
        {"device": config.device, "dtype": config.dtype, "backend": config.backend}
        if local and config
        else {}
    )
    provider: AnyProvider = PROVIDERS[ref.provider](ref, **settings)
    return provider


def make_plan(config: RunConfig, suite: Suite, models: Mapping[str, ModelRef]) -> Plan:
    """Return what a run of ``config`` on ``suite`` does; every scorer checks its options here."""
    specs = []
    scorers = selected_scorers(config)
    known = list(
        dict.fromkeys(
            name for candidate in scorers for name in (candidate.name, *candidate.components)
        )
    )
    for name in config.set:
        if name.partition(".")[0] not in known:
            raise UnknownName("scorer in --set", name.partition(".")[0], tuple(known))
    for scorer in scorers:
        options = _options(config, scorer)
        scorer.validate_options(options, models["subject"])
        specs.append(ScorerSpec(scorer.name, scorer.version, options))
    settings = {name: getattr(config, name) for name in _shared(Plan, RunConfig)}
    settings["chain_tokens"] = _chain_tokens(config, models["subject"])
    return Plan(
        suite.name,
        suite.digest,
        dict(models),
        tuple(specs),
        tags=dict(sorted(config.tag.items())),
        **settings,
    )


@cache
def _shared(kind: type[Plan | Params], source: type[Plan | RunConfig]) -> tuple[str, ...]:
    """Return the fields of a plan or of parameters that have the name of a field they come from."""
    known = RunConfig.model_fields if source is RunConfig else Plan.__dataclass_fields__
    return tuple(field.name for field in fields(kind) if field.name in known)


def _chain_tokens(config: RunConfig, subject: ModelRef) -> int:
    """Return the limit of the output tokens of a chain, never above a context that is known.

    Raises
    ------
    ConfigError
        If the configuration asks for more than the context of the model.
    """
    if subject.provider in (*IN_PROCESS, *UNLIMITED):
        return config.chain_tokens or CHAIN_TOKENS_IN_PROCESS
    context = context_window(subject)
    if config.chain_tokens and context and config.chain_tokens > context:
        raise ConfigError(
            f"--chain-tokens {config.chain_tokens}: {subject} has a context of {context:,} tokens."
        )
    return config.chain_tokens or min(CHAIN_TOKENS_REMOTE, context or CHAIN_TOKENS_REMOTE)


def _options(config: RunConfig, scorer: Scorer) -> dict[str, Any]:
    """Return a scorer's options: its defaults, then fields of the configuration, then ``--set``."""
    values: dict[str, Any] = {
        field.setting.scorer_option: getattr(config, field.name)
        for field in run_fields().values()
        if field.setting.scorer_option
    }
    values |= {name: list(dict.fromkeys(values[name])) for name in ("modes", "sources")}
    if config.profile:
        values["profile"] = config.profile
    if config.weights and "weights" in scorer.options:
        values["weights"] = _read_weights(Path(config.weights))
    values["parts"] = {name: _options(config, SCORERS[name]) for name in scorer.components}
    return {key: values.get(key, value) for key, value in scorer.options.items()} | _set_options(
        config, scorer
    )


def _read_weights(file: Path) -> dict[str, dict[str, Any]]:
    """Return the weights by category of a YAML file; ConfigError where they are no mappings."""
    try:
        data = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(f"--weights {file}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(data, dict) or not all(isinstance(of, dict) for of in data.values()):
        raise ConfigError(
            f"--weights {file}: write a category (or default), and under it a part and its weight,"
            " like C: 0.3"
        )
    return {
        str(category): {str(part): weight for part, weight in of.items()}
        for category, of in data.items()
    }


def _set_options(config: RunConfig, definition: Scorer) -> dict[str, Any]:
    """Return the options of one scorer that ``--set`` gives, each of the type of its default.

    Raises
    ------
    UnknownName, ConfigError
        If an option is named that the scorer lacks, or the value is of another type.
    """
    out = {}
    for name, text in config.set.items():
        scorer, _, option = name.partition(".")
        if scorer != definition.name:
            continue
        if option not in definition.options:
            raise UnknownName(f"option of {scorer}", option, tuple(definition.options))
        out[option] = _of_type(definition.options[option], text, name)
    return out


def _of_type(default: Any, text: str, name: str) -> Any:
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
    kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]
    raise ConfigError(f"--set {name}={text}: {name} is {kind}.")


def params_of(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any] | None = None) -> Params:
    """Return what a scorer of a plan is given: the plan's settings, its options and constants."""
    settings = {name: getattr(plan, name) for name in _shared(Params, Plan)}
    return Params(options=spec.params, constants=constants or {}, **settings)


def params_digest(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any]) -> str:
    """Return the digest that must be equal for stored scores to count as done."""
    return digest([spec.version, params_of(plan, spec, constants)])


@cache
def code_version() -> str:
    """Return the package's version, and the commit and state of a checkout that it runs from."""
    try:
        number = version("cotlab")
    except PackageNotFoundError:
        number = "0.1.0"
    root = checkout()
    if root is None or not (root / ".git").exists():
        return number
    result = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        f"{number}+{result.stdout.strip()}"
        if result.returncode == 0 and result.stdout.strip()
        else number
    )
