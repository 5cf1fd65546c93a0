"""The text that /v1/completions continues, made from the turns of a conversation.

A chat model continues its turn only where the text is what its chat template makes of the turns.
The server that has the template renders it: llama.cpp at ``/apply-template``, vLLM at ``/tokenize``
and ``/detokenize``. A base model has no template; its text is ``Q:``, the question, a line break
and the prefix, as for a base model in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from cotlab.core.errors import MissingExtra, NotFound, ProviderError, Unsupported
from cotlab.core.reasoning import ends_in_reasoning, read_reasoning
from cotlab.core.requests import Complete
from cotlab.providers import wire

MAX_CACHED_PROMPTS = 4_096
"""Rendered conversations that are kept: a chain is asked for with many prefixes."""
CHATML_MARKER = "<|im_start|>"
"""First marker of the template that llama.cpp assumes for a model that has none."""
TEMPLATE_ADVICE = (
    "Give the folder of the model's tokenizer (--role subject.chat_template=FOLDER), or ask in"
    " turns (subject.form=chat), or subject.chat_template=none for a base model, which has no chat"
    " template."
)


class RawPrompt(NamedTuple):
    """A prompt of /v1/completions."""

    text: str
    """What the model continues."""
    has_special_tokens: bool = False
    """Whether the text has the model's first token already, which the server is not to add."""
    n_tokens: int | None = None
    """Tokens of the text where the model's tokenizer is here; the server has to count as many."""


class ChatTemplate(ABC):
    """What makes raw text of a conversation; each is rendered once."""

    def __init__(self) -> None:
        self._prompt_by_turns: OrderedDict[tuple[object, ...], RawPrompt] = OrderedDict()

    @abstractmethod
    async def render(self, request: Complete) -> RawPrompt:
        """Return the rendered conversation without a prefix."""

    async def prompt(self, request: Complete) -> RawPrompt:
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
            prompt = self._prompt_by_turns[turns] = await self.render(request)
            if len(self._prompt_by_turns) > MAX_CACHED_PROMPTS:
                self._prompt_by_turns.popitem(last=False)
        if request.prefix and ends_in_reasoning(prompt.text):
            raise Unsupported(
                "the model's chat template begins its turn with hidden reasoning, where a chain"
                " would be taken for a part of that: turn reasoning off at the server"
            )
        return prompt._replace(text=prompt.text + wire.replace_surrogates(request.prefix))


def base_model_prompt(request: Complete) -> RawPrompt:
    """Return the text of a question for a model without a chat template."""
    system = f"{request.system}\n" if request.system else ""
    question = "\n".join(message.content for message in request.messages)
    return RawPrompt(f"{system}Q: {question}\n{request.prefix}")


def open_folder_template(folder: str) -> tuple[ChatTemplate, str]:
    """Return the chat template of a tokenizer's folder, and the digest of its files.

    Raises
    ------
    ConfigError
        If the folder has no tokenizer, or no chat template.
    MissingExtra
        If the library that reads it is not installed.
    """
    try:
        from cotlab.providers.local.folder_template import FolderTemplate
    except ModuleNotFoundError as missing:
        package = missing.name or "transformers"
        raise MissingExtra("--role subject.chat_template=FOLDER", package) from missing
    template = FolderTemplate(folder)
    return template, template.revision


class _Prompt(wire.Body):
    prompt: str


class _Tokens(wire.Body):
    tokens: list[Any]


class ServerTemplate(ChatTemplate):
    """The chat template of the model behind a server, applied by the server.

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
        super().__init__()
        self._post, self._server_url = post, base_url.removesuffix("/v1")
        self._has_apply_template: bool | None = None
        self._was_marker_checked = False

    async def render(self, request: Complete) -> RawPrompt:
        """Return the conversation as the server renders it."""
        messages = wire.chat_messages(request)
        if self._has_apply_template is not False:
            try:
                reply = await self._post(
                    f"{self._server_url}/apply-template", {"messages": messages}
                )
            except ProviderError as error:
                if self._has_apply_template or not _is_unknown_path(error):
                    raise
            else:
                self._has_apply_template = True
                text = wire.read_body(_Prompt, reply).prompt
                await self._check_marker(text)
                return RawPrompt(text)
            self._has_apply_template = False
        return await self._render_by_tokens(request.model.name, messages)

    async def _render_by_tokens(self, model: str, messages: list[dict[str, str]]) -> RawPrompt:
        """Return the text of the token ids that vLLM makes of the conversation."""
        try:
            tokens = await self._post(
                f"{self._server_url}/tokenize",
                {"model": model, "messages": messages, "add_generation_prompt": True},
            )
            ids = wire.read_body(_Tokens, tokens).tokens
            if ids:
                reply = await self._post(
                    f"{self._server_url}/detokenize", {"model": model, "tokens": ids}
                )
                text = wire.read_body(_Prompt, reply).prompt
                tokens_again = await self._post(
                    f"{self._server_url}/tokenize",
                    {"model": model, "prompt": text, "add_special_tokens": False},
                )
                if wire.read_body(_Tokens, tokens_again).tokens == ids:
                    return RawPrompt(text, has_special_tokens=True)
                raise Unsupported("the text of the tokens has other tokens")
        except ProviderError as error:
            if not (_is_unknown_path(error) or isinstance(error, Unsupported)):
                raise
            reason = "" if _is_unknown_path(error) else f": {error}"
        else:
            reason = ""
        raise NotFound(
            "The server does not apply a chat template for /v1/completions, neither at"
            f" /apply-template nor at /tokenize{reason}. {TEMPLATE_ADVICE}"
        )

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


def check_token_count(prompt: RawPrompt, n_counted: int | None) -> None:
    """Raise Unsupported where the server made other tokens of a prompt than its tokenizer here."""
    if n_counted and prompt.n_tokens not in (None, n_counted):
        error = Unsupported(
            f"the server counted {n_counted:,} tokens of a prompt that has {prompt.n_tokens:,} by"
            " the tokenizer of subject.chat_template: it reads another text, by a template of its"
            " own, or the folder is of another model"
        )
        error.may_be_billed = True
        raise error


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


def _is_unknown_path(error: ProviderError) -> bool:
    status = getattr(error.__cause__, "status_code", None)
    return isinstance(error, NotFound) or status in (404, 405, 501)
