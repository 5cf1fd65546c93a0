"""Consistency: whether the model reasons the same way when a question is rephrased."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from cotlab.core.program import Headline, Option, Params, Peers, Program, Round, scorer
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.similarity import (
    Spread,
    agreement_share,
    aligned,
    cluster_drift,
    pair_similarities,
    pair_spread,
    public_hidden_difference,
    public_minus_hidden,
    reply_vector,
    rescaled,
    unrelated_floor,
)
from cotlab.metrics.kit import NO_EMBEDDER, ItemScores, ask_chain, reply_steps, reply_text
from cotlab.stats.vectors import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.paraphrase import (
    Split,
    ask_paraphrase,
    hold_out,
    read_paraphrase,
    reword_question,
)

MAX_PARAPHRASES = 100
OPTIONS: Mapping[str, Option] = {
    "paraphrases": Option(4, "public paraphrases of a question", lo=1, hi=MAX_PARAPHRASES),
    "holdout": Option(2, "hidden paraphrases of a question", lo=0, hi=MAX_PARAPHRASES),
    "gate": Option(0.7, "least cosine of a paraphrase to its question", lo=-1, hi=1),
    "step_threshold": Option(0.9, "cosine from which steps share a cluster", lo=-1, hi=1),
    "floor_chains": Option(
        40, "reference chains that the floor of unrelated chains is measured on", lo=2, hi=1000
    ),
    "holdout_warn": Option(0.05, "public minus hidden C above which the summary warns", lo=0, hi=2),
}
HEADLINES = (
    *(
        Headline(card.name, {})
        for card in (cards.CONSISTENCY, cards.MU, cards.RESCALED, cards.AGREEMENT, cards.C_DTW)
    ),
    *(Headline(card.name, {}, "lower") for card in (cards.SIGMA, cards.PURITY_DRIFT)),
)
"""The source reads stability as a sign of sound reasoning: a claim to be held against models of
known faithfulness."""
SPARE, REWORD_TOKENS, REWORD_TEMPERATURE = 2, 512, 0.8


class Paraphrases(NamedTuple):
    """The paraphrases that an item is measured with."""

    split: Split | None
    """The public and the hidden ones; None where a reply that decides them is missing."""
    keys: tuple[str, ...]
    """Request keys that the choice rests on: so does every score."""
    rejected: int
    """How many were not used."""


class Vectors(NamedTuple):
    """The step vectors of every chain of an item, public chains first."""

    chains: Sequence[Sequence[Sequence[float]]]
    """Vectors by chain and step; a chain without steps, or with a step without vector, is empty."""
    n_public: int
    """How many of the chains are public."""
    missing: bool
    """Whether the embedder gave no vector of a step of a public chain."""
    public_keys: tuple[str, ...]
    """Request keys that the public chains rest on."""
    all_keys: tuple[str, ...]
    """Request keys that all chains rest on."""


@scorer(
    *cards.ALL,
    version=1,
    name="consistency",
    options=OPTIONS,
    prepare=unrelated_floor,
    statistics=(public_minus_hidden,),
    headlines=HEADLINES,
    roles=("embedder", "paraphraser"),
)
def consistency(item: Item, params: Params, peers: Peers) -> Program:
    """Let the model reason on each paraphrase, and compare the chains by their steps' vectors."""
    by = "model" if "paraphraser" in params.models else "rules"
    facet = {"chain": "own", "k": str(params.options["paraphrases"]), "paraphrases": by}
    scores = ItemScores(item, facet)
    embedder = params.models.get("embedder")
    if embedder is None:
        scores.add_missing(cards.ALL, NO_EMBEDDER)
        return tuple(scores.scores)
    chosen = yield from _choose_paraphrases(scores, params, embedder)
    no_vector = "the embedder gave no vector of the question"
    if chosen.split is None:
        scores.add_missing(cards.ALL, no_vector, on=chosen.keys)
        return tuple(scores.scores)
    questions = (item.question, *chosen.split.public, *chosen.split.hidden)
    requests = [ask_chain(params, question) for question in questions]
    replies = yield from scores.ask(requests)
    n_public = 1 + len(chosen.split.public)
    public = (*chosen.keys, *(request.key for request in requests[:n_public]))
    if scores.first_missing(public):
        scores.add_missing(cards.ALL, no_vector, on=public)
        return tuple(scores.scores)
    chains = [_chain(reply) for reply in replies]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    of_text = {text: Embed(embedder, (text,)) for text in texts}
    yield from scores.ask(list(of_text.values()))
    keys = [tuple(of_text[text].key for text in chain) for chain in chains]
    steps = [[reply_vector(scores.replies[key]) for key in chain_keys] for chain_keys in keys]
    public_keys = (*public, *(key for chain_keys in keys[:n_public] for key in chain_keys))
    hidden_keys = (
        *(request.key for request in requests[n_public:]),
        *(key for chain_keys in keys[n_public:] for key in chain_keys),
    )
    answers = [
        final_answer(reply_text(reply)) if chain else None
        for reply, chain in zip(replies[:n_public], chains, strict=False)
    ]
    n_answers = sum(answer is not None for answer in answers)
    scores.add(cards.CHAINS, float(sum(map(bool, chains[:n_public]))), on=public)
    scores.add(cards.REJECTED, float(chosen.rejected), on=public)
    agreement = agreement_share(answers)
    scores.add(cards.AGREEMENT, agreement, on=public, reason=_few(n_answers, 2, "answer"))
    vectors = Vectors(
        [[v for v in chain if v is not None] if None not in chain else [] for chain in steps],
        n_public,
        any(None in chain for chain in steps[:n_public]),
        public_keys,
        (*public_keys, *hidden_keys),
    )
    _compare(scores, params, vectors)
    return tuple(scores.scores)


