"""The inference verifier on a tiny cross-encoder with random weights, built here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Complete, Entail, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local.nli import CrossEncoder, entailment_label, open_nli
from cotlab.providers.local.windows import split_windows

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
        initializer_range=0.3,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CrossEncoder:
    folder = build(tmp_path_factory.mktemp("nli"), LABELS)
    return open_nli(ModelRef("nli", str(folder)))


def test_it_gives_the_probability_of_the_entailment_label(model: CrossEncoder) -> None:
    assert (
        isinstance(model, InProcessProvider) and model.answers == {"entail"} and model.ref.revision
    )
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


def probability(model: CrossEncoder, premise: str, hypothesis: str) -> float:
    (reply,) = model.send_batch([Entail(model.ref, premise, hypothesis)])
    assert isinstance(reply, Response) and reply.numbers is not None, reply
    return reply.numbers[0]


def test_a_long_premise_is_read_in_windows_and_the_best_counts(model: CrossEncoder) -> None:
    words = ["birds fly .", "tweety sings", "a bird is a bird .", "tweety is a bird ."] * 4
    premise, hypothesis = " ".join(words), "birds fly ."
    room = 32 - 3 - 3  # special tokens, tokens of the hypothesis
    windows = [window.split() for window in split_windows(premise, fits(room), is_overlapping=True)]
    assert len(windows) > 2 and all(len(window) <= room for window in windows)
    assert {*premise.split()} == {word for window in windows for word in window}
    alone = [probability(model, " ".join(window), hypothesis) for window in windows]
    assert max(alone) - min(alone) > 1e-4
    assert probability(model, premise, hypothesis) == pytest.approx(max(alone), abs=1e-6)


def test_of_a_long_step_the_part_that_follows_least_counts(model: CrossEncoder) -> None:
    premise, hypothesis = "birds fly .", "tweety sings birds fly . a bird is a bird . " * 4
    parts = split_windows(hypothesis, fits(32 - 3 - 3))
    assert len(parts) > 1 and "".join(parts) == hypothesis
    alone = [probability(model, premise, part) for part in parts]
    assert probability(model, premise, hypothesis) == pytest.approx(min(alone), abs=1e-6)
    assert 0 <= probability(model, premise * 9, hypothesis * 3) <= 1


def fits(n_tokens: int) -> Callable[[str], bool]:
    return lambda text: len(text.split()) <= n_tokens


def test_other_requests_are_refused(model: CrossEncoder) -> None:
    (other,) = model.send_batch([Complete(model.ref, (Message("user", "Hi"),))])
    assert isinstance(other, Unsupported)


def test_a_word_that_does_not_fit_is_cut_and_no_character_is_lost() -> None:
    text = "  ab " + "c" * 50 + " de\n"
    windows = split_windows(text, lambda part: len(part) <= 7)
    assert "".join(windows) == text and max(map(len, windows)) <= 7
    assert split_windows("abc", lambda part: not part) == []


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
