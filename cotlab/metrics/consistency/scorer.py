"""Consistency: whether the model reasons the same way when a question is rephrased."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from cotlab.core.keys import derive
from cotlab.core.program import Headline, Option, Params, Peers, Program, RequestRound, scorer
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.types import Item, ModelRef
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.similarity import (
    SimilaritySpread,
    agreement_share,
    aligned_spread,
    cluster_drift,
    measure_unrelated_similarity,
    pair_similarities,
    pair_spread,
    public_hidden_difference,
    public_minus_hidden,
    rescaled_consistency,
)
from cotlab.metrics.equivalence import (
    COMPUTATION_ROLE,
    EQUIVALENCE_ROLE,
    settle_answers,
)
from cotlab.metrics.kit import (
    NO_EMBEDDER_REASON,
    ItemScores,
    ask_chain,
    parse_chain_reply,
    reply_steps,
    reply_text,
    reply_vector,
)
from cotlab.metrics.model_steps import is_chain_cut_off
from cotlab.stats.vectors import cosines, pooled
from cotlab.text.prompts.paraphrase import (
    ParaphraseSplit,
    paraphrase_prompt,
    read_paraphrase,
    reword_question,
    split_paraphrases,
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
        for card in (
            cards.CONSISTENCY,
            cards.MU,
            cards.RESCALED_CONSISTENCY,
            cards.AGREEMENT,
            cards.C_DTW,
        )
    ),
    *(Headline(card.name, {}, "lower") for card in (cards.SIGMA, cards.PURITY_DRIFT)),
)
"""The source reads stability as a sign of sound reasoning: a claim to be held against models of
known faithfulness."""
N_SPARE_PARAPHRASES, MAX_REWORD_TOKENS, REWORD_TEMPERATURE = 2, 512, 0.8


class Paraphrases(NamedTuple):
    """The paraphrases that an item is measured with."""

    split: ParaphraseSplit | None
    """The public and the hidden ones; None where a reply that decides them is missing."""
    keys: tuple[str, ...]
    """Request keys that the choice rests on: so does every score."""
    n_rejected: int
    """How many were not used."""


class ChainVectors(NamedTuple):
    """The step vectors of every chain of an item, public chains first."""

    chains: Sequence[Sequence[Sequence[float]]]
    """Vectors by chain and step; a chain without steps, or with a step without vector, is empty."""
    n_public: int
    """How many of the chains are public."""
    has_missing_vector: bool
    """Whether the embedder gave no vector of a step of a public chain."""
    public_keys: tuple[str, ...]
    """Request keys that the public chains rest on."""
    all_keys: tuple[str, ...]
    """Request keys that all chains rest on."""


@scorer(
    *cards.ALL_CARDS,
    version=14,
    name="consistency",
    options=OPTIONS,
    prepare=measure_unrelated_similarity,
    statistics=(public_minus_hidden,),
    headlines=HEADLINES,
    roles=("embedder", "paraphraser", COMPUTATION_ROLE, EQUIVALENCE_ROLE),
)
def consistency(item: Item, params: Params, peers: Peers) -> Program:
    """Let the model reason on each paraphrase, and compare the chains by their steps' vectors."""
    paraphraser_kind = "model" if "paraphraser" in params.models else "rules"
    facet = {
        "chain": "own",
        "k": str(params.options["paraphrases"]),
        "paraphrases": paraphraser_kind,
    }
    scores = ItemScores(item, facet)
    embedder = params.models.get("embedder")
    if embedder is None:
        return scores.add_missing(cards.ALL_CARDS, NO_EMBEDDER_REASON)
    paraphrases = yield from _choose_paraphrases(scores, params, embedder)
    no_vector_reason = "the embedder gave no vector of the question"
    if paraphrases.split is None:
        return scores.add_missing(cards.ALL_CARDS, no_vector_reason, rests_on=paraphrases.keys)
    questions = (
        item.question,
        *paraphrases.split.public_paraphrases,
        *paraphrases.split.hidden_paraphrases,
    )
    requests = [ask_chain(params, question) for question in questions]
    replies = yield from scores.ask(requests)
    n_public = 1 + len(paraphrases.split.public_paraphrases)
    public_reply_keys = (*paraphrases.keys, *(request.key for request in requests[:n_public]))
    if scores.first_missing_reason(public_reply_keys):
        return scores.add_missing(cards.ALL_CARDS, no_vector_reason, rests_on=public_reply_keys)
    chains = [_complete_steps(reply) for reply in replies]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    embed_by_text = {text: Embed(embedder, (text,)) for text in texts}
    yield from scores.ask(list(embed_by_text.values()))
    embed_keys_by_chain = [tuple(embed_by_text[text].key for text in chain) for chain in chains]
    vectors_by_chain = [
        [reply_vector(scores.replies[key]) for key in chain_keys]
        for chain_keys in embed_keys_by_chain
    ]
    public_keys = (
        *public_reply_keys,
        *(key for chain_keys in embed_keys_by_chain[:n_public] for key in chain_keys),
    )
    hidden_keys = (
        *(request.key for request in requests[n_public:]),
        *(key for chain_keys in embed_keys_by_chain[n_public:] for key in chain_keys),
    )
    answers = [
        parse_chain_reply(reply, item).answer if chain else None
        for reply, chain in zip(replies[:n_public], chains, strict=False)
    ]
    n_answers = sum(answer is not None for answer in answers)
    scores.add(
        cards.CHAIN_COUNT, float(sum(map(bool, chains[:n_public]))), rests_on=public_reply_keys
    )
    scores.add(
        cards.REJECTED_PARAPHRASES, float(paraphrases.n_rejected), rests_on=public_reply_keys
    )
    pairs = list(combinations(dict.fromkeys(answers), 2))
    settled = yield from settle_answers(item, params, pairs)
    agreement = agreement_share(item, answers, settled)
    scores.add(
        cards.AGREEMENT,
        agreement,
        rests_on=(*public_reply_keys, *settled.keys(*pairs)),
        reason=_too_few_reason(n_answers, 2, "answer"),
    )
    vectors = ChainVectors(
        [
            [v for v in chain if v is not None] if None not in chain else []
            for chain in vectors_by_chain
        ],
        n_public,
        any(None in chain for chain in vectors_by_chain[:n_public]),
        public_keys,
        (*public_keys, *hidden_keys),
    )
    _add_vector_scores(scores, params, vectors)
    return tuple(scores.scores)


