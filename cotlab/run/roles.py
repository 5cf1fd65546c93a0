"""Choose the model of each role of a run from its configuration."""

from __future__ import annotations

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import Endpoint, Form, ModelRef, Suite
from cotlab.metrics.composite.scorer import (
    COMPONENTS_BY_PROFILE,
    COMPONENTS_CHEAP_FIRST,
    OFFLINE_PROFILE,
    SCORER_BY_COMPONENT,
)
from cotlab.metrics.critic.votes import CRITIC_ROLE
from cotlab.metrics.judge.scorer import JUDGE_ROLE as JUDGE
from cotlab.metrics.judge.scorer import judge_role
from cotlab.metrics.process_reward import PROVIDER as REWARD_PROVIDER
from cotlab.metrics.text_features.scorer import NAME as TEXT_FEATURES
from cotlab.run.config import RunConfig
from cotlab.run.options import DEFAULT_JUDGE
from cotlab.suites.jsonl import ChainSource, SuiteChains

SYMBOLIC_VERIFIER = ModelRef("symbolic", "arithmetic-and-units")
NO_SUBJECT = ModelRef("echo", "echo")
"""The subject of a run that asks no model."""
RAW_TEXT_PROVIDER = "openai_compat"
"""The provider whose servers take raw text at /v1/completions."""
SERVER_TEMPLATE, NO_TEMPLATE = "server", "none"
"""Values of ``chat_template`` that are no folder."""
FOLDER_VERIFIERS = ("nli", "prm")
"""Providers of verifiers that are given by a folder or hub id: ``nli:FOLDER``, ``prm:FOLDER``."""
NO_MODEL_NAMES = {
    "paraphraser": "rules",
    "verifier": "none",
    "embedder": "none",
    "equivalence": "none",
}
"""Value of a role that uses no model."""
CRITIC_PREFIX = f"{CRITIC_ROLE}:"
"""What precedes the model of a verifier that is asked about whole chains."""
_CRITIC_SCORERS = ("critic", "rubric")
"""Scorers that can do nothing without a critic."""


def subject_of(config: RunConfig) -> ModelRef:
    """Return the model of a configuration; its provider adds revision and form once opened.

    Raises
    ------
    ConfigError
        If requests are to be raw text and the provider does not take it.
    """
    if is_without_model(config):
        return NO_SUBJECT
    is_base_model = config.chat_template == NO_TEMPLATE
    has_template = config.chat_template != SERVER_TEMPLATE
    endpoint: Endpoint = (
        "completions"
        if config.form == "completions" or (has_template and config.form == "auto")
        else "chat"
    )
    if endpoint == "chat" and has_template:
        raise ConfigError(
            f"--chat-template {config.chat_template} goes with --form completions, not with chat."
        )
    if endpoint == "completions" and config.provider != RAW_TEXT_PROVIDER:
        raise ConfigError(
            f"--form completions goes with --provider {RAW_TEXT_PROVIDER}, not with"
            f" {config.provider}."
        )
    form: Form = (
        "continuation"
        if config.provider == "organism" or is_base_model
        else "prefill"
        if config.given == "prefix"
        else "chat"
    )
    return ModelRef(
        config.provider, config.model, base_url=config.base_url, form=form, endpoint=endpoint
    )


def models_of(config: RunConfig) -> dict[str, ModelRef]:
    """Return the subject, and a model for each role of the scorers that the configuration fills.

    In a run that only judges, the first judge is the subject.

    Raises
    ------
    ConfigError
        If a role is given something that names no model.
    """
    subject = subject_of(config)
    roles = scorer_roles(config)
    _require_reward_model(config)
    judges = _judge_models(config) if JUDGE in roles else {}
    _check_critic(config)
    models = {
        _model_role(role, config): _role_model(role, config, subject)
        for role in roles
        if role != JUDGE
    } | judges
    if _only_judges(config):
        subject = judges[JUDGE]
    return {"subject": subject, **{role: ref for role, ref in models.items() if ref is not None}}


def listed_models(config: RunConfig) -> list[tuple[str, ModelRef]]:
    """Return role and model of each server that the configuration names.

    A role that the subject plays is left out; a judge that is named twice stands there twice.
    """
    subject = subject_of(config)
    listed = [] if _only_judges(config) else [("subject", subject)]
    for role in scorer_roles(config):
        if role == JUDGE:
            listed += _listed_judges(config)
        elif not is_played_by_subject(role, config):
            ref = _role_model(role, config, subject)
            listed += [(role, ref)] if ref is not None else []
    return listed


def scorer_roles(config: RunConfig) -> list[str]:
    """Return the roles of the scorers of a configuration, each once, as their options name them."""
    return list(
        dict.fromkeys(
            option_of_role(role)
            for scorer in selected_scorers(config)
            for role in _roles_of(scorer, config)
        )
    )


