"""Which model plays which part in a run, from the words of a configuration."""

from __future__ import annotations

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import Form, ModelRef
from cotlab.metrics.composite import CHEAP_FIRST, PROFILES, SCORER_OF
from cotlab.run.config import RunConfig

SYMBOLIC = ModelRef("symbolic", "arithmetic-and-units")
NONE = {"paraphraser": "rules", "verifier": "none"}
"""What stands for no model at all."""


def subject_of(config: RunConfig) -> ModelRef:
    """The model a configuration names; its provider fills in revision and form once it is opened."""
    form: Form = "continuation" if config.provider == "organism" else "prefill" if config.given == "prefix" else "chat"
    return ModelRef(config.provider, config.model, base_url=config.base_url, form=form)


def models_of(config: RunConfig) -> dict[str, ModelRef]:
    """The subject, and a model for each role that the chosen scorers have and the configuration fills.

    Raises
    ------
    ConfigError
        If a role is given something that names no model.
    """
    subject = subject_of(config)
    roles = dict.fromkeys(role for one in chosen(config) for role in one.roles)
    told = {role: _model(role, config, subject) for role in roles}
    return {"subject": subject, **{role: ref for role, ref in told.items() if ref is not None}}


def chosen(config: RunConfig) -> list[Scorer]:
    """The scorers of a configuration, and those that its profile adds: the parts of its phase, then the composite.

    With progressive evaluation the composite alone: parts that run beside it would ask what it saves.
    """
    names = list(config.scorer)
    if config.profile:
        alone = config.set.get("composite.progressive", "").strip().lower() == "true"
        names += [SCORER_OF[part] for part in CHEAP_FIRST if part in PROFILES[config.profile] and not alone] + ["composite"]
    return [SCORERS[name] for name in dict.fromkeys(names)]


def _model(role: str, config: RunConfig, subject: ModelRef) -> ModelRef | None:
    if role == "symbolic":
        return SYMBOLIC
    word: str = getattr(config, role)
    provider, slash, name = word.partition("/")
    if word == NONE.get(role):
        return None
    if word == "subject" and role != "embedder":
        return subject
    if slash and name and provider in PROVIDERS:
        form: Form = "continuation" if provider == "organism" else "chat"
        return ModelRef(provider, name, base_url=config.base_url if provider == config.provider else None, form=form)
    if role == "embedder" and word:
        return ModelRef("embedder", word)
    none = f"{NONE[role]}, subject or " if role in NONE else ""
    raise ConfigError(f"--{role} takes {none}provider/model, like {_EXAMPLES.get(role, 'openai/gpt-4.1')}; got {word!r}.")


_EXAMPLES = {"verifier": "nli/FOLDER or anthropic/claude-opus-4-1", "embedder": "embedder/all-MiniLM-L6-v2"}
