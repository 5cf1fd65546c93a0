"""Words of texts that a tokenizer's vocabulary does not have. Loads no model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer

from cotlab.core.vocabulary import UnknownWord, unknown_word

_BATCH = 512


def find_unknown_words(path: Path, texts: Iterable[str]) -> Iterator[set[UnknownWord]]:
    """Yield of each text its words outside the vocabulary of a file ``tokenizer.json``.

    A tokenizer that has a token for every text knows all words.
    """
    tokenizer, unknown_id, pieces = _load_tokenizer(path)
    if unknown_id is None:
        yield from (set() for _ in texts)
        return
    remaining_texts = iter(texts)
    while batch := [_encodable(text) for text in islice(remaining_texts, _BATCH)]:
        for text, encoding in zip(batch, tokenizer.encode_batch(batch), strict=True):
            yield {
                unknown_word(text, first, end, pieces)
                for token, (first, end) in zip(encoding.ids, encoding.offsets, strict=True)
                if token == unknown_id and end > first
            }


@lru_cache(maxsize=4)
def _load_tokenizer(path: Path) -> tuple[Tokenizer, int | None, frozenset[str]]:
    """Return a tokenizer, the id of its token for unknown words, and all of its pieces.

    The id is None, and there are no pieces, where it has no such token.
    """
    text = path.read_text("utf-8")
    tokenizer, unknown = Tokenizer.from_str(text), json.loads(text)["model"].get("unk_token")
    if unknown is None:
        return tokenizer, None, frozenset()
    return tokenizer, tokenizer.token_to_id(unknown), frozenset(tokenizer.get_vocab())


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "backslashreplace").decode()
