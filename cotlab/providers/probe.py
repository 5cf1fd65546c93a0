"""Check what a server does with a model's requests, before a run relies on it.

Each check is a small generator of requests that is sent their replies and returns a ``Finding``. A
check needs no right answer of the model: it compares replies of one model with each other, or the
tokens that the server counted with the words that it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cotlab.core.errors import PrefixNotContinued
from cotlab.core.provider import Finding
from cotlab.core.reasoning import read_reasoning, unread_markup
from cotlab.core.requests import Complete, Failed, Message, Reply, Response
from cotlab.core.text_safety import printable_line
from cotlab.providers.continuation import MAX_REPLY_TOKENS, check_continuation

REFUSED_PREFIXES = ("new turn", "refused", "not established")
"""Verdicts on a prefix under which replies do not follow from it."""
MAX_REQUESTS = 10
"""Most requests of all checks of one model."""
NOT_CHECKED = "not checked: "
"""Start of the detail of a check for which too few requests were left."""
MIN_LOGPROB_ALTERNATIVES = 2
"""Alternatives that a token has to list: one alone, the token itself, is no distribution."""
CHAIN_NUMBERS = ("7319", "4863")
"""Numbers that only the chain of the check of chains in the user's turn states."""
_MIN_KEPT_SHARE = 0.9
"""Share of the tokens of a text's second half that has to be counted: repeated text has as many
tokens as the first time, up to those at the seam."""
_MIN_TOKENS_PER_WORD = 0.6
"""Fewest tokens of a word, on average; a vocabulary may have tokens of several words."""
_SEAM_TOKENS = 4
"""Tokens by which the numbers before the texts, and the seam of the halves, may differ."""
_MIN_STOP_CHARS = 3
_SEED_OFFSET = 7
_COUNTING_TEXT = "Count from one to twenty, in words, separated by commas."
_SYSTEM_TEXT = (
    "Answer as you would without this sentence, which says nothing more than that the sun was up,"
    " that the sea was calm, and that every ship in the old harbour had a name."
)
"""System prompt of the check: its words are counted, whatever the model makes of them."""

CheckProgram = Generator[Complete, Reply, Finding]


@dataclass(frozen=True, slots=True)
class CheckNeeds:
    """What the requests of a plan to one model lean on."""

    request: Complete
    """The first request of the plan, one with a prefix where there is any."""
    prefix: bool = False
    """Whether replies have to continue a prefix."""
    logprobs: int = 0
    """Alternatives of each token that are requested; 0 for none."""
    greedy: bool = False
    """Whether temperature 0 is used."""
    seeded_temperature: float = 0.0
    """Highest temperature that goes with a seed; 0 where there is none."""
    stop: bool = False
    """Whether replies end at a stop text."""
    system: bool = False
    """Whether there is a system prompt."""
    user_chain: tuple[Complete, ...] = ()
    """Requests for the answer of a chain in the user's turn that states the first, and the second,
    of ``CHAIN_NUMBERS``; empty where no chain is given there."""
    longest: Complete | None = None
    """The longest request of the plan; None where length does not matter."""
    n_draws: int = 1
    """Most draws of one request."""

    def demand(self, name: str) -> int:
        """Return how much of a check is needed: 0 for none, else a count or 1."""
        return {
            "prefix": int(self.prefix),
            "logprobs": self.logprobs,
            "long_prompt": 0 if self.longest is None else _n_words(self.longest),
            "user_chain": len(self.user_chain),
            "greedy": int(self.greedy),
            "seed": int(self.seeded_temperature > 0),
            "stop": int(self.stop),
            "system": int(self.system),
            "reasoning": 1,
            "choices": self.n_draws if self.n_draws > 1 else 0,
        }[name]


@dataclass(frozen=True, slots=True)
class _CheckContext:
    """What each check is given."""

    needs: CheckNeeds
    """What the plan leans on."""
    request: Complete
    """A greedy request without a prefix."""
    reply: Response
    """The reply to it."""
    rejection: str = ""
    """The server's message where it rejected the same request with log-probabilities."""
    two_draws: list[Reply] = field(default_factory=list)
    """The reply to a request of two draws, where another check made one."""

    def variant(self, number: int, **changes: Any) -> Complete:
        """Return the request as a draw of its own, with other parameters."""
        return replace(self.request, sample=self.request.sample + number, **changes)