def _add_vector_scores(scores: ItemScores, params: Params, chains: ChainVectors) -> None:
    """Add every score that rests on vectors."""
    chain_vectors = [pooled(chain) for chain in chains.chains]
    indices_with_vector = [i for i, vector in enumerate(chain_vectors) if vector is not None]
    vectors = [vector for vector in chain_vectors if vector is not None]
    similarity = cosines(vectors or [(1.0,)])
    row_by_chain = {i: row for row, i in enumerate(indices_with_vector)}
    public_indices = [i for i in indices_with_vector if i < chains.n_public]
    spread = pair_spread(pair_similarities(similarity, [row_by_chain[i] for i in public_indices]))
    no_vector_reason = "the embedder gave no vector of a step" if chains.has_missing_vector else ""
    if no_vector_reason:
        spread = SimilaritySpread(None, None, None)
    two_chains_reason = no_vector_reason or _too_few_reason(len(public_indices), 2, "chain")
    three_chains_reason = no_vector_reason or _too_few_reason(len(public_indices), 3, "chain")
    public_steps = [] if no_vector_reason else [chains.chains[i] for i in public_indices]
    floor = params.constants.get("floor")
    no_floor_reason = "the floor of unrelated chains was not measured"
    floor_reason = (
        params.constants.get("floor_reason") or no_floor_reason
        if floor is None
        else f"the floor of unrelated chains is {floor:.3f}: above {cards.MAX_FLOOR:g} it tells no"
        " chains apart"
    )
    drift = cluster_drift(public_steps, float(params.options["step_threshold"]))
    for card, value, missing_reason in (
        (cards.CONSISTENCY, spread.c, three_chains_reason),
        (cards.MU, spread.mu, two_chains_reason),
        (cards.SIGMA, spread.sigma, three_chains_reason),
        (
            cards.RESCALED_CONSISTENCY,
            rescaled_consistency(spread, floor),
            three_chains_reason or floor_reason,
        ),
        (cards.C_DTW, aligned_spread(public_steps).c, three_chains_reason),
        (cards.PURITY_DRIFT, drift, two_chains_reason),
    ):
        scores.add(card, value, rests_on=chains.public_keys, reason=missing_reason)
    difference = None
    if 0 in row_by_chain and not no_vector_reason:
        difference = public_hidden_difference(
            similarity,
            [row_by_chain[i] for i in public_indices if i],
            [row_by_chain[i] for i in indices_with_vector if i >= chains.n_public],
            derive("consistency holdout", params.seed, scores.item.id),
        )
    too_few_reason = "it needs the question's own chain, two hidden ones and as many public ones"
    scores.add(
        cards.HOLDOUT_DIFFERENCE,
        difference,
        rests_on=chains.all_keys,
        reason=no_vector_reason or too_few_reason,
    )


