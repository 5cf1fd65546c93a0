"""Describe the fields of the configuration, so that flags, form and reference can be generated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings

SECTION_HEADINGS = {
    "model": "Suite and model",
    "measure": "What to measure",
    "sampling": "Sampling and chain",
    "mediation": "Mediation and local models",
    "judge": "Judge two runs",
    "limits": "Limits and money",
    "gate": "Gate, tags and privacy",
}
"""Groups of options and their headings, in the order of the New run form and the reference."""
ENV_PREFIX = "COTLAB_"
"""Start of the environment variable of an option."""
RUN_ONLY, RUN_AND_RESUME, ALL_COMMANDS = ("run",), ("run", "resume"), ("run", "plan", "resume")
"""Values of ``Setting.commands`` besides the default."""
_NO_LEGACY_VALUE = object()


@dataclass(frozen=True, slots=True)
class Setting:
    """Label, widget and commands of a field; pydantic calls it for the JSON schema."""

    section: str
    """Key of ``SECTION_HEADINGS``."""
    label: str = ""
    """Label of the widget on the New run form; empty for an option that the form does not offer."""
    hint: str | None = None
    """Help text of the widget; without one it is the help of the flag."""
    choices: Iterable[str] = ()
    """Values to choose from; a registry where other packages may add some."""
    scorer_option: str = ""
    """Option of a scorer that the field sets, where the scorer has it."""
    role: str = ""
    """Role of scorers that the field is about, where its own name is no role."""
    scorers: tuple[str, ...] = ()
    """Scorers that read the field, where it is neither an option nor a role of theirs."""
    in_process_only: bool = False
    """Whether only models in this process read the field."""
    commands: tuple[str, ...] = ("run", "plan")
    """Commands that take it, of run, plan and resume (``cotlab run --resume``)."""
    path: Literal["", "path", "file"] = ""
    """Whether the text names a path, or a file that must not be a folder."""
    step: float | None = None
    """Step of a number's widget."""
    empty: str = "none"
    """Text that the form displays for an empty value."""
    checkbox: bool = False
    """Whether the form offers the second of two choices as a checkbox."""
    absent: Any = _NO_LEGACY_VALUE
    """Value of all runs that were stored before the field existed."""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add the choices to the JSON schema of the field, unless other packages may add some."""
        if self.choices and isinstance(self.choices, tuple):
            is_list = schema.get("type") == "array"
            (schema["items"] if is_list else schema)["enum"] = list(self.choices)


def option(section: str, default: Any, help: str, label: str = "", **extra_options: Any) -> Any:
    """Declare a field of the configuration.

    Parameters
    ----------
    default : value of the field where nothing sets it
    help : help text of the flag, and description in the reference
    section, label, **more
        Fields of ``Setting``; the others are constraints of ``pydantic.Field``.
    """
    setting_names = Setting.__dataclass_fields__
    setting = Setting(
        section,
        label,
        **{key: value for key, value in extra_options.items() if key in setting_names},
    )
    return Field(
        default,
        description=help,
        json_schema_extra=setting,
        **{key: value for key, value in extra_options.items() if key not in setting_names},
    )


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field of the configuration, described for whatever is generated from it."""

    name: str
    """Name of the field, in Python and in YAML."""
    value_type: type
    """bool, int, float, str, list (of texts) or dict (of texts)."""
    allows_none: bool
    """Whether None is a value."""
    default: Any
    """Default value."""
    help: str
    """One sentence."""
    setting: Setting
    """Label, widget and commands of the field."""
    literals: tuple[str, ...]
    """Values of a ``Literal`` type."""
    words: tuple[str, ...]
    """Words that stand for a number."""
    minimum: float | None
    """Smallest value of a number."""
    excludes_minimum: bool
    """Whether only larger values than ``minimum`` are valid."""
    maximum: float | None
    """Largest value of a number."""
    env_variables: tuple[str, ...]
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
    """Return the fields of a configuration class by name, section by section."""
    sections = list(SECTION_HEADINGS)
    fields = [_config_field(name, field) for name, field in config.model_fields.items()]
    fields.sort(key=lambda field: sections.index(field.setting.section))  # stable
    return {field.name: field for field in fields}


def legacy_values(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Return the values that runs had before a field existed, of the fields that came later."""
    values = {name: field.setting.absent for name, field in fields.items()}
    return {name: value for name, value in values.items() if value is not _NO_LEGACY_VALUE}


def _config_field(name: str, field: Any) -> ConfigField:
    setting: Setting = field.json_schema_extra
    union_members = [field.annotation]
    if get_origin(field.annotation) in (Union, type(int | None)):
        union_members = [
            union_member
            for union_member in get_args(field.annotation)
            if union_member is not NoneType
        ]
    metadata = list(field.metadata)
    if get_origin(union_members[0]) is Annotated:
        union_members[0], *bounds = get_args(union_members[0])
        metadata += bounds
    origin = get_origin(union_members[0])
    validation_alias = field.validation_alias
    env_names = (
        validation_alias.choices[1:]
        if isinstance(validation_alias, AliasChoices)
        else [ENV_PREFIX + name.upper()]
    )
    bound_by_type = {type(bound): bound for bound in metadata}
    lower_bound, exclusive_bound, upper_bound = (
        bound_by_type.get(union_member) for union_member in (Ge, Gt, Le)
    )
    return ConfigField(
        name,
        str if origin is Literal else origin or union_members[0],
        len(get_args(field.annotation)) > 1 and NoneType in get_args(field.annotation),
        field.get_default(call_default_factory=True),
        field.description,
        setting,
        get_args(union_members[0]) if origin is Literal else (),
        tuple(word for union_member in union_members[1:] for word in get_args(union_member)),
        lower_bound.ge if lower_bound else exclusive_bound.gt if exclusive_bound else None,
        exclusive_bound is not None,
        upper_bound.le if upper_bound else None,
        tuple(map(str, env_names)),
    )
