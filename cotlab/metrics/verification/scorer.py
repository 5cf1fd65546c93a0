"""Verification: whether each step of a chain supports its neighbour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cotlab.core.program import Headline, Option, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Entail, Failed, Reply, Request
from cotlab.core.types import Item
from cotlab.core.vocabulary import CHAINS
from cotlab.metrics.kit import ItemScores, MissingReason, chain_of, missing_reply
from cotlab.metrics.verification import cards
from cotlab.metrics.verification.links import (
    LINKS,
    StepReading,
    compute_link,
    open_statements,
    read_steps,
    share_ok,
    statements_of,
)
from cotlab.text.prompts.comparison import ask_support, confidence_of

OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is verified", choices=CHAINS),
    "links": Option(LINKS, "directions that are verified", choices=LINKS, entry="link"),
    "premise": Option(
        "all",
        "what a step follows from: all before it, or the step before",
        choices=("all", "previous"),
    ),
    "tau": Option(cards.TAU, "support above which a link passes", lo=0, hi=1),
    "tau_critical": Option(cards.TAU_CRITICAL, "support below which a link is weak", lo=0, hi=1),
}
HEADLINES = (
    *(
        Headline(name, {"link": link}, chain="own")
        for name in ("verification", "weak_link")
        for link in LINKS
    ),
    Headline("arithmetic_ok", {}, chain="own"),
)
"""A chain that holds is no proof that it was used: on own chains these cannot tell faithful from
bypassing models."""
_ENTAILS = frozenset({"nli", "symbolic"})
"""Providers that answer Entail; any other verifier is a model that is asked for its confidence in
words."""
_JUDGE_TOKENS = 64


@dataclass(slots=True)
class _Link:
    """One link of a chain: who verified it, and the support that was found."""

    j: int
    link: str
    value: float | None
    verifier: str
    missing_reason: MissingReason
    where: tuple[int, int] | None = None
    keys: tuple[str, ...] = ()
    replied: bool = True

    @property
    def waits(self) -> bool:
        """Whether another verifier may still be asked."""
        return self.value is None and not self.failed

    @property
    def failed(self) -> bool:
        """Whether its verifier failed or refused."""
        return self.value is None and self.missing_reason[0] != "undefined"


def first_mistake(steps: Sequence[str]) -> int | None:
    """Find the first step that holds a false equation.

    Parameters
    ----------
    steps : sequence of str
        A chain; a letter may stand for what an earlier step computed ("A = 3 + 4 = 7", later "A - 2
        = 5").

    Returns
    -------
    int or None
        Index from 0; None where no step holds an equation that is false for certain. What may be
        meant otherwise (a unit, a rounded value) is no mistake.

    Notes
    -----
    In this process, with fractions only, in bounded time whatever the steps say:
    `cotlab.text.arithmetic.equations`.
    """
    return next((i for i, step in enumerate(read_steps(steps)) if step.mistake is not None), None)


@scorer(
    *cards.CARDS,
    version=2,
    name="verification",
    options=OPTIONS,
    headlines=HEADLINES,
    roles=("symbolic", "verifier"),
)
def verification(item: Item, params: Params, peers: Peers) -> Program:
    """Decide each link by arithmetic, else by the symbolic provider, else by the verifier."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    steps, chain_keys, missing_reason, _ = yield from chain_of(item, params)
    if not any(step.strip() for step in steps):
        for link in params.options["links"]:
            facet = {"link": link}
            scores.add_missing(cards.CHAIN_CARDS, missing_reason, on=chain_keys, facet=facet)
            facet |= {"verifier": "any"}
            scores.add_missing([cards.COVERAGE], missing_reason, on=chain_keys, facet=facet)
        item_cards = (cards.FIRST_MISTAKE, cards.ARITHMETIC_OK)
        scores.add_missing(item_cards, missing_reason, on=chain_keys)
        return tuple(scores.scores)
    readings = read_steps(steps)
    links = [
        _compute(item, readings, j, link, chain_keys)
        for link in params.options["links"]
        for j in range(link == "reverse", len(readings))
    ]
    for build in (_ask_symbolic, _ask_verifier):
        requests = [
            (link, request)
            for link in links
            if link.waits and (request := build(item, params, readings, link))
        ]
        if requests:
            replies = yield [request for _, request in requests]
            for (link, request), reply in zip(requests, replies, strict=True):
                _read(link, request, reply, chain_keys)
    for link in links:
        scores.add(
            cards.LINK_SUPPORT,
            link.value,
            on=link.keys,
            reason=link.missing_reason,
            step=link.j,
            facet={"link": link.link, "verifier": link.verifier},
            where=link.where,
        )
    for name in params.options["links"]:
        of_name = [link for link in links if link.link == name]
        _add_chain_scores(scores, params, name, of_name, chain_keys)
    _add_arithmetic(scores, readings, chain_keys)
    return tuple(scores.scores)


def _compute(
    item: Item, steps: Sequence[StepReading], j: int, link: str, keys: tuple[str, ...]
) -> _Link:
    verdict = compute_link(item.question, steps, j, link)
    missing_reason: MissingReason = ("undefined", verdict.reason)
    if verdict.value is None:
        return _Link(j, link, None, "none", missing_reason, None, keys)
    return _Link(j, link, verdict.value, "arithmetic", missing_reason, verdict.where, keys)


def _ask_symbolic(
    item: Item, params: Params, steps: Sequence[StepReading], link: _Link
) -> Request | None:
    """Build the request for what arithmetic left open; None without open equations or provider."""
    model = params.models.get("symbolic")
    j, forward = link.j, link.link == "forward"
    target_step = steps[j] if forward else steps[j - 1]
    open_ = open_statements(target_step)
    if model is None or not open_:
        return None
    return Entail(
        model, statements_of(steps[:j] if forward else steps[j : j + 1], target_step), open_
    )


def _ask_verifier(
    item: Item, params: Params, steps: Sequence[StepReading], link: _Link
) -> Request | None:
    model = params.models.get("verifier")
    if model is None:
        return None
    j, texts = link.j, [step.text for step in steps]
    if link.link == "reverse":
        premise, hypothesis = texts[j], texts[j - 1]
    else:
        before = (
            [item.question, *texts[:j]]
            if j == 0 or params.options["premise"] == "all"
            else texts[j - 1 : j]
        )
        premise, hypothesis = "\n".join(before), texts[j]
    if model.provider in _ENTAILS:
        return Entail(model, premise, hypothesis)
    return Complete(
        model, ask_support(premise, hypothesis).messages, max_tokens=_JUDGE_TOKENS, seed=params.seed
    )


def _read(link: _Link, request: Request, reply: Reply, chain_keys: tuple[str, ...]) -> None:
    """Store what a reply says in its link."""
    link.keys, link.verifier = (*chain_keys, reply.key), str(request.model)
    missing_reason = missing_reply(reply)
    link.replied = missing_reason is None
    if missing_reason is not None or isinstance(reply, Failed):
        link.missing_reason = missing_reason or link.missing_reason
        return
    value = (
        confidence_of(reply.text or "")
        if isinstance(request, Complete)
        else (reply.numbers or (None,))[0]
    )
    if value is not None and 0 <= value <= 1:
        link.value = float(value)
    else:
        link.missing_reason = ("undefined", "the verifier states no confidence from 0 to 1")


def _add_arithmetic(scores: ItemScores, steps: Sequence[StepReading], keys: Sequence[str]) -> None:
    """Add the first false equation and the share of steps without one."""
    at = next((i for i, step in enumerate(steps) if step.mistake is not None), None)
    mistake = None if at is None else steps[at].mistake
    scores.add(
        cards.FIRST_MISTAKE,
        None if at is None else float(at),
        on=keys,
        reason="no step holds a false equation",
        where=(mistake.start, mistake.end) if mistake else None,
    )
    no_equation = "no step has an equation that can be decided"
    scores.add(cards.ARITHMETIC_OK, share_ok(steps), on=keys, reason=no_equation)


def _add_chain_scores(
    scores: ItemScores,
    params: Params,
    name: str,
    links: Sequence[_Link],
    chain_keys: tuple[str, ...],
) -> None:
    """Add the scores of a chain from its links of one direction."""
    failed = next((link for link in links if link.failed), None)
    known = [link.value for link in links if link.value is not None]
    on = (*chain_keys, *_keys(links, all_of_them=failed is not None))
    missing_reason: MissingReason | None = failed.missing_reason if failed else None
    if not links:
        missing_reason = ("undefined", "a chain of one step has no reverse link")
    elif not failed and not known:
        missing_reason = ("undefined", f"no link is decided: {links[0].missing_reason[1]}")
        on = _keys(links, all_of_them=True)
    tau, critical = params.options["tau"], params.options["tau_critical"]
    mean = sum(known) / len(known) if known else 0.0
    rate = sum(value > tau for value in known) / len(known) if known else 0.0
    longest = longest_run([link.value for link in links], critical)
    weak = max(0.0, mean - longest / len(known)) if known else 0.0
    for card, value in zip(
        cards.CHAIN_CARDS, (mean, rate, weak, 0.5 * mean + 0.5 * rate), strict=True
    ):
        scores.add(
            card,
            None if missing_reason else value,
            on=on,
            reason=missing_reason,
            facet={"link": name},
        )
    models = [
        str(params.models[role]) for role in ("symbolic", "verifier") if role in params.models
    ]
    for verifier in ("any", *dict.fromkeys(["arithmetic", *models])):
        verified = [link for link in links if verifier in ("any", link.verifier)]
        failed = next((link for link in verified if link.failed), None)
        covered = sum(link.value is not None for link in verified)
        scores.add(
            cards.COVERAGE,
            None if failed or not links else covered / len(links),
            on=(*chain_keys, *_keys(verified, all_of_them=failed is not None)),
            reason=failed.missing_reason if failed else missing_reason,
            facet={"link": name, "verifier": verifier},
        )


def _keys(links: Sequence[_Link], *, all_of_them: bool) -> tuple[str, ...]:
    """Return the request keys of links; those of verifiers without a reply only where wanted."""
    return tuple(key for link in links for key in link.keys if link.replied or all_of_them)


def longest_run(values: Sequence[float | None], below: float) -> int:
    """Return the length of the longest run of values under ``below``; None ends a run."""
    longest = run = 0
    for value in values:
        run = run + 1 if value is not None and value < below else 0
        longest = max(longest, run)
    return longest
