"""Find options that are set for a run and that none of its scorers reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.providers.capabilities import provider_info
from cotlab.run.config import current_options, run_fields
from cotlab.run.options import ConfigField
from cotlab.run.resolved import NO_MODEL_NAMES, SHIPPED_ROLES, ResolvedRun, option_of_role


def scorers_reading(field: ConfigField) -> tuple[str, ...]:
    """Return the scorers that read an option; empty where it is no option of scorers."""
    return tuple(name for name in SCORERS if _reads(name, field)) if _is_for_scorers(field) else ()


def _is_for_scorers(field: ConfigField) -> bool:
    setting = field.setting
    return bool(setting.scorer_option or setting.scorers) or field.name in SHIPPED_ROLES


def _reads(scorer_name: str, field: ConfigField) -> bool:
    scorer: Scorer = SCORERS[scorer_name]
    return (
        field.setting.scorer_option in scorer.options
        or field.name in map(option_of_role, scorer.roles)
        or scorer_name in field.setting.scorers
    )


def check_flags_are_read(run: ResolvedRun, flags: Mapping[str, Any]) -> None:
    """Raise ConfigError where a flag is given that no scorer of the run reads.

    ``flags`` is what the user gave, by field; None and [] stand for a flag that was not given.
    """
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    sentences = [unread_text(run, name, value) for name, value in current_options(given).items()]
    if any(sentences):
        raise ConfigError(" ".join(filter(None, sentences)))


def unread_text(run: ResolvedRun, name: str, value: Any) -> str:
    """Return a sentence on an option that no scorer of a run reads; "" where one does."""
    config, field = run.config, run_fields()[name]
    if name == "role":
        role_by_entry = {entry: entry.partition(".")[0] for entry in value}
        return " ".join(
            f"--role {entry}: no scorer of this run asks that model; leave it out."
            for entry, role in role_by_entry.items()
            if not {role, role.partition("_")[0]} & {"subject", *run.roles}
        )
    if name == "set":
        scorers = {entry: entry.partition(".")[0] for entry in value}
        return " ".join(
            _not_measured_text(run, f"--set {entry}", (scorer,))
            for entry, scorer in scorers.items()
            if scorer in SCORERS and scorer not in run.scorer_names
        )
    if name == "base_url" and value and provider_info(config.provider).in_process:
        return (
            f"{field.flag} goes with a provider that asks a server, like --provider openai_compat;"
            f" this run's {config.model} runs in this process."
        )
    if name == "gate_on" and config.rr_threshold is None:
        return f"{field.flag} goes with --rr-threshold; this run has no gate."
    # what a suite must hold depends on the chain
    is_read = name == "chain" or value == NO_MODEL_NAMES.get(name, ...)
    if is_read or not _is_for_scorers(field) or any(_reads(s, field) for s in run.scorer_names):
        return ""
    return _not_measured_text(run, field.flag, scorers_reading(field))


def _not_measured_text(run: ResolvedRun, flag: str, readers: Sequence[str]) -> str:
    return (
        f"{flag} is read by {_listed(readers)} alone, and this run measures"
        f" {_listed(scorer.name for scorer in run.scorers)}: add --scorer {readers[0]}, or leave"
        f" {flag} out."
    )


def _listed(names: Iterable[str]) -> str:
    """Join names as in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
