"""Find options that are set for a run and that none of its scorers and models reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from cotlab.run.server_check import is_checked
from cotlab.run.transport.limits import DEFAULT_REQUESTS_PER_MINUTE

_NO_NAME = object()
_READ_BY_ALL = ("chain",)
"""Options of scorers that every run reads: what a suite must hold depends on them."""
WRITES_NO_CHAIN = frozenset(
    {
        *("mediation", "entropy", "tool_trace", "text_features", "verification", "flags"),
        *("process_reward", "critic", "rubric", "judge"),
    }
)
"""Scorers that ask for no whole chain where they measure the suite's."""
PROVIDERS_OF_BATCHES = frozenset({*IN_PROCESS_PROVIDERS, "embedder", "symbolic", "nli", "prm"})
"""Providers whose models compute batches in this process: no request has a limit or a time-out."""


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
    """Raise ConfigError where a flag is given that the run would not read.

    Parameters
    ----------
    run : ResolvedRun
        The run that the flags are part of.
    flags : mapping
        What the user gave, by field; None and [] stand for a flag that was not given.
    """
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    sentences = [
        _unread_entries_text(run, name, value)
        if name in ("role", "set")
        else unread_text(run, name)
        for name, value in current_options(given).items()
    ]
    if any(sentences):
        raise ConfigError(" ".join(filter(None, sentences)))


def unread_notes(run: ResolvedRun, flags: Mapping[str, Any]) -> list[str]:
    """Return a note on each option that a file or the environment sets and the run does not read.

    Such a setting may stand there for other runs, so it is no error; one that has its default is
    left out.
    """
    return [
        f"Set by a file or the environment: {text}"
        for name, field in run_fields().items()
        if name in ("role", "set")
        or (flags.get(name) in (None, []) and getattr(run.config, name) != field.default)
        if (text := unread_text(run, name, current_options(flags).get(name) or ()))
    ]


def check_key_hosts_are_read(run: ResolvedRun, hosts: Iterable[str] | None) -> None:
    """Raise ConfigError where hosts may get a key and the run asks nothing over a network."""
    hosts = list(hosts or ())
    if hosts and not _asks_servers(run):
        raise ConfigError(_no_server_text(run, f"--send-key-to {', '.join(hosts)}"))


def unread_text(run: ResolvedRun, name: str, read_entries: Iterable[str] = ()) -> str:
    """Return a sentence on an option that a configuration does not read; "" where it does.

    Entries of ``role`` and ``set`` that are in ``read_entries`` are left out.
    """
    if name in ("role", "set"):
        entries = [entry for entry in getattr(run.config, name) if entry not in read_entries]
        return _unread_entries_text(run, name, entries)
    field = run_fields()[name]
    if name in _READ_BY_ALL or getattr(run.config, name) == NO_MODEL_NAMES.get(name, _NO_NAME):
        return ""
    if name in _UNREAD_TEXTS:
        return _UNREAD_TEXTS[name](run, field.flag)
    if name == "gate_on":
        is_gated = run.config.rr_threshold is not None
        return "" if is_gated else f"{field.flag} goes with --rr-threshold; this run has no gate."
    if field.setting.in_process_only and not _has_model_here(run):
        return _not_here_text(field.flag)
    if not _is_for_scorers(field) or any(_reads(name, field) for name in run.scorer_names):
        return ""
    return _not_measured_text(run, field.flag, scorers_reading(field))


def _has_model_here(run: ResolvedRun) -> bool:
    providers = {ref.provider for ref in run.models.values()}
    return bool(providers & {*IN_PROCESS_PROVIDERS, REWARD_PROVIDER})


def _not_here_text(flag: str) -> str:
    return (
        f"{flag} is for models in this process (--provider {' or '.join(IN_PROCESS_PROVIDERS)});"
        " this run asks none."
    )


def _not_measured_text(run: ResolvedRun, flag: str, readers: Sequence[str]) -> str:
    return (
        f"{flag} is read by {_listed(readers)} alone, and this run measures"
        f" {_listed(scorer.name for scorer in run.scorers)}: add --scorer {readers[0]}, or leave"
        f" {flag} out."
    )


def _unread_entries_text(run: ResolvedRun, name: str, entries: Iterable[str]) -> str:
    """Return a sentence on each entry of ``role`` or ``set`` that a configuration does not read."""
    unread_entry = _unread_role_text if name == "role" else _unread_setting_text
    return " ".join(filter(None, (unread_entry(run, entry) for entry in entries)))


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
        if not _has_model_here(run):
            return _not_here_text(flag)
        if option == "backend" and "mediation" not in run.scorer_names:
            return _not_measured_text(run, flag, ("mediation",))
    return ""


