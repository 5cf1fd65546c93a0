"""The composite reliability score: the weighted mean of its components, cheap ones first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.placeholders import rounds_of
from cotlab.core.program import (
    Headline,
    Option,
    Params,
    Peers,
    Preparation,
    Program,
    Round,
    Scorer,
    scorer,
)
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Reply
from cotlab.core.types import Item, ModelRef, Score, Suite
from cotlab.core.vocabulary import CHAINS
from cotlab.metrics.composite import cards
from cotlab.metrics.kit import (
    ItemScores,
    Measurement,
    MissingReason,
    ask_chain,
    ask_for_answer,
    missing_reply,
    reply_text,
    undefined,
    union_evidence,
    worst_reason,
)
from cotlab.stats.composite import WEIGHTS, weighted_mean, weights_for
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import text_after_cue

CHEAP_FIRST = ("F", "V", "C", "D", "R")
FLOORED = "FVCR"
"""Components that a hard floor stops at; D of one strategy alone is 1/N, whatever the reasoning."""
PROFILES: Mapping[str, str] = {
    "phase1": "CV",
    "phase2": "CVF",
    "phase3": "CVFRD",
    "phase4": "CVFRD",
    "phase5": "CVFRD",
}
SCORER_OF = {
    "C": "consistency",
    "R": "robustness",
    "V": "verification",
    "D": "diversity",
    "F": "flags",
}
Where = tuple[str, str, Mapping[str, str]]
FEATURES: Mapping[str, Where] = {
    "C": ("consistency", "consistency", {}),
    "mu": ("consistency", "consistency_mu", {}),
    "sigma": ("consistency", "consistency_sigma", {}),
    "agreement": ("consistency", "answer_agreement", {}),
    "R": ("robustness", "robustness", {"perturbation": "all"}),
    "R_sd": ("robustness", "robustness_dispersion", {"perturbation": "all"}),
    "V": ("verification", "verification", {"link": "forward"}),
    "pass_rate": ("verification", "pass_rate", {"link": "forward"}),
    "weak_link": ("verification", "weak_link", {"link": "forward"}),
    "coverage": ("verification", "coverage", {"link": "forward", "verifier": "any"}),
    "D": ("diversity", "diversity", {}),
    "clusters": ("diversity", "strategy_clusters", {}),
    "F": ("flags", "flags", {}),
    "early_answer": ("flags", "flag_count", {"rule": "premature_answer"}),
    "jumps": ("flags", "flag_count", {"rule": "semantic_jump"}),
}
"""Each number of the feature vector: whose score it is, of which metric and facet."""
OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain the components measure", choices=CHAINS),
    "profile": Option("phase3", "which components are measured", choices=tuple(PROFILES)),
    "progressive": Option(False, "stop at the first component below the hard floor"),
    "hard_floor": Option(0.2, "value of a component below which the item stops", lo=0, hi=1),
    "least_weight": Option(0.5, "share of the weight that has to be defined", lo=0, hi=1),
    "weights": Option({}, "weights of the components by category"),
    "parts": Option({}, "options of the scorers that it runs"),
}
Features = dict[str, Measurement]


class Rule(NamedTuple):
    """A pattern over features that suggests what is wrong with the reasoning."""

    name: str
    """Facet of its score."""
    needs: tuple[str, ...]
    """The features that it reads, in this order."""
    fires: Callable[..., bool]
    """Whether the values of these features show the pattern."""


RULES = (
    Rule("instability", ("mu",), lambda mu: mu < 0.6),
    Rule("fragility", ("sigma",), lambda sigma: sigma > 0.15),
    Rule(
        "monoculture",
        ("D", "C", "clusters"),
        lambda d, c, clusters: d < 0.3 and c > 0.8 and clusters <= 1,
    ),
    Rule("global_drift", ("V", "correct"), lambda v, correct: v > 0.7 and correct == 0),
    Rule("brittle", ("R",), lambda r: r < 0.6),
    Rule("post_hoc", ("early_answer",), lambda early: early > 0),
    Rule("unsupported_jumps", ("pass_rate",), lambda passed: passed < 0.8),
)


def validate_weights(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where the weight of a component cannot be used."""
    for category, weights in options["weights"].items():
        for part, weight in weights.items():
            if part not in WEIGHTS:
                raise UnknownName(f"part in the weights of {category!r}", part, tuple(WEIGHTS))
            if (
                not isinstance(weight, int | float)
                or isinstance(weight, bool)
                or not 0 <= weight < float("inf")
            ):
                raise ConfigError(
                    f"The weight of {part} for {category!r} must be a number of at least 0, got"
                    f" {weight!r}"
                )
        if weights and not any(weights.values()):
            raise ConfigError(f"The weights for {category!r} are all 0")


def prepare_components(suite: Suite, params: Params) -> Preparation:
    """Fit on the suite what each component needs, by the component's scorer."""
    prepared: dict[str, Any] = {}
    for part in _selected_components(params):
        component = _component_scorer(part)
        if component.prepare is not None:
            prepared[component.name] = yield from component.prepare(
                suite, _params_of(component, params)
            )
    return prepared


