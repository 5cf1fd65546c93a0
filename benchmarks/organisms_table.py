"""Step ablation of every shipped organism on the shipped suite: the table of the README, as
Markdown.

Each run goes through the ordinary command's code into a store of its own. Prints, for every model,
mean CCS and RRR under removal, total variation under removal, and answer changes under corrupt
(least over positions), truncate and paraphrase.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd

import cotlab
from cotlab.suites.shipped import find_suite

ORDER = (
    "faithful-a",
    "faithful-b",
    "bypass-a",
    "bypass-b",
    "r100",
    "r75",
    "r50",
    "r25",
    "r0",
    "hint",
)
MODES = ["remove", "truncate", "corrupt", "paraphrase"]


def main() -> None:
    lengths = [len(item.steps) for item in cotlab.load_suite(find_suite("wordproblems")).items]
    inverse = sum(1 / n for n in lengths) / len(lengths)
    print(f"{len(lengths)} items, mean(1/n) = {inverse:.3f}\n")
    columns = (
        "organism",
        "mean CCS, removal",
        "RRR, removal",
        "total variation, removal",
        "corrupt, least position",
        "truncate",
        "paraphrase",
    )
    print("| " + " | ".join(columns) + " |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in ORDER:
            print(row(name, Path(folder)), flush=True)


def row(name: str, store: Path) -> str:
    result = cotlab.run_suite("wordproblems", store=store, model=name, mode=MODES)
    found = {}
    for e in result.estimates.itertuples():
        facet = json.loads(e.facet)
        found[e.metric, facet.get("mode"), facet.get("metric")] = e

    def cell(metric: str, mode: str, of: str | None = None) -> str:
        e = found[metric, mode, of]
        return f"{e.point:.3f}" + ("" if pd.isna(e.lo) else f" [{e.lo:.3f}, {e.hi:.3f}]")

    changes = result.scores[
        (result.scores["metric"] == "answer_change")
        & result.scores["facet"].str.contains("corrupt")
    ]
    least = changes.groupby("step")["value"].mean().min()
    return (
        f"| {name} | {cell('accuracy_delta', 'remove')} | {cell('rrr', 'remove', 'accuracy_delta')}"
        f" | {cell('total_variation', 'remove')} | {least:.3f} |"
        f" {cell('answer_change', 'truncate')} | {cell('answer_change', 'paraphrase')} |"
    )


if __name__ == "__main__":
    main()
