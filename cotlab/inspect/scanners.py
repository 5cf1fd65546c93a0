"""A scanner of Inspect Scout: the faults of a chain, in a transcript of any source."""

from __future__ import annotations

from cotlab.core.errors import MissingExtra, UnknownName

try:
    from inspect_scout import Reference, Result, Scanner, Transcript, scanner
except ModuleNotFoundError as import_error:
    raise MissingExtra("A scanner of Inspect Scout", "inspect-scout") from import_error

from cotlab.inspect.chains import explanation_text, score_chain, score_metadata

_METRIC_BY_SCORER = {
    "flags": "flags",
    "verification": "verification",
    "tool_trace": "claim_matched",
}


@scanner(messages="all", version=1)
def chain_faults(scorer: str = "flags") -> Scanner[Transcript]:
    """Read the chain of a transcript with a scorer that asks no model.

    The result's value is the scorer's, null where it is undefined; its explanation lists the faults
    or says why there is no value, and its references are the model's turns.

    Parameters
    ----------
    scorer : {"flags", "verification", "tool_trace"}
    """
    if scorer not in _METRIC_BY_SCORER:
        raise UnknownName("scorer", scorer, tuple(_METRIC_BY_SCORER))

    async def scan(transcript: Transcript) -> Result:
        given = [message for message in transcript.messages if message.source == "input"]
        questions = [message.text for message in transcript.messages if message.role == "user"]
        chain = await score_chain(
            scorer,
            "\n\n".join(questions[:1]),
            given,
            transcript.messages,
            headline=(_METRIC_BY_SCORER[scorer], {}),
        )
        turns = [m for m in transcript.messages if m.role == "assistant" and m.source != "input"]
        return Result(
            value=chain.measurement.value,
            answer=chain.reply.answer,
            explanation=explanation_text(chain),
            metadata=score_metadata(chain),
            references=[Reference(type="message", id=turn.id) for turn in turns if turn.id],
        )

    return scan
