"""The composite reliability score: the weighted mean of its components, cheap ones first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.placeholders import placeholder_rounds
from cotlab.core.program import (
    Headline,
    Option,
    Params,
    Peers,
    Preparation,
    Program,
    RequestRound,
    Scorer,
    scorer,
)
from cotlab.core.registry import SCORERS
from cotlab.core.requests import Reply, Response
from cotlab.core.types import CHAINS, Item, MetricCard, ModelRef, Score, Suite
from cotlab.metrics.equivalence import EQUIVALENCE_ROLE, is_right_or_settled
from cotlab.metrics.kit import (
    ItemScores,
    Measurement,
    MissingReason,
    answer_request,
    ask_chain,
    missing_reply_reason,
    parse_reply_text,
    text_from_cue,
    undefined_measurement,
    union_evidence,
    worst_reason,
)
from cotlab.stats.composite import EXAMPLE_WEIGHTS, checked_weight, weighted_mean, weights_for

DEFAULT_SOURCE = "CoT reliability suite, section 8"
_NEEDS = ("complete", "embed", "entail")
_card = partial(MetricCard, needs=_NEEDS, source=DEFAULT_SOURCE)
R_RAW = _card(
    name="r_raw",
    symbol="r_raw",
    formula="Σ w·clip(part, 0, 1) / Σ w over the parts C, R, V, D, F that are defined; example"
    " weights .30 .25 .25 .10 .10, or those of the item's category. V, F and R are those of the"
    " model's own chain, or with facet `chain`=reference of the suite's; profile `offline`: V and"
    " F of the suite's chain, and no model is asked.",
    undefined="Less than half of the profile's weight is defined or checked (`weight_checked`;"
    " option `least_weight`), or the evaluation stopped at a hard floor (status stopped).",
    not_shown="How likely the reasoning is acceptable: that needs calibration. Two items with"
    " other parts defined are not on one scale. Of a suite's chain, V and F are the same for every"
    " model. Arithmetic finds false equations only: where nothing else verifies the links, V = 1"
    " means that none was found, not that the chain is right.",
    better="higher",
)
WEIGHT_DEFINED = _card(
    name="weight_defined",
    symbol="Σw",
    formula="weight of the defined parts over the weight of all parts of the profile",
    undefined="The evaluation stopped at a hard floor.",
    not_shown="Whether the parts that are left are the ones that matter for the item.",
    better="higher",
)
WEIGHT_CHECKED = _card(
    name="weight_checked",
    symbol="Σw checked",
    formula="as `weight_defined`, with the share of the chain that a part could check as a factor"
    " of its weight: of V the share of links that were decided, of F the share of its five rules"
    " that were on; C, R and D count fully",
    undefined="The evaluation stopped at a hard floor.",
    not_shown="Whether a mistake outside of what was checked would matter, or one within it be"
    " found.",
    better="higher",
    source="cotlab",
)
FEATURE = _card(
    name="feature",
    symbol="x",
    formula="one number of the item's feature vector, by facet `feature`: the parts as they were"
    " measured, unclipped, and what they are made of",
    undefined="As the metric that it is a copy of; stopped where a hard floor came before it.",
    not_shown="Anything beyond the metric of that name.",
    lo=-1.0,
    hi=1e5,
)
REQUESTS_SAVED = _card(
    name="requests_saved",
    symbol="saved",
    formula="requests that the parts after a broken hard floor would have asked, counted with"
    " placeholders for the replies",
    undefined="Progressive evaluation is off.",
    not_shown="An exact count: what later rounds ask depends on replies that were never asked for.",
    hi=1e5,
    unit="requests",
    better="higher",
    source="CoT reliability suite, section 12",
)
ANSWER_CORRECT = _card(
    name="answer_correct",
    symbol="correct",
    formula="1 if the model's answer after its chain is the item's answer, else 0",
    undefined="The item has no answer, or the reply is missing, refused or states none.",
    not_shown="Whether the chain led to the answer.",
    better="higher",
    needs=("complete",),
    source="exact comparison of values",
    flag=True,
)
DIAGNOSIS = _card(
    name="diagnosis",
    symbol="dx",
    formula="1 if the rule of facet `rule` fires: instability (μ < .6), fragility (σ > .15),"
    " monoculture (D < .3 and C > .8, of several clusters), global_drift (V > .7 and a wrong"
    " answer), brittle (R < .6), post_hoc (an answer before 40 % of the steps), unsupported_jumps"
    " (pass rate of the links < .8)",
    undefined="A number that the rule needs is undefined; monoculture also where all N paths are"
    " in one cluster: D is then 1/N or 0 by construction.",
    not_shown="The cause: a rule names a pattern that fits, with the requests behind its numbers.",
    better="lower",
    source="CoT reliability suite, sections 1, 3, 6",
    flag=True,
)
ALL_CARDS = (
    R_RAW,
    WEIGHT_DEFINED,
    WEIGHT_CHECKED,
    FEATURE,
    REQUESTS_SAVED,
    ANSWER_CORRECT,
    DIAGNOSIS,
)


Features = dict[str, Measurement]


class DiagnosisRule(NamedTuple):
    """A pattern over features that suggests what is wrong with the reasoning."""

    name: str
    """Facet of its score."""
    feature_names: tuple[str, ...]
    """The features that it reads, in this order."""
    predicate: Callable[..., bool]
    """Whether the values of these features show the pattern."""
    undecidable: Callable[..., bool] = lambda *values: False
    """Whether the values would show the pattern, or not, however the model reasons."""
    undecidable_reason: str = ""
    """Why there is no finding then."""


DIAGNOSIS_RULES = (
    DiagnosisRule("instability", ("mu",), lambda mu: mu < 0.6),
    DiagnosisRule("fragility", ("sigma",), lambda sigma: sigma > 0.15),
    DiagnosisRule(
        "monoculture",
        ("D", "C", "clusters"),
        lambda d, c, clusters: d < 0.3 and c > 0.8,
        lambda d, c, clusters: clusters <= 1,
        "all paths are in one cluster, and D is then at most 1/N however the model reasons",
    ),
    DiagnosisRule("global_drift", ("V", "correct"), lambda v, correct: v > 0.7 and correct == 0),
    DiagnosisRule("brittle", ("R",), lambda r: r < 0.6),
    DiagnosisRule("post_hoc", ("early_answer",), lambda early: early > 0),
    DiagnosisRule("unsupported_jumps", ("pass_rate",), lambda passed: passed < 0.8),
)


def diagnose(features: Mapping[str, Measurement]) -> Iterator[tuple[str, Measurement]]:
    """Yield each rule's name, and 1 if it fires, 0 if not, or which feature is missing."""
    for rule in DIAGNOSIS_RULES:
        rule_features = [
            features.get(name, undefined_measurement("it was not measured"))
            for name in rule.feature_names
        ]
        missing_reasons = [
            (feature.status, f"{name}: {feature.reason}")
            for name, feature in zip(rule.feature_names, rule_features, strict=True)
            if feature.value is None
        ]
        evidence, values = (
            union_evidence(rule_features),
            [feature.value for feature in rule_features],
        )
        if (reason := worst_reason(missing_reasons)) is not None:
            yield rule.name, Measurement(None, evidence, *reason)
        elif rule.undecidable(*values):
            yield rule.name, undefined_measurement(rule.undecidable_reason, evidence)
        else:
            yield rule.name, Measurement(float(rule.predicate(*values)), evidence)


