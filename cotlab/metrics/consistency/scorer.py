"""Consistency: does the model reason the same way when the same question is put in other words?"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline, Params, Peers, Program, Round, scorer
from cotlab.core.requests import Complete, Embed, Reply, Request, Response
from cotlab.core.rng import derive
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Status
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing_reply, model_chain
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.similarity import (
    Spread,
    agreement_share,
    aligned,
    cluster_drift,
    pair_similarities,
    pair_spread,
    public_hidden_difference,
    rescaled,
)
from cotlab.metrics.consistency.statistics import (
    NO_EMBEDDER,
    public_minus_hidden,
    reply_vector,
    unrelated_floor,
)
from cotlab.stats.vectors import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.paraphrase import (
    Split,
    ask_paraphrase,
    hold_out,
    read_paraphrase,
    reword_question,
)

OPTIONS: Mapping[str, Any] = {
    "paraphrases": 4,
    "holdout": 2,
    "gate": 0.7,
    "step_threshold": 0.9,
    "floor_chains": 40,
    "holdout_warn": 0.05,
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
MAX_PARAPHRASES = 100
MissingReason = tuple[Status, str]


def validate_consistency_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is out of range."""
    ranges = {
        "paraphrases": (1, MAX_PARAPHRASES),
        "holdout": (0, MAX_PARAPHRASES),
        "gate": (-1, 1),
        "step_threshold": (-1, 1),
        "floor_chains": (2, 1000),
        "holdout_warn": (0, 2),
    }
    for name, (lo, hi) in ranges.items():
        if not lo <= options[name] <= hi:
            raise ConfigError(f"consistency.{name} must lie in [{lo}, {hi}], got {options[name]}")


@scorer(
    *cards.ALL,
    version=1,
    name="consistency",
    options=OPTIONS,
    prepare=unrelated_floor,
    statistics=(public_minus_hidden,),
    headlines=HEADLINES,
    check=validate_consistency_options,
    roles=("embedder", "paraphraser"),
)
def consistency(item: Item, params: Params, peers: Peers) -> Program:
    """Put the question in other words, let the model reason each time, and compare the chains by their steps' vectors."""
    item_scores = ItemScores(item, params)
    embedder = params.models.get("embedder")
    if embedder is None:
        return tuple(item_scores.none((), "undefined", NO_EMBEDDER))
    chosen = yield from _paraphrases(item_scores, embedder)
    if chosen is None:
        return tuple(item_scores.none(item_scores.base))
    requests = [
        _ask(params, question) for question in (item.question, *chosen.public, *chosen.hidden)
    ]
    replies = yield from item_scores.ask(requests)
    n_public = 1 + len(chosen.public)
    public = (*item_scores.base, *(ask.key for ask in requests[:n_public]))
    if item_scores.missing_reason(public):
        return tuple(item_scores.none(public))
    chains = [_chain(reply) for reply in replies]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    if texts:
        yield from item_scores.ask([Embed(embedder, (text,)) for text in texts])
    of_text = {text: Embed(embedder, (text,)).key for text in texts}
    keys = [tuple(dict.fromkeys(of_text[text] for text in chain)) for chain in chains]
    steps = [
        [reply_vector(item_scores.replies[of_text[text]]) for text in chain] for chain in chains
    ]
    public_keys = (*public, *(key for chain_keys in keys[:n_public] for key in chain_keys))
    all_keys = (
        *public_keys,
        *(ask.key for ask in requests[n_public:]),
        *(key for chain_keys in keys[n_public:] for key in chain_keys),
    )
    answers = [
        final_answer(reply.text or "") if isinstance(reply, Response) and chain else None
        for reply, chain in zip(replies[:n_public], chains, strict=False)
    ]
    item_scores.counts(public, sum(map(bool, chains[:n_public])))
    item_scores.add(
        cards.AGREEMENT,
        agreement_share(answers),
        public,
        _few(sum(a is not None for a in answers), 2, "answer"),
    )
    item_scores.compare(
        [[v for v in chain if v is not None] if None not in chain else [] for chain in steps],
        n_public,
        public_keys,
        all_keys,
        vector_missing=any(None in chain for chain in steps[:n_public]),
    )
    return tuple(item_scores.scores)


