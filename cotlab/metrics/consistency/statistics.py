"""What consistency measures once a run: how near unrelated chains are, and public against hidden paraphrases."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pandas as pd

from cotlab.core.program import Params, Preparation, over_run
from cotlab.core.requests import Embed, Reply, Response
from cotlab.core.rng import derive, derive_seed
from cotlab.core.types import Estimate, Suite
from cotlab.metrics.ablation.redundancy import facet_of, mean_by_item
from cotlab.metrics.ablation.scorer import missing_reply
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.similarity import pair_similarities
from cotlab.stats.resample import bootstrap_mean
from cotlab.stats.vectors import cosines, pooled

NO_EMBEDDER = "no model embeds the steps: --embedder"


def unrelated_floor(suite: Suite, params: Params) -> Preparation:
    """The mean cosine of the chains of different items: what a model's chains have in common with any other of the suite.

    Returns
    -------
    mapping of floor (cosine, None where it is undefined), floor_reason, floor_items (the ids that
    it rests on)
    """
    embedder = params.models.get("embedder")
    with_chain = [item for item in suite.items if any(step.text.strip() for step in item.steps)]
    derive("consistency floor", suite.digest, params.seed).shuffle(with_chain)
    chosen = with_chain[: int(params.options["floor_chains"])]
    if embedder is None or len(chosen) < 2:
        reason = "fewer than two items have a reference chain" if embedder else NO_EMBEDDER
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    steps = {item.id: [step.text for step in item.steps if step.text.strip()] for item in chosen}
    texts = tuple(dict.fromkeys(text for chain in steps.values() for text in chain))
    replies = yield [Embed(embedder, (text,)) for text in texts]
    known = dict(zip(texts, map(reply_vector, replies), strict=True))
    chain_vectors = {
        name: pooled([known[text] or () for text in chain])
        for name, chain in steps.items()
        if all(map(known.get, chain))
    }
    vectors = {name: vector for name, vector in chain_vectors.items() if vector is not None}
    if len(vectors) < 2:
        missing_reason = next(
            (
                missing_reason
                for reply in replies
                if (missing_reason := missing_reply(reply)) is not None
            ),
            None,
        )
        reason = (
            "the floor could not be measured:"
            f" {missing_reason[1] if missing_reason else 'fewer than two reference chains have a vector'}"
        )
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    similarity = cosines(list(vectors.values()))
    return {
        "floor": fmean(pair_similarities(similarity, range(len(vectors)))),
        "floor_reason": "",
        "floor_items": list(vectors),
    }


def reply_vector(reply: Reply) -> tuple[float, ...] | None:
    """The vector of a reply to a request of one text, None where there is none that has a direction."""
    if (
        not isinstance(reply, Response)
        or reply.refused
        or not reply.vectors
        or len(reply.vectors) != 1
    ):
        return None
    return reply.vectors[0] if pooled(reply.vectors) is not None else None


@over_run(cards.PUBLIC_MINUS_HIDDEN, reads=(cards.HIDDEN.name,))
def public_minus_hidden(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> list[Estimate]:
    """Public minus hidden C, paired by item; the interval resamples items. Its reason is a warning past the threshold."""
    out = []
    warn = float(options["holdout_warn"])
    for facet, group in mean_by_item(table).groupby("facet", sort=True):
        known = group["value"].dropna()
        interval = bootstrap_mean(known.tolist(), seed=derive_seed("holdout", seed, facet))
        reason = interval.reason
        if (
            interval.point is not None
            and interval.lo is not None
            and interval.lo > 0
            and interval.point > warn
        ):
            reason = (
                f"warning: chains of public paraphrases agree by {interval.point:.3f} more than"
                f" those of hidden ones, past the threshold {warn:g}: the model may have been"
                " fitted to the public ones"
            )
        out.append(
            Estimate(
                cards.PUBLIC_MINUS_HIDDEN.name,
                facet_of(facet, metric="consistency"),
                interval.point,
                interval.lo,
                interval.hi,
                interval.level,
                interval.n,
                len(group) - len(known),
                f"paired by item, {interval.method}",
                "items",
                reason,
            )
        )
    return out
