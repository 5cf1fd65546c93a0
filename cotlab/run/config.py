"""Configuration of a run: flags over environment over a YAML file over defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.providers.keys import named_by_file
from cotlab.run.fields import PREFIX, ConfigField, absent_values, config_fields
from cotlab.run.options import RunOptions

DEMO = {
    "task_suite": "wordproblems",
    "provider": "organism",
    "model": "r100",
    "scorer": ["ablation"],
    "mode": ["remove", "truncate", "corrupt", "paraphrase", "filler"],
}
"""A first run that needs no key: every mode, on what ships with the project."""


class RunConfig(RunOptions):
    """The configuration of a run: flags over environment over a YAML file over defaults."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", populate_by_name=True)

    _server_named_by: str = ""

    @property
    def server_named_by(self) -> str:
        """File that ``base_url`` comes from; empty where the user gave it. It is not stored."""
        return self._server_named_by

    @field_validator("scorer", "mode", "source", "layers", "judge", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Split a list that is written with commas, as in the environment."""
        return (
            [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, str)
            else value
        )

    @model_validator(mode="after")
    def _only_the_profile(self) -> RunConfig:
        """Leave out the default scorer of a run that names none and has a profile."""
        if self.profile and "scorer" not in self.model_fields_set:
            self.scorer = []
        return self

    @field_validator("tag", "set", mode="before")
    @classmethod
    def _paired(cls, value: Any) -> Any:
        """Split pairs that are written key=value with commas, as in the environment."""
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(key.strip() and equals for key, equals, _ in pairs):
            raise ValueError("they are written key=value,key=value")
        return {key.strip(): text.strip() for key, _, text in pairs}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment, and the YAML file where there is one; never a .env file."""
        yaml = cls.model_config.get("yaml_file")
        return (
            init_settings,
            EnvSettingsSource(cls, env_ignore_empty=True),
            *([YamlConfigSettingsSource(cls)] if yaml else []),
        )


@cache
def run_fields() -> Mapping[str, ConfigField]:
    """Return the fields of ``RunConfig`` by name, in order."""
    return MappingProxyType(config_fields(RunConfig))


def read_config(flags: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """Return the configuration of a run from the given flags, and a YAML file where one is named.

    Raises
    ------
    ConfigError
        If a value cannot be used; the message names each option.
    """
    _check_names(flags, "the options")
    kind: type[RunConfig] = RunConfig
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file.")
        _check_names(_yaml_names(file), str(file))
        kind = type(
            "RunConfig",
            (RunConfig,),
            {"model_config": RunConfig.model_config | {"yaml_file": file}},
        )
    config = _validated(
        kind, {name: value for name, value in flags.items() if value is not None and value != []}
    )
    if config.base_url and not flags.get("base_url"):
        in_environment = any(
            name.upper() == "COTLAB_BASE_URL" and value for name, value in os.environ.items()
        )
        config._server_named_by = named_by_file(config.base_url) or (
            "" if in_environment else str(file or "")
        )
    return config


def stored_options(text: str) -> dict[str, Any]:
    """Return the configuration in a run's row; options added since have the value of then."""
    return absent_values(run_fields()) | dict(json.loads(text))


def config_again(stored: Mapping[str, Any], flags: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a stored run with the limits and gates that are given now."""
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    return _validated(
        RunConfig, {**{n: v for n, v in stored.items() if n in RunConfig.model_fields}, **given}
    )


def _validated(kind: type[RunConfig], values: Mapping[str, Any]) -> RunConfig:
    try:
        return kind(**values)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, e['loc'])) or 'configuration'}: {e['msg']} (got {e['input']!r})"
            for e in error.errors()
        ]
        raise ConfigError("The configuration cannot be used.\n" + "\n".join(lines)) from error
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(f"The configuration cannot be read: {error}") from error


def as_yaml(config: Mapping[str, Any]) -> str:
    """Return YAML for ``--config`` that repeats a run; names that are no options are left out."""
    known = {name: config[name] for name in RunConfig.model_fields if name in config}
    text: str = yaml.safe_dump(known, allow_unicode=True, sort_keys=False)
    if set(text) & _BREAKS:
        text = yaml.safe_dump(known, allow_unicode=False, sort_keys=False)
    return text


_BREAKS = set("\x85\u2028\u2029")
"""Ends of a line to YAML, which folds them unless they are escaped."""


def _yaml_names(file: Path) -> list[str]:
    """Return the options that a YAML file sets; ConfigError where it is not a mapping of them."""
    try:
        data = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(
            f"{file}: not a YAML file: {' '.join(str(error).split())[:200]}"
        ) from error
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{file}: options are written as name: value, one a line.")
    return [str(name) for name in data or {}]


def _check_names(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in RunConfig.model_fields:
            raise UnknownName(f"option in {where}", name, tuple(RunConfig.model_fields))