@dataclass(slots=True)
class ItemScores:
    """The scores of one item, as they are made, and every reply that they may rest on."""

    item: Item
    params: Params
    replies: dict[str, Reply] = field(default_factory=dict)
    base: tuple[str, ...] = ()
    """What the choice of paraphrases rests on: so does every score."""
    rejected: int = 0
    scores: list[Score] = field(default_factory=list)

    @property
    def facet(self) -> dict[str, str]:
        by = "model" if "paraphraser" in self.params.models else "rules"
        return {"chain": "own", "k": str(self.params.options["paraphrases"]), "paraphrases": by}

    def ask(self, requests: Sequence[Request]) -> Generator[Round, Sequence[Reply], list[Reply]]:
        """One round, each request once; the replies in order."""
        unique = {request.key: request for request in requests}
        replies = (yield list(unique.values())) if unique else ()
        self.replies |= zip(unique, replies, strict=True)
        return [self.replies[request.key] for request in requests]

    def missing_reason(self, keys: Sequence[str]) -> MissingReason | None:
        """Status and reason of the first reply that is missing."""
        return next(
            (absent for key in keys if (absent := missing_reply(self.replies[key])) is not None),
            None,
        )

    def none(
        self, keys: Sequence[str], status: Status = "undefined", reason: str = ""
    ) -> Iterator[Score]:
        """What is told of an item that cannot be measured: every score without a value."""
        status, reason = self.missing_reason(keys) or (
            status,
            reason or "the embedder gave no vector of the question",
        )
        for card in cards.ALL:
            yield card.score(
                self.item,
                None,
                facet=self.facet,
                status=status,
                reason=reason,
                evidence=dict.fromkeys(keys),
            )

    def add(
        self, card: MetricCard, value: float | None, keys: Sequence[str], default_reason: str
    ) -> None:
        """One score: none where a reply that it rests on is missing, with that reply's reason; else ``why``."""
        missing_reason = self.missing_reason(keys)
        value = None if missing_reason else value
        status, reason = missing_reason or ("undefined", default_reason)
        self.scores.append(
            card.score(
                self.item,
                value,
                facet=self.facet,
                evidence=dict.fromkeys(keys),
                status=status if value is None else None,
                reason=reason if value is None else None,
            )
        )

    def counts(self, keys: Sequence[str], chains: int) -> None:
        self.add(cards.CHAINS, float(chains), keys, "")
        self.add(cards.REJECTED, float(self.rejected), keys, "")

    def compare(
        self,
        steps: Sequence[Sequence[Sequence[float]]],
        n_public: int,
        public_keys: Sequence[str],
        all_keys: Sequence[str],
        *,
        vector_missing: bool,
    ) -> None:
        """Everything that rests on vectors: of the first ``ahead`` chains, and hidden ones beside them."""
        chain_vectors = [pooled(chain) for chain in steps]
        known = [i for i, vector in enumerate(chain_vectors) if vector is not None]
        vectors = [vector for vector in chain_vectors if vector is not None]
        similarity = cosines(vectors or [(1.0,)])
        at = {i: index for index, i in enumerate(known)}
        public = [i for i in known if i < n_public]
        summary = pair_spread(pair_similarities(similarity, [at[i] for i in public]))
        no_vector = "the embedder gave no vector of a step" if vector_missing else ""
        if no_vector:
            summary = Spread(None, None, None)
        two, three = (
            no_vector or _few(len(public), 2, "chain"),
            no_vector or _few(len(public), 3, "chain"),
        )
        options, constants = self.params.options, self.params.constants
        floor, public_steps = (
            constants.get("floor"),
            [] if no_vector else [steps[i] for i in public],
        )
        self.add(cards.CONSISTENCY, summary.c, public_keys, three)
        self.add(cards.MU, summary.mu, public_keys, two)
        self.add(cards.SIGMA, summary.sigma, public_keys, three)
        no_floor = constants.get("floor_reason") or "the floor of unrelated chains was not measured"
        high = (
            f"the floor of unrelated chains is {floor or 0:.3f}: above {cards.MAX_FLOOR:g} it tells"
            " no chains apart"
        )
        self.add(
            cards.RESCALED,
            rescaled(summary, floor),
            public_keys,
            three or (no_floor if floor is None else high),
        )
        self.add(cards.C_DTW, aligned(public_steps).c, public_keys, three)
        self.add(
            cards.PURITY_DRIFT,
            cluster_drift(public_steps, float(options["step_threshold"])),
            public_keys,
            two,
        )
        holdout = None
        if 0 in at and not no_vector:
            rng = derive("consistency holdout", self.params.seed, self.item.id)
            holdout = public_hidden_difference(
                similarity,
                [at[i] for i in public if i],
                [at[i] for i in known if i >= n_public],
                rng,
            )
        reason = "it needs the question's own chain, two hidden ones and as many public ones"
        self.add(cards.HIDDEN, holdout, all_keys, no_vector or reason)


