"""Ask a server, before a run relies on it, the four questions that its numbers depend on.

Does it continue a prefix? Does it return log-probabilities? Does it cut long prompts? How does it
return reasoning? No right answer of the model is needed: replies of one model are compared with
each other, and counted tokens with words that were sent.

Servers treat a prefix in four ways. Some return the continuation alone (vLLM, SGLang), some the
prefix and its continuation (llama.cpp), some reject the request (422 of ``transformers serve``),
and some start a new turn, in which the model answers afresh: such a reply says nothing about the
prefix, and must not be scored.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from os.path import commonprefix

from cotlab.core.provider import Finding
from cotlab.core.reasoning import Reasoning, read_reasoning, unread_markup
from cotlab.core.requests import Complete, Failed, Message, Reply, Response
from cotlab.providers.continuation import echoed_prefix

QUESTION_LABELS = {
    "prefix": "Assistant prefix",
    "logprobs": "Log-probabilities",
    "reasoning": "Reasoning before the reply",
    "long_prompt": "Longest prompt",
}
"""Name of a question → its label in reports and on pages, in the order in which they are shown."""
MAX_REQUESTS = 4
"""Most requests of all questions to one server."""
MIN_LOGPROB_ALTERNATIVES = 2
"""Alternatives that a token has to list: one alone, the token itself, is no distribution."""
_MAX_REPLY_TOKENS, _MAX_CONTINUATION_TOKENS = 24, 6
"""Output limits of the model's unprefixed reply, from which prefixes are cut, and of the reply to a
prefix."""
_MAX_PREFIX_REQUESTS = 2
_CUT_SHARES = (1 / 2, 2 / 3, 1 / 3)
"""Shares of the model's reply at which it is cut, in order; the first that is continued suffices.
"""
_MIN_PREFIX_WORDS = 4
_MIN_REPEAT_CHARS = 12
"""Characters of the prefix's beginning whose repetition shows a new turn, and characters of the
rest that show a continuation."""
_MIN_REST_CHARS = 8
"""Characters of the rest that a shorter reply has to give to count as a continuation."""
_MIN_KEPT_SHARE = 0.9
"""Share of the words of a long prompt that have to be counted as tokens."""
_COUNTING_TEXT = "Count from 1 to 20, in words, separated by commas."
_SHORT_WORDS = "123456789"
"""Words that are a token at least each in every vocabulary."""
# "together", "7", "+", "和": at most about one token each
_TOKEN_PATTERN = re.compile(r"[A-Za-z]{1,8}|[^\W\dA-Za-z_]{1,2}|\S")

Findings = dict[str, Finding]


@dataclass(frozen=True, slots=True)
class ServerNeeds:
    """What the requests of a plan to one model rely on."""

    request: Complete
    """The first request of the plan, one with a prefix where there is any."""
    prefix: bool = False
    """Whether replies have to continue a prefix."""
    logprobs: int = 0
    """Alternatives of each token that are requested; 0 for none."""
    n_prompt_tokens: int = 0
    """Tokens of the longest prompt, about; 0 where length does not matter."""


def count_prompt_tokens(request: Complete) -> int:
    """Return about how many tokens all that the model reads of a request has."""
    texts = [request.system, *(message.content for message in request.messages), request.prefix]
    return sum(len(_TOKEN_PATTERN.findall(text)) for text in texts)


def ask_server(needs: ServerNeeds, sample: int) -> Generator[Complete, Reply, Findings | Failed]:
    """Ask what the plan needs to know, by at most ``MAX_REQUESTS`` requests.

    Parameters
    ----------
    needs : ServerNeeds
    sample : int
        Distinguishes the requests of each check, so that no reply of an earlier server is reused.

    Returns
    -------
    Findings by name of the question, or Failed where the server does not answer.
    """
    request = replace(
        needs.request,
        prefix="",
        system="",
        max_tokens=_MAX_REPLY_TOKENS,
        temperature=0.0,
        seed=None,
        stop=(),
        top_logprobs=needs.logprobs,
        sample=sample,
    )
    reply = yield request
    request, rejected = replace(request, top_logprobs=0), None
    if isinstance(reply, Failed) and reply.unsupported and needs.logprobs:
        rejected = reply
        reply = yield request
    if isinstance(reply, Failed):
        return reply
    findings = {"reasoning": _read_reasoning_form(reply)}
    if needs.logprobs:
        findings["logprobs"] = _read_logprobs(reply, rejected)
    if needs.prefix:
        n_requests = _MAX_PREFIX_REQUESTS - (rejected is not None)
        prefix = needs.request.prefix or "The"
        finding = yield from _ask_prefix(request, reply, prefix, n_requests)
        if isinstance(finding, Failed):
            return finding
        findings["prefix"] = finding
    if needs.n_prompt_tokens:
        findings["long_prompt"] = yield from _ask_long_prompt(request, needs.n_prompt_tokens)
    return {name: findings[name] for name in QUESTION_LABELS if name in findings}


def _read_reasoning_form(reply: Response) -> Finding:
    """Return not read, hidden, in the reply or none."""
    text = reply.text or ""
    if markup := unread_markup(text, was_cut=reply.finish == "length"):
        return Finding("not read", markup)
    if reply.reasoning or reply.usage.reasoning:
        return Finding("hidden")
    return Finding("in the reply" if read_reasoning(text).end else "none")


def _read_logprobs(reply: Response, rejected: Failed | None) -> Finding:
    """Return given, absent, refused or unknown, with the number of alternatives."""
    if rejected is not None:
        return Finding("refused", rejected.error, 0)
    if not reply.text and not reply.tokens:
        return Finding("unknown", "the reply was empty")
    n_alternatives = min((len(token.top) for token in reply.tokens), default=0)
    is_given = n_alternatives >= MIN_LOGPROB_ALTERNATIVES
    return Finding("given" if is_given else "absent", count=n_alternatives)


def _ask_long_prompt(request: Complete, n_words: int) -> Generator[Complete, Reply, Finding]:
    """Return whole, cut or unknown, with the number of words.

    As many short words are sent as the longest prompt has tokens, and each is a token at least.
    """
    text = " ".join(islice(cycle(_SHORT_WORDS), n_words))
    reply = yield replace(request, messages=(Message("user", text),), max_tokens=1)
    if isinstance(reply, Failed):  # which a prompt of the plan would get too
        return Finding("unknown", reply.error, n_words)
    n_counted = reply.usage.tokens_in
    if n_counted is None:
        return Finding("unknown", "the server counts no input tokens", n_words)
    if n_counted < n_words * _MIN_KEPT_SHARE:
        detail = f"it counted {n_counted:,} tokens of a prompt of {n_words:,} words"
        return Finding("cut", detail, n_words)
    return Finding("whole", count=n_words)


def _ask_prefix(
    request: Complete, reply: Response, prefix: str, n_requests: int
) -> Generator[Complete, Reply, Finding | Failed]:
    """Return continued, echoed, new turn, refused, not established or unknown, or no reply.

    The model's own greedy reply is cut in two and its beginning given back as a prefix. A server
    that continues returns the rest, whatever the model knows. A server that starts a new turn
    returns the beginning again, or something else. One that echoes returns the prefix and more,
    which is longer than the reply's limit allows.
    """
    pairs = _prefix_rest_pairs(reply)
    if not pairs and not reply.reasoning and n_requests > 1:
        # a model that answers the plan's question in a word may count at length
        request = replace(request, messages=(Message("user", _COUNTING_TEXT),))
        counted, n_requests = (yield request), n_requests - 1
        pairs = _prefix_rest_pairs(counted) if isinstance(counted, Response) else []
    if not pairs:  # one token after the run's prefix shows an echo, or that prefixes are rejected
        is_short = len(prefix) < _MIN_REPEAT_CHARS
        prefix = prefix * _MIN_REPEAT_CHARS if is_short else prefix
        pairs = [(prefix, "")]
    n_mismatches = 0
    for beginning, rest in pairs[:n_requests]:
        # A prefix has more words than its reply may have tokens, so that a reply that holds all of
        # it did not write it.
        max_tokens = min(_MAX_CONTINUATION_TOKENS, len(beginning.split()) - 1) if rest else 1
        answer = yield replace(request, prefix=beginning, max_tokens=max_tokens)
        if isinstance(answer, Failed):
            return Finding("refused", answer.error) if answer.unsupported else answer
        text = answer.text or ""
        if echoed_prefix(beginning, text):
            return Finding("echoed")
        if not rest or answer.refused or answer.reasoning:
            continue
        n_repeated = _common_prefix_length(beginning, text)
        n_continued = _common_prefix_length(rest, text)
        if n_repeated >= _MIN_REPEAT_CHARS and n_repeated > n_continued:
            return Finding(
                "new turn",
                "given the beginning of the model's own reply, it wrote the same"
                f" {n_repeated} characters again instead of the rest",
            )
        if n_repeated == n_continued > 0:  # the model repeats itself
            continue
        n_exact = len(commonprefix((rest, text)))  # with the white space that opens the rest
        if n_exact >= max(_MIN_REST_CHARS, min(_MIN_REPEAT_CHARS, len(rest), len(text))):
            return Finding("continued")
        is_too_short = bool(text) and n_exact == min(len(rest), len(text))
        n_mismatches += not is_too_short
    if n_mismatches:
        return Finding(
            "not established",
            "given the beginning of the model's own reply, it did not return the rest"
            f" ({n_mismatches} of {len(pairs[:n_requests])} tries at temperature 0)",
        )
    return Finding("unknown")


def _prefix_rest_pairs(reply: Response) -> list[tuple[str, str]]:
    """Return (prefix, rest) pairs of the model's reply, cut before white space.

    White space opens a token in nearly every vocabulary, so that the tokens of a prefix are those
    that the model wrote. Short, refused, reasoned or marked-up replies give none.
    """
    text = reply.text or ""
    if (
        reply.refused
        or reply.reasoning
        or text.lstrip().startswith("<")
        or read_reasoning(text) != Reasoning()
    ):
        return []
    # White space between words: " 7" of "She has 7".
    white_space_positions = [m.start() for m in re.finditer(r"(?<=\S)\s+(?=\S)", text)]
    cut_positions = dict.fromkeys(
        max((p for p in white_space_positions if p <= share * len(text)), default=0)
        for share in _CUT_SHARES
    )
    pairs = [(text[:position], text[position:]) for position in cut_positions]
    return [
        (prefix, rest)
        for prefix, rest in pairs
        if len(prefix) >= _MIN_REPEAT_CHARS and len(prefix.split()) >= _MIN_PREFIX_WORDS
    ]


def _common_prefix_length(text: str, other_text: str) -> int:
    """Return the length of the common beginning of two texts, leading white space aside."""
    return len(commonprefix((text.lstrip(), other_text.lstrip())))


def finding_text(name: str, finding: Finding) -> str:
    """Return a finding on one line, such as "Log-probabilities: given (20 alternatives)"."""
    unit = {"logprobs": "alternatives", "long_prompt": "words"}.get(name)
    count_text = f" ({finding.count:,} {unit})" if unit and finding.count else ""
    detail_text = f": {finding.detail}" if finding.detail else ""
    return f"{QUESTION_LABELS.get(name, name)}: {finding.verdict}{count_text}{detail_text}"
