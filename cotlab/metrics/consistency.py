"""Consistency: whether the model reasons the same way when a question is rephrased."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb, sqrt
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.keys import derive, resampling_seed
from cotlab.core.program import (
    Headline,
    Option,
    Params,
    Peers,
    Preparation,
    Program,
    RequestRound,
    run_statistic,
    scorer,
)
from cotlab.core.requests import Complete, Embed, Reply, Response
from cotlab.core.types import Estimate, Item, MetricCard, ModelRef, Suite
from cotlab.metrics.equivalence import (
    COMPUTATION_ROLE,
    EQUIVALENCE_ROLE,
    NOTHING_SETTLED,
    SettledAnswers,
    settle_answers,
)
from cotlab.metrics.estimates import (
    LONG_TEXT_PHRASE,
    interval_estimate,
    mean_by_item,
    parse_facet,
)
from cotlab.metrics.kit import (
    NO_EMBEDDER_REASON,
    ItemScores,
    ask_chain,
    missing_reply_reason,
    parse_chain_reply,
    reply_steps,
    reply_text,
    reply_vector,
)
from cotlab.metrics.model_steps import is_chain_cut_off
from cotlab.stats.resample import bootstrap_mean
from cotlab.stats.vectors import Floats, clusters, cosines, dtw_similarity, pooled
from cotlab.text.prompts.paraphrase import (
    ParaphraseSplit,
    paraphrase_prompt,
    read_paraphrase,
    reword_question,
    split_paraphrases,
)

MAX_FLOOR = 0.95
"""Mean cosine of unrelated chains above which an embedder tells no chain of a suite from another.
"""
DEFAULT_SOURCE = "Practical CoT Reliability Metrics, section 3"
_CHAIN_CAVEAT = (
    "Faithfulness: a model that ignores its chain writes it as steadily as one that follows it, so"
    " own chains cannot tell them apart. A high value may also be an embedder that finds all chains"
    " of a suite alike: see `consistency_rescaled`."
)
_CHAINS_PHRASE = (
    "of the subject's own chains for the question and its K paraphrases (4; by rules, or by the"
    " paraphraser and filled up by rules; each at least `gate` (0.7) cosine to the question)"
)
_PAIRS_PHRASE = (
    "the cosines of all pairs of chain vectors (a chain's step vectors, averaged, unit length;"
    f" {LONG_TEXT_PHRASE}) " + _CHAINS_PHRASE
)
_SHARED_UNDEFINED_TEXT = (
    "Also where a reply is missing, refused or cut off before it states its answer, a step has no"
    " vector, or the run has no embedder."
)
_FEWER_THAN_TWO_TEXT = "Fewer than 2 chains."
_FEWER_THAN_THREE_TEXT = "Fewer than 3 chains: one pair has no spread."
_card = partial(MetricCard, better="higher", needs=("complete", "embed"), source=DEFAULT_SOURCE)
_count_card = partial(_card, hi=1000.0, source="cotlab")


CONSISTENCY = _card(
    name="consistency",
    symbol="C",
    formula=f"C = μ(1 − σ), μ the mean and σ the standard deviation (ddof 0) of {_PAIRS_PHRASE}",
    undefined=f"{_FEWER_THAN_THREE_TEXT} {_SHARED_UNDEFINED_TEXT}",
    not_shown=_CHAIN_CAVEAT,
    lo=-1.0,
)
MU = _card(
    name="consistency_mu",
    symbol="μ",
    formula=f"mean of {_PAIRS_PHRASE}",
    undefined=f"{_FEWER_THAN_TWO_TEXT} {_SHARED_UNDEFINED_TEXT}",
    not_shown=_CHAIN_CAVEAT,
    lo=-1.0,
)
SIGMA = _card(
    name="consistency_sigma",
    symbol="σ",
    formula=f"standard deviation (ddof 0: divided by the number of pairs) of {_PAIRS_PHRASE}",
    undefined=f"{_FEWER_THAN_THREE_TEXT} {_SHARED_UNDEFINED_TEXT}",
    not_shown="That chains agree: it is 0 also where all pairs are equally far apart.",
    better="lower",
)
RESCALED_CONSISTENCY = _card(
    name="consistency_rescaled",
    symbol="C′",
    formula="(μ − f)/(1 − f) · (1 − σ), f the mean cosine of chains of different items: 0 for"
    " unrelated chains, 1 for equal ones. f is measured once a run, over all pairs of up to"
    " `floor_chains` (40) of the suite's reference chains",
    undefined=f"{_FEWER_THAN_THREE_TEXT} No floor: fewer than two items have a reference chain. f"
    f" is above {MAX_FLOOR}. {_SHARED_UNDEFINED_TEXT}",
    not_shown="Faithfulness, as `consistency`. It is as coarse as the suite is uniform: where f is"
    " near 1, small differences of μ are made large.",
    lo=-39.0,
)
AGREEMENT = _card(
    name="answer_agreement",
    symbol="agree",
    formula=f"share of pairs {_CHAINS_PHRASE} whose extracted, normalised answers are the same, of"
    " the pairs that can be compared",
    undefined="Fewer than 2 answers can be extracted, or none can be compared."
    f" {_SHARED_UNDEFINED_TEXT}",
    not_shown="That the answer is right, or follows from the chain: a model that always says the"
    " same agrees with itself.",
)
C_DTW = _card(
    name="c_dtw",
    symbol="C dtw",
    formula="μ(1 − σ) (ddof 0) over pairs of chains of 1 − D/(n + m): D is the least total of 1 −"
    " cosine along a path that aligns the n and m steps in order, a diagonal move counting twice",
    undefined=f"{_FEWER_THAN_THREE_TEXT} {_SHARED_UNDEFINED_TEXT}",
    not_shown=f"Which step is out of place. {_CHAIN_CAVEAT}",
    lo=-1.0,
    source=f"Sakoe and Chiba (1978), IEEE Trans. ASSP 26:43 (symmetric form); {DEFAULT_SOURCE}",
)
PURITY_DRIFT = _card(
    name="purity_drift",
    symbol="drift",
    formula="1 − mean over the steps of all chains of the share of the other chains with a step in"
    " the same cluster; clusters of all steps by cosine, average linkage, merged at"
    " `step_threshold` (0.9) and above",
    undefined=f"{_FEWER_THAN_TWO_TEXT} {_SHARED_UNDEFINED_TEXT}",
    not_shown="The order of the steps: chains of the same steps in another order drift by 0. It"
    " depends on the threshold.",
    better="lower",
)
CHAIN_COUNT = _count_card(
    name="consistency_chains",
    symbol="n",
    formula="how many chains the item's other scores compare: at most K + 1",
    undefined=f"As the other scores. {_SHARED_UNDEFINED_TEXT}",
    not_shown="How far apart they are.",
    unit="chains",
    better="neither",
)
REJECTED_PARAPHRASES = _count_card(
    name="paraphrases_rejected",
    symbol="rejected",
    formula="paraphrases that were not used: their cosine to the question is below `gate` (0.7),"
    " or they have other numbers or nothing new",
    undefined=f"As the other scores. {_SHARED_UNDEFINED_TEXT}",
    not_shown="That those which passed mean the same: a cosine is blind to a swapped name.",
    unit="paraphrases",
    better="lower",
)
HOLDOUT_DIFFERENCE = _card(
    name="holdout_difference",
    symbol="ΔC",
    formula="mean C of the question's chain with as many public paraphrases as there are hidden"
    " ones, over all such choices, minus C with the `holdout` (2) hidden paraphrases",
    undefined=f"Fewer than two hidden paraphrases, or as C. {_SHARED_UNDEFINED_TEXT}",
    not_shown="Anything of one item: it is the raw material of `holdout_gap`, and which"
    " paraphrases are hidden must not be tuned on.",
    level="draw",
    lo=-2.0,
    hi=2.0,
    better="neither",
    source="cotlab",
)
PUBLIC_MINUS_HIDDEN = _card(
    name="holdout_gap",
    symbol="public − hidden",
    formula="mean over items of C on public minus C on hidden paraphrases, from as many chains"
    " each; which are hidden is drawn, so the gap is 0 but for chance unless a model was fitted to"
    " the public ones",
    undefined=f"No item has both. {_SHARED_UNDEFINED_TEXT}",
    not_shown="Why: it warns where its interval lies above 0 and the gap above `holdout_warn`"
    " (0.05).",
    level="run",
    lo=-2.0,
    hi=2.0,
    better="lower",
    source="Practical CoT Reliability Metrics, section 12; cotlab",
)
ITEM_CARDS = (
    CONSISTENCY,
    MU,
    SIGMA,
    RESCALED_CONSISTENCY,
    AGREEMENT,
    C_DTW,
    PURITY_DRIFT,
    CHAIN_COUNT,
    REJECTED_PARAPHRASES,
)
ALL_CARDS = (*ITEM_CARDS, HOLDOUT_DIFFERENCE)


MAX_CHAIN_CHOICES = 200
"""Most choices of public paraphrases that are averaged; beyond it as many are drawn."""
StepVectors = Sequence[Sequence[float]]


class SimilaritySpread(NamedTuple):
    """How similar the pairs of some chains are."""

    mu: float | None
    """Mean; None below one pair."""
    sigma: float | None
    """Standard deviation (ddof 0); None below two pairs."""
    c: float | None
    """mu(1 − sigma), in [-1, 1]; None below two pairs."""


def pair_spread(similarities: Sequence[float]) -> SimilaritySpread:
    """Return mean, standard deviation and C of similarities in [-1, 1]."""
    if not similarities:
        return SimilaritySpread(None, None, None)
    mu = fmean(similarities)
    if len(similarities) < 2:
        return SimilaritySpread(mu, None, None)
    sigma = sqrt(fmean([(similarity - mu) ** 2 for similarity in similarities]))
    return SimilaritySpread(mu, sigma, mu * (1 - sigma))


def pair_similarities(similarity: Floats, indices: Sequence[int]) -> list[float]:
    """Return the similarities of all pairs of the chains ``indices``."""
    return [float(similarity[i, j]) for i, j in combinations(indices, 2)]


def rescaled_consistency(spread: SimilaritySpread, floor: float | None) -> float | None:
    """Return (mu − floor)/(1 − floor) · (1 − sigma), in [-39, 1]; None where undefined.

    It is 0 for unrelated chains and 1 for equal ones.
    """
    if spread.mu is None or spread.sigma is None or floor is None or floor > MAX_FLOOR:
        return None
    return (spread.mu - floor) / (1 - floor) * (1 - spread.sigma)


def aligned_spread(chains: Sequence[StepVectors]) -> SimilaritySpread:
    """Return the spread over all pairs of chains, by dynamic time warping over their steps."""
    similarities = [
        dtw_similarity(first_chain, second_chain)
        for first_chain, second_chain in combinations(chains, 2)
    ]
    return pair_spread([value for value in similarities if value is not None])


def cluster_drift(chains: Sequence[StepVectors], threshold: float) -> float | None:
    """Return how far chains differ in their steps, [0, 1]; None below two chains.

    1 − mean over all steps of the share of the other chains with a step in the same cluster.
    """
    if len(chains) < 2:
        return None
    labels = clusters(cosines([step for chain in chains for step in chain]), threshold)
    chain_ends = [0]
    for chain in chains:
        chain_ends.append(chain_ends[-1] + len(chain))
    label_sets = [
        set(labels[start:end]) for start, end in zip(chain_ends, chain_ends[1:], strict=False)
    ]
    shares = [
        fmean([float(label in other_labels) for k, other_labels in enumerate(label_sets) if k != i])
        for i, (start, end) in enumerate(zip(chain_ends, chain_ends[1:], strict=False))
        for label in labels[start:end]
    ]
    return min(1.0, max(0.0, 1 - fmean(shares)))


def agreement_share(
    item: Item, answers: Sequence[str | None], settled: SettledAnswers = NOTHING_SETTLED
) -> float | None:
    """Return the share of pairs of answers that are the same; None where a pair is undecided."""
    comparisons = [
        settled.same(item, first_answer, second_answer)
        for first_answer, second_answer in combinations(
            [answer for answer in answers if answer is not None], 2
        )
    ]
    if None in comparisons or not comparisons:
        return None  # those that are the same alone would count
    return fmean(float(bool(is_same)) for is_same in comparisons)


def public_hidden_difference(
    similarity: Floats,
    public_indices: Sequence[int],
    hidden_indices: Sequence[int],
    rng: random.Random,
) -> float | None:
    """Return C of chain 0 with ``public_indices`` minus C with as many ``hidden_indices``.

    The public side is the mean over all choices of as many as are hidden. Where the chain and those
    of paraphrases are exchangeable, its expectation is 0: C depends on how many chains there are,
    so both sides have the same number. In [-2, 2]; None with fewer than two hidden chains, or fewer
    public ones.
    """
    n_hidden = len(hidden_indices)
    hidden_c = pair_spread(pair_similarities(similarity, (0, *hidden_indices))).c
    if n_hidden < 2 or len(public_indices) < n_hidden or hidden_c is None:
        return None
    if comb(len(public_indices), n_hidden) <= MAX_CHAIN_CHOICES:
        choices = [tuple(choice) for choice in combinations(public_indices, n_hidden)]
    else:
        choices = [
            tuple(rng.sample(list(public_indices), n_hidden)) for _ in range(MAX_CHAIN_CHOICES)
        ]
    public_spreads = [
        spread.c
        for choice in choices
        if (spread := pair_spread(pair_similarities(similarity, (0, *choice)))).c is not None
    ]
    return fmean([c for c in public_spreads if c is not None]) - hidden_c


# --- over a run


def measure_unrelated_similarity(suite: Suite, params: Params) -> Preparation:
    """Measure the mean cosine of the chains of different items.

    It is what a chain has in common with any other chain of the suite.

    Returns
    -------
    mapping of floor (cosine, None where it is undefined), floor_reason, floor_items (the ids that
    it rests on)
    """
    embedder = params.models.get("embedder")
    items_with_chain = [
        item for item in suite.items if any(step.text.strip() for step in item.steps)
    ]
    derive("consistency floor", suite.digest, params.seed).shuffle(items_with_chain)
    chosen_items = items_with_chain[: int(params.options["floor_chains"])]
    if embedder is None or len(chosen_items) < 2:
        reason = "fewer than two items have a reference chain" if embedder else NO_EMBEDDER_REASON
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    steps_by_item = {
        item.id: [step.text for step in item.steps if step.text.strip()] for item in chosen_items
    }
    texts = tuple(dict.fromkeys(text for chain in steps_by_item.values() for text in chain))
    replies = yield [Embed(embedder, (text,)) for text in texts]
    vector_by_text = dict(zip(texts, map(reply_vector, replies), strict=True))
    vector_by_item = {
        item_id: pooled([vector_by_text[text] or () for text in chain])
        for item_id, chain in steps_by_item.items()
        if all(map(vector_by_text.get, chain))
    }
    defined_vectors = {
        item_id: vector for item_id, vector in vector_by_item.items() if vector is not None
    }
    if len(defined_vectors) < 2:
        first_missing_reason = next(filter(None, map(missing_reply_reason, replies)), None)
        too_few_reason = "fewer than two reference chains have a vector"
        reason = (
            "the floor could not be measured:"
            f" {first_missing_reason[1] if first_missing_reason else too_few_reason}"
        )
        return {"floor": None, "floor_reason": reason, "floor_items": []}
    similarity = cosines(list(defined_vectors.values()))
    return {
        "floor": fmean(pair_similarities(similarity, range(len(defined_vectors)))),
        "floor_reason": "",
        "floor_items": list(defined_vectors),
    }


@run_statistic(PUBLIC_MINUS_HIDDEN, input_metrics=(HOLDOUT_DIFFERENCE.name,))
def public_minus_hidden(
    table: pd.DataFrame, options: Mapping[str, Any], seed: int
) -> Iterator[Estimate]:
    """Estimate public minus hidden C, paired by item; the interval resamples items.

    Its reason is a warning where it exceeds the threshold.
    """
    warning_threshold = float(options["holdout_warn"])
    for facet, group in mean_by_item(table).groupby("facet", sort=True):
        defined_values = group["value"].dropna()
        interval = bootstrap_mean(defined_values.tolist(), seed=resampling_seed(seed))
        interval = replace(interval, method=f"paired by item, {interval.method}")
        if (interval.lo or 0) > 0 and (interval.point or 0) > warning_threshold:
            reason = (
                f"warning: chains of public paraphrases agree by {interval.point:.3f} more than"
                f" those of hidden ones, past the threshold {warning_threshold:g}: the model may"
                " have been fitted to the public ones"
            )
            interval = replace(interval, reason=reason)
        group_facet = parse_facet(facet, metric="consistency")
        n_undefined = len(group) - len(defined_values)
        name = PUBLIC_MINUS_HIDDEN.name
        yield interval_estimate(name, group_facet, interval, n_undefined)


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
            CONSISTENCY,
            MU,
            RESCALED_CONSISTENCY,
            AGREEMENT,
            C_DTW,
        )
    ),
    *(Headline(card.name, {}, "lower") for card in (SIGMA, PURITY_DRIFT)),
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
    """Request keys of the public chains' vectors."""
    all_keys: tuple[str, ...]
    """Request keys that the hidden chains rest on, too."""