def _paraphrases(
    item_scores: ItemScores, embedder: ModelRef
) -> Generator[Round, Sequence[Reply], Split | None]:
    """The paraphrases that are used, public and hidden; None where a reply that decides it is missing."""
    item, params = item_scores.item, item_scores.params
    options, writer = params.options, params.models.get("paraphraser")
    public, hidden = int(options["paraphrases"]), int(options["holdout"])
    n_requested, gate = public + hidden, float(options["gate"])
    rng = derive("paraphrase", params.seed, item.question)
    written: list[str] = []
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
        replies = yield from item_scores.ask(requests)
        item_scores.base = tuple(ask.key for ask in requests)
        if item_scores.missing_reason(item_scores.base):
            return None
        read = [
            read_paraphrase(item.question, reply.text or "")
            for reply in replies
            if isinstance(reply, Response)
        ]
        written = list(dict.fromkeys(text for text in read if text is not None))
        item_scores.rejected += len(read) - len(written)
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
        embed_requests = [Embed(embedder, (text,)) for text in (item.question, *near)]
        vectors = [reply_vector(reply) for reply in (yield from item_scores.ask(embed_requests))]
        item_scores.base += tuple(ask.key for ask in embed_requests)
        if item_scores.missing_reason(item_scores.base) or vectors[0] is None:
            return None
        alike = [
            vector is not None and cosine(vectors[0], vector) >= gate for vector in vectors[1:]
        ]
        near = dict(zip(near, alike, strict=True))
    used: list[str] = []
    for text, passed in near.items():
        if len(used) == n_requested:
            break
        item_scores.rejected += not passed
        used += [text] if passed else []
    return hold_out(used, public, hidden, derive("hold out", params.seed, item.question))


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Cosine of two vectors of one length, [-1, 1]; −1 where they differ in length."""
    return float(cosines([first, second])[0, 1]) if len(first) == len(second) else -1.0


def _ask(params: Params, question: str) -> Complete:
    """The model's own chain for a question; the same request as the other scorers' where it is the item's own."""
    form = params.subject.form
    prompt = ask_rest(question, (), form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        stop=("\nQ:",) if form == "continuation" else (),
    )


def _chain(reply: Reply) -> tuple[str, ...]:
    """A model's steps; none of a chain that was cut off, for what is left of it is not how the model reasons."""
    if not isinstance(reply, Response) or reply.refused or reply.finish == "length":
        return ()
    return model_chain(reply)


def _few(n: int, needed: int, what: str) -> str:
    """Why there is no value where ``needed`` things are; empty where there are enough, and something else is the reason."""
    if n >= needed:
        return "" if what == "chain" else f"the {what}s cannot be compared"
    return (
        f"{n} of the {what}s can be compared, and {needed} are needed: the others are missing,"
        " empty or cut off"
    )
