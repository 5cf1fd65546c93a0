"""Which model plays which part in a run, from the words of a configuration."""

from __future__ import annotations

from cotlab.core.errors import ConfigError
from cotlab.core.program import Scorer
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import Form, ModelRef
from cotlab.metrics.composite.scorer import CHEAP_FIRST, PROFILES, SCORER_OF
from cotlab.metrics.judge.scorer import ROLE as JUDGE
from cotlab.metrics.judge.scorer import judge_role
from cotlab.run.config import RunConfig
from cotlab.run.options import DEFAULT_JUDGE

SYMBOLIC = ModelRef("symbolic", "arithmetic-and-units")
NONE = {"paraphraser": "rules", "verifier": "none"}
"""What stands for no model at all."""


def subject_of(config: RunConfig) -> ModelRef:
    """Return the model of a configuration; its provider adds revision and form once opened."""
    form: Form = (
        "continuation"
        if config.provider == "organism"
        else "prefill"
        if config.given == "prefix"
        else "chat"
    )
    return ModelRef(config.provider, config.model, base_url=config.base_url, form=form)


def models_of(config: RunConfig) -> dict[str, ModelRef]:
    """Return the subject, and a model for each role of the scorers that the configuration fills.

    Where a run only judges, nobody else is asked: the first judge is its subject then.

    Raises
    ------
    ConfigError
        If a role is given something that names no model.
    """
    subject = subject_of(config)
    roles = dict.fromkeys(role for scorer in selected_scorers(config) for role in scorer.roles)
    judges = _judges(config) if roles.pop(JUDGE, ...) is None else {}
    models = {role: _model(role, config, subject) for role in roles} | judges
    if judges and [scorer.name for scorer in selected_scorers(config)] == [JUDGE]:
        subject = judges[JUDGE]
    return {"subject": subject, **{role: ref for role, ref in models.items() if ref is not None}}


def selected_scorers(config: RunConfig) -> list[Scorer]:
    """Return the scorers of a configuration, then those of its profile, then the composite.

    With progressive evaluation the composite alone: parts that run beside it would ask what it
    saves.
    """
    names = list(config.scorer)
    if config.profile:
        alone = config.set.get("composite.progressive", "").strip().lower() == "true"
        names += [
            SCORER_OF[part]
            for part in CHEAP_FIRST
            if part in PROFILES[config.profile] and not alone
        ] + ["composite"]
    return [SCORERS[name] for name in dict.fromkeys(names)]


def _judges(config: RunConfig) -> dict[str, ModelRef]:
    """Return the judges by role: judge, judge_2 and so on."""
    refs = list(dict.fromkeys(_required_model(JUDGE, word, config) for word in config.judge))
    if not refs:
        raise ConfigError(f"The scorer judge needs a judge: --judge {DEFAULT_JUDGE}")
    return {judge_role(number): ref for number, ref in enumerate(refs)}


def _model(role: str, config: RunConfig, subject: ModelRef) -> ModelRef | None:
    if role == "symbolic":
        return SYMBOLIC
    word: str = getattr(config, role)
    if word == NONE.get(role):
        return None
    if word == "subject" and role != "embedder":
        return subject
    if role == "embedder" and word and _parsed(word, config) is None:
        return ModelRef("embedder", word)
    return _required_model(role, word, config)


def _parsed(word: str, config: RunConfig) -> ModelRef | None:
    """Return the model that ``provider/model`` names; None where it names none."""
    provider, _, name = word.partition("/")
    if not name or provider not in PROVIDERS:
        return None
    form: Form = "continuation" if provider == "organism" else "chat"
    return ModelRef(
        provider, name, base_url=config.base_url if provider == config.provider else None, form=form
    )


def _required_model(role: str, word: str, config: RunConfig) -> ModelRef:
    if (ref := _parsed(word, config)) is not None:
        return ref
    none = f"{NONE[role]}, subject or " if role in NONE else ""
    raise ConfigError(
        f"--{role} takes {none}provider/model, like {_EXAMPLES.get(role, 'openai/gpt-4.1')}; got"
        f" {word!r}."
    )


_EXAMPLES = {
    "verifier": "nli/FOLDER or anthropic/claude-opus-4-1",
    "embedder": "embedder/all-MiniLM-L6-v2",
    "judge": DEFAULT_JUDGE,
}
