"""A tokenizer that drops words is told from one that has a token for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete, Locate, LogProb, Message, Request, Span
from cotlab.core.types import ModelRef
from cotlab.organisms.train import make_tokenizer
from cotlab.providers.local.provider import LocalModel, open_local
from tests.support.tiny_models import byte_tokenizer, metaspace_tokenizer, save

QUESTION = "Q: Kim has 3 coins and gets 4 coins. How many coins?"
TEXT_OF_MANY_SCRIPTS = "Zoë’s naïve ① ½ x² e\u0301té 한글 각 தமிழ் שָׁלוֹם 👩‍👧 \u200b\u00ad≥ 𝟛, done"


def requests(model: LocalModel, text: str) -> Sequence[Request]:
    messages = (Message("user", text),)
    return (
        Complete(model.ref, messages, max_tokens=2),
        LogProb(model.ref, messages, (" 7",)),
        Locate(model.ref, messages, (Span(0, 0, len(text)),)),
    )


def refusals(model: LocalModel, text: str) -> list[str]:
    replies = model.send_batch(requests(model, text))
    return [str(reply) for reply in replies if isinstance(reply, Unsupported)]


def test_a_tokenizer_that_another_kind_of_model_reads_otherwise_is_refused(tmp_path: Path) -> None:
    # the library reads this folder as a byte-level tokenizer, which keeps three of its pieces
    tokenizer = make_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = open_local(ModelRef("local", str(tmp_path)))
    messages = refusals(model, QUESTION)
    assert len(messages) == 3
    assert all("config.json names another kind of model" in message for message in messages)


def test_a_character_without_a_token_is_not_left_out(tmp_path: Path) -> None:
    letters = {letter: i for i, letter in enumerate("abcdefgh▁7.,Q:\n")} | {"</s>": 15}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="</s>")
    model = open_local(ModelRef("local", str(save(tmp_path, fast, "gpt2"))))
    assert refusals(model, "bad egg") == []
    assert ["drops letters" in message for message in refusals(model, "bad tzu egg")] == [True] * 3
    assert "drops letters" in refusals(model, "tzu")[0]
    assert "drops letters" in refusals(model, "bad 4.")[0]
    assert "drops letters" in refusals(model, "7-7")[0]


@pytest.mark.parametrize("kind", ["byte", "metaspace", "normalized"])
def test_what_a_tokenizer_only_writes_otherwise_is_not_dropped(kind: str, tmp_path: Path) -> None:
    tokenizer = {"byte": byte_tokenizer, "metaspace": metaspace_tokenizer}.get(
        kind, byte_tokenizer
    )()
    if kind == "normalized":
        tokenizer.backend_tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.StripAccents(), normalizers.Lowercase()]
        )
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    model = open_local(ModelRef("local", str(save(tmp_path, tokenizer, "gpt2"))))
    messages = refusals(model, TEXT_OF_MANY_SCRIPTS)
    assert not [message for message in messages if "drops" in message]
