"""Training in miniature: the same recipe gives the same weights, in a folder that opens as any
other model."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from cotlab.core.requests import Complete, LogProb, Message, Response
from cotlab.core.types import ModelRef
from cotlab.organisms import train as training
from cotlab.organisms.curriculum import Recipe
from cotlab.organisms.train import train_organism
from cotlab.providers.local.load import load_model
from cotlab.providers.local.provider import LocalModel
from cotlab.suites.wordproblems import vocabulary

TINY = Recipe(
    "tiny", ("r0", "r100"), seed=3, steps=3, width=16, hidden=24, layers=1, heads=2, batch=4
)


def weights_of(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("organisms") / "tiny"
    train_organism(TINY, made)
    return made


def test_the_same_seed_gives_the_same_weights_whatever_the_global_generators_did(
    folder: Path, tmp_path: Path
) -> None:
    torch.rand(7)
    train_organism(TINY, tmp_path / "again")
    assert weights_of(tmp_path / "again") == weights_of(folder)
    train_organism(replace(TINY, seed=4), tmp_path / "other")
    assert weights_of(tmp_path / "other") != weights_of(folder)


def test_training_changes_the_weights_and_tells_its_progress(folder: Path, tmp_path: Path) -> None:
    train_organism(replace(TINY, steps=0), tmp_path / "fresh")
    assert weights_of(tmp_path / "fresh") != weights_of(folder)
    told: list[tuple[int, int, float]] = []
    train_organism(
        replace(TINY, steps=50), tmp_path / "fifty", lambda *progress: told.append(progress)
    )
    ((step, steps, loss),) = told
    assert (step, steps) == (50, 50) and 0 < loss < 5  # ln 111 = 4.7 nats at the start


def test_the_folder_opens_and_answers(folder: Path) -> None:
    assert {p.name for p in folder.iterdir()} >= {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    model = LocalModel(
        ModelRef("local", str(folder)), load_model(str(folder), prompt_prefix="<r100>")
    )
    assert (model.ref.form, len(model.ref.revision or "")) == ("continuation", 64)
    ask = (Message("user", "Ann has 7 apples. She buys 5 more. She loses 3. How many apples now?"),)
    reply, scored, unknown = model.send_batch(
        [
            Complete(model.ref, ask, max_tokens=4, top_logprobs=3),
            LogProb(model.ref, ask, (" 9", " 12"), prefix="So the answer is"),
            Complete(model.ref, (Message("user", "Ann has 7 zebras."),), max_tokens=4),
        ]
    )
    assert isinstance(reply, Response) and reply.text is not None
    assert set(reply.text.split()) <= {word.strip() for word in vocabulary()}
    assert (
        isinstance(scored, Response)
        and scored.numbers is not None
        and all(n < 0 for n in scored.numbers)
    )
    assert "'zebras' is not in the model's vocabulary" in str(unknown)


def test_batches_hold_what_the_examples_say() -> None:
    for ids, weights, at, totals, _ in islice(training._iter_batches(TINY), 20):
        assert ids.shape == weights.shape and ids.shape[0] == TINY.batch
        assert bool((weights[ids == 0] == 0).all())  # padding is never learnt
        assert bool(
            (weights.sum(1) >= 5).all()
        )  # every text teaches at least its answer and its end
        assert len(at) == len(totals) and bool((at < ids.shape[0] * (ids.shape[1] - 1)).all())
        flat = ids[:, :-1].reshape(-1)
        assert {vocabulary()[i] for i in flat[at].tolist()} <= {"."}


def test_the_rate_warms_up_and_falls_to_zero() -> None:
    rates = [training._learning_rate_factor(step, 1000) for step in range(1000)]
    assert (
        rates[0] == 0.01
        and rates[99] == rates[200] == 1.0
        and rates[-1] == pytest.approx(1 / 700, abs=1e-3)
    )
    assert all(a >= b for a, b in zip(rates[100:], rates[101:], strict=False))
