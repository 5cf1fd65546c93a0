"""The text that /v1/completions continues, made from the turns of a conversation.

A chat model continues its turn only where the text is what its chat template makes of the turns.
The server that has the template renders it, as llama.cpp does at ``/apply-template``; vLLM
continues a turn in its chat interface. A base model has no template; its text is ``Q:``, the
question, a line break and the prefix, as for a base model in this process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cotlab.core.errors import NotFound, ProviderError, Unsupported
from cotlab.core.reasoning import ends_in_reasoning, read_reasoning
from cotlab.core.requests import Complete
from cotlab.providers import wire

MAX_CACHED_PROMPTS = 4_096
"""Rendered conversations that are kept: a chain is asked for with many prefixes."""
CHATML_MARKER = "<|im_start|>"
"""First marker of the template that llama.cpp assumes for a model that has none."""
TEMPLATE_ADVICE = (
    "Ask in turns (--role subject.form=chat), or give subject.chat_template=none for a base model,"
    " which has no chat template."
)


def base_model_prompt(request: Complete) -> str:
    """Return the text of a question for a model without a chat template."""
    system = f"{request.system}\n" if request.system else ""
    question = "\n".join(message.content for message in request.messages)
    return f"{system}Q: {question}\n{request.prefix}"


class _Prompt(wire.Body):
    prompt: str


class _Tokens(wire.Body):
    tokens: list[Any]


class ServerTemplate:
    """The chat template of the model behind a server, applied by the server once a conversation.

    Parameters
    ----------
    post : callable
        Sends a JSON body to an address and returns the parsed reply; raises ProviderError.
    base_url : str
        Address of the server's interface, with or without ``/v1``.
    """

    def __init__(
        self, post: Callable[[str, Mapping[str, Any]], Awaitable[Any]], base_url: str
    ) -> None:
        self._prompt_by_turns: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._post, self._server_url = post, base_url.removesuffix("/v1")
        self._was_marker_checked = False

    async def prompt(self, request: Complete) -> str:
        """Return the rendered conversation with the prefix after it.

        Raises
        ------
        NotFound
            If there is no chat template that can be applied.
        Unsupported
            If the template does not take these turns, or the request has a prefix and the template
            begins the model's turn with reasoning.
        """
        turns = (request.model.name, request.system, request.messages)
        prompt = self._prompt_by_turns.get(turns)
        if prompt is None:
            prompt = self._prompt_by_turns[turns] = await self._render(request)
            if len(self._prompt_by_turns) > MAX_CACHED_PROMPTS:
                self._prompt_by_turns.popitem(last=False)
        if request.prefix and ends_in_reasoning(prompt):
            raise Unsupported(
                "the model's chat template begins its turn with hidden reasoning, where a chain"
                " would be taken for a part of that: turn reasoning off at the server"
            )
        return prompt + wire.replace_surrogates(request.prefix)

    async def _render(self, request: Complete) -> str:
        try:
            reply = await self._post(
                f"{self._server_url}/apply-template", {"messages": wire.chat_messages(request)}
            )
        except ProviderError as error:
            status = getattr(error.__cause__, "status_code", None)
            if not isinstance(error, NotFound) and status not in (404, 405, 501):
                raise
            raise NotFound(
                "The server does not apply a chat template for /v1/completions at /apply-template."
                f" {TEMPLATE_ADVICE}"
            ) from error
        text = wire.read_body(_Prompt, reply).prompt
        await self._check_marker(text)
        return text

    async def _check_marker(self, text: str) -> None:
        """Raise NotFound where the rendered markers are no tokens of the model.

        llama.cpp renders a conversation for a base model too, by a template that is not the
        model's.
        """
        if self._was_marker_checked or CHATML_MARKER not in text:
            return
        reply = await self._post(
            f"{self._server_url}/tokenize", {"content": CHATML_MARKER, "parse_special": True}
        )
        tokens = wire.read_body(_Tokens, reply).tokens
        if len(tokens) != 1:
            raise NotFound(
                "The model behind the server has no chat template: the server assumes one whose"
                f" marker {CHATML_MARKER} is no token of the model. {TEMPLATE_ADVICE}"
            )
        self._was_marker_checked = True


def split_reasoning(prompt: str, text: str) -> tuple[str, str]:
    """Return the hidden reasoning of a raw reply, and the reply's own text.

    Reasoning that was cut off has no text after it. A reply in which the two cannot be told apart
    stays whole.
    """
    reasoning = read_reasoning(text)
    if not reasoning.end and ends_in_reasoning(prompt):
        return text.strip(), ""
    if reasoning.unread and not reasoning.is_open:
        return "", text
    return reasoning.chain(text), text[reasoning.end :]
