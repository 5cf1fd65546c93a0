"""Find options that are set for a run and that none of its scorers and models reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import IN_PROCESS_PROVIDERS
from cotlab.metrics.critic.votes import CRITIC_ROLE
from cotlab.metrics.process_reward import PROVIDER as REWARD_PROVIDER
from cotlab.providers.capabilities import provider_info
from cotlab.run.config import ROLE_OPTIONS, RunConfig, run_fields
from cotlab.run.fields import ConfigField
from cotlab.run.roles import (
    CRITIC_PREFIX,
    NO_MODEL_NAMES,
    chain_source,
    is_without_model,
    models_of,
    option_of_role,
    scorer_roles,
    selected_scorers,
    subject_of,
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
    sentences = [unread_text(config, name) for name in given_names]
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
        if (text := unread_text(config, name))
    ]


def check_key_hosts_are_read(config: RunConfig, hosts: Iterable[str] | None) -> None:
    """Raise ConfigError where hosts may get a key and the run asks nothing over a network."""
    hosts = list(hosts or ())
    if hosts and not _asks_servers(config):
        raise ConfigError(_no_server_text(config, f"--send-key-to {', '.join(hosts)}"))


def unread_text(config: RunConfig, name: str) -> str:
    """Return a sentence on an option that a configuration does not read; "" where it does."""
    field = run_fields()[name]
    if name in _READ_BY_ALL or getattr(config, name) == NO_MODEL_NAMES.get(name, _NO_NAME):
        return ""
    if name in _UNREAD_TEXTS:
        return _UNREAD_TEXTS[name](config, field.flag)
    if name == "gate_on":
        is_gated = config.rr_threshold is not None
        return "" if is_gated else f"{field.flag} goes with --rr-threshold; this run has no gate."
    if name in ROLE_OPTIONS:
        return _unread_role_text(config, name)
    if field.setting.in_process_only:
        providers = {ref.provider for ref in models_of(config).values()}
        if not providers & {*IN_PROCESS_PROVIDERS, REWARD_PROVIDER}:
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


def _unread_address_text(config: RunConfig, flag: str) -> str:
    """Return why no model is asked at ``base_url``; "" where the provider has servers."""
    if not provider_info(config.provider).in_process:
        return ""
    return (
        f"{flag} goes with a provider that asks a server, like --provider openai_compat; the"
        f" provider of this run is {config.provider}, whose model {config.model} runs in this"
        " process."
    )


def _unread_placement_text(config: RunConfig, flag: str) -> str:
    """Return why the place of the chain is no choice; "" where the model takes turns."""
    subject = subject_of(config)
    if is_without_model(config):
        return f"{flag} goes with a model that is asked; this run asks none."
    if subject.form != "continuation":
        return ""
    return (
        f"{flag} goes with a chat model; {subject} goes on from the chain as raw text, whatever"
        f" {flag} says."
    )


def _unread_check_text(config: RunConfig, flag: str) -> str:
    """Return why ``always`` checks nothing; "" where it does, and of what no run needs."""
    models = models_of(config).values()
    if config.probe != "always" or any(is_checked(ref, "always") for ref in models):
        return ""
    return _no_server_text(config, f"{flag} always")


def _unread_price_text(config: RunConfig, flag: str) -> str:
    """Return why no price is missing; "" where something is asked over a network."""
    return (
        _no_server_text(config, flag) if config.allow_unpriced and not _asks_servers(config) else ""
    )


def _unread_rate_text(config: RunConfig, flag: str) -> str:
    """Return why no minute holds too many requests; "" for a server, and for the usual limit.

    The usual one says what FaithCheck's command lines say, and limits no vendor anew.
    """
    limit = config.max_requests_per_minute
    if limit in ("default", DEFAULT_REQUESTS_PER_MINUTE) or _asks_servers(config):
        return ""
    return _no_server_text(config, f"{flag} {'none' if limit is None else limit}")


def _unread_request_limit_text(config: RunConfig, flag: str) -> str:
    """Return why single requests have no limits; "" where any is sent, and for the default."""
    field = next(field for field in run_fields().values() if field.flag == flag)
    providers = {ref.provider for ref in models_of(config).values()}
    if getattr(config, field.name) == field.default or providers - PROVIDERS_OF_BATCHES:
        return ""
    return _no_server_text(config, flag)


def _unread_chain_limit_text(config: RunConfig, flag: str) -> str:
    """Return why no request is for a whole chain; "" where one may be."""
    scorers = selected_scorers(config)
    if config.chain_tokens is None or not all(_writes_no_chain(config, s) for s in scorers):
        return ""
    names = _listed(scorer.name for scorer in scorers)
    return (
        f"{flag} limits chains that the model writes, and this run asks for none: {names} with the"
        f" suite's chain. Add --chain own, or leave {flag} out."
    )


def _writes_no_chain(config: RunConfig, scorer: Scorer) -> bool:
    """Whether a scorer of a configuration never asks for a chain or the rest of one."""
    if is_without_model(config):
        return True
    if config.set.keys() & {f"{scorer.name}.chain", f"{scorer.name}.modes"}:
        return False  # --set decides
    if "chain" in scorer.options and chain_source(config, scorer) == "own":
        return False
    if scorer.name == "ablation":
        return "corrupt" not in config.mode
    return scorer.name in WRITES_NO_CHAIN


def _asks_servers(config: RunConfig) -> bool:
    """Whether a model of a configuration is asked over a network."""
    return any(not provider_info(ref.provider).in_process for ref in models_of(config).values())


def _no_server_text(config: RunConfig, flag: str) -> str:
    models = _listed(dict.fromkeys(str(ref) for ref in models_of(config).values()))
    return (
        f"{flag} is for models that are asked over a network (like --provider openai_compat); this"
        f" run asks {models}, in this process."
    )


def _unread_role_text(config: RunConfig, name: str) -> str:
    """Return which roles have a server, a key or a price and are no role of the run."""
    roles = {"subject", *scorer_roles(config)}
    given: Mapping[str, str] = getattr(config, name)
    unread = [role for role in given if role.partition("_")[0] not in roles]
    if not unread:
        return ""
    flag = run_fields()[name].flag
    return f"{flag} {_listed(unread)}: no scorer of this run asks that model; leave it out."


def _listed(names: Iterable[str]) -> str:
    """Join names as in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


_UNREAD_TEXTS: Mapping[str, Callable[[RunConfig, str], str]] = {
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
