"""The composite reliability score: its parts one after the other, cheap ones first, and their weighted mean."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.placeholders import rounds_of
from cotlab.core.program import Headline, Params, Peers, Preparation, Program, Round, Scorer, scorer
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Complete, Reply, Response
from cotlab.core.types import Item, ModelRef, Score, Status, Suite
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing_reply
from cotlab.metrics.composite import cards
from cotlab.metrics.composite.diagnosis import STATUS_PRIORITY, Feature, diagnose
from cotlab.stats.composite import WEIGHTS, weighted_mean, weights_for
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import ask_answer, ask_rest, text_after_cue

CHEAP_FIRST = ("F", "V", "C", "D", "R")
FLOORED = "FVCR"
"""The parts that a hard floor stops at; D of one strategy alone is 1/N, whatever the reasoning."""
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
OPTIONS: Mapping[str, Any] = {
    "chain": "reference",
    "profile": "phase3",
    "progressive": False,
    "hard_floor": 0.2,
    "least_weight": 0.5,
    "weights": {},
    "parts": {},
}
Features = dict[str, Feature]


def validate_composite_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where the profile, the floor or a weight cannot be used."""
    if options["profile"] not in PROFILES:
        raise UnknownName("profile", options["profile"], tuple(PROFILES))
    for name in ("hard_floor", "least_weight"):
        if not 0 <= options[name] <= 1:
            raise ConfigError(f"composite.{name} must lie in [0, 1], got {options[name]}")
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
    """What each part fits on the suite before its items, by the part's scorer."""
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
    check=validate_composite_options,
    components=tuple(SCORER_OF.values()),
    roles=("embedder", "symbolic", "verifier", "paraphraser"),
    headlines=(Headline("r_raw", {}, chain="own"),),
)
def composite(item: Item, params: Params, peers: Peers) -> Program:
    """Measure the parts of the profile, stop at a hard floor where that is wanted, and weigh them."""
    options, selected = params.options, _selected_components(params)
    features: Features = {}
    broken: tuple[str, float] | None = None
    remaining: list[str] = list(selected)
    while remaining and broken is None:
        part = remaining.pop(0)
        component = _component_scorer(part)
        scores = yield from component(item, _params_of(component, params), peers)
        features |= _features(component.name, scores)
        value = features[part].value
        if (
            options["progressive"]
            and part in FLOORED
            and value is not None
            and value < options["hard_floor"]
        ):
            broken = part, value
    features["correct"] = yield from _correct(item, params)
    saved = sum(
        len(round_)
        for part in remaining
        for round_ in rounds_of(_program(part, item, params, peers), item)
    )
    return tuple(_scores(item, params, features, selected, broken, remaining, saved))


def _selected_components(params: Params) -> list[str]:
    return [part for part in CHEAP_FIRST if part in PROFILES[params.options["profile"]]]


def _component_scorer(part: str) -> Scorer:
    component: Scorer = SCORERS[SCORER_OF[part]]
    return component


def _program(part: str, item: Item, params: Params, peers: Peers) -> Program:
    component = _component_scorer(part)
    return component(item, _params_of(component, params), peers)


def _params_of(component: Scorer, params: Params) -> Params:
    """A part's own parameters: its options as the run sets them, and the constants that were made for it."""
    return replace(
        params,
        options={**component.options, **params.options["parts"].get(component.name, {})},
        constants=params.constants.get(component.name, {}),
    )


def _features(name: str, scores: Sequence[Score]) -> Iterator[tuple[str, Feature]]:
    """The features that one scorer's scores hold."""
    for feature, (of, metric, facet) in FEATURES.items():
        if of == name:
            matches = [
                s
                for s in scores
                if s.metric == metric and s.step is None and facet.items() <= dict(s.facet).items()
            ]
            score = matches[0] if matches else None
            yield (
                feature,
                (
                    Feature(None, "undefined", f"{name} gives no {metric}", ())
                    if score is None
                    else Feature(score.value, score.status, score.reason, score.evidence)
                ),
            )


