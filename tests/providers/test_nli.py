"""The inference verifier on a tiny cross-encoder with random weights, built here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.provider import BatchProvider
from cotlab.core.requests import Complete, Entail, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local.nli import CrossEncoder, entailment_label, open_nli

LABELS = {0: "contradiction", 1: "ENTAILMENT", 2: "neutral"}
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "birds",
    "fly",
    "tweety",
    "is",
    "a",
    "bird",
    ".",
    "sings",
]


def build(folder: Path, labels: dict[int, str]) -> Path:
    (folder / "words.txt").write_text("\n".join(WORDS))
    tokenizer = BertTokenizerFast(str(folder / "words.txt"), model_max_length=32)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=len(labels),
        id2label=labels,
        label2id={v: k for k, v in labels.items()},
        max_position_embeddings=32,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    folder = build(tmp_path_factory.mktemp("nli"), LABELS)
    return open_nli(ModelRef("nli", str(folder)))


def test_it_gives_the_probability_of_the_entailment_label(model: CrossEncoder) -> None:
    assert isinstance(model, BatchProvider) and model.answers == {"entail"} and model.ref.revision
    pairs = [
        ("birds fly .", "tweety is a bird ."),
        ("tweety sings", "birds fly"),
        ("a bird is a bird .", "fly"),
    ]
    asked = [Entail(model.ref, a, b) for a, b in pairs]
    replies = model.send_batch(asked)
    for (premise, hypothesis), request, reply in zip(pairs, asked, replies, strict=True):
        assert (
            isinstance(reply, Response) and reply.key == request.key and reply.numbers is not None
        )
        alone = model._tokenizer(premise, hypothesis, return_tensors="pt")
        with torch.inference_mode():
            wanted = torch.softmax(model._model(**alone).logits, dim=-1)[0, 1].item()
        assert reply.numbers[0] == pytest.approx(wanted, abs=1e-5)  # padding moves it by less
    assert len({reply.numbers for reply in replies if isinstance(reply, Response)}) == 3


def test_what_is_too_long_is_not_cut(model: CrossEncoder) -> None:
    long, short = model.send_batch(
        [Entail(model.ref, "birds " * 40, "fly"), Entail(model.ref, "birds", "fly")]
    )
    assert isinstance(long, Unsupported) and "44 tokens, the model takes 32" in str(long)
    assert isinstance(short, Response)
    (other,) = model.send_batch([Complete(model.ref, (Message("user", "Hi"),))])
    assert isinstance(other, Unsupported)


async def test_send(model: CrossEncoder) -> None:
    assert (await model.send(Entail(model.ref, "birds", "fly"))).numbers
    with pytest.raises(Unsupported):
        await model.send(Entail(model.ref, "birds " * 40, "fly"))


@pytest.mark.parametrize(
    ("labels", "at"),
    [
        (LABELS, 1),
        ({0: "entailment", 1: "not_entailment"}, 0),
        ({0: "LABEL_0", 1: "LABEL_1"}, None),
        ({0: "entailment", 1: "entails"}, None),
    ],
)
def test_the_label_is_looked_up(labels: dict[int, str], at: int | None) -> None:
    if at is not None:
        assert entailment_label(labels, "m") == at
        return
    with pytest.raises(ConfigError, match="one of its labels must be entailment"):
        entailment_label(labels, "m")


def test_folders_that_are_no_such_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        open_nli(ModelRef("nli", str(tmp_path)))
    build(tmp_path, {0: "good", 1: "bad"})
    with pytest.raises(ConfigError, match="good, bad"):
        open_nli(ModelRef("nli", str(tmp_path)))