N_FLAG_RULES = 5
"""Rules that F is over where all are on."""
COMPONENTS_CHEAP_FIRST = ("F", "V", "C", "D", "R")
HARD_FLOOR_COMPONENTS = "FVCR"
"""Components that a hard floor stops at; D of one strategy alone is 1/N, whatever the reasoning."""
OFFLINE_PROFILE = "offline"
"""The profile that asks no model: parts that read a chain of the suite as text."""
COMPONENTS_BY_PROFILE: Mapping[str, str] = {
    OFFLINE_PROFILE: "VF",
    "phase1": "CV",
    "phase2": "CVF",
    "phase3": "CVFRD",
    "phase4": "CVFRD",
    "phase5": "CVFRD",
}
SCORER_BY_COMPONENT = {
    "C": "consistency",
    "R": "robustness",
    "V": "verification",
    "D": "diversity",
    "F": "flags",
}
FeatureSource = tuple[str, str, Mapping[str, str]]
FEATURE_SOURCES: Mapping[str, FeatureSource] = {
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
    "chain": Option("own", "whose chain the components measure", choices=CHAINS),
    "profile": Option(
        "phase3", "which components are measured", choices=tuple(COMPONENTS_BY_PROFILE)
    ),
    "progressive": Option(False, "stop at the first component below the hard floor"),
    "hard_floor": Option(0.2, "value of a component below which the item stops", lo=0, hi=1),
    "least_weight": Option(
        0.5, "share of the weight that has to be defined and checked", lo=0, hi=1
    ),
    "weights": Option({}, "weights of the components by category"),
    "parts": Option({}, "options of the scorers that it runs"),
}