def _model_role(role: str, config: RunConfig) -> str:
    """Return the role that a scorer finds the model under: a critic is no verifier of links."""
    is_critic = role == "verifier" and config.verifier.startswith(CRITIC_PREFIX)
    return CRITIC_ROLE if is_critic else role


def option_of_role(role: str) -> str:
    """Return the option that names the model of a role."""
    return "verifier" if role == CRITIC_ROLE else role


def is_played_by_subject(role: str, config: RunConfig) -> bool:
    """Return whether the configuration gives a role to the subject."""
    return _model_text(option_of_role(role), config) == "subject"


def _model_text(role: str, config: RunConfig) -> str:
    """Return what the option of a role says, a critic's model without its prefix."""
    text: str = getattr(config, role, "")
    return text.removeprefix(CRITIC_PREFIX) if role == "verifier" else text


def _check_critic(config: RunConfig) -> None:
    """Raise where a scorer needs a critic and the verifier is none, or the critic cannot be asked.

    An even number of votes could tie.
    """
    if config.critic_votes % 2 == 0:
        raise ConfigError(f"--critic-votes {config.critic_votes}: give an odd number.")
    is_critic = config.verifier.startswith(CRITIC_PREFIX)
    scorer = next((s.name for s in selected_scorers(config) if s.name in _CRITIC_SCORERS), None)
    if scorer is not None and not is_critic:
        raise ConfigError(
            f"The scorer {scorer} needs a critic: --verifier {CRITIC_PREFIX}{DEFAULT_JUDGE}"
        )
    text = _model_text("verifier", config)
    if is_critic and (text == "none" or text.startswith("nli/")):
        raise ConfigError(
            f"--verifier {config.verifier}: a critic writes text, so it is {CRITIC_PREFIX}subject"
            f" or like {CRITIC_PREFIX}{DEFAULT_JUDGE}."
        )


def _only_judges(config: RunConfig) -> bool:
    return [scorer.name for scorer in selected_scorers(config)] == [JUDGE]


def selected_scorers(config: RunConfig) -> list[Scorer]:
    """Return the scorers of a configuration, then those of its profile, then the composite.

    With progressive evaluation the composite runs alone: the scorers of its components would send
    the requests that it saves.
    """
    names = list(config.scorer)
    if config.profile:
        is_progressive = config.set.get("composite.progressive", "").strip().lower() == "true"
        names += [
            SCORER_BY_COMPONENT[part]
            for part in COMPONENTS_CHEAP_FIRST
            if part in COMPONENTS_BY_PROFILE[config.profile] and not is_progressive
        ] + ["composite"]
    return [SCORERS[name] for name in dict.fromkeys(names)]


def chain_source(config: RunConfig, scorer: Scorer) -> ChainSource:
    """Return whose chain a scorer of the configuration measures.

    Without a choice, the composite and its components measure the model's own chain (that of a
    suite says nothing of the model), and the others, as an offline profile, that of the suite.
    """
    if config.chain != "auto":
        return config.chain
    if is_offline(config):
        return "reference"
    is_component = any(
        scorer.name in (composite.name, *composite.components)
        for composite in selected_scorers(config)
        if composite.components
    )
    return "own" if is_component else "reference"


def suite_chains(config: RunConfig) -> SuiteChains:
    """Return whose chains those of a configuration's suite are to be.

    ``own`` where no scorer measures a chain of the suite; ``auto`` where a suite without any chain
    can be measured on the model's own.
    """
    if config.chain == "own" or _chain_sources(config) == {"own"}:
        return "own"
    return "auto" if config.chain == "auto" and not is_offline(config) else "reference"


def with_chain_of_suite(config: RunConfig, suite: Suite) -> RunConfig:
    """Return the configuration; for a suite without chains, with ``own`` in place of ``auto``."""
    has_chains = any(item.steps for item in suite.items)
    if suite_chains(config) != "auto" or has_chains or not _chain_sources(config):
        return config
    return config.model_copy(update={"chain": "own"})


def _chain_sources(config: RunConfig) -> set[ChainSource]:
    """Return whose chains the scorers of a configuration measure; empty where none reads one."""
    return {
        chain_source(config, scorer)
        for scorer in selected_scorers(config)
        if "chain" in scorer.options
    }


def is_offline(config: RunConfig) -> bool:
    """Return whether the profile reads the suite's chains without a model."""
    return config.profile == OFFLINE_PROFILE


def is_without_model(config: RunConfig) -> bool:
    """Whether every scorer of the configuration belongs to an offline profile."""
    return is_offline(config) and all(
        _is_offline(scorer, config) for scorer in selected_scorers(config)
    )


