"""How much of CMI is the draw of donors and controls: the same items again under other seeds, and
the other spans.

Each model is measured once a seed on the same fresh word problems; a seed changes the ring of
donors, the drawn control positions and the shuffles. Printed, by span: the mean CMI, the standard
deviation over seeds of each item's CMI (its mean and its largest over the items that are defined
under every seed), how far apart the means of the seeds lie, and how many items are defined under
every seed. What is undefined is left out and counted, never 0.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import pandas as pd

import cotlab
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.wordproblems import make_suite

MODELS = ("faithful-a", "faithful-b", "bypass-a", "bypass-b", "r0", "r25", "r50", "r75", "r100")


def measure(model: str, items: int, seeds: list[int], folder: Path) -> pd.DataFrame:
    """CMI by item (rows), span and seed (columns); NaN where it is undefined."""
    suite, parts = make_suite(items, 11), []
    for seed in seeds:
        done = cotlab.run_suite(
            suite, store=folder, provider="organism", model=model, scorer=["mediation"], seed=seed
        )
        table = read.run_scores(Store(folder), done.run_id, metrics=["cmi"])
        span = table["facet"].map(lambda text: json.loads(text)["span"])
        parts.append(table.assign(span=span, seed=seed)[["item_id", "span", "seed", "value"]])
    found = pd.concat(parts).pivot(index="item_id", columns=["span", "seed"], values="value")
    return found.reindex([item.id for item in suite.items])


def rows(model: str, found: pd.DataFrame) -> list[str]:
    spans = sorted(
        found.columns.get_level_values("span").unique(), key=lambda s: (s != "all", "-" in s, s)
    )
    out = []
    for span in spans:
        whole = found[span].dropna()
        if whole.empty:
            out.append(f"| {model} | {span} | n/a | n/a | n/a | n/a | 0 of {len(found)} |")
            continue
        each, means = whole.std(axis=1, ddof=1), whole.mean()
        out.append(
            f"| {model} | {span} | {whole.to_numpy().mean():.3f} | {each.mean():.4f} |"
            f" {each.max():.4f} | {means.max() - means.min():.4f} | {len(whole)} of {len(found)} |"
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=24)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--models", nargs="+", default=MODELS)
    told = parser.parse_args()
    if len(told.seeds) < 2:
        parser.error("a standard deviation needs at least two seeds")
    print(f"{told.items} items, seeds {', '.join(map(str, told.seeds))}\n")
    print(
        "| model | span | mean CMI | sd an item, mean | sd an item, largest | means of the seeds"
        " apart | items defined |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in told.models:
            found = measure(model, told.items, told.seeds, Path(folder))
            print("\n".join(rows(model, found)), flush=True)


if __name__ == "__main__":
    main()
