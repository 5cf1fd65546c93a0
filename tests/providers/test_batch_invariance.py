"""A model in this process gives a request the same bits alone and beside any neighbours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import (
    PREFIX_INDEX,
    Complete,
    Embed,
    Locate,
    LogProb,
    Message,
    Patched,
    PatchRow,
    Request,
    Response,
    Source,
    Span,
)
from cotlab.core.types import ModelRef
from cotlab.providers.local.batching import use_reproducible_products
from cotlab.providers.local.embedder import open_embedder
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.generate import Decoding, TokenTexts, generate
from cotlab.providers.local.load import LoadedModel, load_organism
from cotlab.providers.local.provider import LocalModel, open_local, open_organism
from cotlab.providers.local.readers import open_reader
from cotlab.suites.wordproblems import make_suite
from tests.support.tiny_models import byte_tokenizer, save

ITEMS = make_suite(24, 5).items
TEXTS = [step.text for item in ITEMS for step in item.steps]


def assert_invariant(model: InProcessProvider, requests: Sequence[Request]) -> None:
    rng = random.Random(3)
    together = [contents(reply) for reply in model.send_batch(requests)]
    for size in (1, 2, 3, 7, 19):
        order = rng.sample(range(len(requests)), len(requests))
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            replies = model.send_batch([requests[i] for i in chosen])
            for i, reply in zip(chosen, replies, strict=True):
                assert contents(reply) == together[i], (size, requests[i])


def contents(reply: Any) -> Any:
    """The reply without what its batch alone decides."""
    assert isinstance(reply, Response), reply
    return reply.text, reply.numbers, reply.tokens, reply.vectors, reply.finish


def completions(ref: ModelRef) -> list[Request]:
    return [
        Complete(
            ref, (Message("user", item.question),), max_tokens=n, temperature=t, top_logprobs=5
        )
        for i, item in enumerate(ITEMS)
        for n, t in ((40 if i % 3 else 7, 0.0), (24, 0.8 if i % 2 else 0.0))
    ]


def scored_answers(ref: ModelRef) -> list[Request]:
    return [
        LogProb(ref, (Message("user", item.question),), (" 3", " 12 is the answer", " 7 + 5"))
        for item in ITEMS
    ]


def patched_rows(model: LocalModel, ref: ModelRef, backend_layers: int) -> list[Request]:
    """Requests as mediation makes them, and one clean run among them."""
    rng, requests = random.Random(1), list[Request]()
    texts = [(Message("user", item.question),) for item in ITEMS]
    prefixes = ["\n".join(step.text for step in item.steps) for item in ITEMS]
    located = [
        reply.located.positions
        for reply in model.send_batch(
            [
                Locate(
                    ref, m, (Span(PREFIX_INDEX, 0, len(p)), Span(0, 0, len(m[0].content))), prefix=p
                )
                for m, p in zip(texts, prefixes, strict=True)
            ]
        )
        if isinstance(reply, Response) and reply.located
    ]
    every = tuple(range(backend_layers))
    for i, (chain, question) in enumerate(located):
        donor = (i + 1) % len(ITEMS)
        size = min(len(chain), len(located[donor][0]))
        rows = [PatchRow(every, chain[:size], located[donor][0][:size])]
        rows += [PatchRow((layer,), chain[:size], located[donor][0][:size]) for layer in every]
        for share in (0.4, 0.8):
            kept = tuple(sorted(rng.sample(chain[:size], max(1, int(share * size)))))
            rows.append(PatchRow(every, kept, tuple(rng.sample(located[donor][0], len(kept)))))
        controls = tuple(sorted(rng.sample(question, 5)))
        rows.append(PatchRow(every[1:], controls, tuple(rng.sample(located[donor][1], 5))))
        rows.append(PatchRow((), ()))
        source = Source("run", texts[donor], prefixes[donor])
        requests.append(Patched(ref, texts[i], " 12", source, tuple(rows), prefix=prefixes[i]))
        filler = Source("filler", texts[i], prefixes[i], chain)
        whole = (PatchRow(every, chain, chain), PatchRow(every[:2], chain[1:], chain[1:]))
        requests.append(Patched(ref, texts[i], " 12", filler, whole, prefix=prefixes[i]))
        requests.append(Patched(ref, texts[i], " 7", filler, whole[:1], prefix=prefixes[i]))
        noise = Source("noise", at=chain, seed=i)
        requests.append(Patched(ref, texts[i], " 12", noise, whole[:1], prefix=prefixes[i]))
    return requests


@pytest.mark.soak
@pytest.mark.parametrize("make_requests", [completions, scored_answers])
def test_a_reply_does_not_depend_on_its_batch(make_requests: Any) -> None:
    ref = ModelRef("organism", "r50", form="continuation")
    assert_invariant(open_organism(ref), make_requests(ref))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_replies_of_prompts_of_all_lengths_do_not_depend_on_their_batch(
    kind: str, tmp_path: Path
) -> None:
    ref = ModelRef("local", str(save(tmp_path, byte_tokenizer(), kind)))
    requests = [
        Complete(ref, (Message("user", ("a cat sat. " * 9)[:n]),), max_tokens=1 + n % 9)
        for n in range(8, 80, 3)
    ]
    assert_invariant(open_local(ref), [replace(r, top_logprobs=2) for r in requests])


@pytest.mark.soak
@pytest.mark.parametrize(("width", "heads", "n_new"), [(64, 4, 340), (384, 6, 40)])
def test_a_row_has_the_same_bits_beside_rows_of_any_length_that_come_and_go(
    width: int, heads: int, n_new: int
) -> None:
    use_reproducible_products()
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=3 * width - 16,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        vocab_size=120,
        initializer_range=0.2,
        max_position_embeddings=2048,
    )
    torch.manual_seed(0)
    tokenizer = load_organism("r50").tokenizer
    model = LlamaForCausalLM(config).eval()
    model.generation_config.eos_token_id = None
    loaded_model = LoadedModel(model, tokenizer, "", "cpu", fast=FastBackend(model))
    rng = random.Random(1)
    text = [rng.randrange(5, 120) for _ in range(900)]
    lengths = ((1, 1), (9, 1), (31, 1), (40, 2), (95, 1), (150, 1), (191, 9), (500, 2), (900, 20))
    # each with its own text, and one that begins as the others do
    prompts = [([rng.randrange(5, 120) for _ in range(n)], k) for n, k in lengths]
    prompts += [([*text[: n - 1], 7], k) for n, k in lengths]

    def decoded(indices: Sequence[int], max_rows: int) -> list[Any]:
        rows = [Decoding(*prompts[i], n_alternatives=3) for i in indices]
        for row in rows:
            row.max_new_tokens = n_new // row.max_new_tokens
        generate(loaded_model, open_reader(loaded_model, max_rows), rows, TokenTexts(tokenizer))
        return [(row.generated_ids, row.tokens) for row in rows]

    alone = [decoded([i], 4)[0] for i in range(len(prompts))]
    for max_rows in (4, 8, 32):
        for _ in range(2):
            indices = rng.sample(range(len(prompts)), len(prompts))
            if max_rows == 32:
                indices.sort(key=lambda i: prompts[i][0])
            assert decoded(indices, max_rows) == [alone[i] for i in indices]


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["fast", "hooks"])
def test_a_patched_number_does_not_depend_on_its_batch(backend: str) -> None:
    ref = ModelRef("organism", "r50", form="continuation")
    model = open_organism(ref, backend=backend)
    requests = patched_rows(model, ref, 4)
    assert_invariant(model, requests if backend == "fast" else requests[:24])
    # nor on what was computed before: the residuals of a text are remembered
    again = open_organism(ref, backend=backend)
    assert [contents(r) for r in again.send_batch(requests[::-1])][::-1] == [
        contents(r) for r in model.send_batch(requests)
    ]


@pytest.mark.soak
def test_a_vector_does_not_depend_on_its_batch() -> None:
    ref = ModelRef("embedder", "all-MiniLM-L6-v2")
    texts = [*TEXTS[:30], *(" ".join(TEXTS[i : i + 8]) for i in range(8))]
    assert_invariant(open_embedder(ref), [Embed(ref, (text,)) for text in texts])
