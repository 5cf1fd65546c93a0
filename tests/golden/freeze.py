"""Freeze what cotlab measures, and tell what has moved since.

``python tests/golden/freeze.py`` writes ``tests/golden/frozen/*.json``; with ``--compare`` it
writes nothing, prints each difference and exits with 1 on any. Names of parts limit it to them;
``--quick`` leaves out the longest, ``validation``. It asks the command line alone, so that
everything below may be rebuilt. The parts:

- ``validation``: ``cotlab validate --json``, each metric on each model of known faithfulness;
- one for each model of ``MODELS``: verdict, counts, estimates and scores of one run, and the keys
  of its requests;
- ``rrr``: the redundancy of word suites, on scripted replies whose wording varies.

Codes, numbers and counts are kept, and no sentences: those are rewritten on purpose. What a model's
own numbers decide (``white_box``) may move by ``WHITE_BOX_TOLERANCE``; all else is equal.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FROZEN = Path(__file__).parent / "frozen"
FAITHCHECK_SUITES = ROOT.parent / "shared" / "data" / "faithcheck_suites"
RRR_SUITES = {
    "commonsense": ROOT / "data" / "suites" / "commonsense.jsonl",
    "commonsense_qa": FAITHCHECK_SUITES / "commonsense_qa.jsonl",
    "math": ROOT / "data" / "suites" / "math.jsonl",
    "math_reasoning": FAITHCHECK_SUITES / "math_reasoning.jsonl",
}
WHITE_BOX_TOLERANCE = 1e-5
"""In nats, or in the unit of a share that is made of them."""
DIGITS = 9
MODELS = ("faithful-a", "faithful-b", "bypass-a", "bypass-b", "r50", "hint", "s100-a")
N_ITEMS = 30
"""As many as a verdict needs."""
SCORERS = (
    *("ablation", "mediation", "unfaithfulness", "consistency", "robustness", "verification"),
    *("diversity", "flags", "composite"),
)
MODES = ("remove", "corrupt", "paraphrase")
"""With its control, so that the verdict is a finding."""
WITHOUT_EMBEDDER = {"faithful-b", "bypass-b", "hint"}
"""It takes most of the time."""
FEW_PATCHES = ("--set", "mediation.subsets=2", "--draws", "1")
"""Validation has as many as usual."""
N_VALIDATION_ITEMS = 10
"""With 100, the usual number, all scorers on all models take hours."""
WHITE_BOX_SCORERS = {"mediation", "entropy", "process_reward"}
WHITE_BOX_METRICS = {"kl_divergence", "kl_nats", "total_variation", "topk_rest"}
RIGHT_REPLIES = (
    "So the answer is {answer}.",
    "{answer}",
    "The answer is ({letter}).",
    "**Answer: {answer}**",
    "The answer is ({letter}) {answer}.",
    "It follows that the final answer is: {answer}",
)
OTHER_REPLIES = (
    "So the answer is {other}.",
    "{answer}",
    "The answer is ({other_letter}).",
    "I cannot tell.",
    "Final answer: {other}",
    "The answer is {answer}, I think.",
    "({other_letter})",
)
"""Of as many as share no divisor with those above: all pairs occur."""
DETAILS_IN_FACETS = {"why"}
"""Facets that hold a sentence."""


def cotlab(*words: str | Path, store: Path) -> str:
    """Return what a command prints; it must end with exit code 0."""
    own = ("COTLAB_", "FAITHCHECK_", "OPENAI_", "ANTHROPIC_", "GOOGLE_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    environment |= {"PYTHONPATH": str(ROOT), "COTLAB_STORE": str(store), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1,localhost"}
    command = [sys.executable, "-m", "cotlab", *map(str, words)]
    done = subprocess.run(
        command, cwd=store.parent, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def short_digest(value: object) -> str:
    """Return the first 16 digits of the SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def rounded(value: Any) -> Any:
    """Return a JSON value with numbers of ``DIGITS`` decimals."""
    if isinstance(value, Mapping):
        return {str(k): rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return round(value, DIGITS) + 0.0 if isinstance(value, float) else value


def interval(record: Mapping[str, Any]) -> list[Any]:
    """Return point, bounds, n and, where it is counted, what is undefined."""
    return [record[k] for k in ("point", "lo", "hi", "n", "n_undefined") if k in record]


def facet_name(facet: Mapping[str, Any]) -> str:
    """Return a facet in one line, without sentences."""
    return ", ".join(f"{k}={v}" for k, v in sorted(facet.items()) if k not in DETAILS_IN_FACETS)


def by_box(entries: Mapping[tuple[str, str], Any], white: set[str]) -> dict[str, dict[str, Any]]:
    """Return entries of (metric, facet), those of a model's own numbers apart."""
    parted: dict[str, dict[str, Any]] = {"exact": {}, "white_box": {}}
    for (metric, facet), entry in sorted(entries.items()):
        parted["white_box" if metric in white else "exact"][f"{metric} | {facet}"] = entry
    return parted


# --- parts


def freeze_validation(folder: Path) -> dict[str, Any]:
    """Return each metric's values on each model."""
    report = json.loads(
        cotlab("validate", "--items", str(N_VALIDATION_ITEMS), "--json", store=folder / "store")
    )
    parted: dict[str, Any] = {"exact": {}, "white_box": {}}
    for name, record in sorted(report["metrics"].items()):
        is_white = record["scorer"] in WHITE_BOX_SCORERS or name in WHITE_BOX_METRICS
        parted["white_box" if is_white else "exact"][name] = without_sentences(record)
    return {"items": report["items"], "seed": report["seed"], "metrics": parted}


def without_sentences(record: Any) -> Any:
    """Return a record without sentences, times and digests; lists of sentences are counted."""
    if isinstance(record, Mapping):
        if "point" in record:
            return interval(record)
        left_out = ("at", "code_version", "weights", "items", "seed", "measured_dose")
        parts = {k: without_sentences(v) for k, v in record.items() if k not in left_out}
        return {k: v for k, v in parts.items() if not (isinstance(v, str) and " " in v)}
    if isinstance(record, list):
        if record and all(isinstance(one, str) for one in record):
            return len(record)
        return [without_sentences(one) for one in record]
    return record


def freeze_model(model: str, folder: Path) -> dict[str, Any]:
    """Return what a run of all scorers says of a model, and the keys of its requests."""
    store, suite = folder / "store", "wordproblems"
    if model.startswith("s100"):  # its chains state operations
        suite = str(folder / "operations.jsonl")
        cotlab("suites", "make", "operations", "--output", suite, store=store)
    words = ["run", "--run-id", "frozen", "--model", model, "--task-suite", suite]
    words += ["--limit", str(N_ITEMS), "--output", str(folder), *FEW_PATCHES]
    words += [word for name in SCORERS for word in ("--scorer", name)]
    words += [word for name in MODES for word in ("--mode", name)]
    words += ["--embedder", "none"] if model in WITHOUT_EMBEDDER else []
    cotlab(*words, store=store)
    report = json.loads((folder / "report.json").read_text("utf-8"))
    table = folder / "scores.csv"
    cotlab("report", "frozen", "--format", "csv", "--output", table, store=store)
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    white = WHITE_BOX_METRICS | {r["metric"] for r in rows if r["scorer"] in WHITE_BOX_SCORERS}
    estimates = {
        (one["metric"], facet_name({**one["facet"], "over": one["over"]})): interval(one)
        for one in report["estimates"]
    }
    if len(estimates) < len(report["estimates"]):
        raise SystemExit("two estimates of one metric and facet")
    return {
        "report": report_summary(report),
        "estimates": by_box(estimates, white),
        "scores": by_box(score_summaries(rows, white), white),
        "keys": request_keys(store),
    }


def report_summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return verdict, counts and RRR of a report, and digests of what it says of each item."""
    verdict = report["verdict"]
    names = ("status", "items_total", "items_done", "error_scores", "items_with_errors", "metric")
    names += ("mode", "ccs_threshold", "splitter_version", "suite_digest", "nothing_measured")
    position = ("step_index", "mean_ccs", "variance_ccs", "count", "ci_lower", "ci_upper")
    return {
        **{name: report[name] for name in names},
        "scorers": {one["name"]: one["version"] for one in report["scorers"]},
        "requests": {name: report["requests"][name] for name in ("asked", "replies", "failed")},
        "undefined_scores": sum(one["count"] for one in report["undefined_scores"]),
        "verdict": [verdict["rule"], verdict["mark"], len(verdict["limits"])],
        "lamps": [
            [one["mark"], one["measure"], interval(one["share"]) if one["share"] else None]
            for one in verdict["lamps"]
        ],
        "rrr": rrr_of(report),
        "positions": [[one[k] for k in position] for one in report["step_position_rankings"]],
        "restating": (report["restated_steps"] or {}).get("restating"),
        "self_tests": {name: test["self_test"] for name, test in report["self_tests"].items()},
        "items": short_digest(rounded(report["items"])),
    }


def score_summaries(
    rows: Sequence[Mapping[str, str]], white: set[str]
) -> dict[tuple[str, str], Any]:
    """Return count, statuses, mean and a digest of the scores of each metric and facet.

    Instead of the digest, those of a model's own numbers have their least and largest value, and
    their mean weighted by rank, which moves where two items change places.
    """
    grouped: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        grouped[row["metric"], facet_name(json.loads(row["facet"]))].append(row)
    summaries = {}
    for key, group in grouped.items():
        places = ("item_id", "step", "sample", "status", "where_lo", "where_hi", "value")
        scores = sorted([row[k] for k in places] for row in group)
        values = [float(score[-1]) for score in scores if score[-1]]
        mean = math.fsum(values) / len(values) if values else None
        statuses = sorted(Counter(score[3] for score in scores).items())
        if key[0] in white:
            ranked = math.fsum(k * v for k, v in enumerate(values, 1)) / max(1, len(values)) ** 2
            spread = [min(values), max(values), ranked] if values else []
            summaries[key] = [statuses, mean, *spread]
        else:
            told = [[*s[:-1], rounded(float(s[-1])) if s[-1] else None] for s in scores]
            summaries[key] = [statuses, mean, short_digest(told)]
    return summaries


def request_keys(store: Path) -> dict[str, list[Any]]:
    """Return count and digest of the keys of the replies of a store's log, by kind of request."""
    with sqlite3.connect(store / "log.sqlite") as log:
        rows = log.execute("SELECT kind, key FROM replies ORDER BY kind, key").fetchall()
    keys: dict[str, list[str]] = defaultdict(list)
    for kind, key in rows:
        keys[kind].append(key)
    return {kind: [len(some), short_digest(some)] for kind, some in keys.items()}


def freeze_rrr(folder: Path) -> dict[str, Any]:
    """Return the redundancy of each word suite, on scripted replies."""
    found: dict[str, Any] = {}
    for name, path in RRR_SUITES.items():
        if not path.is_file():
            print(f"{path} is missing: {name} is left out", file=sys.stderr)
            continue
        script = folder / f"{name}-replies.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in scripted_replies(path)))
        words = ["run", "--provider", "scripted", "--model", str(script), "--task-suite", str(path)]
        cotlab(*words, "--output", folder / name, store=folder / "store")
        report = json.loads((folder / name / "report.json").read_text("utf-8"))
        found[name] = {
            "rrr": rrr_of(report),
            "accuracy_delta": step_scores(report["items"]),
            **{part["metric"]: step_scores(part["items"]) for part in report["further_scores"]},
        }
    return found


def rrr_of(report: Mapping[str, Any]) -> list[Any]:
    """Return the point of RRR, its bounds and n."""
    return [report[f"aggregate_rrr{name}"] for name in ("", "_ci_lower", "_ci_upper", "_n")]


def step_scores(items: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """Return the scores of each item's steps."""
    return {one["item_id"]: [step["score"] for step in one["step_scores"]] for one in items}


def scripted_replies(suite: Path) -> Iterator[dict[str, str]]:
    """Yield a right reply where a chain has its last step, and another where it has not."""
    items = [json.loads(line) for line in suite.read_text("utf-8").splitlines() if line.strip()]
    for k, item in enumerate(items):
        options = dict(re.findall(r"\(([a-e])\) ([^(]+?)(?= \(|$)", item["prompt"]))
        answer = item["ground_truth"]
        letter = next((a for a, option in options.items() if option == answer), answer)
        other = next((a for a, option in options.items() if option != answer), "7")
        said = {"answer": answer, "letter": letter}
        said |= {"other": options.get(other, other), "other_letter": other}
        right = RIGHT_REPLIES[k % len(RIGHT_REPLIES)].format(**said)
        instead = OTHER_REPLIES[k % len(OTHER_REPLIES)].format(**said)
        yield {"contains": item["reference_cot"][-1]["text"], "text": right}
        yield {"contains": item["prompt"], "text": instead}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "rrr": freeze_rrr,
    **{model: lambda folder, model=model: freeze_model(model, folder) for model in MODELS},
    "validation": freeze_validation,
}

# --- files


def text_of(value: Any, depth: int = 3) -> str:
    """Return JSON with a line for each entry down to a depth."""
    if not (depth and isinstance(value, dict) and value):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    lines = (f"{json.dumps(k)}:{text_of(v, depth - 1)}" for k, v in value.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a line for each entry that has moved, come or gone."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name), new.get(name), (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, (*path, f"[{k}]"))
    elif isinstance(old, float | int) and isinstance(new, float | int):
        allowed = WHITE_BOX_TOLERANCE if "white_box" in path else 1.5 * 10**-DIGITS
        if abs(old - new) > allowed:
            yield f"{' > '.join(path)}: {old} -> {new} (moved by {new - old:.3g})"
    elif old != new:
        yield f"{' > '.join(path)}: {json.dumps(old)} -> {json.dumps(new)}"


def main() -> None:
    """Write the frozen files, or compare with them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help=f"of {', '.join(PARTS)}")
    parser.add_argument("--compare", action="store_true", help="write nothing, tell what moved")
    parser.add_argument("--quick", action="store_true", help="leave out validation")
    told = parser.parse_args()
    FROZEN.mkdir(exist_ok=True)
    moved = False
    for name in told.part or [p for p in PARTS if not (told.quick and p == "validation")]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = rounded(PARTS[name](Path(folder)))
        file = FROZEN / f"{name}.json"
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        if told.compare:
            old = json.loads(file.read_text("utf-8")) if file.is_file() else {}
            if name == "rrr":  # suites that lie beside the repository may be missing
                old = {suite: one for suite, one in old.items() if suite in found}
            for line in differences(old, json.loads(json.dumps(found)), (name,)):
                moved = True
                print(line)
        elif name == "rrr" and len(found) < len(RRR_SUITES):
            raise SystemExit(f"{file.name} needs all of {', '.join(RRR_SUITES)}")
        else:
            file.write_text(text_of(found) + "\n", "utf-8")
    sys.exit(moved)


if __name__ == "__main__":
    main()
