"""The chat template of a model behind a server, from a copy of its tokenizer in a folder.

vLLM and llama.cpp render conversations themselves; other servers take raw text only. Nothing of
the folder is executed: the template runs in the sandbox of transformers, and a tokenizer with code
is refused. The server has to count as many tokens of each prompt as the tokenizer here, so that
neither another model's folder nor a server that adds tokens gives a number.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import AutoTokenizer

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.requests import Complete
from cotlab.providers import wire
from cotlab.providers.local.model_files import TOKENIZER_ERRORS, TOKENIZER_FILE_PATTERNS
from cotlab.providers.raw_prompt import ChatTemplate, RawPrompt

_RENDER_ERRORS = (TemplateError, ValueError, TypeError, LookupError, AttributeError)
"""What a template raises for turns that it does not take."""


class FolderTemplate(ChatTemplate):
    """The chat template of a tokenizer in a folder.

    Raises
    ------
    ConfigError
        If the folder has no tokenizer that can be loaded without its code, or no chat template.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        path = Path(folder).expanduser()
        problem = f"--role subject.chat_template={folder}"
        if not path.is_dir():
            raise ConfigError(f"{problem}: no such folder; it is server, none or a folder.")
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(
                str(path), local_files_only=True, trust_remote_code=False
            )
        except TOKENIZER_ERRORS as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ConfigError(f"{problem}: its tokenizer cannot be loaded: {reason}") from error
        if not getattr(self._tokenizer, "chat_template", None):
            raise ConfigError(
                f"{problem}: its tokenizer has no chat template; for a base model, use"
                " --role subject.chat_template=none."
            )
        self.revision = _digest_files(path)

    async def prompt(self, request: Complete) -> RawPrompt:
        """Return the rendered conversation with the prefix after it, and its number of tokens."""
        prompt = await super().prompt(request)
        n_tokens = len(self._token_ids(prompt.text, is_complete=prompt.has_special_tokens))
        return prompt._replace(n_tokens=n_tokens)

    async def render(self, request: Complete) -> RawPrompt:
        """Return a text of which a server, which adds the first token, makes the right tokens."""
        try:
            rendered = self._tokenizer.apply_chat_template(
                wire.chat_messages(request), tokenize=False, add_generation_prompt=True
            )
        except _RENDER_ERRORS as error:
            raise Unsupported(
                f"the chat template of that folder does not take these turns: {error}"
            ) from error
        text = wire.replace_surrogates(rendered)
        ids = self._token_ids(text, is_complete=True)
        first_token = self._tokenizer.bos_token or ""
        for variant in (text, text.removeprefix(first_token)):
            if self._token_ids(variant, is_complete=False) == ids:
                return RawPrompt(variant)
        return RawPrompt(text, has_special_tokens=True)

    def _token_ids(self, text: str, *, is_complete: bool) -> list[int]:
        """Return the ids of a text that has the special tokens, or gets them by the tokenizer."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=not is_complete)["input_ids"]
        return ids


def _digest_files(folder: Path) -> str:
    """Return the SHA-256 of the files that decide what text is made of a conversation."""
    hasher = hashlib.sha256()
    for path in sorted({p for pattern in TOKENIZER_FILE_PATTERNS for p in folder.glob(pattern)}):
        hasher.update(f"{path.name}:{path.stat().st_size}:".encode())
        hasher.update(path.read_bytes())
    return hasher.hexdigest()
