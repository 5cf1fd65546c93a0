"""The repair loop by hand and against a server: what is asked after a low score, and what the delta
is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Params, Peers, Program
from cotlab.core.requests import Complete, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Step
from cotlab.metrics.repair import NOT_LOW_REASON, arithmetic_share, repair
from cotlab.providers.openai_compat import OpenAICompat
from tests.support.loopback import Loopback, serving
from tests.support.replies import finish

OPTIONS = repair.options

FALSE = ("Step 1: 7 + 5 = 13.", "Step 2: 13 - 3 = 10.")
RIGHT = "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9."
ECHO = ModelRef("echo", "echo")


def item(*steps: str, answer: str | None = "9") -> Item:
    return Item(
        "i1", "What is 7 + 5 - 3?", answer, tuple(Step(i, text) for i, text in enumerate(steps))
    )


def begin(one: Item, **options: Any) -> Program:
    return repair(one, Params({"subject": ECHO}, options={**OPTIONS, **options}), Peers((one,)))


def ended(program: Program, replies: list[Reply] | None = None) -> dict[str, Score]:
    return {score.metric: score for score in finish(program, replies)}


def say(request: Request, text: str) -> list[Reply]:
    return [Response(request.key, text)]


def values(found: dict[str, Score]) -> list[float | None]:
    return [found[name].value for name in ("repair_before", "repair_after", "repair_delta")]


def test_arithmetic_is_the_share_of_steps_whose_equations_hold() -> None:
    assert arithmetic_share(FALSE) == 0.5
    assert arithmetic_share(("7 + 5 = 12. Then 12 + 1 = 14.", "Birds fly.", "2 * 3 = 6.")) == 0.5
    assert arithmetic_share(("A = 3 + 4 = 7", "A + 1 = 9")) == 0.5  # a letter keeps its value
    assert arithmetic_share(("Birds fly.",)) is None
    assert arithmetic_share(()) is None


def test_a_low_score_is_criticised_rewritten_and_taken_again() -> None:
    program = begin(item(*FALSE))
    (critique,) = next(program)
    assert isinstance(critique, Complete)
    asked = critique.messages[0].content
    assert "What is 7 + 5 - 3?" in asked and "Step 1: 7 + 5 = 13." in asked and "Criticise" in asked
    (rewrite,) = program.send(say(critique, "Step 1 is wrong: 7 + 5 is 12."))
    assert isinstance(rewrite, Complete)
    asked = rewrite.messages[0].content
    assert (
        "Step 1 is wrong: 7 + 5 is 12." in asked
        and "Step 2: 13 - 3 = 10." in asked
        and "So the answer is" in asked
    )
    found = ended(program, say(rewrite, RIGHT))
    assert values(found) == [0.5, 1.0, 0.5]
    assert (
        found["repair_delta"].evidence == (critique.key, rewrite.key)
        and found["repair_before"].evidence == ()
    )
    assert found["repair_delta"].facet == (("chain", "reference"), ("score", "arithmetic"))


def test_a_rewriting_can_make_it_worse() -> None:
    program = begin(item("Step 1: 7 + 5 = 13.", "Step 2: 12 - 3 = 9."))
    (critique,) = next(program)
    (rewrite,) = program.send(say(critique, "All of it is wrong."))
    assert values(
        ended(
            program, say(rewrite, "Step 1: 7 + 5 = 13.\nStep 2: 12 - 3 = 8.\nSo the answer is 8.")
        )
    ) == [
        0.5,
        0.0,
        -0.5,
    ]


def test_what_is_not_low_is_not_repaired() -> None:
    found = ended(begin(item(*RIGHT.splitlines()[:2])))
    assert values(found) == [1.0, None, None]
    assert {
        (found[name].status, found[name].reason) for name in ("repair_after", "repair_delta")
    } == {("undefined", NOT_LOW_REASON)}
    assert (
        values(ended(begin(item(*FALSE), below=0.4)))[0] == 0.5
    )  # half of the steps hold, and that is enough


def test_what_has_no_score_is_not_repaired() -> None:
    found = ended(begin(item("Birds fly.")))
    assert {s.reason for s in found.values()} == {"no step has an equation that can be checked"}
    assert {s.reason for s in ended(begin(item())).values()} == {"the item has no chain"}
    found = ended(begin(item(*FALSE, answer=None), score="answer"))
    assert {s.reason for s in found.values()} == {"the item has no ground truth"}


def test_the_answer_of_the_models_own_chain() -> None:
    program = begin(item(), chain="own", score="answer")
    (chain,) = next(program)
    (critique,) = program.send(say(chain, "1. 7 + 5 = 13.\n2. 13 - 3 = 10.\nSo the answer is 10."))
    assert "13 - 3 = 10" in critique.messages[0].content  # type: ignore[attr-defined]
    (rewrite,) = program.send(say(critique, "7 + 5 is 12."))
    found = ended(program, say(rewrite, RIGHT))
    assert values(found) == [0.0, 1.0, 1.0]
    assert found["repair_before"].evidence == (chain.key,)
    assert found["repair_after"].evidence == (chain.key, critique.key, rewrite.key)


def test_v_of_verification_is_taken_before_and_after() -> None:
    """By arithmetic alone: forward, step 2 is false, V = 0, and in the rewriting it takes up 12: q
    = 1, V = 1."""
    program = begin(item("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 8."), score="verification")
    (critique,) = next(program)
    (rewrite,) = program.send(say(critique, "Step 2 is wrong: 12 - 3 is 9."))
    assert values(ended(program, say(rewrite, RIGHT))) == [0.0, 1.0, 1.0]


def test_v_sees_a_false_first_step_too() -> None:
    """No forward link judges step 1; the reverse link does."""
    (critique,) = next(
        begin(item("Step 1: 7 + 5 = 13.", "Step 2: 12 - 3 = 9."), score="verification")
    )
    assert isinstance(critique, Complete)


@pytest.mark.parametrize("round_", ["critique", "rewriting"])
def test_a_missing_reply_costs_what_comes_after_it(round_: str) -> None:
    gone: list[tuple[dict[str, Any], tuple[str, str]]] = [
        ({"error": "away", "tries": 3}, ("error", "away")),
        ({"error": "no such word", "tries": 1, "unsupported": True}, ("undefined", "no such word")),
    ]
    for how, told in gone:
        program = begin(item(*FALSE))
        (request,) = next(program)
        if round_ == "rewriting":
            (request,) = program.send(say(request, "Step 1 is wrong."))
        found = ended(program, [Failed(request.key, **how)])
        assert values(found) == [0.5, None, None]
        assert {
            (found[name].status, found[name].reason) for name in ("repair_after", "repair_delta")
        } == {told}
        assert request.key in found["repair_after"].evidence


def test_an_empty_or_refused_reply() -> None:
    program = begin(item(*FALSE))
    (critique,) = next(program)
    assert (
        ended(program, say(critique, " "))["repair_after"].reason == "the model wrote no critique"
    )
    program = begin(item(*FALSE))
    (critique,) = next(program)
    (rewrite,) = program.send(say(critique, "Wrong."))
    assert (
        ended(program, [Response(rewrite.key, "No.", refused=True)])["repair_after"].status
        == "refused"
    )


@pytest.mark.parametrize("wrong", [{"below": 0.0}, {"below": 2.5}])
def test_options_out_of_range(wrong: dict[str, Any]) -> None:
    repair.validate_options(OPTIONS, ECHO)
    with pytest.raises(ConfigError):
        repair.validate_options({**OPTIONS, **wrong}, ECHO)


def test_an_unknown_score() -> None:
    with pytest.raises(UnknownName, match="arithmetic"):
        repair.validate_options({**OPTIONS, "score": "arithmetics"}, ECHO)


# --- a server
# ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


async def test_a_served_model_repairs_its_own_chain(server: Loopback) -> None:
    server.script(
        {"text": "1. 7 + 5 = 13.\n2. 13 - 3 = 10.\nSo the answer is 10."},
        {"text": "7 + 5 is 12, not 13."},
        {"text": RIGHT},
    )
    model = OpenAICompat(ModelRef("openai_compat", "m", base_url=server.base_url))
    one = item()
    program = repair(
        one, Params({"subject": model.ref}, options={**OPTIONS, "chain": "own"}), Peers((one,))
    )
    round_ = next(program)
    try:
        while True:
            round_ = program.send([await model.send(request) for request in round_])  # type: ignore[arg-type]
    except StopIteration as end:
        found = {score.metric: score for score in end.value}
    await model.close()
    assert values(found) == [0.5, 1.0, 0.5] and server.count() == 3
    said = [call["body"]["messages"][-1]["content"] for call in server.seen()]
    assert "Criticise" in said[1] and "7 + 5 is 12, not 13." in said[2]
