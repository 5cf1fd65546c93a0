"""One chain as the tables of its figures: its steps by effect, and the links between them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd

from cotlab.metrics.redundancy import FLAGS
from cotlab.stats.intervals import wilson

COLUMNS = ["step", "text", "point", "lo", "hi", "draws", "reason"]


def ranking(texts: Sequence[str], scores: pd.DataFrame) -> pd.DataFrame:
    """Each step's CCS: the mean over its draws, with a Wilson interval where its scores are yes or no and more than one."""
    rows = []
    for step, group in scores[scores["step"].notna()].groupby("step"):
        values = group["value"].dropna()
        reason = None if len(values) else str(group["reason"].iloc[0])
        point, lo, hi = (float(values.mean()) if len(values) else None), None, None
        if len(values) > 1 and group["metric"].isin(FLAGS).all():
            found = wilson(int(values.sum()), len(values))
            lo, hi = found.lo, found.hi
        text = texts[int(step)] if int(step) < len(texts) else ""
        rows.append((int(step), text, point, lo, hi, len(values), reason))
    return pd.DataFrame(rows, columns=COLUMNS)


def link_table(scored: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """The scores ``link_support`` with their link, verifier, and the text that decided them."""
    rows = scored[(scored["metric"] == "link_support") & scored["step"].notna()]
    facets = [json.loads(text) for text in rows["facet"]]
    steps = [int(step) for step in rows["step"]]
    quotes = [
        texts[step][int(lo) : int(hi)] if step < len(texts) and not pd.isna(lo) else ""
        for step, lo, hi in zip(steps, rows["where_lo"], rows["where_hi"], strict=True)
    ]
    known = dict(enumerate(texts))
    table = rows.assign(
        step=steps, link=[f.get("link", "") for f in facets], verifier=[f.get("verifier", "") for f in facets], quote=quotes,
        before=[known.get(step - 1, "") for step in steps], text=[known.get(step, "") for step in steps],
    )  # fmt: skip
    return table[["link", "step", "value", "verifier", "reason", "quote", "before", "text"]].reset_index(drop=True)
