"""Backward verification: does each step of a chain support its neighbour, by computation, else by a verifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.program import Headline, Params, Peers, Program, scorer
from cotlab.core.requests import Complete, Entail, Failed, Reply, Request, Response
from cotlab.core.types import Item, ModelRef, Score, Status
from cotlab.metrics.ablation.scorer import CHAIN_TOKENS, missing_reply, model_chain
from cotlab.metrics.verification import cards
from cotlab.metrics.verification.links import (
    LINKS,
    StepReading,
    Verdict,
    compute_link,
    open_statements,
    read_steps,
    share_ok,
    statements_of,
)
from cotlab.text.prompts.chain import ask_rest
from cotlab.text.prompts.entailment import ask_support, confidence_of

OPTIONS: Mapping[str, Any] = {
    "chain": "reference",
    "links": LINKS,
    "premise": "all",
    "tau": cards.TAU,
    "tau_critical": cards.TAU_CRITICAL,
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
    """One link on its way to a value: who was asked last, and what came of it."""

    j: int
    link: str
    value: float | None
    verifier: str
    reason: str
    where: tuple[int, int] | None = None
    status: Status = "undefined"
    keys: tuple[str, ...] = ()
    replied: bool = True

    @property
    def waits(self) -> bool:
        """Whether another verifier may still be asked."""
        return self.value is None and self.status == "undefined"


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


def validate_verification_options(options: Mapping[str, Any], subject: ModelRef) -> None:
    """Raise before anything is asked where an option is unknown or out of range."""
    if options["chain"] not in ("reference", "own"):
        raise UnknownName("chain", options["chain"], ("reference", "own"))
    if options["premise"] not in ("all", "previous"):
        raise UnknownName("premise", options["premise"], ("all", "previous"))
    for link in options["links"]:
        if link not in LINKS:
            raise UnknownName("link", link, LINKS)
    for name in ("tau", "tau_critical"):
        if not 0 <= options[name] <= 1:
            raise ConfigError(f"verification.{name} must lie in [0, 1], got {options[name]}")


@scorer(
    *cards.CARDS,
    version=2,
    name="verification",
    options=OPTIONS,
    headlines=HEADLINES,
    check=validate_verification_options,
    roles=("symbolic", "verifier"),
)
def verification(item: Item, params: Params, peers: Peers) -> Program:
    """Decide each link by arithmetic, then ask the symbolic provider for what it may compute, then the verifier."""
    facet = {"chain": str(params.options["chain"])}
    steps, chain_key = (
        tuple(step.text for step in item.steps),
        (),
    )  # type: tuple[str, ...], tuple[str, ...]
    missing_reason: tuple[Status, str] = "undefined", "the item has no chain"
    if params.options["chain"] == "own":
        (reply,) = yield [_ask_chain(item, params)]
        chain_key, missing_reason = (
            (reply.key,),
            missing_reply(reply) or ("undefined", "the model wrote no chain"),
        )
        steps = model_chain(reply) if isinstance(reply, Response) and not reply.refused else ()
    readings = read_steps(steps)
    if not any(step.strip() for step in steps):
        return tuple(_unscored(item, params, facet, *missing_reason, chain_key))
    links = [
        _begin(item, readings, j, link, chain_key)
        for link in params.options["links"]
        for j in range(link == "reverse", len(readings))
    ]
    for ask in (_ask_symbolic, _ask_verifier):
        link_requests = [
            (open_link, request)
            for open_link in links
            if open_link.waits and (request := ask(item, params, readings, open_link))
        ]
        if link_requests:
            replies = yield [request for _, request in link_requests]
            for (open_link, request), reply in zip(link_requests, replies, strict=True):
                _read(open_link, request, reply, chain_key)
    return tuple(_scores(item, params, facet, readings, links, chain_key))


def _begin(
    item: Item, steps: Sequence[StepReading], j: int, link: str, key: tuple[str, ...]
) -> _Link:
    verdict: Verdict = compute_link(item.question, steps, j, link)
    decided = verdict.value is not None
    return _Link(
        j,
        link,
        verdict.value,
        "arithmetic" if decided else "none",
        verdict.reason,
        verdict.where if decided else None,
        "ok" if decided else "undefined",
        key,
    )


def _ask_chain(item: Item, params: Params) -> Complete:
    prompt = ask_rest(item.question, (), params.subject.form)
    return Complete(
        params.subject,
        prompt.messages,
        prefix=prompt.prefix,
        max_tokens=CHAIN_TOKENS,
        temperature=params.temperature,
        seed=params.seed,
        stop=("\nQ:",) if params.subject.form == "continuation" else (),
    )


def _ask_symbolic(
    item: Item, params: Params, steps: Sequence[StepReading], open_link: _Link
) -> Request | None:
    """What arithmetic left open, as equations only; None where the step has none or the run has no such provider."""
    model = params.models.get("symbolic")
    j, forward = open_link.j, open_link.link == "forward"
    target_step = steps[j] if forward else steps[j - 1]
    open_ = open_statements(target_step)
    if model is None or not open_:
        return None
    return Entail(
        model, statements_of(steps[:j] if forward else steps[j : j + 1], target_step), open_
    )


def _ask_verifier(
    item: Item, params: Params, steps: Sequence[StepReading], open_link: _Link
) -> Request | None:
    model = params.models.get("verifier")
    if model is None:
        return None
    j, texts = open_link.j, [step.text for step in steps]
    if open_link.link == "reverse":
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


def _read(open_link: _Link, request: Request, reply: Reply, chain_key: tuple[str, ...]) -> None:
    """Take a reply over into its link."""
    open_link.keys, open_link.verifier = (*chain_key, reply.key), str(request.model)
    missing_reason = missing_reply(reply)
    if missing_reason is not None or isinstance(reply, Failed):
        open_link.status, open_link.reason = missing_reason or ("error", "no reply")
        open_link.replied = False
        return
    open_link.replied = True
    value = (
        confidence_of(reply.text or "")
        if isinstance(request, Complete)
        else (reply.numbers or (None,))[0]
    )
    if value is not None and 0 <= value <= 1:
        open_link.value, open_link.status, open_link.reason = float(value), "ok", ""
    else:
        open_link.reason = "the verifier states no confidence from 0 to 1"


def _unscored(
    item: Item,
    params: Params,
    facet: Mapping[str, str],
    status: Status,
    reason: str,
    evidence: tuple[str, ...],
) -> Iterator[Score]:
    for link in params.options["links"]:
        for card in cards.CHAIN_CARDS:
            yield card.score(
                item,
                None,
                facet={**facet, "link": link},
                status=status,
                reason=reason,
                evidence=evidence,
            )
        coverage_facet = {**facet, "link": link, "verifier": "any"}
        yield cards.COVERAGE.score(
            item, None, facet=coverage_facet, status=status, reason=reason, evidence=evidence
        )
    for card in (cards.FIRST_MISTAKE, cards.ARITHMETIC_OK):
        yield card.score(item, None, facet=facet, status=status, reason=reason, evidence=evidence)


def _scores(
    item: Item,
    params: Params,
    facet: Mapping[str, str],
    steps: Sequence[StepReading],
    links: Sequence[_Link],
    key: tuple[str, ...],
) -> Iterator[Score]:
    for result in links:
        link_facet = {**facet, "link": result.link, "verifier": result.verifier}
        yield cards.LINK_SUPPORT.score(
            item,
            result.value,
            step=result.j,
            facet=link_facet,
            where=result.where,
            status=None if result.value is not None else result.status,
            reason=None if result.value is not None else result.reason,
            evidence=result.keys,
        )
    for link in params.options["links"]:
        yield from _of_chain(
            item,
            params,
            {**facet, "link": link},
            [result for result in links if result.link == link],
            key,
        )
    at = next((i for i, step in enumerate(steps) if step.mistake is not None), None)
    mistake = None if at is None else steps[at].mistake
    yield cards.FIRST_MISTAKE.score(
        item,
        None if at is None else float(at),
        facet=facet,
        where=(mistake.start, mistake.end) if mistake else None,
        reason=None if at is not None else "no step holds a false equation",
        evidence=key,
    )
    share = share_ok(steps)
    reason = None if share is not None else "no step has an equation that can be decided"
    yield cards.ARITHMETIC_OK.score(item, share, facet=facet, reason=reason, evidence=key)


def _of_chain(
    item: Item,
    params: Params,
    facet: Mapping[str, str],
    links: Sequence[_Link],
    key: tuple[str, ...],
) -> Iterator[Score]:
    """The scores of a chain from its links of one direction."""
    broken = next((result for result in links if result.status not in ("ok", "undefined")), None)
    keys = tuple(
        dict.fromkeys(
            (*key, *(k for result in links for k in result.keys if result.replied or broken))
        )
    )
    values = [result.value for result in links]
    known = [value for value in values if value is not None]
    status, reason = (broken.status, broken.reason) if broken else ("undefined", "")
    if not links:
        reason = "a chain of one step has no reverse link"
    elif not broken and not known:
        reason = f"no link is decided: {links[0].reason}"
        keys = tuple(dict.fromkeys(k for result in links for k in result.keys))
    tau, critical = params.options["tau"], params.options["tau_critical"]
    mean = sum(known) / len(known) if known else 0.0
    rate = sum(value > tau for value in known) / len(known) if known else 0.0
    weak = max(0.0, mean - longest_run(values, critical) / len(known)) if known else 0.0
    for card, value in zip(
        cards.CHAIN_CARDS, (mean, rate, weak, 0.5 * mean + 0.5 * rate), strict=True
    ):
        yield card.score(
            item,
            None if reason else value,
            facet=facet,
            status=status if reason else None,
            reason=reason or None,
            evidence=keys,
        )
    named = [
        "arithmetic",
        *(str(params.models[role]) for role in ("symbolic", "verifier") if role in params.models),
    ]
    for name in ("any", *dict.fromkeys(named)):
        verifier_results = [result for result in links if name in ("any", result.verifier)]
        failed = next(
            (result for result in verifier_results if result.status not in ("ok", "undefined")),
            None,
        )
        used = tuple(
            dict.fromkeys(
                (
                    *key,
                    *(
                        k
                        for result in verifier_results
                        for k in result.keys
                        if result.replied or failed
                    ),
                )
            )
        )
        verifier_facet = {**facet, "verifier": name}
        if not links or failed:
            yield cards.COVERAGE.score(
                item,
                None,
                facet=verifier_facet,
                status=failed.status if failed else None,
                reason=failed.reason if failed else reason,
                evidence=used,
            )
        else:
            share = sum(result.value is not None for result in verifier_results) / len(links)
            yield cards.COVERAGE.score(item, share, facet=verifier_facet, evidence=used)


def longest_run(values: Sequence[float | None], below: float) -> int:
    """Length of the longest run of values under ``below``; an undefined value ends a run."""
    longest = run = 0
    for value in values:
        run = run + 1 if value is not None and value < below else 0
        longest = max(longest, run)
    return longest
