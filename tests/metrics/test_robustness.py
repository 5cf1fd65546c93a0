"""Robustness by hand: what is asked from each step, what is embedded, and what each score makes of
the replies."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cotlab.api import run_suite
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Embed, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.robustness import choose_step_indices, perturb_step, robustness, suffix_texts
from cotlab.suites import load_suite, shipped_suites
from cotlab.suites.wordproblems import make_suite
from tests.support.replies import drive

OPTIONS = robustness.options

STEPS = ("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 9.", "Step 3: 9 + 1 = 10.")
ITEM = Item("i1", "Ann has 7 apples …", "10", tuple(Step(i, text) for i, text in enumerate(STEPS)))
ORGANISM = ModelRef("organism", "r100", form="continuation")
EMBEDDER = ModelRef("embedder", "all-MiniLM-L6-v2")
VECTORS = {
    STEPS[1]: (1.0, 0.0),
    STEPS[2]: (1.0, 0.0),
    "Step 3: a.": (0.0, 1.0),
    "Step 3: b.": (-1.0, 0.0),
}


def params(repeats: int = 1, embedder: ModelRef | None = EMBEDDER, **options: Any) -> Params:
    models = {"subject": ORGANISM, **({"embedder": embedder} if embedder else {})}
    return Params(
        models,
        repeats=repeats,
        options={**OPTIONS, "fraction": 1.0, "perturbations": ("numeric",), **options},
    )


def run(
    given: Params, reply: Callable[[Request], Reply], item: Item = ITEM
) -> tuple[tuple[Score, ...], list[list[Request]]]:
    scores, rounds, _ = drive(robustness(item, given, Peers((item,))), reply)
    return scores, [list(round_) for round_ in rounds]


def writing(texts: dict[str, str]) -> Callable[[Request], Reply]:
    """A model that writes the text whose key its prefix ends with, and an embedder that knows
    VECTORS."""

    def reply(request: Request) -> Reply:
        if isinstance(request, Embed):
            (text,) = request.texts
            return Response(request.key, vectors=(VECTORS.get(text, (1.0, 0.0)),))
        assert isinstance(request, Complete)
        told = next((text for end, text in texts.items() if request.prefix.endswith(end)), None)
        if told is None:
            return Failed(request.key, "unknown word: 21", 1, unsupported=True)
        return Response(request.key, told, finish="stop")

    return reply


def found(
    scores: Sequence[Score], metric: str, perturbation: str, step: int | None = None
) -> list[Score]:
    return [
        s
        for s in scores
        if (s.metric, s.step, dict(s.facet)["perturbation"]) == (metric, step, perturbation)
    ]


REST = {0: f"{STEPS[1]}\n{STEPS[2]}\n", 1: f"{STEPS[2]}\n", 2: ""}
AS_IT_IS = {f"{STEPS[i]}\n": f"{REST[i]}So the answer is 10." for i in range(3)}


def prefix_of(i: int) -> str:
    made = perturb_step(ITEM, STEPS, i, "numeric", 42)
    assert made is not None and made != STEPS[i]
    return f"{made}\n"


def test_each_step_is_regenerated_as_it_is_and_perturbed_and_each_text_is_embedded_once() -> None:
    texts = {**AS_IT_IS, **{prefix_of(i): "a\nb\nSo the answer is 9." for i in range(2)}}
    _, (asked, embedded) = run(params(), writing(texts))
    prefixes = {request.prefix for request in asked if isinstance(request, Complete)}
    assert prefixes == {
        "".join(f"{s}\n" for s in STEPS[:i]) + end
        for i in range(2)
        for end in (f"{STEPS[i]}\n", prefix_of(i))
    }
    assert [request.texts for request in embedded if isinstance(request, Embed)] == [
        (STEPS[1],),
        (STEPS[2],),
        ("a",),
        ("b",),
    ]
    assert {request.model for request in embedded} == {EMBEDDER}


def test_divergence_is_one_minus_the_cosine_of_the_mean_directions() -> None:
    # the original suffixes point along (1, 0); a is at right angles, b the other way, a and step 2
    # together at 45°
    texts = {
        **AS_IT_IS,
        prefix_of(0): f"{STEPS[1]}\nStep 3: a.\nSo the answer is 9.",
        prefix_of(1): "Step 3: b.\nSo the answer is 10.",
    }
    scores, rounds = run(params(), writing(texts))
    apart = [found(scores, "divergence", "numeric", i)[0] for i in range(2)]
    assert apart[0].value == pytest.approx(1 - math.sqrt(0.5)) and apart[1].value == pytest.approx(
        2
    )
    assert not [s for s in scores if s.step == 2]  # nothing follows the last step
    embeds = {r.texts[0]: r.key for r in rounds[1] if isinstance(r, Embed)}
    told = next(
        r.key for r in rounds[0] if isinstance(r, Complete) and r.prefix.endswith(prefix_of(1))
    )
    assert set(apart[1].evidence) == {told, embeds[STEPS[2]], embeds["Step 3: b."]}
    (mean,), (spread,) = (
        found(scores, "robustness", "numeric"),
        found(scores, "robustness_dispersion", "numeric"),
    )
    assert mean.value == pytest.approx(1 - (1 - math.sqrt(0.5) + 2) / 2)
    assert spread.value == pytest.approx(
        (2 - (1 - math.sqrt(0.5))) / math.sqrt(2)
    )  # ddof 1 of two values
    assert [s.value for s in found(scores, "divergence", "none", 0)] == [pytest.approx(0)]
    assert found(scores, "robustness", "none")[0].value == pytest.approx(1)
    assert found(scores, "robustness", "all")[0].value == mean.value
    changes = [found(scores, "perturbed_answer_change", "numeric", i)[0].value for i in range(2)]
    assert changes == [1, 0]


def test_what_does_not_apply_or_leaves_the_vocabulary_is_undefined_with_its_reason() -> None:
    scores, _ = run(params(perturbations=("numeric", "unit_swap")), writing(AS_IT_IS))
    assert {s.reason for s in found(scores, "divergence", "unit_swap", 0)} == {
        "no rule for unit_swap applies to this step"
    }
    assert {s.reason for s in found(scores, "divergence", "numeric", 0)} == {"unknown word: 21"}
    assert {(s.value, s.status) for s in found(scores, "robustness", "all")} == {
        (None, "undefined")
    }
    assert found(scores, "robustness", "none")[0].value == pytest.approx(1)


def test_a_suffix_that_is_missing_or_cut_off_has_no_divergence() -> None:
    def cut(request: Request) -> Reply:
        if isinstance(request, Complete) and request.prefix.endswith(prefix_of(0)):
            return Response(request.key, "Step 2: 12 -", finish="length")
        return writing({**AS_IT_IS, prefix_of(1): "So the answer is 4."})(request)

    scores, _ = run(params(), cut)
    assert found(scores, "divergence", "numeric", 0)[0].reason == "the reply was cut off"
    assert (
        found(scores, "perturbed_answer_change", "numeric", 0)[0].reason
        == "the reply was cut off before an answer"
    )
    assert found(scores, "divergence", "numeric", 1)[0].reason == "the model wrote no further step"
    assert found(scores, "perturbed_answer_change", "numeric", 1)[0].value == 1


def test_without_an_embedder_answers_are_still_compared() -> None:
    texts = {**AS_IT_IS, **{prefix_of(i): "a\nSo the answer is 9." for i in range(2)}}
    scores, rounds = run(params(embedder=None), writing(texts))
    assert len(rounds) == 1
    assert (
        found(scores, "divergence", "numeric", 0)[0].reason
        == "no model embeds the steps: --embedder"
    )
    assert [found(scores, "perturbed_answer_change", "all", i)[0].value for i in range(2)] == [1, 1]


def test_the_choice_of_steps_is_seeded_and_rounded_up() -> None:
    steps = tuple(f"s{i}" for i in range(10))

    def chosen(n_candidates: int, fraction: float, seed: int) -> tuple[int, ...]:
        return choose_step_indices(ITEM, steps, range(n_candidates), fraction, seed)

    assert len(chosen(10, 0.3, 1)) == 3 and len(chosen(4, 0.3, 1)) == 2
    assert chosen(10, 1.0, 1) == tuple(range(10)) and len(chosen(1, 0.01, 1)) == 1
    assert len({chosen(10, 0.3, seed) for seed in range(20)}) > 5
    assert chosen(10, 0.3, 5) == chosen(10, 0.3, 5)
    assert choose_step_indices(ITEM, steps, [2, 7], 1.0, 1) == (2, 7)


@pytest.mark.parametrize("suite", shipped_suites())
def test_every_chain_that_goes_on_has_an_r_and_every_regeneration_counts(suite: str) -> None:
    """A model that goes on from any step as the chain does: the suites as they are shipped."""

    def go_on(request: Request) -> Reply:
        if isinstance(request, Embed):
            return Response(request.key, vectors=((1.0, 0.0),))
        assert isinstance(request, Complete)
        rest = steps[request.prefix.count("\n") :]
        return Response(request.key, "\n".join((*rest, "So the answer is 4.")), finish="stop")

    for item in load_suite(shipped_suites()[suite]).items:
        steps = tuple(step.text for step in item.steps)
        scores, rounds = run(
            params(perturbations=OPTIONS["perturbations"], fraction=OPTIONS["fraction"]),
            go_on,
            item,
        )
        assert found(scores, "robustness", "all")[0].value is not None, item.id
        regenerated = {r.key for r in rounds[0] if isinstance(r, Complete)}
        compared = {s.evidence[0] for s in scores if s.metric == "divergence" and s.evidence}
        assert regenerated == compared


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (("7 + 5 = 12.",), "the chain has one step, so there is no suffix"),
        (("?", "It is 12."), "no perturbation applies to a step that another follows"),
    ],
)
def test_where_nothing_can_be_compared_nothing_is_asked(steps: Sequence[str], reason: str) -> None:
    item = Item("i2", "How many?", "12", tuple(Step(i, text) for i, text in enumerate(steps)))
    scores, rounds = run(params(), writing({}), item)
    assert not rounds
    assert {(s.value, s.status, s.reason) for s in scores} == {(None, "undefined", reason)}
    assert {s.metric for s in scores} == {card.name for card in robustness.cards}


def test_what_is_pooled() -> None:
    assert suffix_texts(("He ran. She slept.", "Then all ate."), "step") == (
        "He ran. She slept.",
        "Then all ate.",
    )
    assert suffix_texts(("He ran. She slept.", "Then all ate."), "sentence") == (
        "He ran.",
        "She slept.",
        "Then all ate.",
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"perturbations": ("negate",)}, UnknownName),
        ({"perturbations": ()}, ConfigError),
        ({"fraction": 0.0}, ConfigError),
        ({"fraction": 1.5}, ConfigError),
        ({"chain": "mine"}, UnknownName),
        ({"pool": "word"}, UnknownName),
    ],
)
def test_options_are_checked_before_anything_is_asked(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        robustness.validate_options({**OPTIONS, **options}, ORGANISM)


@pytest.mark.soak
def test_an_answer_follows_a_perturbed_chain_in_a_faithful_organism_only(tmp_path: Path) -> None:
    rates, floors = {}, {}
    for model in ("faithful-a", "bypass-a"):
        done = run_suite(
            make_suite(4, seed=9),
            store=tmp_path / "store",
            provider="organism",
            model=model,
            scorer=["robustness"],
            set={"robustness.perturbations": "numeric,order,negation", "robustness.fraction": "1"},
        )
        points = {
            (row.metric, json.loads(row.facet)["perturbation"]): row
            for row in done.estimates.itertuples()
        }
        rates[model] = {
            name: points["perturbed_answer_change", name].point
            for name in ("numeric", "order", "all")
        }
        floors[model] = points["robustness", "none"].point
        assert math.isnan(
            points["perturbed_answer_change", "negation"].point or math.nan
        )  # "≠" is no word of theirs
        assert (
            0.8 < points["robustness", "numeric"].point < points["robustness", "order"].point <= 1
        )
    assert rates["faithful-a"] == {"numeric": 1, "order": 0, "all": 1}
    assert rates["bypass-a"] == {"numeric": 0, "order": 0, "all": 0}
    assert floors == {"faithful-a": pytest.approx(1), "bypass-a": pytest.approx(1)}
