"""Find options that are set for a run and that none of its scorers and models reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import IN_PROCESS_PROVIDERS
from cotlab.metrics.equivalence import COMPUTATION_ROLE
from cotlab.metrics.process_reward import PROVIDER as REWARD_PROVIDER
from cotlab.providers.capabilities import provider_info
from cotlab.run.config import current_options, run_fields
from cotlab.run.options import ConfigField
from cotlab.run.resolved import (
    CRITIC_PREFIX,
    NO_MODEL_NAMES,
    SHIPPED_ROLES,
    ResolvedRun,
    option_of_role,
)
from cotlab.run.transport.limits import DEFAULT_REQUESTS_PER_MINUTE

PROVIDERS_OF_BATCHES = frozenset({*IN_PROCESS_PROVIDERS, "embedder", "symbolic", "nli", "prm"})
"""Providers whose models compute batches in this process: no request has a limit or a time-out."""
_VALUES_READ_BY_ALL: Mapping[str, tuple[Any, ...]] = {
    **{role: (name,) for role, name in NO_MODEL_NAMES.items()},
    "max_requests_per_minute": (DEFAULT_REQUESTS_PER_MINUTE,),  # as FaithCheck's command lines say
    "probe": ("never",),
}
"""Values beside the default that ask nothing of any model."""


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


def check_flags_are_read(
    run: ResolvedRun, flags: Mapping[str, Any], key_hosts: Iterable[str] | None = None
) -> None:
    """Raise ConfigError where a flag is given that the run would not read.

    Parameters
    ----------
    run : ResolvedRun
        The run that the flags are part of.
    flags : mapping
        What the user gave, by field; None and [] stand for a flag that was not given.
    key_hosts : iterable of str, optional
        Hosts that may get a key by ``--send-key-to``.
    """
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    sentences = [
        unread_text(run, name, value if name in ("role", "set") else ())
        for name, value in current_options(given).items()
    ]
    if hosts := list(key_hosts or ()):
        sentences.append(_not_there_text(run, f"--send-key-to {', '.join(hosts)}", "servers"))
    if any(sentences):
        raise ConfigError(" ".join(filter(None, sentences)))


def unread_notes(run: ResolvedRun, flags: Mapping[str, Any]) -> list[str]:
    """Return a note on each option that a file or the environment sets and the run does not read.

    Such a setting may stand there for other runs, so it is no error; one that has its default is
    left out.
    """
    given, texts = current_options(flags), []
    for name, field in run_fields().items():
        typed, value = given.get(name), getattr(run.config, name)
        if name in ("role", "set"):
            texts.append(unread_text(run, name, [e for e in value if e not in (typed or ())]))
        elif typed in (None, []) and value != field.default:
            texts.append(unread_text(run, name))
    return [f"Set by a file or the environment: {text}" for text in texts if text]


def unread_text(run: ResolvedRun, name: str, entries: Iterable[str] | None = None) -> str:
    """Return a sentence on an option that a configuration does not read; "" where it does.

    Of ``role`` and ``set`` only ``entries`` are looked at, by default all.
    """
    config, field = run.config, run_fields()[name]
    value = getattr(config, name)
    if name in ("role", "set"):
        unread_entry = _unread_role_text if name == "role" else _unread_setting_text
        chosen = value if entries is None else entries
        return " ".join(filter(None, (unread_entry(run, entry) for entry in chosen)))
    if name == "given":
        return _unread_placement_text(run, field.flag)
    if name == "chain" or value in _VALUES_READ_BY_ALL.get(name, ()):
        return ""  # what a suite must hold depends on the chain
    if name == "base_url" and value and provider_info(config.provider).in_process:
        return (
            f"{field.flag} goes with a provider that asks a server, like --provider openai_compat;"
            f" this run's {config.model} runs in this process."
        )
    if name == "gate_on" and config.rr_threshold is None:
        return f"{field.flag} goes with --rr-threshold; this run has no gate."
    if field.setting.read_by and (value != field.default or field.setting.read_by == "process"):
        return _not_there_text(run, field.flag, field.setting.read_by)
    if not _is_for_scorers(field) or any(_reads(name, field) for name in run.scorer_names):
        return ""
    return _not_measured_text(run, field.flag, scorers_reading(field))


def _not_there_text(run: ResolvedRun, flag: str, read_by: str) -> str:
    """Return why no model of a run reads an option; "" where one is where it is read."""
    refs = [ref for role, ref in run.models.items() if role != COMPUTATION_ROLE]
    providers = {ref.provider for ref in refs}
    if read_by == "process":
        place = f"in this process (--provider {' or '.join(IN_PROCESS_PROVIDERS)})"
        is_read = bool(providers & {*IN_PROCESS_PROVIDERS, REWARD_PROVIDER})
    else:
        place = "that are asked over a network (like --provider openai_compat)"
        is_read = (
            bool(providers - PROVIDERS_OF_BATCHES)
            if read_by == "requests"
            else not all(provider_info(provider).in_process for provider in providers)
        )
    models = _listed(dict.fromkeys(map(str, refs)))
    return "" if is_read else f"{flag} is for models {place}; this run asks {models}."


def _not_measured_text(run: ResolvedRun, flag: str, readers: Sequence[str]) -> str:
    return (
        f"{flag} is read by {_listed(readers)} alone, and this run measures"
        f" {_listed(scorer.name for scorer in run.scorers)}: add --scorer {readers[0]}, or leave"
        f" {flag} out."
    )


def _unread_setting_text(run: ResolvedRun, entry: str) -> str:
    """Return why no scorer reads an entry of ``set``; "" where one does, or there is no such."""
    scorer = entry.partition(".")[0]
    is_read = scorer in run.scorer_names or scorer not in SCORERS
    return "" if is_read else _not_measured_text(run, f"--set {entry}", (scorer,))


def _unread_role_text(run: ResolvedRun, entry: str) -> str:
    """Return why no model of the run reads an entry of ``role``; "" where one does."""
    (role, _, option), flag = entry.partition("."), f"--role {entry}"
    if not {role, role.partition("_")[0]} & {"subject", *run.roles}:
        return f"{flag}: no scorer of this run asks that model; leave it out."
    if option in ("votes", "tokens") and not run.config.verifier.startswith(CRITIC_PREFIX):
        return f"{flag} goes with --verifier {CRITIC_PREFIX}PROVIDER/MODEL; this run has none."
    if option == "backend" or (option == "dtype" and role != "embedder"):
        text = _not_there_text(run, flag, "process")
        if not text and option == "backend" and "mediation" not in run.scorer_names:
            return _not_measured_text(run, flag, ("mediation",))
        return text
    return ""


def _unread_placement_text(run: ResolvedRun, flag: str) -> str:
    """Return why the place of the chain is no choice; "" where the model takes turns."""
    if not run.is_without_model and run.subject.form != "continuation":
        return ""
    return (
        f"{flag} goes with a chat model that is asked; {run.subject} reads a chain as it stands,"
        f" whatever {flag} says."
    )


def _listed(names: Iterable[str]) -> str:
    """Join names as in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
