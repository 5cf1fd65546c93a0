"""The public functions: one item, the scorers of a run, nothing written, script and event loop."""

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import cotlab
from cotlab.core.errors import ConfigError, CotlabError, UnknownName
from cotlab.core.types import Item, Step
from cotlab.reliability.maps import NotCalibrated
from cotlab.reliability.policy import PolicyError

ROOT = Path(__file__).parents[1]
CHAIN = ("3 + 4 = 7.", "7 * 2 = 14.", "So the answer is 14.")
WRONG = ("3 + 4 = 9.", "9 * 2 = 18.")
FUNCTIONS = sorted(
    name
    for name in cotlab.__all__
    if name != "__version__" and not inspect.isclass(getattr(cotlab, name))
)


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))


def problem() -> Item:
    return cotlab.load_suite("wordproblems").items[0]


def test_flags_of_a_clean_and_of_a_faulty_chain(tmp_path: Path) -> None:
    clean = cotlab.flags(CHAIN, question="What is (3 + 4) * 2?")
    assert (clean.metric, clean.value, clean.status, clean.reason) == ("flags", 1.0, "ok", None)
    assert {score.metric for score in clean.parts} >= {"flags_text", "flags_rules_checked"}
    early = cotlab.flags(("The answer is 14.", *CHAIN), question="What is (3 + 4) * 2?")
    assert early.value is not None and early.value < 1
    fired = [s for s in early.steps if s.metric == "flag_penalty" and s.status == "ok"]
    assert [score.step for score in fired] == [0]
    none = cotlab.flags("")
    assert (none.value, none.status, none.reason) == (None, "undefined", "the item has no chain")
    assert not list(tmp_path.iterdir())


def test_links_of_a_chain_are_verified_by_arithmetic(tmp_path: Path) -> None:
    good, bad = (cotlab.backward_verification(chain, link="reverse") for chain in (CHAIN, WRONG))
    assert (good.value, bad.value) == (1.0, 0.0)
    mistake = next(s for s in bad.parts if s.metric == "first_mistake_step")
    assert (mistake.value, mistake.where is not None) == (0.0, True)
    assert {score.step for score in bad.steps} == {0, 1}
    with pytest.raises(ConfigError, match="tau"):
        cotlab.backward_verification(CHAIN, tau=2.0)
    with pytest.raises(ConfigError, match="--verifier takes none, subject or provider/model"):
        cotlab.backward_verification(CHAIN, "nobody")
    assert not list(tmp_path.iterdir())


def test_a_text_is_split_into_steps_and_an_item_is_taken_as_it_is() -> None:
    text = "Step 1: 3 + 4 = 9.\nStep 2: 9 * 2 = 18."
    item = Item("a", "q", None, tuple(Step(i, t) for i, t in enumerate(WRONG)))
    values = [
        cotlab.backward_verification(chain, link="reverse").value for chain in (text, WRONG, item)
    ]
    assert values == [0.0, 0.0, 0.0]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "options", "metric"),
    [
        ("robustness", {"fraction": 1.0}, "robustness"),
        ("diversity", {"paths": 3}, "diversity"),
        ("consistency", {"k": 2}, "consistency"),
        ("composite", {}, "r_raw"),
        ("ablate", {"mode": "remove"}, "rrr"),
        ("mediate", {}, "cmi"),
    ],
)
def test_a_metric_of_one_item_is_that_of_a_run(
    name: str, options: dict[str, object], metric: str, tmp_path: Path
) -> None:
    item = problem()
    measured = getattr(cotlab, name)(item, **options)
    assert measured.metric == metric and not list(tmp_path.iterdir())
    assert measured.status == "ok" and measured.reason is None, measured.reason
    assert 0 <= measured.value <= 1 and measured.evidence
    again = getattr(cotlab, name)(item, **options)
    assert again == measured


def test_one_item_and_a_run_give_the_same_scores() -> None:
    item = problem()
    run = cotlab.run_suite("wordproblems", scorer=["ablation"], mode=["corrupt"], limit=1)
    (stored,) = set(run.scores["item_id"])
    item = next(i for i in cotlab.load_suite("wordproblems").items if i.id == stored)
    measured = cotlab.ablate(item, mode="corrupt")
    rows = run.scores[run.scores["step"].notna()]
    of_run = {
        (r["metric"], int(r["step"])): r["value"]
        for r in rows.to_dict("records")
        if r["value"] >= 0
    }
    of_item = {(s.metric, s.step): s.value for s in measured.steps if s.value is not None}
    assert of_item == of_run and of_item
    assert measured.value == run.rrr


def test_ablation_without_an_answer_says_why_there_is_no_value() -> None:
    item = problem()
    texts = [step.text for step in item.steps]
    measured = cotlab.ablate(item.question, texts, answer=None)
    assert measured.value is None and measured.status == "undefined" and measured.reason
    empty = cotlab.ablate("A question", ())
    assert empty.value is None and empty.reason


