"""Describe the fields of the configuration, so that flags, form and reference can be generated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings

SECTIONS = {
    "model": "Suite and model",
    "measure": "What to measure",
    "sampling": "Sampling and chain",
    "mediation": "Mediation and local models",
    "judge": "Judge two runs",
    "limits": "Limits and money",
    "gate": "Gate, tags and privacy",
}
"""Groups of options and their headings, in the order of the New run form and the reference."""
PREFIX = "COTLAB_"
"""Start of the environment variable of an option."""
RUN_ONLY, RUN_AND_RESUME, EVERYWHERE = ("run",), ("run", "resume"), ("run", "plan", "resume")
"""Values of ``Setting.commands`` besides the default."""
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Setting:
    """What is shown of a field, and what it applies to; pydantic calls it for the JSON schema."""

    section: str
    """Key of ``SECTIONS``."""
    label: str = ""
    """Label of the widget on the New run form; empty for an option that the form does not offer."""
    hint: str | None = None
    """Help text of the widget; without one it is the help of the flag."""
    choices: Iterable[str] = ()
    """Values to choose from; a registry where other packages may add some."""
    scorer_option: str = ""
    """Option of a scorer that the field sets, where the scorer has it."""
    commands: tuple[str, ...] = ("run", "plan")
    """Commands that take it, of run, plan and resume (``cotlab run --resume``)."""
    path: Literal["", "path", "file"] = ""
    """Whether the text names a path, or a file that must not be a folder."""
    step: float | None = None
    """Step of a number's widget."""
    empty: str = "none"
    """What the form shows in place of an empty value."""
    checkbox: bool = False
    """Whether the form offers the second of two choices as a checkbox."""
    absent: Any = _REQUIRED
    """Value of all runs that were stored before the field existed."""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add the choices to the JSON schema of the field, unless other packages may add some."""
        if self.choices and isinstance(self.choices, tuple):
            of_list = schema.get("type") == "array"
            (schema["items"] if of_list else schema)["enum"] = list(self.choices)


def option(section: str, default: Any, help: str, label: str = "", **more: Any) -> Any:
    """Declare a field of the configuration.

    Parameters
    ----------
    default : value of the field where nothing sets it
    help : help text of the flag, and description in the reference
    section, label, **more
        Fields of ``Setting``; the others are constraints of ``pydantic.Field``.
    """
    known = Setting.__dataclass_fields__
    setting = Setting(section, label, **{k: v for k, v in more.items() if k in known})
    return Field(
        default,
        description=help,
        json_schema_extra=setting,
        **{k: v for k, v in more.items() if k not in known},
    )


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field of the configuration, described for whatever is generated from it."""

    name: str
    """Name of the field, in Python and in YAML."""
    kind: type
    """bool, int, float, str, list (of texts) or dict (of texts)."""
    optional: bool
    """Whether None is a value."""
    default: Any
    """Default value."""
    help: str
    """One sentence."""
    setting: Setting
    """What the field says of itself."""
    literals: tuple[str, ...]
    """Values of a ``Literal`` type."""
    low: float | None
    """Smallest value of a number."""
    excludes_low: bool
    """Whether only larger values than ``low`` are valid."""
    high: float | None
    """Largest value of a number."""
    variables: tuple[str, ...]
    """Environment variables that set the field, the first one preferred."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Values to choose from, if any."""
        return self.literals or tuple(self.setting.choices)

    @property
    def flag(self) -> str:
        """Flag of the command line."""
        return "--" + self.name.replace("_", "-")


def config_fields(config: type[BaseSettings]) -> dict[str, ConfigField]:
    """Return the fields of a configuration class by name, in order."""
    return {name: _described(name, field) for name, field in config.model_fields.items()}


def absent_values(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Return the values that runs had before a field existed, of the fields that came later."""
    absent = {name: field.setting.absent for name, field in fields.items()}
    return {name: value for name, value in absent.items() if value is not _REQUIRED}


def _described(name: str, field: Any) -> ConfigField:
    setting: Setting = field.json_schema_extra
    kinds = [field.annotation]
    if get_origin(field.annotation) in (Union, type(int | None)):
        kinds = [kind for kind in get_args(field.annotation) if kind is not NoneType]
    origin = get_origin(kinds[0])
    alias = field.validation_alias
    names = alias.choices[1:] if isinstance(alias, AliasChoices) else [PREFIX + name.upper()]
    bounds = {type(bound): bound for bound in field.metadata}
    low, above, high = (bounds.get(kind) for kind in (Ge, Gt, Le))
    return ConfigField(
        name,
        str if origin is Literal else origin or kinds[0],
        len(get_args(field.annotation)) > 1 and NoneType in get_args(field.annotation),
        field.get_default(call_default_factory=True),
        field.description,
        setting,
        get_args(kinds[0]) if origin is Literal else (),
        low.ge if low else above.gt if above else None,
        above is not None,
        high.le if high else None,
        tuple(map(str, names)),
    )
