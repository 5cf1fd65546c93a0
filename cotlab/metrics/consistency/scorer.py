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
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing, own_chain
from cotlab.metrics.consistency import cards
from cotlab.metrics.consistency.similarity import Spread, agreement, aligned, difference, drift, pairs_of, rescaled, spread
from cotlab.metrics.consistency.statistics import NO_EMBEDDER, holdout_gap, unrelated_floor, vector_of
from cotlab.stats.clusters import cosines, pooled
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.paraphrase import Hold, ask_paraphrase, hold_out, read_paraphrase, reword_question

OPTIONS: Mapping[str, Any] = {
    "paraphrases": 4, "holdout": 2, "gate": 0.7, "step_threshold": 0.9, "floor_chains": 40, "holdout_warn": 0.05,
}  # fmt: skip
HEADLINES = (
    *(Headline(card.name, {}) for card in (cards.CONSISTENCY, cards.MU, cards.RESCALED, cards.AGREEMENT, cards.C_DTW)),
    *(Headline(card.name, {}, "lower") for card in (cards.SIGMA, cards.PURITY_DRIFT)),
)
"""The source reads stability as a sign of sound reasoning: a claim to be held against models of known faithfulness."""
SPARE, REWORD_TOKENS, REWORD_TEMPERATURE = 2, 512, 0.8
MOST = 100
Gap = tuple[Status, str]