def run_checks(
    needs: CheckNeeds,
    names: tuple[str, ...],
    sample: int,
    max_requests: int = MAX_REQUESTS,
    n_reserved: int = 0,
) -> Generator[Complete, Reply, dict[str, Finding] | Failed]:
    """Run checks by name, with at most ``max_requests`` requests.

    Parameters
    ----------
    needs : CheckNeeds
    names : tuple of str
        Keys of ``CHECKS``.
    sample : int
        Distinguishes the requests of this check, so that no reply of an earlier server is used.
    max_requests : int
    n_reserved : int
        Requests of these that are left for a check of another form where no prefix is continued.

    Returns
    -------
    findings by name, or Failed where the server answers not even the plan's first request
    """
    request = replace(
        needs.request,
        prefix="",
        max_tokens=MAX_REPLY_TOKENS,
        temperature=0.0,
        seed=None,
        stop=(),
        system="",
        top_logprobs=needs.logprobs if "logprobs" in names else 0,
        sample=sample,
    )
    reply, rejection, n_requests = (yield request), "", 1
    if isinstance(reply, Failed) and reply.unsupported and request.top_logprobs:
        rejection, request = reply.error, replace(request, top_logprobs=0)
        reply, n_requests = (yield request), n_requests + 1
    if isinstance(reply, Failed):
        return reply
    context = _CheckContext(needs, replace(request, top_logprobs=0), reply, rejection)
    findings = {}
    for name, check in CHECKS.items():
        if name not in names:
            continue
        not_checked = Finding("unknown", f"{NOT_CHECKED}at most {max_requests} requests are made")
        if max_requests - n_requests < _FEWEST_REQUESTS.get(name, 0):
            findings[name] = not_checked
            continue
        program, answer = check(context), None
        try:
            while True:
                check_request = program.send(answer) if answer is not None else next(program)
                if n_requests >= max_requests:
                    findings[name] = not_checked
                    break
                answer, n_requests = (yield check_request), n_requests + 1
        except StopIteration as end:
            findings[name] = end.value
        if name == "prefix" and findings[name].verdict in REFUSED_PREFIXES:
            if needs.request.prefix:
                break  # the plan is refused for it
            max_requests -= n_reserved
    return findings


def _check_prefix(context: _CheckContext) -> CheckProgram:
    """Return continued, echoed, new turn, refused, not established or unknown."""
    request = replace(context.request, prefix=context.needs.request.prefix or "The")
    first_reply: Response | None = context.reply
    finding = Finding("unknown")
    # a model that answers the plan's question in a word may count at length
    for messages in (request.messages, (Message("user", _COUNTING_TEXT),)):
        program = check_continuation(replace(request, messages=messages), request.sample)
        try:
            probe = next(program)
            while True:
                probe = program.send(first_reply or (yield probe))
                first_reply = None
        except StopIteration as end:
            if isinstance(end.value, Failed):
                return _no_reply(end.value)
            finding = Finding(end.value)
        except PrefixNotContinued as error:
            return Finding(error.verdict, printable_line(error))
        if finding.verdict != "unknown" or context.reply.reasoning:
            break
    return finding


def _check_logprobs(context: _CheckContext) -> CheckProgram:
    """Return given, absent or refused, with the number of alternatives."""
    if context.rejection:
        return Finding("refused", context.rejection, 0)
    n_alternatives = min((len(token.top) for token in context.reply.tokens), default=0)
    if not context.reply.text and not context.reply.tokens:
        return Finding("unknown", "the reply was empty")
    return Finding(
        "given" if n_alternatives >= MIN_LOGPROB_ALTERNATIVES else "absent", count=n_alternatives
    )
    yield


