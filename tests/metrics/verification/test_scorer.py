"""Backward verification by hand: what is computed, who is asked for the rest, and what comes of the
replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers
from cotlab.core.requests import Complete, Entail, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.verification import (
    LINKS,
    KnownNumbers,
    collect_statements,
    compute_link,
    first_mistake,
    longest_weak_run,
    verification,
)
from cotlab.text.arithmetic.readings import StepReading, read_steps
from tests.support.replies import drive_rounds

ORGANISM = ModelRef("organism", "hint", form="continuation")
JUDGE = ModelRef("openai", "judge")
NLI = ModelRef("nli", "folder")
SYMBOLIC = ModelRef("symbolic", "s")
QUESTION = "Ann has 7 apples. She buys 5 more. She loses 3. How many apples now?"


def item(*steps: str, question: str = QUESTION) -> Item:
    return Item("i", question, "9", tuple(Step(k, text) for k, text in enumerate(steps)))


def params(options: Mapping[str, Any] | None = None, **models: ModelRef) -> Params:
    return Params(
        {"subject": ORGANISM, **models}, options={**verification.options, **(options or {})}
    )


def run(
    one: Item, told: Params, *rounds: list[float | str | Reply]
) -> tuple[dict[tuple[Any, ...], Score], list[list[Request]]]:
    """Drive the scorer with the given replies: a number answers Entail, a text Complete."""
    given = iter(rounds)
    scores, asked, _ = drive_rounds(
        verification(one, told, Peers((one,))),
        lambda round_: [_reply(r, reply) for r, reply in zip(round_, next(given), strict=True)],
    )
    facets = [dict(score.facet) for score in scores]
    return {
        (s.metric, f.get("link"), f["verifier"] if s.metric == "coverage" else s.step): s
        for s, f in zip(scores, facets, strict=True)
    }, [list(round_) for round_ in asked]


def _reply(request: Request, given: float | str | Reply) -> Reply:
    if isinstance(given, Response | Failed):
        return replace(given, key=request.key)
    return (
        Response(request.key, text=given)
        if isinstance(given, str)
        else Response(request.key, numbers=(given,))
    )


# --- arithmetic
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        ((), None),
        (("Birds fly.",), None),
        (("7 + 5 = 12.", "12 - 3 = 9."), None),
        (("7 + 5 = 12.", "12 - 3 = 8."), 1),
        (("7 + 5 = 13.", "13 - 3 = 8."), 0),
        (("A = 7 + 5 = 12.", "B = 2 * 3 = 6.", "A - B = 12 - 6 = 6."), None),
        (
            ("A = 7 + 5 = 12.", "B = 2 * 3 = 6.", "A - B = 13 - 6 = 7."),
            2,
        ),  # takes up 13 for the A that was 12
        (("Suppose x = 3.", "Then x + 1 = 4.", "Suppose x = 5.", "Then x + 1 = 6."), None),
    ],
)
def test_first_mistake(steps: tuple[str, ...], at: int | None) -> None:
    assert first_mistake(steps) == at


@pytest.mark.parametrize(
    ("link", "steps", "value", "why"),
    [
        ("forward", ("7 + 5 = 12.", "12 - 3 = 9."), 1.0, ""),
        ("forward", ("7 + 5 = 12.", "12 - 3 = 14."), 0.0, "step 2 holds a false equation"),
        (
            "forward",
            ("7 + 5 = 12.", "12 + 2 = 14."),
            None,
            "the operand 2 of step 2 stands nowhere before",
        ),
        ("forward", ("7 + 5 = 12.", "Birds fly."), None, "step 2 holds no equation"),
        (
            "forward",
            ("7 + 5 = 12.", "12 + x = 14."),
            None,
            "an equation of step 2 is undecided: the value of x is not known",
        ),
        ("reverse", ("7 + 5 = 12.", "12 - 3 = 9."), 1.0, ""),
        ("reverse", ("7 + 5 = 13.", "13 - 3 = 10."), 0.0, "step 1 holds a false equation"),
        ("reverse", ("7 + 5 = 12.", "12 - 3 = 14."), 0.0, "step 2 holds a false equation"),
        ("reverse", ("7 + 5 = 12.", "5 - 3 = 2."), None, "step 2 takes up no value of step 1"),
        (
            "reverse",
            ("Birds fly.", "12 - 3 = 9."),
            None,
            "the equations of steps 1 and 2 do not decide it",
        ),
    ],
)
def test_what_arithmetic_says_of_a_link(
    link: str, steps: tuple[str, ...], value: float | None, why: str
) -> None:
    readings = read_steps(steps)
    told = compute_link(KnownNumbers(QUESTION, readings), readings, 1, link)
    assert (told.value, told.reason) == (value, why)


@pytest.mark.parametrize(
    ("before", "wanted", "given"),
    [
        ("n = 1, and n^2 = 1.", "n = 2", ""),
        ("x = 3", "x = 3", "x = 3"),
        ("2x + 3 = 13", "x = 6", "2x + 3 = 13"),
        ("3 m × 4 m = 12 m²", "5 m × 4 m = 20 m²", "3 m × 4 m = 12 m²"),
        ("x = 3; y = 2", "x = 4", "y = 2"),
    ],
)
def test_a_letter_that_is_used_anew_is_no_premise(before: str, wanted: str, given: str) -> None:
    one, other = read_steps((before, wanted))
    assert collect_statements([one], other) == given


def test_numbers_in_words_and_results_of_the_same_step_are_operands_too() -> None:
    steps = read_steps(("7 + 5 = 12.", "12 - 3 = 9, so 9 * 2 = 18."))
    known_numbers = KnownNumbers("7 and 5, three less, twice that.", steps)
    assert compute_link(known_numbers, steps, 1, "forward").value == 1.0


def test_a_number_that_stands_first_in_a_later_step_has_no_source() -> None:
    steps = read_steps(("7 + 5 = 12.", "12 - 3 = 9.", "9 + 3 = 12."))
    known_numbers = KnownNumbers("7 and 5", steps)
    told = [compute_link(known_numbers, steps, i, "forward") for i in range(3)]
    assert [link.value for link in told] == [1.0, None, 1.0]
    assert told[1].reason == "the operand 3 of step 2 stands nowhere before"


class CountedReading(StepReading):
    """A reading that counts how often its results are computed."""

    n_reads = 0

    @property
    def results(self) -> frozenset[Fraction]:
        CountedReading.n_reads += 1
        return frozenset(abs(e.result) for e in self.equations if e.result is not None)


def test_the_links_of_a_long_chain_read_each_step_a_few_times() -> None:
    readings = read_steps([f"So {i} + 1 = {i + 1}." for i in range(300)])
    steps = [CountedReading(r.text, r.equations, r.statements, r.numbers) for r in readings]
    known_numbers = KnownNumbers("0 and 1", steps)
    values = {
        compute_link(known_numbers, steps, i, link).value
        for link in LINKS
        for i in range(link == "reverse", len(steps))
    }
    assert values == {1.0} and CountedReading.n_reads <= 3 * len(steps)


def test_a_computed_chain_asks_nothing() -> None:
    one = item("7 + 5 = 12.", "12 - 3 = 9.", "9 + 3 = 13.", question="7 and 5, less 3?")
    scores, asked = run(one, params(symbolic=SYMBOLIC, verifier=NLI))
    assert asked == []
    assert (
        scores["link_support", "forward", 0].value == 1.0
        and ("link_support", "reverse", 0) not in scores
    )
    assert (
        scores["verification_mean", "forward", None].value
        == scores["pass_rate", "forward", None].value
        == 2 / 3
    )
    assert scores["weak_link", "forward", None].value == pytest.approx(1 / 3)  # 2 / 3 - 1 / 3
    for link in ("forward", "reverse"):
        assert [scores["link_support", link, j].value for j in (1, 2)] == [1.0, 0.0]
        assert scores["link_support", link, 2].where == (0, 10)
        assert dict(scores["link_support", link, 2].facet)["verifier"] == "arithmetic"
        assert (
            scores["coverage", link, "any"].value
            == scores["coverage", link, "arithmetic"].value
            == 1.0
        )
        assert scores["coverage", link, "nli/folder"].value == 0.0
    assert {
        scores[name, "reverse", None].value
        for name in ("verification_mean", "pass_rate", "verification")
    } == {0.5}
    assert scores["weak_link", "reverse", None].value == 0.0  # 0.5 - 1 / 2
    first = scores["first_mistake_step", None, None]
    assert (first.value, first.where) == (2.0, (0, 10))
    assert scores["arithmetic_ok", None, None].value == pytest.approx(2 / 3)


# --- verifiers
# ----------------------------------------------------------------------------------------


def test_what_arithmetic_leaves_open_goes_to_the_symbolic_provider_then_to_the_verifier() -> None:
    one = item("2x + 3 = 7.", "So x = 2.", "Birds fly.", question="What is x?")
    told = params({"links": ("forward",)}, symbolic=SYMBOLIC, verifier=NLI)
    undecided = Failed("", "not decidable by computation", 1, unsupported=True)
    scores, asked = run(one, told, [undecided, 1.0], [0.5, 0.25])
    assert asked[0] == [Entail(SYMBOLIC, "", "2x + 3 = 7"), Entail(SYMBOLIC, "2x + 3 = 7", "x = 2")]
    assert asked[1] == [
        Entail(NLI, "What is x?", "2x + 3 = 7."),
        Entail(NLI, "What is x?\n2x + 3 = 7.\nSo x = 2.", "Birds fly."),
    ]
    assert [scores["link_support", "forward", j].value for j in (0, 1, 2)] == [0.5, 1.0, 0.25]
    by = [dict(scores["link_support", "forward", j].facet)["verifier"] for j in (0, 1, 2)]
    assert by == ["nli/folder", "symbolic/s", "nli/folder"]
    assert scores["verification_mean", "forward", None].value == pytest.approx(1.75 / 3)
    assert scores["verification", "forward", None].value == pytest.approx(0.5 * 1.75 / 3 + 0.5 / 3)
    who = ("any", "arithmetic", "symbolic/s", "nli/folder")
    assert [scores["coverage", "forward", name].value for name in who] == pytest.approx(
        [1, 0, 1 / 3, 2 / 3]
    )
    assert {asked[0][1].key, asked[1][0].key, asked[1][1].key} == set(
        scores["verification", "forward", None].evidence
    )
    scores, asked = run(one, told, [undecided, undecided], [0.5, 0.5, 0.25])
    assert scores["link_support", "forward", 1].value == 0.5 and len(asked[1]) == 3


def test_a_symbolic_zero_counts_as_a_mistake_only_where_no_letter_may_mean_another_case() -> None:
    told = params({"links": ("forward",)}, symbolic=SYMBOLIC)
    scores, asked = run(item("It is late.", "2 km = 200 meters", "x = 5."), told, [0.0, 0.0])
    assert [request.hypothesis for request in asked[0]] == ["2 km = 200 meters", "x = 5"]  # type: ignore[union-attr]
    assert scores["link_support", "forward", 1].value == 0
    assert scores["link_support", "forward", 2].value is None
    assert "another case" in scores["link_support", "forward", 2].reason
    first = scores["first_mistake_step", None, None]
    assert first.value == 1 and asked[0][0].key in first.evidence


@pytest.mark.parametrize(
    "step",
    ["60 = 5^2 + 6^2, which does not hold.", "So x + 2 = 3\\cos y.", "11 + 3 = 2 (mod 12)"],
)
def test_a_cut_or_denied_equation_is_not_sent_to_the_symbolic_provider(step: str) -> None:
    _, asked = run(item(step), params({"links": ("forward",)}, symbolic=SYMBOLIC))
    assert asked == []


def test_reverse_asks_whether_the_later_step_supports_the_earlier() -> None:
    one = item("All birds fly.", "Tweety is a bird and flies.")
    _, asked = run(one, params({"links": ("reverse",)}, verifier=NLI), [0.7])
    assert asked == [[Entail(NLI, "Tweety is a bird and flies.", "All birds fly.")]]
    _, asked = run(
        one, params({"links": ("forward",), "premise": "previous"}, verifier=NLI), [0.7, 0.7]
    )
    first = Entail(NLI, one.question, "All birds fly.")
    second = Entail(NLI, "All birds fly.", "Tweety is a bird and flies.")
    assert asked == [[first, second]]


def test_a_model_judges_in_words() -> None:
    one = item("All birds fly.", "Tweety flies.", "So he sings.")
    scores, asked = run(one, params({"links": ("reverse",)}, verifier=JUDGE), ["0.8", "Sure: 0.4."])
    assert all(isinstance(request, Complete) and request.model == JUDGE for request in asked[0])
    assert [scores["link_support", "reverse", k].value for k in (1, 2)] == [0.8, 0.4]
    assert scores["verification_mean", "reverse", None].value == pytest.approx(0.6)
    assert scores["coverage", "reverse", "any"].value == 1.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I am quite sure.", "no confidence"),
        ("Between 0.2 and 0.8.", "no confidence"),
        ("Certain: 2.", "no confidence"),
        (Response("", "Let me see. Step 1 says", finish="length"), "cut off at 64 tokens"),
        (Response("", "0.9, because all", finish="length"), "cut off at 64 tokens"),
    ],
)
def test_a_reply_that_cannot_be_read_makes_no_chain_sound(reply: str | Reply, reason: str) -> None:
    """What arithmetic and the readable replies say of the other links is not all of the chain."""
    one = item("7 + 5 = 12.", "12 - 3 = 9.", "Birds fly.", "He sings.", question="7 and 5, less 3?")
    scores, _ = run(one, params({"links": ("forward",)}, verifier=JUDGE), [reply, "0.8"])
    links = [scores["link_support", "forward", k] for k in range(4)]
    assert [link.value for link in links] == [1.0, 1.0, None, 0.8]
    for name in ("verification", "verification_mean", "pass_rate", "weak_link"):
        chain = scores[name, "forward", None]
        assert (chain.value, chain.status) == (None, "undefined") and reason in str(chain.reason)
    assert scores["coverage", "forward", "any"].value is None
    assert scores["coverage", "forward", "arithmetic"].value == 0.5


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Failed("", "the server was away", 3), "error"),
        (Response("", "No.", refused=True), "refused"),
        (Failed("", "too long", 1, unsupported=True), "undefined"),
    ],
)
def test_a_missing_reply_costs_the_scores_that_need_it(reply: Reply, status: str) -> None:
    one = item("7 + 5 = 12.", "12 - 3 = 9.", "Birds fly.", question="7 and 5, less 3?")
    scores, _ = run(one, params({"links": ("forward",)}, verifier=JUDGE), [reply])
    assert scores["link_support", "forward", 1].value == 1.0
    assert (
        scores["link_support", "forward", 2].value,
        scores["link_support", "forward", 2].status,
    ) == (None, status)
    chain = scores["verification", "forward", None]
    assert (chain.value, chain.status) == ((1.0, "ok") if status == "undefined" else (None, status))
    assert scores["coverage", "forward", "arithmetic"].value == pytest.approx(2 / 3)
    assert scores["arithmetic_ok", None, None].value == 1.0


def test_without_a_verifier_a_link_is_undefined_and_says_why() -> None:
    scores, asked = run(item("Birds fly.", "Tweety flies."), params())
    assert asked == []
    assert scores["link_support", "forward", 1].reason == "step 2 holds no equation"
    assert (
        scores["verification", "forward", None].reason
        == "no link is decided: step 1 holds no equation"
    )
    assert scores["coverage", "forward", "any"].value == 0.0
    assert scores["arithmetic_ok", None, None].value is None


@pytest.mark.parametrize(("step", "value"), [("7 + 5 = 12.", 1.0), ("7 + 5 = 13.", 0.0)])
def test_one_step_is_held_against_the_question_and_has_no_reverse_link(
    step: str, value: float
) -> None:
    scores, _ = run(item(step, question="7 and 5?"), params(verifier=NLI))
    for metric in ("verification_mean", "pass_rate", "verification"):
        assert scores[metric, "forward", None].value == value
        assert scores[metric, "reverse", None].reason == "a chain of one step has no reverse link"
    assert (
        scores["coverage", "forward", "any"].value == 1.0
        and scores["coverage", "reverse", "any"].value is None
    )


def test_the_arithmetic_of_one_step() -> None:
    scores, _ = run(item("7 + 5 = 12."), params())
    assert scores["arithmetic_ok", None, None].value == 1.0


def test_weak_link_subtracts_the_longest_run_and_clips() -> None:
    one = item(*(f"Birds fly {k}." for k in "abcde"))
    scores, _ = run(one, params({"links": ("reverse",)}, verifier=NLI), [1.0, 0.3, 0.3, 1.0])
    assert scores["weak_link", "reverse", None].value == pytest.approx(0.65 - 2 / 4)
    assert scores["pass_rate", "reverse", None].value == 0.5
    scores, _ = run(one, params({"links": ("reverse",)}, verifier=NLI), [0.1, 0.1, 0.1, 0.1])
    assert scores["weak_link", "reverse", None].value == 0.0
    assert longest_weak_run([0.1, None, 0.1, 0.1], 0.4) == 2
    scores, _ = run(
        one, params({"links": ("reverse",), "tau": 0.3}, verifier=NLI), [1.0, 0.3, 0.3, 1.0]
    )
    assert scores["pass_rate", "reverse", None].value == 0.5  # strictly above


@pytest.mark.parametrize(
    "wrong", [{"chain": "both"}, {"links": ("sideways",)}, {"premise": "none"}]
)
def test_unknown_options(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(UnknownName):
        verification.validate_options({**verification.options, **wrong}, ORGANISM)
    with pytest.raises(ConfigError, match="tau"):
        verification.validate_options({**verification.options, "tau": 1.5}, ORGANISM)