@scorer(
    *cards.ALL,
    version=1,
    name="composite",
    options=OPTIONS,
    prepare=prepare_components,
    check=validate_weights,
    components=tuple(SCORER_OF.values()),
    roles=("embedder", "symbolic", "verifier", "paraphraser"),
    headlines=(Headline("r_raw", {}, chain="own"),),
)
def composite(item: Item, params: Params, peers: Peers) -> Program:
    """Measure the components of the profile, stop at a hard floor if so configured, and average."""
    options, selected = params.options, _selected_components(params)
    features: Features = {}
    halt = ""
    remaining: list[str] = list(selected)
    while remaining and not halt:
        part = remaining.pop(0)
        component = _component_scorer(part)
        component_scores = yield from component(item, _params_of(component, params), peers)
        features |= _features(component.name, component_scores)
        value, floor = features[part].value, options["hard_floor"]
        if options["progressive"] and part in FLOORED and value is not None and value < floor:
            halt = f"{part} is {value:.3g}, below the hard floor {floor:g}"
    features["correct"] = yield from _correct(item, params)
    saved = sum(
        len(round_)
        for part in remaining
        for round_ in rounds_of(_program(part, item, params, peers), item)
    )
    scores = ItemScores(item, {"chain": options["chain"], "profile": options["profile"]})
    _add_features(scores, features, remaining, halt)
    _add_mean(scores, params, features, selected, halt)
    off = "progressive evaluation is off"
    scores.add(cards.REQUESTS_SAVED, float(saved) if options["progressive"] else None, reason=off)
    scores.add(cards.ANSWER_CORRECT, features["correct"])
    for rule, finding in diagnose(features):
        scores.add(cards.DIAGNOSIS, finding, facet={"rule": rule})
    return tuple(scores.scores)


def diagnose(features: Mapping[str, Measurement]) -> Iterator[tuple[str, Measurement]]:
    """Yield each rule's name, and 1 if it fires, 0 if not, or which feature is missing."""
    for rule in RULES:
        used = [features.get(name, undefined("it was not measured")) for name in rule.needs]
        missing = [
            (feature.status, f"{name}: {feature.reason}")
            for name, feature in zip(rule.needs, used, strict=True)
            if feature.value is None
        ]
        if (reason := worst_reason(missing)) is not None:
            yield rule.name, Measurement(None, union_evidence(used), *reason)
        else:
            fires = rule.fires(*(feature.value for feature in used))
            yield rule.name, Measurement(float(fires), union_evidence(used))


def _selected_components(params: Params) -> list[str]:
    return [part for part in CHEAP_FIRST if part in PROFILES[params.options["profile"]]]


def _component_scorer(part: str) -> Scorer:
    component: Scorer = SCORERS[SCORER_OF[part]]
    return component


def _program(part: str, item: Item, params: Params, peers: Peers) -> Program:
    component = _component_scorer(part)
    return component(item, _params_of(component, params), peers)


def _params_of(component: Scorer, params: Params) -> Params:
    """Return a component's parameters: its options, and the constants that were fitted for it."""
    return replace(
        params,
        options={**component.options, **params.options["parts"].get(component.name, {})},
        constants=params.constants.get(component.name, {}),
    )


def _features(name: str, scores: Sequence[Score]) -> Iterator[tuple[str, Measurement]]:
    """Yield the features that one scorer's scores hold."""
    for feature, (of, metric, facet) in FEATURES.items():
        if of != name:
            continue
        score = next(
            (
                s
                for s in scores
                if s.metric == metric and s.step is None and facet.items() <= dict(s.facet).items()
            ),
            None,
        )
        if score is None:
            yield feature, undefined(f"{name} gives no {metric}")
        else:
            yield feature, Measurement(score.value, score.evidence, score.status, score.reason)


def _correct(item: Item, params: Params) -> Generator[Round, Sequence[Reply], Measurement]:
    """Ask whether the model's answer after its chain is right.

    The request is the one of the components, so it is paid for once.
    """
    if item.answer is None:
        return undefined("the item has no answer to compare with")
    steps = [step.text for step in item.steps]
    request = (
        ask_chain(params, item.question)
        if params.options["chain"] == "own"
        else ask_for_answer(params, item.question, steps, max_tokens=params.chain_tokens)
    )
    (reply,) = yield [request]
    missing_reason = missing_reply(reply)
    if missing_reason is not None:
        return Measurement(None, (reply.key,), *missing_reason)
    answer = final_answer(text_after_cue(request.prefix, reply_text(reply)))
    same = None if answer is None else same_answer(answer, item.answer)
    if same is None:
        return undefined("the reply states no answer that can be compared", [reply.key])
    return Measurement(float(same), (reply.key,))


def _add_features(
    scores: ItemScores, features: Features, remaining: Sequence[str], halt: str
) -> None:
    """Add every feature that was measured, or that the hard floor stopped."""
    evidence = union_evidence(list(features.values()))
    stopped = {SCORER_OF[part] for part in remaining}
    for name, (of, _, _) in FEATURES.items():
        if name not in features and of in stopped:
            features[name] = Measurement(None, evidence, "stopped", halt)
        if name in features:
            scores.add(cards.FEATURE, features[name], facet={"feature": name})


def _add_mean(
    scores: ItemScores, params: Params, features: Features, selected: Sequence[str], halt: str
) -> None:
    """Add the weighted mean of the components, and how much of the weight is defined."""
    evidence = union_evidence(list(features.values()))
    if halt:
        scores.add_missing((cards.R_RAW, cards.WEIGHT_DEFINED), ("stopped", halt), on=evidence)
        return
    weights = weights_for(scores.item.category, params.options["weights"])
    values = {part: features[part].value for part in selected}
    value, share, note = weighted_mean(values, weights, params.options["least_weight"])
    missing = [features[part] for part in selected if features[part].value is None]
    worst = worst_reason((feature.status, "") for feature in missing)
    reasons = "; ".join(
        f"{part}: {features[part].reason}" for part in selected if features[part].value is None
    )
    used = union_evidence([features[part] for part in selected if features[part].value is not None])
    missing_reason: MissingReason = (worst[0] if worst else "undefined", f"{note} ({reasons})")
    scores.add(cards.R_RAW, value, on=evidence if value is None else used, reason=missing_reason)
    scores.add(cards.WEIGHT_DEFINED, share, on=() if value is None else used, reason=note)
