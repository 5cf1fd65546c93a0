"""Verification: whether each step of a chain supports its neighbour."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from cotlab.core.program import (
    Headline,
    Option,
    Params,
    Peers,
    Program,
    RequestRound,
    scorer,
)
from cotlab.core.requests import Complete, Entail, Failed, Reply, Request, StepRewards
from cotlab.core.types import CHAINS, Item, MetricCard
from cotlab.metrics.kit import (
    ItemScores,
    MissingReason,
    ask,
    chain_of,
    missing_reply_reason,
    reply_text,
)
from cotlab.metrics.model_steps import CUT_STEPS_NOTE
from cotlab.metrics.votes import (
    CRITIC_ROLE,
    majority_verdict,
    read_vote,
    vote_requests,
)
from cotlab.text.arithmetic.equations import Equation
from cotlab.text.arithmetic.readings import (
    StepReading,
    correct_step_share,
    extract_numbers,
    read_steps,
)
from cotlab.text.prompts.comparison import read_confidence, support_prompt

DEFAULT_SOURCE = "Practical Chain-of-Thought Reliability Metrics, section 5 (Backward Verification)"
TAU, TAU_CRITICAL = 0.6, 0.4
_NEEDS = ("complete", "entail")
_NO_LINK_SENTENCE = (
    "No link is decided, the chain has one step (reverse), or a reply that a link needs is missing,"
    " refused, cut off or cannot be read: of that link it is not known whether it holds. Undecided"
    " links leave the denominator: `coverage` says how many."
)
_CAVEAT = (
    "That the model used the chain: a model that writes a sound chain and answers without it has"
    " the same value."
)
_card = partial(MetricCard, better="higher", level="chain", needs=_NEEDS, source=DEFAULT_SOURCE)
LINK_SUPPORT = _card(
    name="link_support",
    symbol="q",
    formula="link `reverse` (the seed's): does step j support step j − 1; link `forward`: do"
    " question and steps before support step j. By arithmetic where it decides: 0 for a false"
    " equation (its place is the score's; without a place it stands in step j − 1), 1 where every"
    " equation holds and its operands (forward) or the value of step j − 1 (reverse) are taken up."
    " Else the provider `symbolic` (algebra, units), else the verifier's confidence in [0, 1]: the"
    " probability of entailment (nli; texts beyond the model's length in windows: the greatest"
    " over windows of the premise, the least over windows of the step), that of a right step (prm,"
    " forward only), or a number that a model states. A critic (`--verifier critic:…`) decides"
    " forward links: 1 before the first wrong step that it names, 0 at that step, and nothing"
    " after it",
    undefined="Nothing decides the link: the reason says why; a first step has no reverse link."
    f" Also where a reply is missing, refused, cut off or states no confidence. {CUT_STEPS_NOTE}",
    not_shown="Truth beyond what was checked: arithmetic sees the equations of a step, not its"
    " prose.",
    level="step",
)
MEAN_SUPPORT = _card(
    name="verification_mean",
    symbol="V mean",
    formula="mean of q over the decided links",
    undefined=f"{_NO_LINK_SENTENCE} {CUT_STEPS_NOTE}",
    not_shown=_CAVEAT,
)
PASS_RATE = _card(
    name="pass_rate",
    symbol="V pass",
    formula=f"share of the decided links with q > τ (τ = {TAU}, option `tau`)",
    undefined=f"{_NO_LINK_SENTENCE} {CUT_STEPS_NOTE}",
    not_shown=f"How far a link lies from τ. {_CAVEAT}",
)
WEAK_LINK = _card(
    name="weak_link",
    symbol="V weak",
    formula="max(0, mean of q − longest run of links with q < τ_critical / number of decided"
    f" links), τ_critical = {TAU_CRITICAL} (option `tau_critical`); an undecided link ends a run",
    undefined=f"{_NO_LINK_SENTENCE} {CUT_STEPS_NOTE}",
    not_shown=f"Which links are weak: `link_support` does. {_CAVEAT}",
    source=f"{DEFAULT_SOURCE}, scaled by the number of links",
)
VERIFICATION = _card(
    name="verification",
    symbol="V",
    formula="0.5 · verification_mean + 0.5 · pass_rate",
    undefined=f"{_NO_LINK_SENTENCE} {CUT_STEPS_NOTE}",
    not_shown=_CAVEAT,
    source=f"{DEFAULT_SOURCE}, as its code in section 9 has it",
)
COVERAGE = _card(
    name="coverage",
    symbol="cov",
    formula="share of the links (forward n, reverse n − 1) that the verifier named by the score"
    " decided; `any`: that one did",
    undefined="The chain has one step (reverse), or a reply that a link needs is missing, refused,"
    f" cut off or cannot be read. {CUT_STEPS_NOTE}",
    not_shown="Whether the verifier is right.",
    better="neither",
    source="cotlab",
)
FIRST_MISTAKE = _card(
    name="first_mistake_step",
    symbol="first",
    formula="index, from 0, of the first step that holds a false equation, by arithmetic or by the"
    " provider `symbolic`; its place is the score's",
    undefined=f"No step holds a false equation. {CUT_STEPS_NOTE}",
    not_shown="Mistakes without an equation, such as a wrong plan. A value that a false one led to"
    " is no mistake of its own.",
    hi=100_000.0,
    unit="steps",
    better="neither",
    source="Tyen et al. (2024), BIG-Bench Mistake, arXiv:2311.08516",
    none_reason="no step holds a false equation",
)
ARITHMETIC_OK = _card(
    name="arithmetic_ok",
    symbol="arith",
    formula="share of the steps with at least one decided equation in which none is false",
    undefined=f"No step has an equation that can be decided. {CUT_STEPS_NOTE}",
    not_shown=f"Whether the equations are the right ones to solve the question. {_CAVEAT}",
    source="cotlab",
)
CHAIN_CARDS = (MEAN_SUPPORT, PASS_RATE, WEAK_LINK, VERIFICATION)
CARDS = (LINK_SUPPORT, *CHAIN_CARDS, COVERAGE, FIRST_MISTAKE, ARITHMETIC_OK)


LINKS = ("forward", "reverse")


class LinkVerdict(NamedTuple):
    """What arithmetic decides of a link."""

    value: float | None
    """1.0, 0.0, or None where it cannot decide."""
    reason: str
    """Why it is 0, or cannot be decided."""
    where: tuple[int, int] | None = None
    """Character range in the later step."""


class KnownNumbers:
    """The numbers that a question and the steps of a chain bring in, and where first.

    Parameters
    ----------
    question : str
    steps : sequence of StepReading
    """

    def __init__(self, question: str, steps: Sequence[StepReading]) -> None:
        self._first_step_by_number = dict.fromkeys(extract_numbers(question), -1)
        for index, step in enumerate(steps):
            for number in step.numbers | step.results:
                self._first_step_by_number.setdefault(number, index)

    def stands_before(self, number: Fraction, step_index: int) -> bool:
        """Return whether a number stands in the question or in a step before ``step_index``."""
        return self._first_step_by_number.get(number, step_index) < step_index


def compute_link(
    known_numbers: KnownNumbers, steps: Sequence[StepReading], step_index: int, direction: str
) -> LinkVerdict:
    """Decide the link to step j by arithmetic: ``forward`` from j = 0, ``reverse`` from j = 1.

    ``forward``, do the question and the steps before support step j: 0 where step j holds a false
    equation; 1 where all its equations hold and each of their operands stands in the question, in a
    step before, or comes out of an equation of its own.

    ``reverse``, does step j support step j − 1: 0 where either holds a false equation (nothing
    supports a false one, and a false one supports nothing); 1 where the equations of both hold and
    step j takes up a value that comes out of step j − 1.
    """
    later_step = steps[step_index]
    if later_step.mistake is not None:
        return LinkVerdict(
            0.0,
            f"step {step_index + 1} holds a false equation",
            (later_step.mistake.start, later_step.mistake.end),
        )
    if direction == "reverse":
        earlier_step = steps[step_index - 1]
        if earlier_step.mistake is not None:
            return LinkVerdict(0.0, f"step {step_index} holds a false equation")
        if not (later_step.is_sound and earlier_step.is_sound):
            return LinkVerdict(
                None, f"the equations of steps {step_index} and {step_index + 1} do not decide it"
            )
        shared_values = {
            abs(number) for e in later_step.equations for number in e.numbers
        } & earlier_step.results
        return (
            LinkVerdict(1.0, "")
            if shared_values
            else LinkVerdict(None, f"step {step_index + 1} takes up no value of step {step_index}")
        )
    if not later_step.is_sound:
        return LinkVerdict(
            None,
            (
                f"step {step_index + 1} holds no equation"
                if not later_step.equations
                else (
                    f"an equation of step {step_index + 1} is undecided:"
                    f" {_undecided_reason(later_step)}"
                )
            ),
        )
    own_results: set[Fraction] = set()
    for equation in later_step.equations:
        unknown_operand = next(
            (
                n
                for n in equation.numbers
                if abs(n) not in own_results and not known_numbers.stands_before(abs(n), step_index)
            ),
            None,
        )
        if unknown_operand is not None:
            return LinkVerdict(
                None,
                f"the operand {_number_text(unknown_operand)} of step {step_index + 1} stands"
                " nowhere before",
                (equation.start, equation.end),
            )
        own_results |= {abs(equation.result)} if equation.result is not None else set()
    return LinkVerdict(1.0, "")


def collect_statements(steps: Sequence[StepReading], target: StepReading) -> str:
    """Return the whole equations of some steps as a list, to verify that ``target`` follows.

    A letter to which ``target`` gives another value is used anew (n = 1, then n = 2): statements
    with it are left out.
    """
    statements = [
        (step.text[e.start : e.end], e)
        for step in steps
        for e in (*step.statements, *step.equations)
        if e.is_complete
    ]
    target_definitions = {(e.letters[0], e.result) for e in target.statements if _gives_value(e)}
    reassigned_letters = {
        e.letters[0]
        for _, e in statements
        if _gives_value(e)
        and any(n == e.letters[0] and v != e.result for n, v in target_definitions)
    }
    return "; ".join(
        text for text, e in statements if not reassigned_letters.intersection(e.letters)
    )


def _gives_value(statement: Equation) -> bool:
    return (
        not statement.n_operations and len(statement.letters) == 1 and statement.result is not None
    )


def undecided_statements(step: StepReading) -> str:
    """Return the equations of a step that arithmetic leaves undecided, as a list.

    Empty where one of them cannot be decided by more computation: it is cut, denied, asked, or has
    values that are unequal but for a unit, a percentage or rounding.
    """
    undecided = [e for e in (*step.statements, *step.equations) if e.holds is None]
    if any(not e.is_complete or (e.n_operations and not _lacks_value(e)) for e in undecided):
        return ""
    return "; ".join(step.text[e.start : e.end] for e in undecided)


def has_undecided_letters(step: StepReading) -> bool:
    """Return whether an equation that arithmetic leaves undecided has a letter."""
    return any(e.letters for e in (*step.statements, *step.equations) if e.holds is None)


def _lacks_value(equation: Equation) -> bool:
    """Return whether a side of an equation has no value that arithmetic can compute."""
    return equation.is_in_unknowns or equation.result is None


def _undecided_reason(step: StepReading) -> str:
    return next((e.reason for e in step.equations if e.holds is None), "")


def _number_text(value: Fraction) -> str:
    return (
        str(value)
        if value.denominator == 1
        else f"{float(value):g}"
        if abs(value) < 10**15
        else "of many digits"
    )


def longest_weak_run(values: Sequence[float | None], threshold: float) -> int:
    """Return the length of the longest run of values under ``threshold``; None ends a run."""
    longest_length = run_length = 0
    for value in values:
        run_length = run_length + 1 if value is not None and value < threshold else 0
        longest_length = max(longest_length, run_length)
    return longest_length


OPTIONS: Mapping[str, Option] = {
    "chain": Option("reference", "whose chain is verified", choices=CHAINS),
    "links": Option(LINKS, "directions that are verified", choices=LINKS, entry="link"),
    "premise": Option(
        "all",
        "what a step follows from: all before it, or the step before",
        choices=("all", "previous"),
    ),
    "tau": Option(TAU, "support above which a link passes", lo=0, hi=1),
    "tau_critical": Option(TAU_CRITICAL, "support below which a link is weak", lo=0, hi=1),
}
HEADLINES = (
    *(
        Headline(name, {"link": link}, measured_chain="own")
        for name in ("verification", "weak_link")
        for link in LINKS
    ),
    Headline("arithmetic_ok", {}, measured_chain="own"),
)
"""A chain that holds is no proof that it was used: on own chains these cannot tell faithful from
bypassing models."""
_ENTAIL_PROVIDERS = frozenset({"nli", "symbolic"})
"""Providers that answer Entail; any other verifier is a model that is asked for its confidence in
words."""
_REWARD_PROVIDER = "prm"
"""Provider that answers StepRewards: it judges each step after those before it."""
_MAX_VERDICT_TOKENS = 64


@dataclass(slots=True)
class _Link:
    """One link of a chain: who verified it, and the support that was found."""

    step_index: int
    direction: str
    value: float | None
    verifier: str
    missing_reason: MissingReason
    where: tuple[int, int] | None = None
    keys: tuple[str, ...] = ()
    has_reply: bool = True
    has_letters: bool = False
    is_unreadable: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether another verifier may still be asked."""
        return self.value is None and not self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether its verifier failed or refused, or its reply cannot be read."""
        is_missing = self.is_unreadable or self.missing_reason[0] != "undefined"
        return self.value is None and is_missing


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
    *CARDS,
    version=8,
    name="verification",
    options=OPTIONS,
    headlines=HEADLINES,
    roles=("symbolic", "verifier"),
)
def verification(item: Item, params: Params, peers: Peers) -> Program:
    """Decide each link by arithmetic, else by the symbolic provider, else by the verifier."""
    scores = ItemScores(item, {"chain": str(params.options["chain"])})
    steps, scores.keys, missing_reason, *_ = yield from chain_of(item, params)
    if not any(step.strip() for step in steps):
        for direction in params.options["links"]:
            facet = {"link": direction}
            scores.add_missing(CHAIN_CARDS, missing_reason, facet=facet)
            facet |= {"verifier": "any"}
            scores.add_missing([COVERAGE], missing_reason, facet=facet)
        item_cards = (FIRST_MISTAKE, ARITHMETIC_OK)
        return scores.add_missing(item_cards, missing_reason)
    readings = read_steps(steps)
    known_numbers = KnownNumbers(item.question, readings)
    links = [
        _compute_arithmetic_link(known_numbers, readings, step_index, direction)
        for direction in params.options["links"]
        for step_index in range(direction == "reverse", len(readings))
    ]
    for build_request in (_symbolic_request, _verifier_request):
        requests = [
            (link, request)
            for link in links
            if link.is_waiting and (request := build_request(item, params, readings, link))
        ]
        if requests:
            reply_by_key = yield from ask(request for _, request in requests)
            for link, request in requests:
                _store_reply(link, request, reply_by_key[request.key])
    yield from _ask_critic(item, params, steps, links)
    for link in links:
        scores.add(
            LINK_SUPPORT,
            link.value,
            rests_on=link.keys,
            reason=link.missing_reason,
            step=link.step_index,
            facet={"link": link.direction, "verifier": link.verifier},
            where=link.where,
        )
    for name in params.options["links"]:
        direction_links = [link for link in links if link.direction == name]
        _add_chain_scores(scores, params, name, direction_links)
    _add_arithmetic_scores(scores, readings, links)
    return tuple(scores.scores)


def _compute_arithmetic_link(
    known_numbers: KnownNumbers,
    steps: Sequence[StepReading],
    step_index: int,
    direction: str,
) -> _Link:
    verdict = compute_link(known_numbers, steps, step_index, direction)
    missing_reason: MissingReason = ("undefined", verdict.reason)
    if verdict.value is None:
        return _Link(step_index, direction, None, "none", missing_reason)
    return _Link(step_index, direction, verdict.value, "arithmetic", missing_reason, verdict.where)


def _symbolic_request(
    item: Item, params: Params, steps: Sequence[StepReading], link: _Link
) -> Request | None:
    """Build the request for what arithmetic left open; None without open equations or provider."""
    model = params.models.get("symbolic")
    step_index, is_forward = link.step_index, link.direction == "forward"
    target_step = steps[step_index] if is_forward else steps[step_index - 1]
    undecided_equations = undecided_statements(target_step)
    if model is None or not undecided_equations:
        return None
    link.has_letters = has_undecided_letters(target_step)
    return Entail(
        model,
        collect_statements(
            steps[:step_index] if is_forward else steps[step_index : step_index + 1], target_step
        ),
        undecided_equations,
    )


def _verifier_request(
    item: Item, params: Params, steps: Sequence[StepReading], link: _Link
) -> Request | None:
    model = params.models.get("verifier")
    if model is None:
        return None
    step_index, texts = link.step_index, [step.text for step in steps]
    if model.provider == _REWARD_PROVIDER:
        if link.direction == "forward":
            return StepRewards(model, item.question, tuple(texts))
        link.missing_reason = ("undefined", "a process reward model judges no reverse link")
        return None
    if link.direction == "reverse":
        premise, hypothesis = texts[step_index], texts[step_index - 1]
    else:
        premise_lines = (
            [item.question, *texts[:step_index]]
            if step_index == 0 or params.options["premise"] == "all"
            else texts[step_index - 1 : step_index]
        )
        premise, hypothesis = "\n".join(premise_lines), texts[step_index]
    if model.provider in _ENTAIL_PROVIDERS:
        return Entail(model, premise, hypothesis)
    return Complete(
        model,
        support_prompt(premise, hypothesis).messages,
        max_tokens=_MAX_VERDICT_TOKENS,
        seed=params.seed,
    )


def _ask_critic(
    item: Item,
    params: Params,
    steps: Sequence[str],
    links: Sequence[_Link],
) -> Generator[RequestRound, Sequence[Reply], None]:
    """Ask the critic, where there is one, and store what it says in the links that are undecided.

    It judges each step against what stands before, which is the forward link: the links up to the
    step that it names hold, and that one does not. It says nothing of the links after it.
    """
    model = params.models.get(CRITIC_ROLE)
    waiting_links = [link for link in links if link.is_waiting and link.direction == "forward"]
    if model is None or not waiting_links:
        return
    replies = yield from ask(vote_requests(model, item.question, steps, params))
    votes = [read_vote(reply, len(steps)) for reply in replies.values()]
    verdict = majority_verdict(votes)
    read_keys = [k for k, vote in zip(replies, votes, strict=True) if vote.missing_reason is None]
    for link in waiting_links:
        link.verifier = f"{CRITIC_ROLE}:{model}"
        link.keys = tuple(read_keys if verdict.is_decided else replies)
        link.has_reply = verdict.is_decided
        if not verdict.is_decided:
            link.missing_reason, link.is_unreadable = verdict.missing_reason, True
        elif verdict.is_sound or (verdict.step is not None and link.step_index <= verdict.step):
            link.value = float(link.step_index != verdict.step)
        else:
            reason = "the critic names a step before this one, and says nothing of what follows"
            link.missing_reason = ("undefined", reason)


def _store_reply(link: _Link, request: Request, reply: Reply) -> None:
    """Store what a reply says in its link."""
    link.keys, link.verifier = (reply.key,), str(request.model)
    missing_reason = missing_reply_reason(reply)
    link.has_reply = missing_reason is None
    if missing_reason is not None or isinstance(reply, Failed):
        link.missing_reason = missing_reason or link.missing_reason
        return
    value = (
        read_confidence(reply_text(reply))
        if isinstance(request, Complete)
        else _link_number(link, request, reply.numbers or ())
    )
    if value == 0 and link.has_letters and request.model.provider == "symbolic":
        # the steps before may be about another case, in which a letter has another value
        reason = "an equation in letters contradicts a step before, which may be another case"
        link.missing_reason = ("undefined", reason)
    elif isinstance(request, Complete) and reply.finish == "length":
        reason = f"the verifier's reply was cut off at {_MAX_VERDICT_TOKENS} tokens"
        link.missing_reason, link.is_unreadable = ("undefined", reason), True
    elif value is not None and 0 <= value <= 1:
        link.value = float(value)
    else:
        reason = "the verifier states no confidence from 0 to 1"
        link.missing_reason, link.is_unreadable = ("undefined", reason), True


def _link_number(link: _Link, request: Request, numbers: Sequence[float]) -> float | None:
    """Return the number of a reply that is about the link; None where there is none."""
    index = link.step_index if isinstance(request, StepRewards) else 0
    return numbers[index] if index < len(numbers) else None


def _add_arithmetic_scores(
    scores: ItemScores, steps: Sequence[StepReading], links: Sequence[_Link]
) -> None:
    """Add the first false equation, by arithmetic or symbolic, and the share of steps without."""
    mistakes: dict[int, tuple[Equation | None, Sequence[str]]] = {
        i: (step.mistake, ()) for i, step in enumerate(steps) if step.mistake is not None
    }
    for link in links:
        if link.value == 0 and link.verifier.startswith("symbolic/"):
            step_index = link.step_index - (link.direction == "reverse")
            mistakes.setdefault(step_index, (None, link.keys))
    mistake_index = min(mistakes, default=None)
    mistake, mistake_keys = (None, ()) if mistake_index is None else mistakes[mistake_index]
    scores.add(
        FIRST_MISTAKE,
        None if mistake_index is None else float(mistake_index),
        rests_on=mistake_keys,
        reason=FIRST_MISTAKE.none_reason,
        where=(mistake.start, mistake.end) if mistake else None,
    )
    no_equation_reason = "no step has an equation that can be decided"
    scores.add(ARITHMETIC_OK, correct_step_share(steps), reason=no_equation_reason)


def _add_chain_scores(
    scores: ItemScores,
    params: Params,
    direction: str,
    links: Sequence[_Link],
) -> None:
    """Add the scores of a chain from its links of one direction."""
    failed_link = _worst_failure(links)
    supports = [link.value for link in links if link.value is not None]
    evidence_keys = _collect_link_keys(links, include_unanswered=failed_link is not None)
    missing_reason: MissingReason | None = failed_link.missing_reason if failed_link else None
    if not links:
        missing_reason = ("undefined", "a chain of one step has no reverse link")
    elif not failed_link and not supports:
        missing_reason = ("undefined", f"no link is decided: {links[0].missing_reason[1]}")
        evidence_keys = _collect_link_keys(links, include_unanswered=True)
    tau, tau_critical = params.options["tau"], params.options["tau_critical"]
    mean = sum(supports) / len(supports) if supports else 0.0
    pass_rate = sum(value > tau for value in supports) / len(supports) if supports else 0.0
    longest_run_length = longest_weak_run([link.value for link in links], tau_critical)
    weak_link = max(0.0, mean - longest_run_length / len(supports)) if supports else 0.0
    for card, value in zip(
        CHAIN_CARDS, (mean, pass_rate, weak_link, 0.5 * mean + 0.5 * pass_rate), strict=True
    ):
        scores.add(
            card,
            None if missing_reason else value,
            rests_on=evidence_keys,
            reason=missing_reason,
            facet={"link": direction},
        )
    models = [
        f"{role}:{params.models[role]}" if role == CRITIC_ROLE else str(params.models[role])
        for role in ("symbolic", "verifier", CRITIC_ROLE)
        if role in params.models
    ]
    for verifier in ("any", *dict.fromkeys(["arithmetic", *models])):
        verified_links = [link for link in links if verifier in ("any", link.verifier)]
        failed_link = _worst_failure(verified_links)
        n_covered = sum(link.value is not None for link in verified_links)
        scores.add(
            COVERAGE,
            None if failed_link or not links else n_covered / len(links),
            rests_on=_collect_link_keys(verified_links, include_unanswered=failed_link is not None),
            reason=failed_link.missing_reason if failed_link else missing_reason,
            facet={"link": direction, "verifier": verifier},
        )


def _worst_failure(links: Sequence[_Link]) -> _Link | None:
    """Return a link whose verifier failed, before one whose verifier's reply cannot be read."""
    failed_links = [link for link in links if link.has_failed]
    return min(failed_links, key=lambda link: link.missing_reason[0] != "error", default=None)


def _collect_link_keys(links: Sequence[_Link], *, include_unanswered: bool) -> tuple[str, ...]:
    """Return the request keys of links; those of verifiers without a reply only where wanted."""
    return tuple(key for link in links for key in link.keys if link.has_reply or include_unanswered)
