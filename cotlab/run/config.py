"""Configuration of a run: flags over environment over a YAML file over defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import yaml
from pydantic import ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.registry import PROVIDERS
from cotlab.providers.keys import VARIABLES_FROM_FILES, file_naming_server
from cotlab.run.faithcheck import translate_settings
from cotlab.run.fields import ENV_PREFIX, ConfigField, config_fields, legacy_values
from cotlab.run.options import RunOptions

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


ROLE_OPTIONS = ("role_base_url", "role_key_variable", "role_price")
"""Options that have a value for each role."""


class RunConfig(RunOptions):
    """The configuration of a run: flags over environment over a YAML file over defaults."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", populate_by_name=True)

    _base_url_file: str = ""
    _file_options: ClassVar[Mapping[str, Any]] = {}
    """Options of the YAML file."""
    _role_files: Mapping[tuple[str, str], str] = {}

    @property
    def base_url_file(self) -> str:
        """File that ``base_url`` comes from; empty where the user gave it. It is not stored."""
        return self._base_url_file

    def role_file(self, option: str, role: str) -> str:
        """Return the file that an option of a role comes from; "" where the user gave it."""
        return self._role_files.get((option, role), "")

    @field_validator("scorer", "mode", "source", "layers", "judge", mode="before")
    @classmethod
    def _split_list(cls, value: Any) -> Any:
        """Split a list that is written with commas, as in the environment."""
        return (
            [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, str)
            else value
        )

    @field_validator("max_requests_per_minute", mode="before")
    @classmethod
    def _parse_request_limit(cls, value: Any) -> Any:
        """Read a number that is written as text, as on the command line."""
        if value is None or value in ("auto", "default"):
            return value
        text = str(value).strip()
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise ValueError("it takes a number from 1 on, auto or default")
        return int(text)

    @model_validator(mode="after")
    def _drop_default_scorer(self) -> RunConfig:
        """Leave out the default scorer of a run that names none and has a profile."""
        if self.profile and "scorer" not in self.model_fields_set:
            self.scorer = []
        return self

    @field_validator("tag", "set", *ROLE_OPTIONS, mode="before")
    @classmethod
    def _split_pairs(cls, value: Any) -> Any:
        """Split pairs that are written key=value with commas, as in the environment."""
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(key.strip() and separator for key, separator, _ in pairs):
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
        return (
            init_settings,
            EnvSettingsSource(cls, env_ignore_empty=True),
            InitSettingsSource(cls, dict(cls._file_options)),
        )


@cache
def run_fields() -> Mapping[str, ConfigField]:
    """Return the fields of ``RunConfig`` by name, in order."""
    return MappingProxyType(config_fields(RunConfig))


def read_config(flags: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """Return the configuration of a run from the given flags, and a YAML file where one is named.

    The file may hold FaithCheck's own settings (``default_temperature``, ``providers``).

    Raises
    ------
    ConfigError
        If a value cannot be used; the message names each option.
    """
    _require_known_options(flags, "the options")
    config_class: type[RunConfig] = RunConfig
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file.")
        provider = flags.get("provider") or os.environ.get(f"{ENV_PREFIX}PROVIDER")
        file_options = translate_settings(_yaml_options(file), provider, str(file))
        _require_known_options(file_options, str(file))
        config_class = type(
            "RunConfig", (RunConfig,), {"__module__": __name__, "_file_options": file_options}
        )
        if provider not in (None, *PROVIDERS) and "provider" in file_options:
            flags = {**flags, "provider": file_options["provider"]}
    config = _build_config(
        config_class,
        {name: value for name, value in flags.items() if value is not None and value != []},
    )
    if config.base_url and not flags.get("base_url"):
        config._base_url_file = file_naming_server(config.base_url) or (
            "" if _is_in_environment("COTLAB_BASE_URL") else str(file or "")
        )
    config._role_files = {
        (option, role): _option_file(option, file)
        for option in ROLE_OPTIONS
        for role in getattr(config, option)
        if role not in (flags.get(option) or {})
    }
    return config


def _option_file(option: str, file: Path | None) -> str:
    """Return the file that sets an option which no flag sets; "" where the environment does."""
    variable = ENV_PREFIX + option.upper()
    if variable in VARIABLES_FROM_FILES:
        return VARIABLES_FROM_FILES[variable][0]
    return "" if _is_in_environment(variable) else str(file or "")


def _is_in_environment(variable: str) -> bool:
    return any(name.upper() == variable and value for name, value in os.environ.items())


def stored_options(text: str) -> dict[str, Any]:
    """Return the configuration in a run's row; options added since have the value of then."""
    return legacy_values(run_fields()) | dict(json.loads(text))


def resumed_config(stored_config: Mapping[str, Any], flags: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a stored run with the limits and gates that are given now."""
    given_flags = {
        name: value for name, value in flags.items() if value is not None and value != []
    }
    known_options = {
        option: v for option, v in stored_config.items() if option in RunConfig.model_fields
    }
    return _build_config(RunConfig, {**lower_to_maximum(known_options), **given_flags})


def lower_to_maximum(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored options with ``max_concurrent`` within today's bound, once 1,000."""
    maximum = run_fields()["max_concurrent"].maximum
    lowered = min(int(options.get("max_concurrent") or 1), int(maximum or 1))
    return {**options, **({"max_concurrent": lowered} if "max_concurrent" in options else {})}


def _build_config(config_class: type[RunConfig], values: Mapping[str, Any]) -> RunConfig:
    try:
        return config_class(**values)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, defect['loc'])) or 'configuration'}: {defect['msg']} (got"
            f" {defect['input']!r})"
            for defect in error.errors()
        ]
        raise ConfigError("The configuration cannot be used.\n" + "\n".join(lines)) from error
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(f"The configuration cannot be read: {error}") from error


def config_to_yaml(config: Mapping[str, Any]) -> str:
    """Return YAML for ``--config`` that repeats a run; names that are no options are left out."""
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
        data = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        raise ConfigError(
            f"{file}: not a YAML file: {' '.join(str(error).split())[:200]}"
        ) from error
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{file}: options are written as name: value, one a line.")
    return {str(name): value for name, value in (data or {}).items()}


def _require_known_options(names: Iterable[str], source: str) -> None:
    for name in names:
        if name not in RunConfig.model_fields:
            raise UnknownName(f"option in {source}", name, tuple(RunConfig.model_fields))
