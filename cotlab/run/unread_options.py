"""Find options that are set for a run and that none of its scorers and models reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.registry import SCORERS
from cotlab.core.types import IN_PROCESS_PROVIDERS
from cotlab.metrics.critic.votes import CRITIC_ROLE
from cotlab.metrics.process_reward import PROVIDER as REWARD_PROVIDER
from cotlab.run.config import RunConfig, run_fields
from cotlab.run.fields import ConfigField
from cotlab.run.roles import CRITIC_PREFIX, models_of, option_of_role, selected_scorers

_READ_BY_ALL = ("chain",)
"""Options of scorers that every run reads: what a suite must hold depends on them."""


def scorers_reading(field: ConfigField) -> tuple[str, ...]:
    """Return the scorers that read an option; empty where it is no option of scorers."""
    setting = field.setting
    role = option_of_role(setting.role or field.name)
    return tuple(
        name
        for name in SCORERS
        if setting.scorer_option in SCORERS[name].options
        or role in map(option_of_role, SCORERS[name].roles)
        or name in setting.scorers
    )


def check_flags_are_read(config: RunConfig, flags: Mapping[str, Any]) -> None:
    """Raise ConfigError where a flag is given that the run would not read.

    Parameters
    ----------
    config : RunConfig
        The configuration that the flags are part of.
    flags : mapping
        What the user gave, by field; None and [] stand for a flag that was not given.
    """
    given_names = [name for name, value in flags.items() if value is not None and value != []]
    sentences = [_unread_text(config, name) for name in given_names]
    if any(sentences):
        raise ConfigError(" ".join(filter(None, sentences)))


def unread_notes(config: RunConfig, flags: Mapping[str, Any]) -> list[str]:
    """Return a note on each option that a file or the environment sets and the run does not read.

    Such a setting may stand there for other runs, so it is no error; one that has its default is
    left out.
    """
    return [
        f"Set by a file or the environment: {text}"
        for name, field in run_fields().items()
        if flags.get(name) in (None, []) and getattr(config, name) != field.default
        if (text := _unread_text(config, name))
    ]


def _unread_text(config: RunConfig, name: str) -> str:
    """Return a sentence on an option that a configuration does not read; "" where it does."""
    field = run_fields()[name]
    if name in _READ_BY_ALL:
        return ""
    if field.setting.in_process_only:
        providers = {ref.provider for ref in models_of(config).values()}
        if providers & {*IN_PROCESS_PROVIDERS, REWARD_PROVIDER}:
            return ""
        return (
            f"{field.flag} is for models in this process (--provider"
            f" {' or '.join(IN_PROCESS_PROVIDERS)}); this run asks none."
        )
    if field.setting.role == CRITIC_ROLE and not config.verifier.startswith(CRITIC_PREFIX):
        return (
            f"{field.flag} goes with --verifier {CRITIC_PREFIX}PROVIDER/MODEL; this run has none."
        )
    readers = scorers_reading(field)
    scorers = selected_scorers(config)
    names = [name for scorer in scorers for name in (scorer.name, *scorer.components)]
    if not readers or set(readers) & set(names):
        return ""
    return (
        f"{field.flag} is read by {_listed(readers)} alone, and this run measures"
        f" {_listed(scorer.name for scorer in scorers)}: add --scorer {readers[0]}, or leave"
        f" {field.flag} out."
    )


def _listed(names: Iterable[str]) -> str:
    """Join names as in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
