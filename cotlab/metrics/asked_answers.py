"""``--ask-answer``: a subject whose reply has an unparsed answer is asked for the answer alone.

The second reply is put after the first, so that every scorer reads it by the same conventions, and
is evidence of each score that rests on the first.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from cotlab.core.program import Params, Peers, Program, RequestRound, Scorer
from cotlab.core.requests import Complete, Reply, Request, Response
from cotlab.core.types import Item, Score
from cotlab.metrics.kit import missing_reply_reason, parse_answer_reply, reply_text
from cotlab.metrics.model_steps import ends_early
from cotlab.text.answers.targets import read_reply
from cotlab.text.prompts.chain import FINAL_ANSWER_CUE, Prompt, answer_after_reply


def program_of(scorer: Scorer, item: Item, params: Params, peers: Peers) -> Program:
    """Return a scorer's program for one item, with follow-ups where the run asks for them."""
    program = scorer(item, params, peers)
    return ask_unparsed_answers(program, item, params) if params.ask_answer else program


def ask_unparsed_answers(
    program: Program, item: Item, params: Params
) -> Generator[RequestRound, Sequence[Reply], tuple[Score, ...]]:
    """Carry out a scorer's program, and ask for the answer of each reply that states none."""
    follow_up_keys: dict[str, str] = {}
    replies: Sequence[Reply] | None = None
    while True:
        try:
            requests = next(program) if replies is None else program.send(replies)
        except StopIteration as stop:
            scores: tuple[Score, ...] = stop.value
            return tuple(_with_follow_ups(score, follow_up_keys) for score in scores)
        replies = yield requests
        follow_ups = {
            request.key: follow_up
            for request, reply in zip(requests, replies, strict=True)
            if (follow_up := _follow_up(request, reply, item, params)) is not None
        }
        if follow_ups:
            asked = {request.key: request for request in follow_ups.values()}
            answers = dict(zip(asked, (yield list(asked.values())), strict=True))
            follow_up_keys |= {key: request.key for key, request in follow_ups.items()}
            replies = [
                _with_answer(reply, follow_ups[reply.key], answers[follow_ups[reply.key].key], item)
                if reply.key in follow_ups
                else reply
                for reply in replies
            ]


def _follow_up(request: Request, reply: Reply, item: Item, params: Params) -> Complete | None:
    """Return the request for the answer alone; None where the reply states one, or should not."""
    if (
        not isinstance(request, Complete)
        or request.model != params.subject
        or not isinstance(reply, Response)
        or missing_reply_reason(reply) is not None
    ):
        return None
    said = reply_text(reply)
    if not said or ends_early(reply, said) or read_reply(item, said).value is not None:
        return None
    form = params.subject.form
    prompt = answer_after_reply(Prompt(request.messages, request.prefix), said, form)
    return prompt and replace(
        request,
        messages=prompt.messages,
        prefix=prompt.prefix,
        max_tokens=params.answer_tokens,
        stop=("\n",) if form == "continuation" else (),
    )


def _with_answer(reply: Reply, follow_up: Complete, answer: Reply, item: Item) -> Reply:
    """Return a reply with the answer that was asked for as its last line, where it can be read."""
    value = parse_answer_reply(follow_up, answer, item).answer
    if value is None or not isinstance(reply, Response):
        return reply
    return replace(reply, text=f"{reply.text or ''}\n{FINAL_ANSWER_CUE} {value}.")


def _with_follow_ups(score: Score, follow_up_keys: dict[str, str]) -> Score:
    """Return a score with the follow-up of each reply that it rests on among its evidence."""
    added = (follow_up_keys[key] for key in score.evidence if key in follow_up_keys)
    return replace(score, evidence=tuple(dict.fromkeys((*score.evidence, *added))))
