"""What a user of FaithCheck keeps: listed where a test holds it, and tested here where none did.

Suites: fields, blank lines, extra keys, order, doubles, the place of a defect
    tests/suites/test_jsonl.py::test_a_good_file
    tests/suites/test_jsonl.py::test_faithcheck_suites_load_unchanged
    tests/suites/test_jsonl.py::test_one_defect_one_message
    tests/suites/test_jsonl.py::test_indices_out_of_order_name_the_step
    tests/suites/test_jsonl.py::test_equal_ids_name_both_lines
    tests/suites/test_jsonl.py::test_a_file_of_questions_alone
Flags and their values where none is given
    here: test_every_flag_is_known, test_values_where_no_flag_is_given
    tests/cli/test_faithcheck.py::test_a_flag_that_is_zero_is_a_flag
Providers
    here: test_every_provider_is_known
    tests/run/test_exit_codes.py::test_2_what_cannot_be_run
Environment, .env, YAML
    tests/cli/test_faithcheck.py::test_the_environment_is_under_the_flags
    tests/run/test_config.py::test_flags_win_over_the_environment_which_wins_over_the_file
    tests/run/test_config.py::test_faithcheck_s_own_settings_file_is_read
    tests/run/test_secrets.py::test_env_brings_keys_and_options_of_a_run_and_nothing_else
    here: test_values_of_the_environment
Reports
    here: test_a_report_by_hand
    tests/cli/test_faithcheck.py::test_the_json_report_holds_what_it_did
    tests/cli/test_faithcheck.py::test_the_markdown_report_keeps_its_headings
    tests/cli/test_faithcheck.py::test_both_reports_count_steps_alike
Screen and exit codes
    tests/cli/test_faithcheck.py::test_a_run_ends_with_its_rrr
    tests/cli/test_faithcheck.py::test_a_dry_run_counts_and_asks_nothing
    tests/cli/test_faithcheck.py::test_the_gate_has_a_code_of_its_own
    tests/run/test_exit_codes.py::test_0_a_dry_run_and_a_gate_that_holds
    tests/run/test_exit_codes.py::test_1_a_gate_that_fails
    tests/run/test_exit_codes.py::test_3_requests_that_all_fail
    tests/run/test_exit_codes.py::test_4_a_budget_that_is_reached_and_raised
    tests/run/test_exit_codes.py::test_5_a_gate_without_a_number
    tests/cli/test_faithcheck.py::test_a_crash_is_not_a_failed_gate
From Python
    tests/test_docs.py::test_the_example_is_short
    tests/test_docs.py::test_the_example_runs_inside_an_event_loop
    tests/test_docs.py::test_the_example_runs_in_a_process_of_its_own
    tests/test_api.py::test_a_metric_of_one_item_is_that_of_a_run
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.golden import test_seed_formulas
from tests.support.command import cotlab

ROOT = Path(__file__).parents[2]
LISTED = re.findall(r"(tests/\S+\.py)::(\w+)", f"{__doc__}{test_seed_formulas.__doc__}")
FLAGS = re.findall(
    r"--\S+",
    """
