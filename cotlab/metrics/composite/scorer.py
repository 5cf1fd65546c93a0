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
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing
from cotlab.metrics.composite import cards
from cotlab.metrics.composite.diagnosis import WORST, Feature, diagnose
from cotlab.stats.weights import WEIGHTS, weighed, weights_for
from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.prompts.chain import ask_answer, ask_rest, said

CHEAP_FIRST = ("F", "V", "C", "D", "R")
FLOORED = "FVCR"
"""The parts that a hard floor stops at; D of one strategy alone is 1/N, whatever the reasoning."""
PROFILES: Mapping[str, str] = {"phase1": "CV", "phase2": "CVF", "phase3": "CVFRD", "phase4": "CVFRD", "phase5": "CVFRD"}
SCORER_OF = {"C": "consistency", "R": "robustness", "V": "verification", "D": "diversity", "F": "flags"}
Where = tuple[str, str, Mapping[str, str]]
FEATURES: Mapping[str, Where] = {
    "C": ("consistency", "consistency", {}), "mu": ("consistency", "consistency_mu", {}),
    "sigma": ("consistency", "consistency_sigma", {}), "agreement": ("consistency", "answer_agreement", {}),
    "R": ("robustness", "robustness", {"perturbation": "all"}),
    "R_sd": ("robustness", "robustness_dispersion", {"perturbation": "all"}),
    "V": ("verification", "verification", {"link": "forward"}),
    "pass_rate": ("verification", "pass_rate", {"link": "forward"}),
    "weak_link": ("verification", "weak_link", {"link": "forward"}),
    "coverage": ("verification", "coverage", {"link": "forward", "verifier": "any"}),
    "D": ("diversity", "diversity", {}), "clusters": ("diversity", "strategy_clusters", {}),
    "F": ("flags", "flags", {}), "early_answer": ("flags", "flag_count", {"rule": "premature_answer"}),
    "jumps": ("flags", "flag_count", {"rule": "semantic_jump"}),
}
"""Each number of the feature vector: whose score it is, of which metric and facet."""
OPTIONS: Mapping[str, Any] = {
    "chain": "reference", "profile": "phase3", "progressive": False, "hard_floor": 0.2, "least_weight": 0.5, "weights": {},
    "parts": {},
}  # fmt: skip
Found = dict[str, Feature]


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
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
            if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 <= weight < float("inf"):
                raise ConfigError(f"The weight of {part} for {category!r} must be a number of at least 0, got {weight!r}")
        if weights and not any(weights.values()):
            raise ConfigError(f"The weights for {category!r} are all 0")


def prepare(suite: Suite, params: Params) -> Preparation:
    """What each part fits on the suite before its items, by the part's scorer."""
    made: dict[str, Any] = {}
    for part in _wanted(params):
        one = _scorer(part)
        if one.prepare is not None:
            made[one.name] = yield from one.prepare(suite, _params_of(one, params))
    return made


@scorer(
    *cards.ALL, version=1, name="composite", options=OPTIONS, prepare=prepare, check=check, parts=tuple(SCORER_OF.values()),
    roles=("embedder", "symbolic", "verifier", "paraphraser"), headlines=(Headline("r_raw", {}),),
)  # fmt: skip
def composite(item: Item, params: Params, peers: Peers) -> Program:
    """Measure the parts of the profile, stop at a hard floor where that is wanted, and weigh them."""
    options, wanted = params.options, _wanted(params)
    found: Found = {}
    broken: tuple[str, float] | None = None
    left: list[str] = list(wanted)
    while left and broken is None:
        part = left.pop(0)
        one = _scorer(part)
        scores = yield from one(item, _params_of(one, params), peers)
        found |= _features(one.name, scores)
        value = found[part].value
        if options["progressive"] and part in FLOORED and value is not None and value < options["hard_floor"]:
            broken = part, value
    found["correct"] = yield from _correct(item, params)
    saved = sum(len(round_) for part in left for round_ in rounds_of(_program(part, item, params, peers), item))
    return tuple(_scores(item, params, found, wanted, broken, left, saved))


def _wanted(params: Params) -> list[str]:
    return [part for part in CHEAP_FIRST if part in PROFILES[params.options["profile"]]]


def _scorer(part: str) -> Scorer:
    found: Scorer = SCORERS[SCORER_OF[part]]
    return found


def _program(part: str, item: Item, params: Params, peers: Peers) -> Program:
    one = _scorer(part)
    return one(item, _params_of(one, params), peers)


def _params_of(one: Scorer, params: Params) -> Params:
    """A part's own parameters: its options as the run sets them, and the constants that were made for it."""
    return replace(
        params, options={**one.options, **params.options["parts"].get(one.name, {})},
        constants=params.constants.get(one.name, {}),
    )  # fmt: skip