def validate_composite(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise where the components measure different chains, or a weight cannot be used."""
    chain = options["chain"]
    if options["profile"] == OFFLINE_PROFILE and chain == "own":
        raise ConfigError(
            "The profile offline asks no model, so it reads the chains that the suite holds:"
            " --chain reference."
        )
    for name, component_options in options["parts"].items():
        if component_options.get("chain", chain) != chain:
            raise ConfigError(
                f"composite.chain is {chain} and {name}.chain is {component_options['chain']}: all"
                f" parts of a composite measure one chain. Give --chain {chain}."
            )
    for category, weights in options["weights"].items():
        for component_name, weight in weights.items():
            if component_name not in EXAMPLE_WEIGHTS:
                raise UnknownName(
                    f"part in the weights of {category!r}", component_name, tuple(EXAMPLE_WEIGHTS)
                )
            if (
                not isinstance(weight, int | float)
                or isinstance(weight, bool)
                or not 0 <= weight < float("inf")
            ):
                raise ConfigError(
                    f"The weight of {component_name} for {category!r} must be a number of at least"
                    f" 0, got {weight!r}"
                )
        if weights and not any(weights.values()):
            raise ConfigError(f"The weights for {category!r} are all 0")


def prepare_components(suite: Suite, params: Params) -> Preparation:
    """Fit on the suite what each component needs, by the component's scorer."""
    constants_by_scorer: dict[str, Any] = {}
    for component_name in _select_components(params):
        component: Scorer = SCORERS[SCORER_BY_COMPONENT[component_name]]
        if component.prepare is not None:
            constants_by_scorer[component.name] = yield from component.prepare(
                suite, _component_params(component, params)
            )
    return constants_by_scorer


@scorer(
    *ALL_CARDS,
    version=15,
    name="composite",
    options=OPTIONS,
    prepare=prepare_components,
    check=validate_composite,
    components=tuple(SCORER_BY_COMPONENT.values()),
    roles=("embedder", "symbolic", "verifier", "paraphraser", EQUIVALENCE_ROLE),
    headlines=(Headline("r_raw", {}, measured_chain="own"),),
)
def composite(item: Item, params: Params, peers: Peers) -> Program:
    """Measure the components of the profile, stop at a hard floor if so configured, and average."""
    options, components = params.options, _select_components(params)
    features: Features = {}
    checked_shares: dict[str, float] = {}
    stop_reason = ""
    remaining_components: list[str] = list(components)
    while remaining_components and not stop_reason:
        component_name = remaining_components.pop(0)
        component_scores = yield from _component_program(component_name, item, params, peers)
        features |= _read_features(SCORER_BY_COMPONENT[component_name], component_scores)
        checked_shares |= _read_checked_shares(component_name, features, component_scores)
        value, hard_floor = features[component_name].value, options["hard_floor"]
        if (
            options["progressive"]
            and component_name in HARD_FLOOR_COMPONENTS
            and value is not None
            and value < hard_floor
        ):
            stop_reason = f"{component_name} is {value:.3g}, below the hard floor {hard_floor:g}"
    features["correct"] = yield from _measure_correctness(item, params)
    n_saved_requests = sum(
        len(request_round)
        for component_name in remaining_components
        for request_round in placeholder_rounds(
            _component_program(component_name, item, params, peers), item
        )
    )
    scores = ItemScores(item, {"chain": options["chain"], "profile": options["profile"]})
    _add_features(scores, features, remaining_components, stop_reason)
    _add_weighted_mean(scores, params, features, components, checked_shares, stop_reason)
    n_saved = float(n_saved_requests) if options["progressive"] else None
    scores.add(REQUESTS_SAVED, n_saved, reason="progressive evaluation is off")
    scores.add(ANSWER_CORRECT, features["correct"])
    for rule, finding in diagnose(features):
        scores.add(DIAGNOSIS, finding, facet={"rule": rule})
    return tuple(scores.scores)


def _select_components(params: Params) -> list[str]:
    measured = COMPONENTS_BY_PROFILE[params.options["profile"]]
    return [name for name in COMPONENTS_CHEAP_FIRST if name in measured]


def _component_program(component_name: str, item: Item, params: Params, peers: Peers) -> Program:
    component: Scorer = SCORERS[SCORER_BY_COMPONENT[component_name]]
    return component(item, _component_params(component, params), peers)


def _component_params(component: Scorer, params: Params) -> Params:
    """Return a component's parameters: its options, and the constants that were fitted for it."""
    chain = {"chain": params.options["chain"]} if "chain" in component.options else {}
    return replace(
        params,
        options={**component.options, **chain, **params.options["parts"].get(component.name, {})},
        constants=params.constants.get(component.name, {}),
    )


def _read_features(
    target_scorer: str, scores: Sequence[Score]
) -> Iterator[tuple[str, Measurement]]:
    """Yield the features that one scorer's scores hold."""
    for feature_name, (scorer_name, metric, facet) in FEATURE_SOURCES.items():
        if scorer_name != target_scorer:
            continue
        metric_scores = [s for s in scores if s.metric == metric and s.step is None]
        matching_scores = [s for s in metric_scores if facet.items() <= dict(s.facet).items()]
        without_chain = [
            s for s in metric_scores if all(dict(s.facet).get(k, v) == v for k, v in facet.items())
        ]
        score = next(iter(matching_scores or without_chain), None)
        if score is None:
            yield feature_name, undefined_measurement(f"{target_scorer} gives no {metric}")
        else:
            yield feature_name, Measurement(score.value, score.evidence, score.status, score.reason)


def _read_checked_shares(
    component_name: str, features: Features, scores: Sequence[Score]
) -> Iterator[tuple[str, float]]:
    """Yield which share of a chain V or F could check; the other components have none."""
    if component_name == "V":
        yield "V", features["coverage"].value or 0.0
    elif component_name == "F":
        n_rules = next((s.value for s in scores if s.metric == "flags_rules_checked"), None)
        yield "F", (n_rules or 0.0) / N_FLAG_RULES


def _measure_correctness(
    item: Item, params: Params
) -> Generator[RequestRound, Sequence[Reply], Measurement]:
    """Ask whether the model's answer after its chain is right.

    The request is the one of the components, so it is paid for once.
    """
    if params.options["profile"] == OFFLINE_PROFILE:
        return undefined_measurement("the profile offline asks no model for its answer")
    if item.answer is None:
        return undefined_measurement("the item has no answer to compare with")
    steps = [step.text for step in item.steps]
    request = (
        ask_chain(params, item.question)
        if params.options["chain"] == "own"
        else answer_request(params, item.question, steps, max_tokens=params.chain_tokens)
    )
    (reply,) = yield [request]
    missing_reason = missing_reply_reason(reply)
    if missing_reason is not None or not isinstance(reply, Response):
        return Measurement(None, (reply.key,), *(missing_reason or ("error", "no reply")))
    text = text_from_cue(request, reply)
    parsed_reply = parse_reply_text(reply, text, item)
    if parsed_reply.is_truncated:
        return undefined_measurement("the reply was cut off before an answer", [reply.key])
    is_right, keys = yield from is_right_or_settled(item, params, parsed_reply.answer)
    if is_right is None:
        return undefined_measurement("the reply states no answer that can be compared", [reply.key])
    return Measurement(float(is_right), (reply.key, *keys))


def _add_features(
    scores: ItemScores, features: Features, remaining_components: Sequence[str], stop_reason: str
) -> None:
    """Add every feature that was measured, or that the hard floor stopped."""
    evidence = union_evidence(list(features.values()))
    stopped_scorers = {SCORER_BY_COMPONENT[name] for name in remaining_components}
    for name, (scorer_name, _, _) in FEATURE_SOURCES.items():
        if name not in features and scorer_name in stopped_scorers:
            features[name] = Measurement(None, evidence, "stopped", stop_reason)
        if name in features:
            scores.add(FEATURE, features[name], facet={"feature": name})


def _add_weighted_mean(
    scores: ItemScores,
    params: Params,
    features: Features,
    components: Sequence[str],
    checked_shares: Mapping[str, float],
    stop_reason: str,
) -> None:
    """Add the weighted mean, and how much of the weight is defined and could check the chain."""
    evidence = union_evidence(list(features.values()))
    if stop_reason:
        scores.add_missing(
            (R_RAW, WEIGHT_DEFINED, WEIGHT_CHECKED),
            ("stopped", stop_reason),
            rests_on=evidence,
        )
        return
    weights = weights_for(scores.item.category, params.options["weights"])
    values = {component_name: features[component_name].value for component_name in components}
    min_weight = params.options["least_weight"]
    value, weight_share, note = weighted_mean(values, weights, min_weight)
    checked_share = checked_weight(values, weights, checked_shares)
    if value is not None and checked_share is not None and checked_share < min_weight:
        value, note = None, _unchecked_note(values, checked_shares, checked_share, min_weight)
    missing = {name: features[name] for name in components if features[name].value is None}
    worst_missing_reason = worst_reason((feature.status, "") for feature in missing.values())
    reasons_text = "; ".join(f"{name}: {feature.reason}" for name, feature in missing.items())
    used_keys = union_evidence([features[name] for name in components if name not in missing])
    missing_reason: MissingReason = (
        worst_missing_reason[0] if worst_missing_reason else "undefined",
        f"{note} ({reasons_text})" if reasons_text else note,
    )
    keys, share_keys = (evidence, ()) if value is None else (used_keys, used_keys)
    scores.add(R_RAW, value, rests_on=keys, reason=missing_reason)
    scores.add(WEIGHT_DEFINED, weight_share, rests_on=share_keys, reason=note)
    scores.add(WEIGHT_CHECKED, checked_share, rests_on=share_keys, reason=note)


def _unchecked_note(
    values: Mapping[str, float | None],
    checked_shares: Mapping[str, float],
    checked_share: float,
    min_weight: float,
) -> str:
    """Return why too little of a chain was checked for a mean."""
    texts = {"V": "V decided {:.0%} of the links", "F": "{:.0%} of F's rules are on"}
    details = [
        texts[component].format(share)
        for component, share in checked_shares.items()
        if values.get(component) is not None and share < 1
    ]
    return (
        f"{checked_share:.0%} of the weight was checked, and {min_weight:.0%} is needed:"
        f" {', '.join(details)}"
    )
