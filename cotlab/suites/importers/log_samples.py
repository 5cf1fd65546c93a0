"""Read one sample of an Inspect log: question, the model's chain and answer, its tool calls.

The functions take Inspect's own messages and samples, and import nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.core.requests import Response, Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessage, ChatMessageAssistant, ModelOutput

MAX_MESSAGE_CHARACTERS = 2**20
"""A longer conversation, as JSON, is not kept; its length is."""
_ANSWER_LINE_PATTERN = re.compile(
    r"\W*(?:so |thus |therefore,? )?(?:the )?(?:final )?answer\b|####|.*\\boxed\b", re.IGNORECASE
)
"""The line of the final answer: ANSWER: 18, So the answer is 18, #### 18, \\boxed{18}."""
_SUBMIT_TOOL = "submit"
"""The tool by which Inspect's agents hand in their answer."""
_DATA_URL_PATTERN = re.compile(
    r"data:([^;,]*)(?:;[^,]*)?,(.*)", re.DOTALL
)  # data:image/png;base64,
_FILE_PARTS = ("image", "audio", "video", "document", "data")
"""Types of content that are no text."""
_FINISH_BY_STOP_REASON = {"max_tokens": "length", "model_length": "length"}


class ModelReply(NamedTuple):
    """What a model wrote in one sample."""

    chain: str
    """Its reasoning, without the answer; "" where there is none."""
    answer: str
    """The submitted answer, or the text of its last turn."""
    is_submitted: bool
    """Whether the answer was handed in by a tool."""
    reasoning: str
    """``text``, ``reasoning``, ``summary`` where reasoning is only summed up, ``redacted``."""
    tools: tuple[dict[str, Any], ...]
    """Calls with their results: name, input, output, and error where there is one."""
    n_turns: int
    """Turns of the model."""


def read_reply(
    task_input: str | Sequence[ChatMessage],
    messages: Sequence[ChatMessage],
    output: ModelOutput | None = None,
) -> ModelReply:
    """Read chain, answer and tool calls from a conversation.

    The chain is the reasoning of the model's turns and the text before its answer: in turns before
    the last one both, in the last one the text only where it has no reasoning or submits an answer.

    Parameters
    ----------
    task_input : str or sequence of ChatMessage
        The input of the sample: its assistant turns were not written by the model.
    messages : sequence of ChatMessage
    output : ModelOutput, optional
        Holds the call that submits the answer where the conversation does not.
    """
    n_given = 0 if isinstance(task_input, str) else len(_assistant_turns(task_input))
    turns = _assistant_turns(messages)[n_given:]
    last_output = output.choices[0].message if output is not None and output.choices else None
    if not turns and last_output is not None:
        turns = [last_output]
    if not turns:
        return ModelReply("", "", False, "text", (), 0)
    submitted = _submitted_answer([turn for turn in (last_output, turns[-1]) if turn is not None])
    if submitted is None and last_output is None:
        submitted = _appended_answer(turns)
    reasoning_by_turn = [_reasoning_texts(turn) for turn in turns]
    has_reasoning = any(reasoning_by_turn)
    texts: list[str] = []
    for turn, reasoning_texts in zip(turns, reasoning_by_turn, strict=True):
        texts += reasoning_texts
        if turn is not turns[-1]:
            texts.append(own_text(turn.text))
        elif submitted is not None:
            texts.append(own_text(turn.text).rstrip().removesuffix(submitted.strip()))
        elif not has_reasoning:
            texts.append(_text_before_answer(own_text(turn.text)))
    chain = "\n".join(part.strip("\n") for part in texts if part.strip())
    answer = own_text(turns[-1].text) if submitted is None else submitted
    return ModelReply(
        chain,
        answer,
        submitted is not None,
        _reasoning_kind(turns, has_reasoning),
        tuple(_tool_calls(messages, turns)),
        len(turns),
    )


def recorded_response(sample: EvalSample, reply: ModelReply) -> Response:
    """Return a reply as the response log keeps it, without the key of its request."""
    usage = sample.output.usage
    stop_reason = sample.output.choices[0].stop_reason if sample.output.choices else ""
    is_plain_text = reply.n_turns == 1 and reply.reasoning == "text" and not reply.is_submitted
    return Response(
        "",
        reply.answer,
        reasoning=None if is_plain_text else reply.chain,
        usage=Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.input_tokens_cache_read,
            usage.reasoning_tokens,
        )
        if usage
        else Usage(),
        finish=_FINISH_BY_STOP_REASON.get(stop_reason, stop_reason),
        refused=stop_reason == "content_filter",
        sent={"sample": str(sample.id), "epoch": sample.epoch},
        received_at=sample.completed_at or "",
        model=sample.output.model,
    )


