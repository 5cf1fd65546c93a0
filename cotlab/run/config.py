"""Configuration of a run: flags over environment over a YAML file over defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import yaml
from pydantic import ConfigDict, PrivateAttr, ValidationError, field_validator, model_validator

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.registry import PROVIDERS
from cotlab.providers.keys import file_of_variable
from cotlab.run.faithcheck import translate_settings
from cotlab.run.options import (
    ENV_PREFIX,
    ConfigField,
    RunOptions,
    config_fields,
    legacy_values,
    role_class,
    role_options,
)
from cotlab.run.yaml_file import read_yaml

DEMO_MODELS = ("bypass-b", "r100")
"""Models of the demonstration: one ignores its chain, one follows it; the last is shown first."""


def demo_options(model: str) -> dict[str, Any]:
    """Return the options of a first run that needs no key, on what ships with the project."""
    return {
        "task_suite": "wordproblems",
        "provider": "organism",
        "model": model,
        "scorer": ["ablation", "unfaithfulness", "verification"],
        "mode": ["corrupt", "paraphrase"],
        "chain": "own",
        "limit": 60,
    }


class _Former(NamedTuple):
    """What an option of before is an entry of today."""

    option: Literal["role", "set"]
    """The option that it is an entry of."""
    entry: str
    """The entry; where each role had a value, the name after its role."""
    default: Any = None
    """Its default, which a stored run may hold."""


FORMER_OPTIONS: Mapping[str, _Former] = {
    "role_base_url": _Former("role", "base_url"),
    "role_key_variable": _Former("role", "key_variable"),
    "role_price": _Former("role", "price"),
    "device": _Former("role", "subject.device", "cpu"),
    "dtype": _Former("role", "subject.dtype", "float32"),
    "backend": _Former("role", "subject.backend", "auto"),
    "form": _Former("role", "subject.form", "auto"),
    "chat_template": _Former("role", "subject.chat_template", "server"),
    "embedder_dtype": _Former("role", "embedder.dtype", "auto"),
    "critic_votes": _Former("role", "verifier.votes", 1),
    "critic_tokens": _Former("role", "verifier.tokens", 2_000),
    "equivalence": _Former("role", "equivalence.model", "none"),
    "jump_nats": _Former("set", "entropy.jump_nats", 0.5),
    "control": _Former("set", "mediation.control", "total"),
    "subsets": _Former("set", "mediation.subsets", 8),
    "weights": _Former("set", "composite.weights"),
}
"""Options that stand in stored runs, files and environments, and are entries of another today."""
FORMER_VARIABLES = tuple(ENV_PREFIX + name.upper() for name in FORMER_OPTIONS)
"""Their environment variables."""


def current_options(options: Mapping[str, Any], *, are_stored: bool = False) -> dict[str, Any]:
    """Return options under the names of today.

    Parameters
    ----------
    options : mapping
        Options by name, of today or before.
    are_stored : bool
        Whether they are all the options of a stored run, whose defaults nobody chose.
    """
    current = {name: value for name, value in options.items() if name not in FORMER_OPTIONS}
    entries: dict[str, dict[str, str]] = {"role": {}, "set": {}}
    for name, (option, entry, default) in FORMER_OPTIONS.items():
        value = options.get(name)
        if value in (None, "", {}) or (are_stored and value == default):
            continue
        if "." in entry:
            entries[option][entry] = str(value)
        else:
            entries[option] |= {f"{role}.{entry}": text for role, text in _pairs(value).items()}
    for target, found in entries.items():
        if found:
            current[target] = {**found, **_pairs(options.get(target) or {})}
    return current


def _pairs(value: Any) -> dict[str, str]:
    """Return pairs that are written key=value with commas, or a mapping, which may be nested."""
    if isinstance(value, str):
        parts = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(key.strip() and separator for key, separator, _ in parts):
            raise ValueError("they are written key=value,key=value")
        return {key.strip(): text.strip() for key, _, text in parts}
    if not isinstance(value, Mapping):
        return value  # type: ignore[no-any-return]  # the model says what is wrong with it
    pairs = {}
    for key, entry in value.items():
        nested = entry if isinstance(entry, Mapping) else {None: entry}
        for name, text in nested.items():
            number = isinstance(text, int | float) and not isinstance(text, bool)
            pairs[key if name is None else f"{key}.{name}"] = str(text) if number else text
    return pairs


class RunConfig(RunOptions):
    """The configuration of a run: flags over environment over a YAML file over defaults."""

    model_config = ConfigDict(extra="ignore")

    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    def file_of(self, entry: str) -> str:
        """Return the file that set an option or an entry, like ``role.judge.price``.

        It is "" where the user gave it, and is not stored.
        """
        return self._files.get(entry, "")

    def of_role(self, role: str) -> Any:
        """Return the options of a role, an object of its class."""
        return role_options(role, self.role)

    @field_validator("role")
    @classmethod
    def _check_roles(cls, pairs: dict[str, str]) -> dict[str, str]:
        """Raise where an entry is no option of its role, or its value none of that option."""
        for role in dict.fromkeys(key.partition(".")[0] for key in pairs):
            try:
                role_options(role, pairs)
            except ValidationError as error:
                defect = error.errors()[0]
                key = f"{role}.{'.'.join(map(str, defect['loc']))}"
                if defect["type"] != "extra_forbidden":
                    raise ValueError(f"{key}={pairs[key]}: {_message(defect)}") from error
                names = ", ".join(f"{role}.{name}" for name in role_class(role).model_fields)
                raise ValueError(f"{key.rstrip('.')} is no option; there are {names}") from error
        return pairs

    @field_validator("scorer", "mode", "source", "layers", "judge", mode="before")
    @classmethod
    def _split_list(cls, value: Any) -> Any:
        """Split a list that is written with commas, as in the environment."""
        return (
            [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, str)
            else value
        )

    @field_validator("tag", "set", "role", mode="before")
    @classmethod
    def _split_pairs(cls, value: Any) -> Any:
        """Split pairs that are written key=value with commas, as in the environment."""
        return _pairs(value)

    @model_validator(mode="after")
    def _drop_default_scorer(self) -> RunConfig:
        """Leave out the default scorer of a run that names none and has a profile."""
        if self.profile and "scorer" not in self.model_fields_set:
            self.scorer = []
        return self


@cache
def run_fields() -> Mapping[str, ConfigField]:
    """Return the fields of ``RunConfig`` by name, in order."""
    return MappingProxyType(config_fields(RunConfig))


class _Source(NamedTuple):
    """Options that one place sets, by names of today or before."""

    options: Mapping[str, Any]
    file: str = ""
    """The file that they come from; "" where the user gave them."""


def read_config(flags: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """Return the configuration of a run from the given flags, and a YAML file where one is named.

    The file may hold FaithCheck's own settings (``default_temperature``, ``providers``).

    Raises
    ------
    ConfigError
        If a value cannot be used; the message names each option.
    """
    _require_known_options(flags, "the options")
    file_options: dict[str, Any] = {}
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file.")
        provider = flags.get("provider") or os.environ.get(f"{ENV_PREFIX}PROVIDER")
        file_options = translate_settings(_yaml_options(file), provider, str(file))
        _require_known_options(file_options, str(file))
        if provider not in (None, *PROVIDERS) and "provider" in file_options:
            flags = {**flags, "provider": file_options["provider"]}
    return _merged(_Source(file_options, str(file or "")), *_environment(), _given(flags))


def _environment() -> Iterator[_Source]:
    """Yield the options that variables set; an empty one sets none."""
    values = {name.upper(): (name, value) for name, value in os.environ.items() if value}
    variables: dict[str, tuple[str, ...]] = {
        name: (ENV_PREFIX + name.upper(),) for name in FORMER_OPTIONS
    } | {name: field.env_variables for name, field in run_fields().items()}
    for option, names in variables.items():
        if found := next((values[name] for name in names if name in values), None):
            yield _Source({option: found[1]}, file_of_variable(found[0]))


def _given(flags: Mapping[str, Any]) -> _Source:
    return _Source({name: v for name, v in flags.items() if v is not None and v != []})


def _merged(*sources: _Source) -> RunConfig:
    """Return the configuration of sources, of which later ones win; entries are put together."""
    values, files = dict[str, Any](), dict[str, str]()
    for options, file in sources:
        for name, value in _explain(current_options, options).items():
            pairs = _explain(_pairs, value) if name in ("role", "set") else None
            files |= {name: file} | {f"{name}.{entry}": file for entry in pairs or ()}
            # none: a form that was emptied is meant
            values[name] = {**values.get(name, {}), **pairs} if pairs else value
    config: RunConfig = _explain(lambda: RunConfig(**values))
    config._files = {entry: file for entry, file in files.items() if file}
    return config


def stored_options(text: str) -> dict[str, Any]:
    """Return the configuration in a run's row; options added since have the value of then."""
    return current_options(legacy_values(run_fields()) | json.loads(text), are_stored=True)


