"""Two runs are judged: pairs out of kept replies, a judge behind the real SDK and one in a file,
and the sign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.types import Item, Suite
from cotlab.run.config import RunConfig, read_config
from cotlab.run.imports.pairs import paired_suite
from cotlab.run.launch import FinishedRun, dry_run, load_configured_suite, start_run
from cotlab.run.resolved import ResolvedRun
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite
from cotlab.text.prompts.comparison import comparison_prompt
from tests.support.loopback import Loopback

FAITHFUL, HINT = "r100", "hint"
pytestmark = pytest.mark.soak


def asked(store: Store, model: str, suite: Suite, **more: Any) -> FinishedRun:
    """A run in which an organism writes its own chains."""
    config = read_config(
        {"model": model, "scorer": ["flags"], "set": {"flags.chain": "own"}, **more}
    )
    return start_run(config, store, suite=suite)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, str]:
    """A store with one run of a faithful organism and one of the hint follower, on twelve items
    that tell them apart."""
    store, suite = Store(tmp_path_factory.mktemp("pairs")), make_suite(12, seed=5, hint_share=1.0)
    base = asked(store, FAITHFUL, suite, tag={"condition": "base"})
    tuned = asked(store, HINT, suite, tag={"epoch": "1"})
    return store, base.run_id, tuned.run_id


def judged(store: Store, base: str, tuned: str, **more: Any) -> FinishedRun:
    return start_run(
        read_config({"scorer": ["judge"], "base_run": base, "tuned_run": tuned, **more}), store
    )


def scores(store: Store, run: FinishedRun, metric: str) -> dict[str, float]:
    rows = read.run_scores(store, run.run_id, metrics=[metric])
    return dict(zip(rows["item_id"], rows["value"], strict=True))


def script(folder: Path, *lines: dict[str, str]) -> list[str]:
    path = folder / "judge.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return [f"scripted/{path}"]


def shown(item: Item, *, base_first: bool) -> str:
    """The start of what a judge is shown of a pair, up to the end of its first response."""
    pair = item.meta["base_response"], item.meta["tuned_response"]
    return (
        comparison_prompt(item.question, *(pair if base_first else pair[::-1]))
        .messages[0]
        .content.split("[end response 1")[0]
    )


def test_pairs_hold_what_both_models_wrote_and_where_it_came_from(
    filled: tuple[Store, str, str],
) -> None:
    store, base, tuned = filled
    paired = paired_suite(store, base, tuned)
    assert (
        len(paired.suite.items),
        paired.n_left_out_by_reason,
        paired.left_out_message(),
        paired.tags,
    ) == (
        12,
        {},
        "",
        {"epoch": "1"},
    )
    assert paired.suite.digest == paired_suite(store, base, tuned).suite.digest
    differ = 0
    for item in paired.suite.items:
        assert item.steps == () and (item.meta["base_run"], item.meta["tuned_run"]) == (base, tuned)
        for run, side in ((base, "base"), (tuned, "tuned")):
            evidence = read.run_scores(store, run, item_id=item.id)["evidence"]
            assert any(item.meta[f"{side}_key"] in keys for keys in evidence)
            assert "Step 1:" in item.meta[f"{side}_response"]
        differ += item.meta["base_response"] != item.meta["tuned_response"]
    assert differ >= 10  # the hint follower bends its last step to the hint
    back = paired_suite(store, tuned, base)
    assert back.suite.items[0].meta["base_response"] == paired.suite.items[0].meta["tuned_response"]


def test_a_judge_on_a_server_through_the_real_sdk(
    filled: tuple[Store, str, str], server: Loopback
) -> None:
    store, base, tuned = filled
    items = paired_suite(store, base, tuned).suite.items
    server.script(then={"text": '{"score": 4, "reason": "second"}'})
    options = {
        "provider": "openai_compat",
        "base_url": server.base_url,
        "judge": ["openai_compat/m"],
        "allow_unpriced": True,
        "max_requests_per_minute": 100_000,
    }
    config = read_config({"scorer": ["judge"], "base_run": base, "tuned_run": tuned, **options})
    _, count = dry_run(config, load_configured_suite(config, store)[0])
    first = judged(store, base, tuned, **options)
    differ = [
        item.id for item in items if item.meta["base_response"] != item.meta["tuned_response"]
    ]
    assert first.status == "done" and server.count() == count.n_exact_requests == len(items) + len(
        differ
    )
    assert set(scores(store, first, "judge_score").values()) == {0.0}
    assert {v for k, v in scores(store, first, "judge_order_effect").items() if k in differ} == {
        4.0
    }
    body = server.seen()[0]["body"]
    assert (
        "fine-tuned" not in json.dumps(body)
        and base not in json.dumps(body)
        and tuned not in json.dumps(body)
    )
    row = read.get_run(store, first.run_id)
    assert row["model"] == "openai_compat/m" and dict(read.plan_from_row(row).tags) == {
        "epoch": "1"
    }
    assert json.loads(row["config"])["base_run"] == base
    again = judged(store, base, tuned, **options)
    assert (
        again.status == "done" and server.count() == count.n_exact_requests
    )  # every verdict is in the log


def test_swapping_the_runs_flips_every_sign(filled: tuple[Store, str, str], tmp_path: Path) -> None:
    store, base, tuned = filled
    lines = []
    for k, item in enumerate(paired_suite(store, base, tuned).suite.items):
        lines += [
            {
                "contains": shown(item, base_first=True),
                "text": json.dumps({"score": k - 5, "reason": "r"}),
            },
            {
                "contains": shown(item, base_first=False),
                "text": json.dumps({"score": 2 - k / 2, "reason": "r"}),
            },
        ]
    judge = script(tmp_path, *lines)
    one, back = judged(store, base, tuned, judge=judge), judged(store, tuned, base, judge=judge)
    told, turned = scores(store, one, "judge_score"), scores(store, back, "judge_score")
    assert len(told) == 12 and len(set(told.values())) > 5
    assert told == {name: -value for name, value in turned.items()}
    means = [read.run_estimates(store, run.run_id, ["judge_mean"]).iloc[0] for run in (one, back)]
    assert means[0]["point"] == pytest.approx(-means[1]["point"]) and means[0][
        "lo"
    ] == pytest.approx(-means[1]["hi"])


def test_replies_that_are_no_verdict_are_counted(
    filled: tuple[Store, str, str], tmp_path: Path
) -> None:
    store, base, tuned = filled
    first = paired_suite(store, base, tuned).suite.items[0]
    judge = script(
        tmp_path,
        {"contains": first.question, "text": "7, I think"},
        {"contains": "", "text": '{"score": 0, "reason": ""}'},
    )
    done = judged(store, base, tuned, judge=judge)
    (mean,) = read.run_estimates(store, done.run_id, ["judge_mean"]).to_dict("records")
    assert (mean["n_undefined"], mean["n"]) == (1, 11)
    rows = read.run_scores(store, done.run_id, metrics=["judge_score"], item_id=first.id)
    assert rows["value"].isna().all() and rows["status"].tolist() == ["undefined"]


def test_what_only_one_run_has_is_left_out_and_counted(tmp_path: Path) -> None:
    store, suite = Store(tmp_path), make_suite(6, seed=9)
    other = Suite.from_items(
        "other",
        (*suite.items[:4], *(Item(i.id, "Q: another?", "1", i.steps) for i in suite.items[4:5])),
    )
    base = asked(store, FAITHFUL, suite).run_id
    short, mixed = asked(store, HINT, suite, limit=2).run_id, asked(store, HINT, other).run_id
    assert (
        paired_suite(store, base, short).left_out_message()
        == "2 pairs; 4 items are left out: 4 in one run only."
    )
    assert dict(paired_suite(store, base, mixed).n_left_out_by_reason) == {
        "in one run only": 1,
        "with another question": 1,
    }
    given = start_run(read_config({"model": HINT, "scorer": ["flags"]}), store, suite=suite).run_id
    with pytest.raises(ConfigError, match=r"6 without a kept reply.*--chain own"):
        paired_suite(store, base, given)
    warned: list[str] = []
    config = read_config(
        {
            "scorer": ["judge"],
            "base_run": base,
            "tuned_run": short,
            "judge": script(tmp_path, {"contains": "", "text": '{"score": 1, "reason": ""}'}),
        }
    )
    start_run(config, store, warn=warned.append)
    assert warned == ["2 pairs; 4 items are left out: 4 in one run only."]


def test_a_reply_that_was_cut_off_is_no_half_of_a_pair(tmp_path: Path) -> None:
    store, suite = Store(tmp_path), make_suite(3, seed=9)
    whole = asked(store, FAITHFUL, suite).run_id
    cut = asked(store, HINT, suite, chain_tokens=12).run_id
    with pytest.raises(ConfigError, match="3 cut off before the answer"):
        paired_suite(store, whole, cut)


def test_runs_that_cannot_be_paired_are_refused(tmp_path: Path) -> None:
    store, suite = Store(tmp_path), make_suite(2, seed=9)
    base = asked(store, FAITHFUL, suite).run_id
    hashed = asked(store, HINT, make_suite(2, seed=8), redact_prompts=True).run_id
    with pytest.raises(ConfigError, match="same run"):
        paired_suite(store, base, base)
    with pytest.raises(ConfigError, match="hashes"):
        paired_suite(store, base, hashed)
    with pytest.raises(UnknownName):
        paired_suite(store, base, "none")
    for wrong, why in (
        ({"tuned_run": ""}, "--tuned-run RUN"),
        ({"scorer": ["judge", "flags"]}, "no other scorer"),
    ):
        config = read_config({"scorer": ["judge"], "base_run": base, "tuned_run": "x", **wrong})
        with pytest.raises(ConfigError, match=why):
            load_configured_suite(config, store)


def test_judges_have_roles_and_the_first_is_who_is_asked() -> None:
    both = ResolvedRun(
        read_config({"scorer": ["judge"], "judge": ["openai/a", "google/b", "openai/a"]})
    ).models
    assert {role: str(ref) for role, ref in both.items()} == {
        "subject": "openai/a",
        "judge": "openai/a",
        "judge_2": "google/b",
    }
    assert (
        str(ResolvedRun(read_config({"scorer": ["judge"]})).models["judge"])
        == "anthropic/claude-opus-4-1"
    )
    beside = ResolvedRun(read_config({"scorer": ["flags", "judge"]})).models
    assert str(beside["subject"]) == "organism/r100"
    with pytest.raises(ConfigError, match="--judge takes provider/model"):
        assert ResolvedRun(read_config({"scorer": ["judge"], "judge": ["opus"]})).models
    with pytest.raises(ConfigError, match="needs a judge"):
        assert ResolvedRun(RunConfig(scorer=["judge"], judge=[])).models