def question_text(sample: EvalSample) -> str:
    """Return the question: the user's turns with files by name, then the choices by letter."""
    if isinstance(sample.input, str):
        text = sample.input
    else:
        user_turns = [_named_text(turn) for turn in sample.input if turn.role == "user"]
        has_reply = any(message.role == "assistant" for message in sample.input)
        text = (user_turns[-1] if has_reply else "\n\n".join(user_turns)) if user_turns else ""
    choices = "\n".join(f"{chr(65 + k)}) {choice}" for k, choice in enumerate(sample.choices or ()))
    return f"{text}\n\n{choices}" if choices and text.strip() else text


def sample_meta(sample: EvalSample, reply: ModelReply) -> dict[str, Any]:
    """Return what a sample holds beside question, answer and chain, as JSON values."""
    targets = target_texts(sample)
    given_messages = [] if isinstance(sample.input, str) else sample.input
    system_texts = [message.text for message in given_messages if message.role == "system"]
    messages = [named_message(message) for message in sample.messages]
    n_characters = len(json.dumps(messages, ensure_ascii=False, default=str))
    is_kept = n_characters <= MAX_MESSAGE_CHARACTERS
    given_input: Any = sample.input if sample.choices else None
    if given_messages:
        given_input = [named_message(message) for message in given_messages]
    times = ("started_at", "completed_at", "total_time", "working_time")
    optional_meta = {
        "targets": targets if len(targets) > 1 else None,
        "match": "all" if needs_all_targets(sample) else None,
        "choices": list(sample.choices) if sample.choices else None,
        "system": "\n\n".join(system_texts) or None,
        "error": sample.error.message if sample.error else None,
        "error_traceback": sample.error.traceback if sample.error else None,
        "output": _output_message(sample, messages),
        "input": given_input,
        "messages": messages if is_kept else None,
        "message_characters": None if is_kept else n_characters,
        "submitted": reply.answer if reply.is_submitted else None,
        "reasoning": reply.reasoning if reply.reasoning in ("summary", "redacted") else None,
        "tools": list(reply.tools) or None,
        "files_given": [name for message in given_messages for name in _file_names(message)],
        "files_shown": _later_files(given_messages, sample.messages),
        "inspect_scores": {
            name: score.model_dump(exclude_none=True, exclude_defaults=True)
            | {"value": score.value}
            for name, score in (sample.scores or {}).items()
        },
        "metadata": sample.metadata,
        "usage": {
            model: usage.model_dump(exclude_none=True)
            for model, usage in sample.model_usage.items()
        },
        "finish": sample.output.choices[0].stop_reason if sample.output.choices else None,
        "limit": sample.limit.model_dump(exclude_none=True) if sample.limit else None,
        "retried_errors": [retry.message for retry in sample.error_retries or ()],
        "times": {
            name: value for name in times if (value := getattr(sample, name, None)) is not None
        },
        **{name: getattr(sample, name, None) for name in ("uuid", "setup", "files", "description")},
        "sandbox": sample.sandbox.type if sample.sandbox else None,
    }
    return {
        "sample_id": sample.id,
        "epoch": sample.epoch,
        "reply": sample.output.completion,
        **{
            key: json_value(value)
            for key, value in optional_meta.items()
            if value not in (None, [], {})
        },
    }


