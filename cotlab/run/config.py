"""Configuration of a run: flags over environment over a YAML file over defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

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
from cotlab.run.options import (
    ENV_PREFIX,
    ConfigField,
    RunOptions,
    config_fields,
    legacy_values,
    role_class,
    role_options,
)

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

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", populate_by_name=True)

    _base_url_file: str = ""
    _file_options: ClassVar[Mapping[str, Any]] = {}
    """Options of the YAML file."""
    _role_files: Mapping[str, str] = {}

    @property
    def base_url_file(self) -> str:
        """File that ``base_url`` comes from; empty where the user gave it. It is not stored."""
        return self._base_url_file

    def role_file(self, entry: str) -> str:
        """Return the file that an entry of ``role`` comes from; "" where the user gave it."""
        return self._role_files.get(entry, "")

    def of_role(self, role: str) -> Any:
        """Return the options of a role, an object of its class."""
        return role_options(role, self.role)

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take options under the names that they had before."""
        return current_options(values)

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
                    raise ValueError(f"{key}={pairs[key]}: {defect['msg']}") from error
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

    @field_validator("tag", "set", "role", mode="before")
    @classmethod
    def _split_pairs(cls, value: Any) -> Any:
        """Split pairs that are written key=value with commas, as in the environment."""
        return _pairs(value)

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
            InitSettingsSource(cls, _environment_options(cls)),
            InitSettingsSource(cls, dict(cls._file_options)),
        )


def _environment_options(config_class: type[RunConfig]) -> dict[str, Any]:
    """Return the options that the environment sets; entries of options as text.

    As text they give way to entries of the flags; ``read_config`` puts both together.
    """
    options = EnvSettingsSource(config_class, env_ignore_empty=True)()
    former = {name: value for name in FORMER_OPTIONS if (value := _variable_value(name))}
    options = current_options({**former, **options})
    for name in ("role", "set"):
        if isinstance(entries := options.get(name), dict):
            options[name] = ",".join(f"{key}={text}" for key, text in entries.items())
    return options


def _variable_value(option: str) -> str:
    """Return the value of an option's variable in the environment; "" where it has none."""
    variable = ENV_PREFIX + option.upper()
    return next((value for name, value in os.environ.items() if name.upper() == variable), "")


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
    file_options: dict[str, Any] = {}
    if file is not None:
        if not file.is_file():
            raise ConfigError(f"{file}: no such configuration file.")
        provider = flags.get("provider") or os.environ.get(f"{ENV_PREFIX}PROVIDER")
        file_options = translate_settings(_yaml_options(file), provider, str(file))
        _require_known_options(file_options, str(file))
        file_options = _explain(current_options, file_options)
        config_class = type(
            "RunConfig", (RunConfig,), {"__module__": __name__, "_file_options": file_options}
        )
        if provider not in (None, *PROVIDERS) and "provider" in file_options:
            flags = {**flags, "provider": file_options["provider"]}
    given = _explain(
        current_options,
        {name: value for name, value in flags.items() if value is not None and value != []},
    )
    environment = _explain(_environment_options, config_class)
    for name in ("role", "set"):
        if given.get(name) != {}:  # a form that was emptied is meant
            entries = [_explain(_pairs, source.get(name) or {}) for source in (environment, given)]
            if any(entries):
                file_entries = _explain(_pairs, file_options.get(name) or {})
                given[name] = {**file_entries, **entries[0], **entries[1]}
    config = _build_config(config_class, given)
    if config.base_url and not flags.get("base_url"):
        config._base_url_file = file_naming_server(config.base_url) or (
            "" if _is_in_environment("COTLAB_BASE_URL") else str(file or "")
        )
    typed = _pairs(current_options(flags).get("role") or {})
    config._role_files = {
        entry: _entry_file(entry, file) for entry in config.role if entry not in typed
    }
    return config


def _entry_file(entry: str, file: Path | None) -> str:
    """Return the file that sets an entry of ``role``; "" where the user's environment does."""
    for option in ("role", *FORMER_OPTIONS):
        if entry in _pairs(current_options({option: _variable_value(option)}).get("role") or {}):
            return VARIABLES_FROM_FILES.get(ENV_PREFIX + option.upper(), ("",))[0]
    return str(file or "")


def _is_in_environment(variable: str) -> bool:
    return any(name.upper() == variable and value for name, value in os.environ.items())


def stored_options(text: str) -> dict[str, Any]:
    """Return the configuration in a run's row; options added since have the value of then."""
    return current_options(legacy_values(run_fields()) | json.loads(text), are_stored=True)


def resumed_config(stored_config: Mapping[str, Any], flags: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a stored run with the limits and gates that are given now."""
    given_flags = _explain(
        current_options,
        {name: value for name, value in flags.items() if value is not None and value != []},
    )
    stored = current_options(stored_config, are_stored=True)
    known_options = {option: v for option, v in stored.items() if option in RunConfig.model_fields}
    entries = {
        name: {**known_options.get(name, {}), **_explain(_pairs, given_flags.get(name) or {})}
        for name in ("role", "set")
    }
    return _build_config(RunConfig, {**lower_to_maximum(known_options), **given_flags, **entries})


def lower_to_maximum(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored options with ``max_concurrent`` within today's bound, once 1,000."""
    maximum = run_fields()["max_concurrent"].maximum
    lowered = min(int(options.get("max_concurrent") or 1), int(maximum or 1))
    return {**options, **({"max_concurrent": lowered} if "max_concurrent" in options else {})}


def _build_config(config_class: type[RunConfig], values: Mapping[str, Any]) -> RunConfig:
    config: RunConfig = _explain(lambda: config_class(**values))
    return config


def _explain(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function makes of options; ConfigError where they cannot be used."""
    try:
        return function(*arguments)
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
        if name not in RunConfig.model_fields and name not in FORMER_OPTIONS:
            raise UnknownName(f"option in {source}", name, tuple(RunConfig.model_fields))