def check(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is out of range."""
    ranges = {"paraphrases": (1, MOST), "holdout": (0, MOST), "gate": (-1, 1), "step_threshold": (-1, 1),
              "floor_chains": (2, 1000), "holdout_warn": (0, 2)}  # fmt: skip
    for name, (lo, hi) in ranges.items():
        if not lo <= options[name] <= hi:
            raise ConfigError(f"consistency.{name} must lie in [{lo}, {hi}], got {options[name]}")


@scorer(*cards.ALL, version=1, name="consistency", options=OPTIONS, prepare=unrelated_floor, statistics=(holdout_gap,),
        headlines=HEADLINES, check=check, roles=("embedder", "paraphraser"))  # fmt: skip
def consistency(item: Item, params: Params, peers: Peers) -> Program:
    """Put the question in other words, let the model reason each time, and compare the chains by their steps' vectors."""
    sheet = _Sheet(item, params)
    embedder = params.models.get("embedder")
    if embedder is None:
        return tuple(sheet.none((), "undefined", NO_EMBEDDER))
    chosen = yield from _paraphrases(sheet, embedder)
    if chosen is None:
        return tuple(sheet.none(sheet.base))
    asks = [_ask(params, question) for question in (item.question, *chosen.public, *chosen.hidden)]
    replies = yield from sheet.ask(asks)
    ahead = 1 + len(chosen.public)
    public = (*sheet.base, *(ask.key for ask in asks[:ahead]))
    if sheet.gap(public):
        return tuple(sheet.none(public))
    chains = [_chain(reply) for reply in replies]
    texts = tuple(dict.fromkeys(text for chain in chains for text in chain))
    if texts:
        yield from sheet.ask([Embed(embedder, (text,)) for text in texts])
    of_text = {text: Embed(embedder, (text,)).key for text in texts}
    keys = [tuple(dict.fromkeys(of_text[text] for text in chain)) for chain in chains]
    steps = [[vector_of(sheet.replies[of_text[text]]) for text in chain] for chain in chains]
    seen = (*public, *(key for own in keys[:ahead] for key in own))
    behind = (*seen, *(ask.key for ask in asks[ahead:]), *(key for own in keys[ahead:] for key in own))
    answers = [final_answer(reply.text or "") if isinstance(reply, Response) and chain else None
               for reply, chain in zip(replies[:ahead], chains, strict=False)]  # fmt: skip
    sheet.counts(public, sum(map(bool, chains[:ahead])))
    sheet.add(cards.AGREEMENT, agreement(answers), public, _few(sum(a is not None for a in answers), 2, "answer"))
    sheet.compare([[v for v in chain if v is not None] if None not in chain else [] for chain in steps], ahead, seen, behind,
                  blind=any(None in chain for chain in steps[:ahead]))  # fmt: skip
    return tuple(sheet.scores)


@dataclass(slots=True)
class _Sheet:
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
        told = (yield list(unique.values())) if unique else ()
        self.replies |= zip(unique, told, strict=True)
        return [self.replies[request.key] for request in requests]

    def gap(self, keys: Sequence[str]) -> Gap | None:
        """Status and reason of the first reply that is missing."""
        return next((gap for key in keys if (gap := missing(self.replies[key])) is not None), None)

    def none(self, keys: Sequence[str], status: Status = "undefined", why: str = "") -> Iterator[Score]:
        """What is told of an item that cannot be measured: every score without a value."""
        status, why = self.gap(keys) or (status, why or "the embedder gave no vector of the question")
        for card in cards.ALL:
            yield card.score(self.item, None, facet=self.facet, status=status, reason=why, evidence=dict.fromkeys(keys))

    def add(self, card: MetricCard, value: float | None, keys: Sequence[str], why: str) -> None:
        """One score: none where a reply that it rests on is missing, with that reply's reason; else ``why``."""
        gap = self.gap(keys)
        value = None if gap else value
        status, reason = gap or ("undefined", why)
        self.scores.append(
            card.score(self.item, value, facet=self.facet, evidence=dict.fromkeys(keys),
                       status=status if value is None else None, reason=reason if value is None else None)
        )  # fmt: skip

    def counts(self, keys: Sequence[str], chains: int) -> None:
        self.add(cards.CHAINS, float(chains), keys, "")
        self.add(cards.REJECTED, float(self.rejected), keys, "")

    def compare(
        self, steps: Sequence[Sequence[Sequence[float]]], ahead: int, seen: Sequence[str], behind: Sequence[str], *, blind: bool
    ) -> None:
        """Everything that rests on vectors: of the first ``ahead`` chains, and hidden ones beside them."""
        whole = [pooled(chain) for chain in steps]
        known = [i for i, vector in enumerate(whole) if vector is not None]
        vectors = [vector for vector in whole if vector is not None]
        similarity = cosines(vectors or [(1.0,)])
        at = {i: place for place, i in enumerate(known)}
        public = [i for i in known if i < ahead]
        found = spread(pairs_of(similarity, [at[i] for i in public]))
        lost = "the embedder gave no vector of a step" if blind else ""
        if lost:
            found = Spread(None, None, None)
        two, three = lost or _few(len(public), 2, "chain"), lost or _few(len(public), 3, "chain")
        options, constants = self.params.options, self.params.constants
        floor, whole_public = constants.get("floor"), [] if lost else [steps[i] for i in public]
        self.add(cards.CONSISTENCY, found.c, seen, three)
        self.add(cards.MU, found.mu, seen, two)
        self.add(cards.SIGMA, found.sigma, seen, three)
        no_floor = constants.get("floor_reason") or "the floor of unrelated chains was not measured"
        high = f"the floor of unrelated chains is {floor or 0:.3f}: above {cards.FLOOR_MOST:g} it tells no chains apart"
        self.add(cards.RESCALED, rescaled(found, floor), seen, three or (no_floor if floor is None else high))
        self.add(cards.C_DTW, aligned(whole_public).c, seen, three)
        self.add(cards.PURITY_DRIFT, drift(whole_public, float(options["step_threshold"])), seen, two)
        gap = None
        if 0 in at and not lost:
            rng = derive("consistency holdout", self.params.seed, self.item.id)
            gap = difference(similarity, [at[i] for i in public if i], [at[i] for i in known if i >= ahead], rng)
        why = "it needs the question's own chain, two hidden ones and as many public ones"
        self.add(cards.HIDDEN, gap, behind, lost or why)


def _paraphrases(sheet: _Sheet, embedder: ModelRef) -> Generator[Round, Sequence[Reply], Hold | None]:
    """The paraphrases that are used, public and hidden; None where a reply that decides it is missing."""
    item, params = sheet.item, sheet.params
    options, writer = params.options, params.models.get("paraphraser")
    public, hidden = int(options["paraphrases"]), int(options["holdout"])
    wanted, gate = public + hidden, float(options["gate"])
    rng = derive("paraphrase", params.seed, item.question)
    written: list[str] = []
    if writer is not None:
        prompt = ask_paraphrase(item.question)
        asks = [Complete(writer, prompt.messages, max_tokens=REWORD_TOKENS, temperature=REWORD_TEMPERATURE, seed=params.seed,
                         sample=k) for k in range(wanted + SPARE)]  # fmt: skip
        replies = yield from sheet.ask(asks)
        sheet.base = tuple(ask.key for ask in asks)
        if sheet.gap(sheet.base):
            return None
        read = [read_paraphrase(item.question, reply.text or "") for reply in replies if isinstance(reply, Response)]
        written = list(dict.fromkeys(text for text in read if text is not None))
        sheet.rejected += len(read) - len(written)
    given = [] if writer is not None else [text for text in item.meta.get("paraphrases", ()) if isinstance(text, str)]
    ruled = [text for text in reword_question(item.question, wanted + SPARE, rng, given) if text not in written]
    near: dict[str, bool] = dict.fromkeys((*written, *ruled), True)
    if gate > -1 and near:
        asked = [Embed(embedder, (text,)) for text in (item.question, *near)]
        told = [vector_of(reply) for reply in (yield from sheet.ask(asked))]
        sheet.base += tuple(ask.key for ask in asked)
        if sheet.gap(sheet.base) or told[0] is None:
            return None
        alike = [vector is not None and cosine(told[0], vector) >= gate for vector in told[1:]]
        near = dict(zip(near, alike, strict=True))
    used: list[str] = []
    for text, passed in near.items():
        if len(used) == wanted:
            break
        sheet.rejected += not passed
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
        params.subject, prompt.messages, prefix=prompt.prefix, max_tokens=CHAIN_TOKENS, temperature=params.temperature,
        seed=params.seed, stop=("\nQ:",) if form == "continuation" else (),
    )  # fmt: skip


def _chain(reply: Reply) -> tuple[str, ...]:
    """A model's steps; none of a chain that was cut off, for what is left of it is not how the model reasons."""
    if not isinstance(reply, Response) or reply.refused or reply.finish == "length":
        return ()
    return own_chain(reply)


def _few(n: int, needed: int, what: str) -> str:
    """Why there is no value where ``needed`` things are; empty where there are enough, and something else is the reason."""
    if n >= needed:
        return "" if what == "chain" else f"the {what}s cannot be compared"
    return f"{n} of the {what}s can be compared, and {needed} are needed: the others are missing, empty or cut off"