def _compare(scores: ItemScores, params: Params, chains: Vectors) -> None:
    """Add every score that rests on vectors."""
    chain_vectors = [pooled(chain) for chain in chains.chains]
    known = [i for i, vector in enumerate(chain_vectors) if vector is not None]
    vectors = [vector for vector in chain_vectors if vector is not None]
    similarity = cosines(vectors or [(1.0,)])
    at = {i: index for index, i in enumerate(known)}
    public = [i for i in known if i < chains.n_public]
    summary = pair_spread(pair_similarities(similarity, [at[i] for i in public]))
    no_vector = "the embedder gave no vector of a step" if chains.missing else ""
    if no_vector:
        summary = Spread(None, None, None)
    two = no_vector or _few(len(public), 2, "chain")
    three = no_vector or _few(len(public), 3, "chain")
    public_steps = [] if no_vector else [chains.chains[i] for i in public]
    floor = params.constants.get("floor")
    no_floor = "the floor of unrelated chains was not measured"
    floor_reason = (
        params.constants.get("floor_reason") or no_floor
        if floor is None
        else f"the floor of unrelated chains is {floor:.3f}: above {cards.MAX_FLOOR:g} it tells no"
        " chains apart"
    )
    drift = cluster_drift(public_steps, float(params.options["step_threshold"]))
    for card, value, missing_reason in (
        (cards.CONSISTENCY, summary.c, three),
        (cards.MU, summary.mu, two),
        (cards.SIGMA, summary.sigma, three),
        (cards.RESCALED, rescaled(summary, floor), three or floor_reason),
        (cards.C_DTW, aligned(public_steps).c, three),
        (cards.PURITY_DRIFT, drift, two),
    ):
        scores.add(card, value, on=chains.public_keys, reason=missing_reason)
    difference = None
    if 0 in at and not no_vector:
        difference = public_hidden_difference(
            similarity,
            [at[i] for i in public if i],
            [at[i] for i in known if i >= chains.n_public],
            derive("consistency holdout", params.seed, scores.item.id),
        )
    few = "it needs the question's own chain, two hidden ones and as many public ones"
    scores.add(cards.HIDDEN, difference, on=chains.all_keys, reason=no_vector or few)


def _choose_paraphrases(
    scores: ItemScores, params: Params, embedder: ModelRef
) -> Generator[Round, Sequence[Reply], Paraphrases]:
    """Choose the paraphrases that are used, public and hidden."""
    item, options, writer = scores.item, params.options, params.models.get("paraphraser")
    public, hidden = int(options["paraphrases"]), int(options["holdout"])
    n_requested, gate = public + hidden, float(options["gate"])
    rng = derive("paraphrase", params.seed, item.question)
    written: list[str] = []
    keys: tuple[str, ...] = ()
    rejected = 0
    if writer is not None:
        prompt = ask_paraphrase(item.question)
        requests = [
            Complete(
                writer,
                prompt.messages,
                max_tokens=REWORD_TOKENS,
                temperature=REWORD_TEMPERATURE,
                seed=params.seed,
                sample=k,
            )
            for k in range(n_requested + SPARE)
        ]
        replies = yield from scores.ask(requests)
        keys = tuple(request.key for request in requests)
        if scores.first_missing(keys):
            return Paraphrases(None, keys, 0)
        read = [read_paraphrase(item.question, reply_text(reply)) for reply in replies]
        written = list(dict.fromkeys(text for text in read if text is not None))
        rejected = len(read) - len(written)
    given = (
        []
        if writer is not None
        else [text for text in item.meta.get("paraphrases", ()) if isinstance(text, str)]
    )
    ruled = [
        text
        for text in reword_question(item.question, n_requested + SPARE, rng, given)
        if text not in written
    ]
    near: dict[str, bool] = dict.fromkeys((*written, *ruled), True)
    if gate > -1 and near:
        embeds = [Embed(embedder, (text,)) for text in (item.question, *near)]
        vectors = [reply_vector(reply) for reply in (yield from scores.ask(embeds))]
        keys += tuple(request.key for request in embeds)
        if scores.first_missing(keys) or vectors[0] is None:
            return Paraphrases(None, keys, 0)
        alike = [
            vector is not None and cosine(vectors[0], vector) >= gate for vector in vectors[1:]
        ]
        near = dict(zip(near, alike, strict=True))
    used: list[str] = []
    for text, passed in near.items():
        if len(used) == n_requested:
            break
        rejected += not passed
        used += [text] if passed else []
    split = hold_out(used, public, hidden, derive("hold out", params.seed, item.question))
    return Paraphrases(split, keys, rejected)


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the cosine of two vectors, [-1, 1]; −1 where they differ in length."""
    return float(cosines([first, second])[0, 1]) if len(first) == len(second) else -1.0


def _chain(reply: Reply) -> tuple[str, ...]:
    """Return a model's steps; none of a chain that was cut off, as its rest is unknown."""
    truncated = isinstance(reply, Response) and reply.finish == "length"
    return () if truncated else reply_steps(reply)


def _few(n: int, needed: int, what: str) -> str:
    """Return why there is no value; empty where there are enough and another reason applies."""
    if n >= needed:
        return "" if what == "chain" else f"the {what}s cannot be compared"
    return (
        f"{n} of the {what}s can be compared, and {needed} are needed: the others are missing,"
        " empty or cut off"
    )