def _correct(item: Item, params: Params) -> Generator[Round, Sequence[Reply], Feature]:
    """Whether the model's answer after its chain is right; asked as the parts ask it, so it is paid for once."""
    if item.answer is None:
        return Feature(None, "undefined", "the item has no answer to compare with", ())
    from_model = params.options["chain"] == "own"
    form = params.subject.form
    steps = [step.text for step in item.steps]
    prompt = (
        ask_rest(item.question, (), form) if from_model else ask_answer(item.question, steps, form)
    )
    stop = (("\nQ:",) if from_model else ("\n",)) if form == "continuation" else ()
    (reply,) = yield [
        Complete(
            params.subject,
            prompt.messages,
            prefix=prompt.prefix,
            max_tokens=CHAIN_TOKENS,
            seed=params.seed,
            temperature=params.temperature,
            stop=stop,
        )
    ]
    missing_reason = missing_reply(reply)
    if missing_reason is not None or not isinstance(reply, Response):
        status, reason = missing_reason or ("error", "no reply")
        return Feature(None, status, reason, (reply.key,))
    answer = final_answer(text_after_cue(prompt.prefix, reply.text or ""))
    same = None if answer is None else same_answer(answer, item.answer)
    if same is None:
        return Feature(
            None, "undefined", "the reply states no answer that can be compared", (reply.key,)
        )
    return Feature(float(same), "ok", None, (reply.key,))


def _scores(
    item: Item,
    params: Params,
    features: Features,
    selected: Sequence[str],
    broken: tuple[str, float] | None,
    remaining: Sequence[str],
    saved: int,
) -> Iterator[Score]:
    options = params.options
    facet = {"chain": options["chain"], "profile": options["profile"]}
    evidence = tuple(
        dict.fromkeys(key for measured in features.values() for key in measured.evidence)
    )
    halt = (
        None
        if broken is None
        else f"{broken[0]} is {broken[1]:.3g}, below the hard floor {options['hard_floor']:g}"
    )
    weights = weights_for(item.category, options["weights"])
    for feature, (of, _, _) in FEATURES.items():
        measured = features.get(feature)
        if measured is None and of in {SCORER_OF[part] for part in remaining}:
            measured = features[feature] = Feature(None, "stopped", halt, evidence)
        if measured is not None:
            yield cards.FEATURE.score(
                item,
                measured.value,
                facet={**facet, "feature": feature},
                status=measured.status,
                reason=measured.reason,
                evidence=measured.evidence,
            )
    if halt is not None:
        for card in (cards.R_RAW, cards.WEIGHT_DEFINED):
            yield card.score(
                item, None, facet=facet, status="stopped", reason=halt, evidence=evidence
            )
    else:
        value, share, note = weighted_mean(
            {part: features[part].value for part in selected}, weights, options["least_weight"]
        )
        without_value = [part for part in selected if features[part].value is None]
        used = (
            evidence
            if value is None
            else tuple(
                k for part in selected if part not in without_value for k in features[part].evidence
            )
        )
        status = (
            None if value is not None else _worst([features[part].status for part in without_value])
        )
        reasons = "; ".join(f"{part}: {features[part].reason}" for part in without_value)
        reason = None if status is None else f"{note} ({reasons})"
        yield cards.R_RAW.score(
            item, value, facet=facet, status=status, reason=reason, evidence=dict.fromkeys(used)
        )
        yield cards.WEIGHT_DEFINED.score(
            item,
            share,
            facet=facet,
            reason=None if share is not None else note,
            evidence=dict.fromkeys(used) if value is not None else (),
        )
    off = "progressive evaluation is off"
    yield cards.REQUESTS_SAVED.score(
        item,
        float(saved) if options["progressive"] else None,
        facet=facet,
        reason=None if options["progressive"] else off,
    )
    correct = features["correct"]
    yield cards.ANSWER_CORRECT.score(
        item,
        correct.value,
        facet=facet,
        status=correct.status,
        reason=correct.reason,
        evidence=correct.evidence,
    )
    for finding in diagnose(features):
        yield cards.DIAGNOSIS.score(
            item,
            finding.value,
            facet={**facet, "rule": finding.rule},
            status=finding.status,
            reason=finding.reason,
            evidence=finding.evidence,
        )


def _worst(statuses: Sequence[Status]) -> Status:
    """The status of a sum whose parts are all missing: an error before a refusal before what is undefined."""
    return min(statuses, key=STATUS_PRIORITY.index, default="undefined")