def resumed_config(stored_config: Mapping[str, Any], flags: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a stored run with the limits and gates that are given now."""
    stored = lower_to_maximum(current_options(stored_config, are_stored=True))
    return _merged(_Source(stored), _given(flags))


def lower_to_maximum(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored options with ``max_concurrent`` within today's bound, once 1,000."""
    maximum = run_fields()["max_concurrent"].maximum
    lowered = min(int(options.get("max_concurrent") or 1), int(maximum or 1))
    return {**options, **({"max_concurrent": lowered} if "max_concurrent" in options else {})}


def _explain(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function makes of options; ConfigError where they cannot be used."""
    try:
        return function(*arguments)
    except ValidationError as error:
        lines = [
            f"{(*defect['loc'], 'configuration')[0]}: {_message(defect)} (got {defect['input']!r})"
            for defect in error.errors()
        ]
        raise ConfigError("The configuration cannot be used.\n" + "\n".join(lines)) from error
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(f"The configuration cannot be read: {error}") from error


def _message(defect: Mapping[str, Any]) -> str:
    text: str = defect["msg"]
    return text.removeprefix("Value error, ")


def config_to_yaml(config: Mapping[str, Any]) -> str:
    """Return YAML for ``--config`` that repeats a run; names that are no options are left out."""
    config = current_options(config)
    options = {name: config[name] for name in RunConfig.model_fields if name in config}
    text: str = yaml.safe_dump(options, allow_unicode=True, sort_keys=False)
    if set(text) & _YAML_LINE_BREAKS:
        text = yaml.safe_dump(options, allow_unicode=False, sort_keys=False)
    return text


_YAML_LINE_BREAKS = set("\x85\u2028\u2029")
"""Ends of a line to YAML, which folds them unless they are escaped."""


def _yaml_options(file: Path) -> dict[str, Any]:
    """Return the options that a YAML file sets; ConfigError where it is not a mapping of them."""
    try:
        data = read_yaml(file)
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"{file}: not a YAML file: {' '.join(str(error).split())[:200]}"
        ) from error
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{file}: options are written as name: value, one a line.")
    return {str(name): value for name, value in (data or {}).items()}


def _require_known_options(names: Iterable[str], source: str) -> None:
    for name in names:
        if name not in RunConfig.model_fields and name not in FORMER_OPTIONS:
            raise UnknownName(f"option in {source}", name, tuple(RunConfig.model_fields))