def _unread_address_text(run: ResolvedRun, flag: str) -> str:
    """Return why no model is asked at ``base_url``; "" where the provider has servers."""
    if not provider_info(run.config.provider).in_process:
        return ""
    return (
        f"{flag} goes with a provider that asks a server, like --provider openai_compat; the"
        f" provider of this run is {run.config.provider}, whose model {run.config.model} runs in"
        " this process."
    )


def _unread_placement_text(run: ResolvedRun, flag: str) -> str:
    """Return why the place of the chain is no choice; "" where the model takes turns."""
    subject = run.subject
    if run.is_without_model:
        return f"{flag} goes with a model that is asked; this run asks none."
    if subject.form != "continuation":
        return ""
    return (
        f"{flag} goes with a chat model; {subject} goes on from the chain as raw text, whatever"
        f" {flag} says."
    )


def _unread_check_text(run: ResolvedRun, flag: str) -> str:
    """Return why ``always`` checks nothing; "" where it does, and of what no run needs."""
    models = run.models.values()
    if run.config.probe != "always" or any(is_checked(ref, "always") for ref in models):
        return ""
    return _no_server_text(run, f"{flag} always")


def _unread_price_text(run: ResolvedRun, flag: str) -> str:
    """Return why no price is missing; "" where something is asked over a network."""
    return (
        _no_server_text(run, flag) if run.config.allow_unpriced and not _asks_servers(run) else ""
    )


def _unread_rate_text(run: ResolvedRun, flag: str) -> str:
    """Return why no minute holds too many requests; "" for a server, and for the usual limit.

    The usual one says what FaithCheck's command lines say, and limits no vendor anew.
    """
    limit = run.config.max_requests_per_minute
    if limit in ("default", DEFAULT_REQUESTS_PER_MINUTE) or _asks_servers(run):
        return ""
    return _no_server_text(run, f"{flag} {'none' if limit is None else limit}")


def _unread_request_limit_text(run: ResolvedRun, flag: str) -> str:
    """Return why single requests have no limits; "" where any is sent, and for the default."""
    field = next(field for field in run_fields().values() if field.flag == flag)
    providers = {ref.provider for ref in run.models.values()}
    if getattr(run.config, field.name) == field.default or providers - PROVIDERS_OF_BATCHES:
        return ""
    return _no_server_text(run, flag)


def _unread_chain_limit_text(run: ResolvedRun, flag: str) -> str:
    """Return why no request is for a whole chain; "" where one may be."""
    scorers = run.scorers
    if run.config.chain_tokens is None or not all(_writes_no_chain(run, s) for s in scorers):
        return ""
    names = _listed(scorer.name for scorer in scorers)
    return (
        f"{flag} limits chains that the model writes, and this run asks for none: {names} with the"
        f" suite's chain. Add --chain own, or leave {flag} out."
    )


def _writes_no_chain(run: ResolvedRun, scorer: Scorer) -> bool:
    """Whether a scorer of a configuration never asks for a chain or the rest of one."""
    if run.is_without_model:
        return True
    if run.config.set.keys() & {f"{scorer.name}.chain", f"{scorer.name}.modes"}:
        return False  # --set decides
    if "chain" in scorer.options and run.chain_source(scorer) == "own":
        return False
    if scorer.name == "ablation":
        return "corrupt" not in run.config.mode
    return scorer.name in WRITES_NO_CHAIN


def _asks_servers(run: ResolvedRun) -> bool:
    """Whether a model of a configuration is asked over a network."""
    return any(not provider_info(ref.provider).in_process for ref in run.models.values())


def _no_server_text(run: ResolvedRun, flag: str) -> str:
    refs = (ref for role, ref in run.models.items() if role != COMPUTATION_ROLE)
    models = _listed(dict.fromkeys(map(str, refs)))
    return (
        f"{flag} is for models that are asked over a network (like --provider openai_compat); this"
        f" run asks {models}, in this process."
    )


def _listed(names: Iterable[str]) -> str:
    """Join names as in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


_UNREAD_TEXTS: Mapping[str, Callable[[ResolvedRun, str], str]] = {
    "base_url": _unread_address_text,
    "given": _unread_placement_text,
    "probe": _unread_check_text,
    "allow_unpriced": _unread_price_text,
    "chain_tokens": _unread_chain_limit_text,
    "max_requests_per_minute": _unread_rate_text,
    **dict.fromkeys(
        ("max_concurrent", "max_tokens_per_minute", "max_tries", "timeout_s"),
        _unread_request_limit_text,
    ),
}
"""Options that are read by more than scorers: by the form, the server or the price of a model."""