def _check_user_chain(context: _CheckContext) -> CheckProgram:
    """Return read, not read or unknown: a chain states a number that no model knows."""
    requests = context.needs.user_chain
    detail = "the replies were empty or cut off" if requests else "no chain is in the user's turn"
    finding = Finding("unknown", detail)
    for number, (request, stated) in enumerate(zip(requests, CHAIN_NUMBERS, strict=False), 70):
        reply = yield context.variant(
            number, messages=request.messages, max_tokens=request.max_tokens
        )
        if isinstance(reply, Failed):
            return _no_reply(reply)
        text = f"{reply.reasoning or ''} {reply.text or ''}".replace(",", "")
        if stated in text:
            return Finding("read")
        if text.strip() and reply.finish != "length":
            finding = Finding(
                "not read", f"a chain ended with {stated}, and the reply to it did not say so"
            )
    return finding


def _check_long_prompt(context: _CheckContext) -> CheckProgram:
    """Return whole, cut, refused or unknown, with the number of words.

    A word, half a prompt and the same half twice are sent: the second half of the long prompt has
    as many tokens as the first one adds to the word, unless the server drops some.
    """
    assert context.needs.longest is not None
    longest = context.needs.longest
    words = _text(longest).split()
    half = words[: len(words) // 2]
    replies = []
    for number, text_words in enumerate(([], half, half + half), start=1):
        # other first words, so that no part of it is in the server's cache
        text = " ".join((f"{number}.", *text_words))
        reply = yield context.variant(20 + number, messages=(Message("user", text),), max_tokens=1)
        if isinstance(reply, Failed):
            full_text = Message("user", _text(longest))
            reply = yield context.variant(24, messages=(full_text,), max_tokens=1)
            if isinstance(reply, Failed) and reply.unsupported:
                return Finding("refused", reply.error, len(words))
            return Finding("unknown", "a repeated text was rejected", len(words))
        replies.append(reply)
    n_word, n_short, n_long = (reply.usage.tokens_in for reply in replies)
    if n_word is None or n_short is None or n_long is None:
        return Finding("unknown", "the server counts no input tokens", len(words))
    n_tokens_of_half = n_short - n_word - _SEAM_TOKENS
    if n_long - n_short < n_tokens_of_half * _MIN_KEPT_SHARE or (
        n_long < 2 * len(half) * _MIN_TOKENS_PER_WORD
    ):
        return Finding(
            "cut",
            f"it counted {n_short:,} tokens for {len(half):,} words, and {n_long:,} for twice as"
            " many",
            len(words),
        )
    return Finding("whole", count=len(words))


def _check_greedy(context: _CheckContext) -> CheckProgram:
    """Return same reply, other reply or unknown, for one request twice at temperature 0."""
    reply = yield context.variant(30)
    if isinstance(reply, Failed):
        return _no_reply(reply)
    if not reply.text and not context.reply.text:
        return Finding("unknown", "the replies were empty")
    return Finding("same reply" if reply.text == context.reply.text else "other reply")


def _check_seed(context: _CheckContext) -> CheckProgram:
    """Return honoured, ignored or unknown: the same seed twice, then another one.

    Where the plan draws several replies, the last request is for two of them.
    """
    texts: list[str | None] = []
    for number, effective_seed in ((40, 1), (41, 1), (42, 1 + _SEED_OFFSET)):
        if len(set(texts)) == 2:
            return Finding("ignored", "two draws with one seed differ")
        probe = context.variant(number, temperature=context.needs.seeded_temperature)
        # a provider adds the number of the draw to the seed
        probe = replace(probe, seed=effective_seed - probe.sample)
        is_pair = number == 42 and context.needs.n_draws > 1
        reply = yield replace(probe, n_choices=2) if is_pair else probe
        if is_pair:
            context.two_draws.append(reply)
            if isinstance(reply, Failed) and reply.unsupported:
                reply = yield probe
        if isinstance(reply, Failed):
            return _no_reply(reply)
        texts.append(reply.text)
    if len(set(texts)) == 1:
        return Finding("unknown", "draws with other seeds do not differ either")
    return Finding("honoured")


def _check_stop(context: _CheckContext) -> CheckProgram:
    """Return honoured, ignored, refused or unknown, by a word of the reply or the plan's stop."""
    pieces = (context.reply.text or "").split()
    candidates = (w for w in pieces[1:] if len(w) >= _MIN_STOP_CHARS and w not in pieces[0])
    stop = (word := next(candidates, "")) or next(iter(context.needs.request.stop), "")
    reply = (yield context.variant(50, stop=(stop,))) if stop else context.reply
    if isinstance(reply, Failed):
        plain_reply = yield context.variant(51)  # whether it is the stop text that it fails on
        if isinstance(plain_reply, Failed):
            return _no_reply(reply)
        return Finding("refused", f"{reply.error}; replies are cut at the stop text here")
    if not word:
        return Finding("unknown", "the reply has no word to stop at")
    n_used, n_full = reply.usage.tokens_out, context.reply.usage.tokens_out
    text_before = (context.reply.text or "").partition(word)[0]
    if (reply.text or "").rstrip() != text_before.rstrip():
        return Finding("unknown", "the reply was another one")
    if n_used is not None and n_used == n_full:
        return Finding("ignored", "the reply was not shorter; it is cut at the stop text here")
    return Finding("honoured")


def _check_system(context: _CheckContext) -> CheckProgram:
    """Return read, dropped, refused or unknown, by the tokens that a system prompt adds."""
    reply = yield context.variant(60, system=_SYSTEM_TEXT, max_tokens=1)
    if isinstance(reply, Failed):
        return Finding("refused", reply.error) if reply.unsupported else _no_reply(reply)
    n_with, n_without = reply.usage.tokens_in, context.reply.usage.tokens_in
    if n_with is None or n_without is None:
        return Finding("unknown", "the server counts no input tokens")
    n_words = len(_SYSTEM_TEXT.split())
    if n_with - n_without < n_words // 2:
        detail = f"a system prompt of {n_words} words added {n_with - n_without} tokens"
        return Finding("dropped", detail)
    return Finding("read")


def _check_choices(context: _CheckContext) -> CheckProgram:
    """Return given, one reply, refused or unknown, for two draws in one call."""
    if context.two_draws:
        reply = context.two_draws[0]
    else:
        temperature = context.needs.seeded_temperature or 1.0
        reply = yield context.variant(70, temperature=temperature, n_choices=2)
    if isinstance(reply, Failed):
        return Finding("refused", reply.error) if reply.unsupported else _no_reply(reply)
    if reply.n_choices is None:
        return Finding("unknown", "the provider is asked for one reply a call")
    return Finding("given" if reply.n_choices > 1 else "one reply", count=reply.n_choices)


def _check_reasoning(context: _CheckContext) -> CheckProgram:
    """Return not read, hidden, in the reply or none."""
    reply = context.reply
    text = reply.text or ""
    if markup := unread_markup(text, was_cut=reply.finish == "length"):
        return Finding("not read", markup)
    if reply.reasoning or reply.usage.reasoning:
        return Finding("hidden")
    return Finding("in the reply" if read_reasoning(text).end else "none")
    yield


CHECKS: Mapping[str, Callable[[_CheckContext], CheckProgram]] = {
    "prefix": _check_prefix,
    "logprobs": _check_logprobs,
    "reasoning": _check_reasoning,
    "user_chain": _check_user_chain,
    "long_prompt": _check_long_prompt,
    "greedy": _check_greedy,
    "system": _check_system,
    "seed": _check_seed,
    "choices": _check_choices,
    "stop": _check_stop,
}
"""Name → check, in the order in which the requests are made: what can make a number wrong first,
then what its noise depends on, then what only costs money or is put right here."""
_FEWEST_REQUESTS = {"long_prompt": 3, "seed": 3}
"""Requests without which a check finds nothing, where one is not enough: it is left out where fewer
remain, and a smaller one after it is made."""


def _no_reply(reply: Failed) -> Finding:
    return Finding("unknown", reply.error)


def _text(request: Complete) -> str:
    """Return all that the model reads of a request."""
    parts = [request.system, *(message.content for message in request.messages), request.prefix]
    return "\n".join(filter(None, parts))


def _n_words(request: Complete) -> int:
    return len(_text(request).split())