def _features(name: str, scores: Sequence[Score]) -> Iterator[tuple[str, Feature]]:
    """The features that one scorer's scores hold."""
    for feature, (of, metric, facet) in FEATURES.items():
        if of == name:
            own = [s for s in scores if s.metric == metric and s.step is None and facet.items() <= dict(s.facet).items()]
            one = own[0] if own else None
            yield feature, (
                Feature(None, "undefined", f"{name} gives no {metric}", ()) if one is None
                else Feature(one.value, one.status, one.reason, one.evidence)
            )  # fmt: skip


def _correct(item: Item, params: Params) -> Generator[Round, Sequence[Reply], Feature]:
    """Whether the model's answer after its chain is right; asked as the parts ask it, so it is paid for once."""
    if item.answer is None:
        return Feature(None, "undefined", "the item has no answer to compare with", ())
    own = params.options["chain"] == "own"
    form = params.subject.form
    steps = [step.text for step in item.steps]
    prompt = ask_rest(item.question, (), form) if own else ask_answer(item.question, steps, form)
    stop = (("\nQ:",) if own else ("\n",)) if form == "continuation" else ()
    (reply,) = yield [
        Complete(params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS, seed=params.seed,
                 temperature=params.temperature, stop=stop)
    ]  # fmt: skip
    gap = missing(reply)
    if gap is not None or not isinstance(reply, Response):
        status, why = gap or ("error", "no reply")
        return Feature(None, status, why, (reply.key,))
    answer = final_answer(said(prompt.prefix, reply.text or ""))
    same = None if answer is None else same_answer(answer, item.answer)
    if same is None:
        return Feature(None, "undefined", "the reply states no answer that can be compared", (reply.key,))
    return Feature(float(same), "ok", None, (reply.key,))


def _scores(
    item: Item, params: Params, found: Found, wanted: Sequence[str], broken: tuple[str, float] | None, left: Sequence[str],
    saved: int,
) -> Iterator[Score]:  # fmt: skip
    options = params.options
    facet = {"chain": options["chain"], "profile": options["profile"]}
    evidence = tuple(dict.fromkeys(key for one in found.values() for key in one.evidence))
    halt = None if broken is None else f"{broken[0]} is {broken[1]:.3g}, below the hard floor {options['hard_floor']:g}"
    weights = weights_for(item.category, options["weights"])
    for feature, (of, _, _) in FEATURES.items():
        one = found.get(feature)
        if one is None and of in {SCORER_OF[part] for part in left}:
            one = found[feature] = Feature(None, "stopped", halt, evidence)
        if one is not None:
            yield cards.FEATURE.score(item, one.value, facet={**facet, "feature": feature}, status=one.status,
                                      reason=one.reason, evidence=one.evidence)  # fmt: skip
    if halt is not None:
        for card in (cards.R_RAW, cards.WEIGHT_DEFINED):
            yield card.score(item, None, facet=facet, status="stopped", reason=halt, evidence=evidence)
    else:
        value, share, why = weighed({part: found[part].value for part in wanted}, weights, options["least_weight"])
        gone = [part for part in wanted if found[part].value is None]
        used = evidence if value is None else tuple(k for part in wanted if part not in gone for k in found[part].evidence)
        status = None if value is not None else _worst([found[part].status for part in gone])
        reasons = "; ".join(f"{part}: {found[part].reason}" for part in gone)
        said_why = None if status is None else f"{why} ({reasons})"
        yield cards.R_RAW.score(item, value, facet=facet, status=status, reason=said_why, evidence=dict.fromkeys(used))
        yield cards.WEIGHT_DEFINED.score(item, share, facet=facet, reason=None if share is not None else why,
                                         evidence=dict.fromkeys(used) if value is not None else ())  # fmt: skip
    off = "progressive evaluation is off"
    yield cards.REQUESTS_SAVED.score(item, float(saved) if options["progressive"] else None, facet=facet,
                                     reason=None if options["progressive"] else off)  # fmt: skip
    correct = found["correct"]
    yield cards.ANSWER_CORRECT.score(item, correct.value, facet=facet, status=correct.status, reason=correct.reason,
                                     evidence=correct.evidence)  # fmt: skip
    for finding in diagnose(found):
        yield cards.DIAGNOSIS.score(item, finding.value, facet={**facet, "rule": finding.rule}, status=finding.status,
                                    reason=finding.reason, evidence=finding.evidence)  # fmt: skip


def _worst(statuses: Sequence[Status]) -> Status:
    """The status of a sum whose parts are all missing: an error before a refusal before what is undefined."""
    return min(statuses, key=WORST.index, default="undefined")