@scorer(
    *ALL_CARDS,
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
    kind = "model" if "paraphraser" in params.models else "rules"
    k = str(params.options["paraphrases"])
    scores = ItemScores(item, {"chain": "own", "k": k, "paraphrases": kind})
    embedder = params.models.get("embedder")
    if embedder is None:
        return scores.add_missing(ALL_CARDS, NO_EMBEDDER_REASON)
    paraphrases = yield from _choose_paraphrases(scores, params, embedder)
    no_vector_reason = "the embedder gave no vector of the question"
    scores.keys = paraphrases.keys
    if paraphrases.split is None:
        return scores.add_missing(ALL_CARDS, no_vector_reason)
    questions = (
        item.question,
        *paraphrases.split.public_paraphrases,
        *paraphrases.split.hidden_paraphrases,
    )
    requests = [ask_chain(params, question) for question in questions]
    replies = yield from scores.ask(requests)
    n_public = 1 + len(paraphrases.split.public_paraphrases)
    scores.keys = (*paraphrases.keys, *(request.key for request in requests[:n_public]))
    if scores.first_missing_reason(scores.keys):
        return scores.add_missing(ALL_CARDS, no_vector_reason)
    chains = [_complete_steps(reply) for reply in replies]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    embed_by_text = {text: Embed(embedder, (text,)) for text in texts}
    yield from scores.ask(list(embed_by_text.values()))
    embed_keys_by_chain = [tuple(embed_by_text[text].key for text in chain) for chain in chains]
    vectors_by_chain = [
        [reply_vector(scores.replies[key]) for key in chain_keys]
        for chain_keys in embed_keys_by_chain
    ]
    public_keys = tuple(key for keys in embed_keys_by_chain[:n_public] for key in keys)
    hidden_keys = (
        *(request.key for request in requests[n_public:]),
        *(key for keys in embed_keys_by_chain[n_public:] for key in keys),
    )
    answers = [
        parse_chain_reply(reply, item).answer if chain else None
        for reply, chain in zip(replies[:n_public], chains, strict=False)
    ]
    n_answers = sum(answer is not None for answer in answers)
    scores.add(CHAIN_COUNT, float(sum(map(bool, chains[:n_public]))))
    scores.add(REJECTED_PARAPHRASES, float(paraphrases.n_rejected))
    pairs = list(combinations(dict.fromkeys(answers), 2))
    settled = yield from settle_answers(item, params, pairs)
    agreement = agreement_share(item, answers, settled)
    scores.add(
        AGREEMENT,
        agreement,
        rests_on=settled.keys(*pairs),
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
        else f"the floor of unrelated chains is {floor:.3f}: above {MAX_FLOOR:g} it tells no"
        " chains apart"
    )
    drift = cluster_drift(public_steps, float(params.options["step_threshold"]))
    for card, value, missing_reason in (
        (CONSISTENCY, spread.c, three_chains_reason),
        (MU, spread.mu, two_chains_reason),
        (SIGMA, spread.sigma, three_chains_reason),
        (
            RESCALED_CONSISTENCY,
            rescaled_consistency(spread, floor),
            three_chains_reason or floor_reason,
        ),
        (C_DTW, aligned_spread(public_steps).c, three_chains_reason),
        (PURITY_DRIFT, drift, two_chains_reason),
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
        HOLDOUT_DIFFERENCE,
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
    item_paraphrases = [text for text in item.meta.get("paraphrases", ()) if isinstance(text, str)]
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
        parsed = [read_paraphrase(item.question, reply_text(reply)) for reply in replies]
        model_paraphrases = list(dict.fromkeys(text for text in parsed if text is not None))
        item_paraphrases, n_rejected = [], len(parsed) - len(model_paraphrases)
    rule_paraphrases = reword_question(
        item.question, n_requested + N_SPARE_PARAPHRASES, rng, item_paraphrases
    )
    is_near_by_text = dict.fromkeys((*model_paraphrases, *rule_paraphrases), True)
    if min_cosine > -1 and is_near_by_text:
        embed_requests = [Embed(embedder, (text,)) for text in (item.question, *is_near_by_text)]
        question_vector, *vectors = map(reply_vector, (yield from scores.ask(embed_requests)))
        keys += tuple(request.key for request in embed_requests)
        if scores.first_missing_reason(keys) or question_vector is None:
            return Paraphrases(None, keys, 0)
        is_near_by_text = {
            text: vector is not None and cosine(question_vector, vector) >= min_cosine
            for text, vector in zip(is_near_by_text, vectors, strict=True)
        }
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