def _output_message(
    sample: EvalSample, messages: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the message of the output where it is not the last turn of the conversation.

    An agent takes its submitting call out of the conversation.
    """
    if not sample.output.choices:
        return None
    output = named_message(sample.output.choices[0].message)
    turns = [message for message in messages if message["role"] == "assistant"]
    is_last_turn = bool(turns) and turns[-1] == output
    n_characters = len(json.dumps(output, ensure_ascii=False, default=str))
    return output if n_characters <= MAX_MESSAGE_CHARACTERS and not is_last_turn else None


def target_texts(sample: EvalSample) -> list[str]:
    """Return the targets of a sample."""
    return [sample.target] if isinstance(sample.target, str) else list(sample.target)


def needs_all_targets(sample: EvalSample) -> bool:
    """Return whether several options are right together: all targets are letters of options."""
    targets = target_texts(sample)
    letters = [chr(65 + k) for k in range(len(sample.choices or ()))]
    return len(targets) > 1 and all(target in letters for target in targets)


def named_message(message: ChatMessage) -> dict[str, Any]:
    """Return a message as JSON values, with a text that names each file in place of its content."""
    values: dict[str, Any] = message.model_dump(mode="json", exclude_none=True)
    values.pop("id", None)
    if not isinstance(message.content, str):
        values["content"] = [
            {"type": "text", "text": f"[{_file_name(part)}]"}
            if part.type in _FILE_PARTS
            else part.model_dump(mode="json", exclude_none=True)
            for part in message.content
        ]
    return values


def json_value(value: Any) -> Any:
    """Return a JSON value in which a number that is none, NaN or infinite, is null."""
    if isinstance(value, dict):
        return {str(key): json_value(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(child) for child in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _assistant_turns(messages: Sequence[ChatMessage]) -> list[ChatMessageAssistant]:
    return [message for message in messages if message.role == "assistant"]


def _text_before_answer(text: str) -> str:
    lines = text.rstrip().splitlines()
    return "\n".join(lines[:-1] if lines and _ANSWER_LINE_PATTERN.match(lines[-1]) else lines)


def _submitted_answer(turns: Sequence[ChatMessageAssistant]) -> str | None:
    """Return the answer that the last of some turns hands in by a tool; None where none does."""
    for turn in turns:
        for call in turn.tool_calls or ():
            if _is_submission(call):
                return str(call.arguments.get("answer", next(iter(call.arguments.values()), "")))
    return None


def _appended_answer(turns: Sequence[ChatMessageAssistant]) -> str | None:
    """Return the answer below the last turn's text, from which an agent took its submitting call.

    What is left of that is an empty list of calls.
    """
    if not any(turn.tool_calls for turn in turns) or turns[-1].tool_calls != []:
        return None
    return turns[-1].text.rpartition("\n\n")[2].strip() or None


def _is_submission(call: Any) -> bool:
    return call.function == _SUBMIT_TOOL or (
        list(call.arguments) == ["answer"] and isinstance(call.arguments["answer"], str)
    )


def _tool_calls(
    messages: Sequence[ChatMessage], turns: Sequence[ChatMessageAssistant]
) -> list[dict[str, Any]]:
    """Return the calls of some turns with the results that the conversation holds of them."""
    result_by_id = {message.tool_call_id: message for message in messages if message.role == "tool"}
    calls: list[dict[str, Any]] = []
    for turn in turns:
        for part in () if isinstance(turn.content, str) else turn.content:
            if part.type == "tool_use":  # a tool of the vendor's server
                call = {"name": part.name, "input": part.arguments, "output": part.result}
                calls.append(call | ({"error": part.error} if part.error else {}))
        for tool_call in turn.tool_calls or ():
            if _is_submission(tool_call):
                continue
            result = result_by_id.get(tool_call.id)
            call = {
                "name": tool_call.function,
                "input": json_value(tool_call.arguments),
                "output": _named_text(result) if result else "",
            }
            if result is None:
                call["error"] = "the log holds no result of this call"
            elif result.error:
                call["error"] = result.error.message
            calls.append(call)
    return calls


def _reasoning_parts(turn: ChatMessageAssistant) -> list[Any]:
    content = () if isinstance(turn.content, str) else turn.content
    return [part for part in content if part.type == "reasoning"]


def _reasoning_texts(turn: ChatMessageAssistant) -> list[str]:
    """Return the reasoning texts of a turn, summaries where they are redacted, and in its text."""
    texts = [
        (part.summary or "") if part.redacted else (part.reasoning or part.summary or "")
        for part in _reasoning_parts(turn)
    ]
    texts.append(read_reasoning(turn.text).chain(turn.text))
    return [text for text in texts if text.strip()]


def _reasoning_kind(turns: Sequence[ChatMessageAssistant], has_reasoning: bool) -> str:
    parts = [part for turn in turns for part in _reasoning_parts(turn)]
    if not has_reasoning:
        return "redacted" if parts else "text"
    is_summary = any(part.summary and (part.redacted or not part.reasoning) for part in parts)
    return "summary" if is_summary else "reasoning"


def _named_text(message: ChatMessage) -> str:
    """Return the text of a message, with each file named."""
    return "\n".join([message.text, *(f"[{name}]" for name in _file_names(message))]).strip("\n")


def _file_names(message: ChatMessage) -> list[str]:
    content = () if isinstance(message.content, str) else message.content
    return [_file_name(part) for part in content if part.type in _FILE_PARTS]


def _later_files(
    given_messages: Sequence[ChatMessage], messages: Sequence[ChatMessage]
) -> list[str]:
    """Return the files of tools and of the model's turns, by name."""
    given_names = Counter(name for message in given_messages for name in _file_names(message))
    all_names = Counter(name for message in messages for name in _file_names(message))
    return list((all_names - given_names).elements())


def _file_name(part: Any) -> str:
    """Return the kind of a file, and its address or the type, size and digest of its data.

    With the name of a document, and the detail that an image is to be seen in.
    """
    details = [getattr(part, "filename", None), _data_name(part), getattr(part, "detail", None)]
    if details[2] == "auto":
        details.pop()
    elif details[2]:
        details[2] = f"detail {details[2]}"
    return f"{part.type}: {', '.join(dict.fromkeys(filter(None, details)))}"


def _data_name(part: Any) -> str:
    source = getattr(part, part.type, "")
    if not isinstance(source, str):
        source = json.dumps(json_value(source), sort_keys=True)
    if match := _DATA_URL_PATTERN.match(source):
        digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:12]
        return f"{match[1] or 'data'}, {len(match[2]):,} characters, sha256 {digest}"
    return str(source[:200])