def _is_offline(scorer: Scorer, config: RunConfig) -> bool:
    components = COMPONENTS_BY_PROFILE[OFFLINE_PROFILE]
    return is_offline(config) and scorer.name in (
        "composite",
        TEXT_FEATURES,
        *(SCORER_BY_COMPONENT[component] for component in components),
    )


def _roles_of(scorer: Scorer, config: RunConfig) -> tuple[str, ...]:
    """Return the roles that a scorer may ask: in an offline profile those that verify."""
    if not _is_offline(scorer, config):
        return scorer.roles
    return tuple(role for role in scorer.roles if role in ("symbolic", "verifier"))


def _judge_models(config: RunConfig) -> dict[str, ModelRef]:
    """Return the judges by role: judge, judge_2 and so on."""
    refs = list(dict.fromkeys(ref for _, ref in _listed_judges(config)))
    if not refs:
        raise ConfigError(f"The scorer judge needs a judge: --judge {DEFAULT_JUDGE}")
    return {judge_role(index): ref for index, ref in enumerate(refs)}


def _listed_judges(config: RunConfig) -> list[tuple[str, ModelRef]]:
    """Return role and model of each judge in the order of ``--judge``, the same ones too."""
    roles = [judge_role(index) for index in range(len(config.judge))]
    return [
        (role, _require_model(role, model_text, config))
        for role, model_text in zip(roles, config.judge, strict=True)
    ]


def _role_model(role: str, config: RunConfig, subject: ModelRef) -> ModelRef | None:
    if role == "symbolic":
        return SYMBOLIC_VERIFIER
    model_text = _model_text(role, config)
    if model_text == NO_MODEL_NAMES.get(role):
        return None
    if is_offline(config) and role == "verifier":
        ref = _parse_model(role, model_text, config)
        if ref is None or ref.provider not in FOLDER_VERIFIERS:
            raise ConfigError(
                f"The profile offline asks no model: --verifier none, nli:FOLDER or prm:FOLDER, not"
                f" {model_text!r}."
            )
    if model_text == "subject" and role != "embedder":
        if role in config.role_base_url:
            raise ConfigError(
                f"--role-base-url {role}: the {role} is the subject, whose address is --base-url."
            )
        return subject
    if role == "embedder" and model_text and _parse_model(role, model_text, config) is None:
        return ModelRef("embedder", model_text)
    return _require_model(role, model_text, config)


def _require_reward_model(config: RunConfig) -> None:
    """Raise ConfigError where the scorer process_reward has no process reward model."""
    if REWARD_PROVIDER not in config.verifier.replace("/", ":").split(":")[:1] and any(
        scorer.name == "process_reward" for scorer in selected_scorers(config)
    ):
        raise ConfigError(
            "The scorer process_reward needs a process reward model: --verifier prm:FOLDER, or"
            " --verifier prm:prm-a, which ships with cotlab."
        )


def _parse_model(role: str, model_text: str, config: RunConfig) -> ModelRef | None:
    """Return the model that ``provider/model`` names, at its role's address; None without one.

    A folder or hub id may follow a colon too: ``nli:FOLDER``.
    """
    separator = ":" if model_text.startswith(_FOLDER_PREFIXES) else "/"
    provider, _, name = model_text.partition(separator)
    if not name or provider not in PROVIDERS:
        return None
    form: Form = "continuation" if provider == "organism" else "chat"
    # In a run that only judges, the judges are the subject.
    is_subject = _only_judges(config) and provider == config.provider
    base_url = config.role_base_url.get(role) or (config.base_url if is_subject else None)
    return ModelRef(provider, name, base_url=base_url, form=form)


def _require_model(role: str, model_text: str, config: RunConfig) -> ModelRef:
    if (ref := _parse_model(role, model_text, config)) is not None:
        if ref.provider == RAW_TEXT_PROVIDER and not ref.base_url:
            raise ConfigError(
                f"The {role} {model_text} needs the address of its server: --role-base-url"
                f" {role}=http://127.0.0.1:8001/v1"
            )
        return ref
    option = role.partition("_")[0]
    alternatives = f"{NO_MODEL_NAMES[role]}, subject or " if role in NO_MODEL_NAMES else ""
    raise ConfigError(
        f"--{option} takes {alternatives}provider/model, like"
        f" {_MODEL_EXAMPLES.get(option, 'openai/gpt-4.1')}; got {model_text!r}."
    )


_FOLDER_PREFIXES = tuple(f"{provider}:" for provider in FOLDER_VERIFIERS)
_MODEL_EXAMPLES = {
    "verifier": "nli:FOLDER, prm:FOLDER or anthropic/claude-opus-4-1",
    "embedder": "embedder/all-MiniLM-L6-v2",
    "judge": DEFAULT_JUDGE,
}