def _choose_paraphrases(
    scores: ItemScores, params: Params, embedder: ModelRef
) -> Generator[RequestRound, Sequence[Reply], Paraphrases]:
    """Choose the paraphrases that are used, public and hidden."""
    item, options, paraphraser = scores.item, params.options, params.models.get("paraphraser")
    n_public, n_hidden = int(options["paraphrases"]), int(options["holdout"])
    n_requested, min_cosine = n_public + n_hidden, float(options["gate"])
    rng = derive("paraphrase", params.seed, item.question)
    model_paraphrases: list[str] = []
    keys: tuple[str, ...] = ()
    n_rejected = 0
    if paraphraser is not None:
        prompt = paraphrase_prompt(item.question)
        requests = [
            Complete(
                paraphraser,
                prompt.messages,
                max_tokens=MAX_REWORD_TOKENS,
                temperature=REWORD_TEMPERATURE,
                seed=params.seed,
                sample=k,
            )
            for k in range(n_requested + N_SPARE_PARAPHRASES)
        ]
        replies = yield from scores.ask(requests)
        keys = tuple(request.key for request in requests)
        if scores.first_missing_reason(keys):
            return Paraphrases(None, keys, 0)
        parsed_paraphrases = [
            read_paraphrase(item.question, reply_text(reply)) for reply in replies
        ]
        model_paraphrases = list(
            dict.fromkeys(text for text in parsed_paraphrases if text is not None)
        )
        n_rejected = len(parsed_paraphrases) - len(model_paraphrases)
    item_paraphrases = (
        []
        if paraphraser is not None
        else [text for text in item.meta.get("paraphrases", ()) if isinstance(text, str)]
    )
    rule_paraphrases = [
        text
        for text in reword_question(
            item.question, n_requested + N_SPARE_PARAPHRASES, rng, item_paraphrases
        )
        if text not in model_paraphrases
    ]
    is_near_by_text: dict[str, bool] = dict.fromkeys((*model_paraphrases, *rule_paraphrases), True)
    if min_cosine > -1 and is_near_by_text:
        embed_requests = [Embed(embedder, (text,)) for text in (item.question, *is_near_by_text)]
        vectors = [reply_vector(reply) for reply in (yield from scores.ask(embed_requests))]
        keys += tuple(request.key for request in embed_requests)
        if scores.first_missing_reason(keys) or vectors[0] is None:
            return Paraphrases(None, keys, 0)
        near_flags = [
            vector is not None and cosine(vectors[0], vector) >= min_cosine
            for vector in vectors[1:]
        ]
        is_near_by_text = dict(zip(is_near_by_text, near_flags, strict=True))
    accepted_paraphrases: list[str] = []
    for text, is_near in is_near_by_text.items():
        if len(accepted_paraphrases) == n_requested:
            break
        n_rejected += not is_near
        accepted_paraphrases += [text] if is_near else []
    split = split_paraphrases(
        accepted_paraphrases, n_public, n_hidden, derive("hold out", params.seed, item.question)
    )
    return Paraphrases(split, keys, n_rejected)


def cosine(first_vector: Sequence[float], second_vector: Sequence[float]) -> float:
    """Return the cosine of two vectors, [-1, 1]; −1 where they differ in length."""
    return (
        float(cosines([first_vector, second_vector])[0, 1])
        if len(first_vector) == len(second_vector)
        else -1.0
    )


def _complete_steps(reply: Reply) -> tuple[str, ...]:
    """Return a model's steps; none of a chain that was cut off before it stated its answer."""
    was_cut = isinstance(reply, Response) and is_chain_cut_off(reply)
    return () if was_cut else reply_steps(reply)


def _too_few_reason(n: int, n_needed: int, noun: str) -> str:
    """Return why there is no value; empty where there are enough and another reason applies."""
    if n >= n_needed:
        return "" if noun == "chain" else f"the {noun}s cannot be compared"
    return (
        f"{n} of the {noun}s can be compared, and {n_needed} are needed: the others are missing,"
        " empty or cut off"
    )
