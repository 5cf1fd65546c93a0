"""A plan from a configuration and a suite, the providers that carry it out, and the parameters of its scorers."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
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
from cotlab.providers.keys import check_server
from cotlab.run.config import RunConfig
from cotlab.run.roles import selected_scorers

SHARED = (
    "ccs_threshold",
    "metric",
    "chain",
    "control",
    "layers",
    "donors",
    "draws",
    "subsets",
    "jump_nats",
)
"""Configuration fields that a scorer takes as options of the same name, where it has one."""


IN_PROCESS = ("organism", "local")


def open_provider(ref: ModelRef, config: RunConfig | None = None) -> AnyProvider:
    """The provider that answers for ``ref``; UnknownName or ConfigError where there is none.

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
    """What a run of ``config`` on ``suite`` does. Every scorer checks its options here, before anything is asked."""
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
        if scorer.check is not None:
            scorer.check(options, models["subject"])
        specs.append(ScorerSpec(scorer.name, scorer.version, options))
    return Plan(
        suite.name,
        suite.digest,
        dict(models),
        tuple(specs),
        seed=config.seed,
        limit=config.limit,
        temperature=config.temperature,
        repeats=config.repeats,
        tags=dict(sorted(config.tag.items())),
    )


def _options(config: RunConfig, scorer: Scorer) -> dict[str, Any]:
    """A scorer's options: its defaults, under the configuration's fields of the same name, under what ``--set`` says."""
    values: dict[str, Any] = {
        "modes": list(dict.fromkeys(config.mode)),
        "sources": list(dict.fromkeys(config.source)),
    }
    values |= {field: getattr(config, field) for field in SHARED}
    if config.profile:
        values["profile"] = config.profile
    if config.weights and "weights" in scorer.options:
        values["weights"] = _read_weights(Path(config.weights))
    values["parts"] = {name: _options(config, SCORERS[name]) for name in scorer.components}
    return {key: values.get(key, value) for key, value in scorer.options.items()} | _set_options(
        config, scorer
    )


def _read_weights(file: Path) -> dict[str, dict[str, Any]]:
    """Weights by category from a YAML file; ConfigError where it is no mapping of mappings."""
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
    """What ``--set`` says of one scorer's options, each of the type of its default.

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
    """The value that ``text`` says: a truth value, a number, a text, or texts with commas between them."""
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
    return Params(
        plan.models, plan.seed, plan.temperature, plan.repeats, spec.params, constants or {}
    )


def params_digest(plan: Plan, spec: ScorerSpec, constants: Mapping[str, Any]) -> str:
    """What must be equal for stored scores to count as done: version, models, settings, options and constants."""
    return digest([spec.version, params_of(plan, spec, constants)])


@cache
def code_version() -> str:
    """The package's version, and the commit and state of its checkout where it runs from one."""
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
