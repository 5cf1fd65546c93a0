"""Read FaithCheck's own YAML settings as options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.registry import PROVIDERS
from cotlab.providers.keys import KEY_VARIABLES

_OPTION_BY_SETTING = {
    "default_temperature": "temperature",
    "default_seed": "seed",
    "default_max_concurrent": "max_concurrent",
    "default_max_cost_usd": "max_cost",
    "default_max_rpm": "max_requests_per_minute",
    "default_ccs_threshold": "ccs_threshold",
}
"""FaithCheck's setting → the option that it sets."""
_OPTION_BY_PROVIDER_SETTING = {
    "base_url": "base_url",
    "max_requests_per_minute": "max_requests_per_minute",
    "timeout_seconds": "timeout_s",
}
"""Setting of an entry of ``providers`` → the option that it sets."""
_PROVIDER_SETTINGS = {*_OPTION_BY_PROVIDER_SETTING, "name", "api_key_env"}
_SERVER_PROVIDER = "openai_compat"
"""Provider of an entry whose name is no provider: a server with an address."""


def translate_settings(
    file_options: Mapping[str, Any], provider: str | None, source: str
) -> dict[str, Any]:
    """Return the options of a YAML file, with FaithCheck's settings under the names of options.

    Of ``providers`` the entry of the run's provider counts. An entry under a name of its own is a
    server: its options then hold ``provider`` as well.

    Parameters
    ----------
    file_options : mapping
        The file's content, with FaithCheck's settings, options of a run, or both; an option under
        its own name is preferred.
    provider : str, optional
        The provider that flags or the environment name; else the file's own.
    source : str
        Name of the file, for messages.

    Raises
    ------
    ConfigError
        If ``providers`` is malformed.
    """
    options: dict[str, Any] = {}
    other_options = dict(file_options)
    entries = other_options.pop("providers", None) or {}
    for setting, option in _OPTION_BY_SETTING.items():
        if setting in other_options:
            options[option] = other_options.pop(setting)
    if not isinstance(entries, Mapping):
        raise ConfigError(f"{source}: providers must be a mapping of names to settings.")
    name = provider or other_options.get("provider")
    if name in entries:
        options |= _translate_provider(str(name), entries[name], source)
    return (
        options
        | other_options
        | ({"provider": options["provider"]} if "provider" in options else {})
    )


def _translate_provider(name: str, entry: object, source: str) -> dict[str, Any]:
    location = f"{source}: providers.{name}"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{location} must be a mapping with base_url, api_key_env and the like.")
    if unknown_settings := sorted(map(str, entry.keys() - _PROVIDER_SETTINGS)):
        raise ConfigError(
            f"{location}.{unknown_settings[0]}: no such setting; there are"
            f" {', '.join(sorted(_PROVIDER_SETTINGS))}."
        )
    options = {
        option: entry[setting]
        for setting, option in _OPTION_BY_PROVIDER_SETTING.items()
        if entry.get(setting) is not None
    }
    provider = name
    if name not in PROVIDERS:
        provider = options["provider"] = _SERVER_PROVIDER
        if "base_url" not in options:
            raise ConfigError(f"{location}.base_url is missing: {name} is no provider by itself.")
    named_variable = entry.get("api_key_env")
    if named_variable and named_variable != KEY_VARIABLES.get(provider):
        options["role_key_variable"] = {"subject": str(named_variable)}
    return options