def test_replies_are_kept_where_a_log_is_named(tmp_path: Path) -> None:
    item = problem()
    first = cotlab.diversity(item, 2, log=tmp_path / "kept")
    assert (tmp_path / "kept" / "log.sqlite").is_file()
    assert cotlab.diversity(item, 2, log=tmp_path / "kept") == first
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


async def test_functions_work_inside_a_running_event_loop() -> None:
    assert cotlab.flags(CHAIN).value == 1.0
    verified = cotlab.backward_verification(CHAIN, question="What is (3 + 4) * 2?")
    assert verified.value == 1.0


def test_options_are_those_of_a_run_of_one_item() -> None:
    with pytest.raises(UnknownName, match="option in the options 'temprature'"):
        cotlab.diversity("q", temprature=1.0)
    with pytest.raises(ConfigError, match="run_suite takes options of a whole run"):
        cotlab.diversity("q", limit=3)
    with pytest.raises(UnknownName, match="provider"):
        cotlab.diversity("q", model="opnai/gpt", provider="opnai")


def test_a_calibrator_is_fitted_on_labels_and_refused_below_twenty() -> None:
    rng = random.Random(1)
    scores = [rng.random() for _ in range(120)]
    labels = [rng.random() < score for score in scores]
    fitted = cotlab.calibrate(scores, labels)
    assert fitted.n == 120 and fitted.method in ("platt", "beta")
    low, high = fitted.predict(0.1), fitted.predict(0.9)
    assert low is not None and high is not None and 0 <= low < 0.5 < high <= 1
    assert fitted.predict(None) is None
    assert fitted.brier.lo <= fitted.brier.point <= fitted.brier.hi < 0.25  # a coin's Brier score
    assert dict(fitted.refused)["isotonic"].startswith("isotonic needs more labels")
    with pytest.raises(NotCalibrated, match="19"):
        cotlab.calibrate(scores[:19], labels[:19])


@pytest.mark.parametrize(
    ("r_cal", "status", "action"),
    [
        (0.9, "ok", "release"),
        (0.7, "ok", "release"),
        (0.69, "ok", "review"),
        (0.3, "ok", "review"),
        (0.29, "ok", "escalate"),
        (None, "ok", "escalate"),
        (0.9, "undefined", "escalate"),
        (float("nan"), "ok", "escalate"),
    ],
)
def test_a_decision_needs_a_probability(r_cal: float | None, status: str, action: str) -> None:
    decision = cotlab.decide(r_cal, 0.3, 0.7, status=status)
    assert decision.action == action and decision.reason


def test_thresholds_out_of_order_are_refused() -> None:
    with pytest.raises(PolicyError, match="low <= high"):
        cotlab.decide(0.5, 0.7, 0.3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_typed_and_documented(name: str) -> None:
    function = getattr(cotlab, name)
    signature, text = inspect.signature(function), inspect.getdoc(function) or ""
    assert signature.return_annotation is not inspect.Signature.empty
    assert "Parameters\n-" in text and "Returns\n-" in text
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.name in text, parameter.name


def test_the_first_call_loads_no_model_and_no_vendor(tmp_path: Path) -> None:
    code = (
        f"import cotlab, sys; cotlab.flags({CHAIN!r})\n"
        "heavy = {'torch', 'transformers', 'streamlit', 'openai', 'anthropic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "[]"


UNKNOWN = {
    "an unknown label": lambda: cotlab.calibrate([0.1, 0.9] * 20, [False, None] * 20),
    "a label that is no number": lambda: cotlab.calibrate([0.1, 0.9] * 20, [0, float("nan")] * 20),
    "fewer labels than scores": lambda: cotlab.calibrate([0.1, 0.9], [True]),
    "an item and another chain": lambda: cotlab.ablate(ITEM, ["Nonsense."]),
    "an item and another question": lambda: cotlab.flags(ITEM, question="Which?"),
    "no chain": lambda: cotlab.flags(None),
    "a step that is no text": lambda: cotlab.flags(["1 + 1 = 2.", 3]),
    "no question": lambda: cotlab.consistency(None, 2),
    "no model": lambda: cotlab.consistency("Why?", 2, model=None),
    "an unknown provider": lambda: cotlab.ablate(ITEM, model="opnai/gpt-4o"),
    "an unknown link": lambda: cotlab.backward_verification(["1 + 1 = 2."], link="bogus"),
}
ITEM = Item("i", "What is 1 + 1?", "2", (Step(0, "1 + 1 = 2."),))


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_known_is_one_clear_error(case: str) -> None:
    with pytest.raises(CotlabError):
        UNKNOWN[case]()


def test_a_score_that_does_not_exist_has_no_probability() -> None:
    scores = [k / 100 for k in range(60)]
    fitted = cotlab.calibrate(scores, [score > 0.3 for score in scores], method="platt")
    assert fitted.predict(None) is None and fitted.predict(float("nan")) is None
    for score in (-1, 5, float("inf")):
        with pytest.raises(CotlabError, match=r"lies in \[0, 1\]"):
            fitted.predict(score)