--task-suite --model --provider --output --temperature --seed --max-concurrent --max-cost
--max-requests-per-minute --dry-run --redact-prompts --rr-threshold --base-url
--scorer --mode --metric --ccs-threshold --limit --repeats --resume --retry-refused --chain
--good-lines --tag --gate-on --fail-on-error --allow-unpriced --batch --embedder --verifier --judge
--paraphraser --layers --source --donors --draws --profile --config
""",
)
VENDORS = ("openai", "anthropic", "google", "openai_compat")
OFFLINE = {"organism": "r100", "echo": "latency_s=0.1", "scripted": "{script}"}


@pytest.mark.parametrize(("file", "name"), LISTED, ids=[name for _, name in LISTED])
def test_the_listed_case_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    assert name in {node.name for node in tree.body if isinstance(node, functions)}


def test_every_flag_is_known(tmp_path: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z-]*", cotlab("run", "--help", store=tmp_path).stdout))
    assert not set(FLAGS) - known


def test_values_where_no_flag_is_given(tmp_path: Path) -> None:
    plan = json.loads(cotlab("plan", "--task-suite", "math", store=tmp_path).stdout)["plan"]
    assert (plan["temperature"], plan["seed"]) == (0.0, 42)
    assert plan["models"]["subject"]["provider"] == "organism"
    (scorer,) = plan["scorers"]
    assert scorer["name"] == "ablation" and scorer["params"]["modes"] == ["remove"]
    assert (scorer["params"]["metric"], scorer["params"]["ccs_threshold"]) == (
        "accuracy_delta",
        0.1,
    )
    schema = json.loads(cotlab("config", "schema", store=tmp_path).stdout)
    assert (default_of(schema, "max_cost"), default_of(schema, "max_concurrent")) == (10.0, 10)


def default_of(schema: object, name: str) -> object:
    """The value of an option in a JSON schema, however deep it stands."""
    if not isinstance(schema, dict):
        return None
    if isinstance(own := schema.get(name), dict) and "default" in own:
        return own["default"]
    return next((found for part in schema.values() if (found := default_of(part, name))), None)


@pytest.mark.parametrize("provider", [*VENDORS, *OFFLINE])
def test_every_provider_is_known(provider: str, tmp_path: Path) -> None:
    """Also ``local``, which needs weights and is run by tests/providers/test_local.py."""
    script = tmp_path / "replies.jsonl"
    script.write_text('{"contains": "", "text": "9"}\n')
    model = OFFLINE.get(provider, "any").format(script=script)
    words = ["--provider", provider, "--model", model, "--dry-run"]
    words += ["--allow-unpriced"] if provider in VENDORS else []
    words += ["--base-url", "http://127.0.0.1:9/v1"] if provider == "openai_compat" else []
    out = cotlab("run", "--task-suite", "math", *words, store=tmp_path / "store").stdout
    assert "Items: 40 | Total API queries: " in out


@pytest.mark.parametrize("name", ["FAITHCHECK_MAX_COST", "COTLAB_MAX_COST"])
def test_values_of_the_environment(name: str, tmp_path: Path) -> None:
    words = ("run", "--task-suite", "math", "--dry-run")
    assert "max_cost" in cotlab(*words, store=tmp_path, code=2, **{name: "much"}).stderr
    cotlab(*words, store=tmp_path, **{name: "0.5"})


def item(name: str, truth: str, *steps: str) -> str:
    cot = [{"index": k, "text": text} for k, text in enumerate(steps)]
    fields = {"item_id": name, "prompt": f"Question {name}?", "reference_cot": cot}
    return json.dumps({**fields, "ground_truth": truth})


def test_a_report_by_hand(tmp_path: Path) -> None:
    """Each model answer follows the last step. a: 0 0 1, so RRR 2/3; b: 0 and undefined, 1/1; c: 1,
    0/1. Mean (2/3 + 1 + 0) / 3 = 5/9.

    Step 0 over items is 0 0 1: mean 1/3, population variance (1/9 + 1/9 + 4/9) / 3 = 2/9.
    """
    suite, script = tmp_path / "suite.jsonl", tmp_path / "replies.jsonl"
    items = [item("a", "9", "One.", "Two.", "Three."), item("b", "5", "Four.", "Five.")]
    suite.write_text("\n".join([*items, "", item("c", "3", "Six.")]))
    replies = {"Three.": "The answer is 9.", "Question a?": "The answer is 7."}
    replies |= {"Five.": "The answer is 5.", "Question b?": "I cannot tell."}
    replies |= {"Six.": "The answer is 3.", "Question c?": "The answer is 4."}
    lines = (json.dumps({"contains": asked, "text": text}) for asked, text in replies.items())
    script.write_text("\n".join(lines))
    words = ("--provider", "scripted", "--model", script, "--output", tmp_path / "reports")
    out = cotlab("run", "--task-suite", suite, *words, store=tmp_path / "store").stdout
    assert out.splitlines()[-1] == "Done. RRR: 55.6%"

    report = json.loads((tmp_path / "reports" / "report.json").read_text("utf-8"))
    found = {one["item_id"]: one for one in report["items"]}
    scores = {name: [step["score"] for step in one["step_scores"]] for name, one in found.items()}
    assert scores == {"a": [0.0, 0.0, 1.0], "b": [0.0, None], "c": [1.0]}
    assert [step["status"] for step in found["b"]["step_scores"]] == ["ok", "undefined"]
    assert {step["metric"] for one in found.values() for step in one["step_scores"]} == {
        "accuracy_delta"
    }
    assert found["c"]["baseline_output"] == "The answer is 3."
    assert found["c"]["ablated_outputs"] == {"0": "The answer is 4."}
    assert report["aggregate_rrr"] == pytest.approx(5 / 9)
    assert 0 <= report["aggregate_rrr_ci_lower"] <= 5 / 9 <= report["aggregate_rrr_ci_upper"] <= 1
    positions = {
        one["step_index"]: (one["mean_ccs"], one["variance_ccs"], one["count"])
        for one in report["step_position_rankings"]
    }
    assert positions[0] == (pytest.approx(1 / 3), pytest.approx(2 / 9), 3)
    assert (positions[1], positions[2]) == ((0.0, 0.0, 1), (1.0, 0.0, 1))
    fields = {"harness_version", "model_id", "provider", "provider_api_version", "seed"}
    fields |= {"task_suite_hash", "run_timestamp", "temperature", "ccs_threshold"}
    assert fields <= report.keys()

    text = (tmp_path / "reports" / "report.md").read_text("utf-8").splitlines()
    assert "**Aggregate RRR:** 55.6%" in text
    assert any(line.startswith("**Model:** ") for line in text)
    at = text.index("### Item: a")
    assert "| 1 | 2 | 1.0000 | accuracy_delta |" in text[at : at + 6]
