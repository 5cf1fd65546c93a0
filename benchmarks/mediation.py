"""Patched rows a second against one forward a patch, same model, items and numbers; and the share
of the FLOP bound.

Prints how far the numbers of the batched engine and of one hooked forward a row lie apart, in
float64, where only another computation would show, and in float32, beside how far float32 alone
carries each of them off; and on one thread and on two rows/s of both and their ratio. Then, on a
Llama of d = 1024 with random weights: achieved over peak floating-point operations, the peak being
that of a matrix product on the same machine in the same run. Where there is a CUDA device,
``--cuda`` measures a Llama of 0.5B shapes there.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from transformers import LlamaConfig, LlamaForCausalLM

from cotlab.core.types import ModelRef
from cotlab.providers.local.backend import PatchRow
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.patching import map_in_threads, pack_rows, token_budget
from cotlab.providers.local.provider import open_organism
from cotlab.providers.local.render import encode
from cotlab.suites.wordproblems import make_suite
from cotlab.text.prompts.chain import FINAL_ANSWER_CUE, chain_text

Case = tuple[list[int], torch.Tensor, torch.Tensor, list[PatchRow]]


@torch.inference_mode()
def one_by_one(model: Any, ids: list[int], bank: torch.Tensor, rows: list[PatchRow]) -> list[float]:
    """What everybody writes first: one whole forward a patch, the states put in by hooks."""
    out = []
    for row in rows:

        def put(layer: int, row: PatchRow = row) -> Any:
            def hook(module: Any, args: Any, kwargs: Any) -> Any:
                state = (args[0] if args else kwargs["hidden_states"]).clone()
                state[0, list(row.positions)] = bank[layer, list(row.columns)]
                return (
                    ((state, *args[1:]), kwargs)
                    if args
                    else (args, {**kwargs, "hidden_states": state})
                )

            return hook

        handles = [
            model.model.layers[layer].register_forward_pre_hook(put(layer), with_kwargs=True)
            for layer in row.layers
        ]
        logp = model(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
        out.append(float(logp[-2, ids[-1]]))
        for handle in handles:
            handle.remove()
    return out


def organism_cases(name: str, n: int) -> tuple[Any, list[Case]]:
    loaded = open_organism(ModelRef("organism", name, form="continuation"))._loaded_model
    fast, cases, rng = FastBackend(loaded.model), [], random.Random(1)
    for item in make_suite(n, seed=5).items:
        question, chain = (
            f"{loaded.prompt_prefix}Q: {item.question}\n",
            chain_text([s.text for s in item.steps]),
        )
        start, text = (
            len(encode(loaded, question)),
            encode(loaded, question + chain + FINAL_ANSWER_CUE),
        )
        ids = [*text, 95]
        length = len(encode(loaded, question + chain)) - start
        question_at = range(len(encode(loaded, f"{loaded.prompt_prefix}Q:")), start - 1)
        cases.append((ids, *_rows(fast, ids, range(start, start + length), question_at, rng)))
    return loaded.model, cases


def _rows(
    fast: FastBackend, ids: list[int], chain: range, question: range, rng: random.Random
) -> Any:
    """As the scorer's defaults: six spans, subsets and shuffles of the chain, and controls in the
    question."""
    dots = [17 if i in chain else t for i, t in enumerate(ids)]
    clean, bank = fast.residuals(ids), fast.residuals(dots)
    every = tuple(range(fast.n_layers))
    spans = [(layer,) for layer in every] + [every[1:3], every]
    rows = [PatchRow(span, tuple(chain), tuple(chain)) for span in spans]
    for _ in range(8):
        for share in (0.8, 0.6, 0.4):
            at = tuple(sorted(rng.sample(chain, max(1, round(share * len(chain))))))
            rows.append(PatchRow(every, at, at))
        rows += [
            PatchRow(every, tuple(chain), tuple(rng.sample(chain, len(chain)))) for _ in range(3)
        ]
    for _ in range(8):
        at = tuple(sorted(rng.sample(question, min(len(chain), len(question)))))
        rows += [PatchRow(span, at, tuple(rng.sample(at, len(at)))) for span in spans]
        rows += [PatchRow(every, at[: len(at) // 2], at[: len(at) // 2]) for _ in range(5)]
    return clean, bank, rows


def batched(fast: FastBackend, model: Any, cases: list[Case], workers: int) -> list[list[float]]:
    """Every item's rows, packed as the provider packs them, in as many threads as it would use."""
    budget = token_budget(model)
    chosen = [
        (n, pack)
        for n, (ids, _, _, rows) in enumerate(cases)
        for pack in pack_rows(rows, len(ids), 1, budget, fast)
    ]

    def numbers(work: tuple[int, list[int]]) -> list[float]:
        ids, clean, bank, rows = cases[work[0]]
        return fast.patched_log_probs(ids, 1, clean, bank, [rows[k] for k in work[1]])

    out = [[0.0] * len(rows) for *_, rows in cases]
    for (n, pack), found in zip(chosen, map_in_threads(numbers, chosen, workers), strict=True):
        for k, number in zip(pack, found, strict=True):
            out[n][k] = number
    return out


def in_float64(model: Any) -> Any:
    """The same weights in float64, and the norms too, which the library puts through float32
    whatever they are given."""
    wide = copy.deepcopy(model).double()
    for module in wide.modules():
        if hasattr(module, "variance_epsilon"):
            shape, eps = module.weight.shape, module.variance_epsilon
            module.forward = partial(
                F.rms_norm, normalized_shape=shape, weight=module.weight, eps=eps
            )
    return wide


def same(model: Any, cases: list[Case]) -> None:
    """Whether both ways compute the same, over all rows: in float64 every digit but the last few
    must agree."""
    torch.set_num_threads(1)
    wide = in_float64(model)
    fast = FastBackend(wide)
    wide_cases = [(ids, fast.residuals(ids), bank.double(), rows) for ids, _, bank, rows in cases]
    plain, quick = every_row(model, cases), flat(batched(FastBackend(model), model, cases, 1))
    exact, exact_quick = every_row(wide, wide_cases), flat(batched(fast, wide, wide_cases, 1))
    print(f"  in float64 the two ways lie {apart(exact_quick, exact)} apart")
    print(
        f"  in float32 {apart(quick, plain)}; from float64 one by one {apart(plain, exact)},"
        f" batched {apart(quick, exact)}"
    )


def every_row(model: Any, cases: list[Case]) -> list[float]:
    return flat([one_by_one(model, ids, bank, rows) for ids, _, bank, rows in cases])


def flat(numbers: list[list[float]]) -> list[float]:
    return [number for row in numbers for number in row]


def apart(ones: list[float], others: list[float]) -> str:
    gaps = [abs(x - y) for x, y in zip(ones, others, strict=True)]
    rms = (sum(gap * gap for gap in gaps) / len(gaps)) ** 0.5
    return (
        f"at most {max(gaps):.1e} nat (rms {rms:.1e}, {sum(gap > 1e-5 for gap in gaps)} of"
        f" {len(gaps)} rows above 1e-5)"
    )


def compare(workers: int, model: Any, cases: list[Case]) -> None:
    """The plain way has as many threads as torch gives it; the packed one has workers of one thread
    each."""
    fast, best, slow = FastBackend(model), [], []
    torch.set_num_threads(1)
    batched(fast, model, cases[:1], workers)
    one_by_one(model, cases[0][0], cases[0][2], cases[0][3][:5])
    for _ in range(3):
        torch.set_num_threads(1)
        a = time.perf_counter()
        quick = batched(fast, model, cases, workers)
        b = time.perf_counter()
        torch.set_num_threads(workers)
        plain = [one_by_one(model, ids, bank, rows[::8]) for ids, _, bank, rows in cases]
        c = time.perf_counter()
        best.append(sum(map(len, quick)) / (b - a))
        slow.append(sum(map(len, plain)) / (c - b))
    ratios = sorted(x / y for x, y in zip(best, slow, strict=True))
    print(
        f"  {workers} thread(s): {sorted(best)[1]:.0f} rows/s batched, {sorted(slow)[1]:.0f} one by"
        f" one, ratio {ratios[1]:.2f} [{ratios[0]:.2f}, {ratios[2]:.2f}]"
    )


def bound(
    device: str,
    dtype: torch.dtype,
    width: int,
    inner: int,
    layers: int,
    heads: int,
    kv: int,
    vocabulary: int,
) -> None:
    """The share of the machine's own peak on patches of layer 0 at a chain of 128 in a text of 256:
    nothing can be skipped."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        max_position_embeddings=512,
    )
    model = LlamaForCausalLM(config).eval().to(device, dtype)
    fast, rng = FastBackend(model), random.Random(2)
    ids = [rng.randrange(vocabulary) for _ in range(256)]
    other = [rng.randrange(vocabulary) for _ in range(256)]
    clean, bank = fast.residuals(ids), fast.residuals(other)
    rows = [PatchRow((0,), tuple(range(100, 228)), tuple(range(100, 228)))] * max(
        8, token_budget(model) // 156
    )
    sync = torch.cuda.synchronize if device == "cuda" else bool
    size = 8192 if device == "cuda" else 2048
    left = torch.randn(size, width, device=device, dtype=dtype)
    right = torch.randn(width, 4 * width, device=device, dtype=dtype)

    def timed(work: Any) -> float:
        work(), sync()
        a = time.perf_counter()
        for _ in range(5):
            work()
        sync()
        return (time.perf_counter() - a) / 5

    peak = 2 * size * width * 4 * width / timed(lambda: left @ right)
    took = timed(lambda: fast.patched_log_probs(ids, 1, clean, bank, rows))
    head = width // heads
    each = 2 * width * (heads * head * 2 + kv * head * 2) + 6 * width * inner
    attention = (
        4 * heads * head * 156 * 178
    )  # queries after the prefix, keys up to them, on average
    flops = len(rows) * (
        (layers - 1) * (156 * each + attention)
        + 156 * 4 * width * kv * head
        + 2 * width * vocabulary
    )
    print(
        f"{device} {dtype}, d = {width}, {layers} layers: {len(rows) / took:.1f} rows/s,"
        f" {flops / took / 1e9:.0f} GFLOP/s of {peak / 1e9:.0f} for a plain matrix product:"
        f" {flops / took / peak:.2f} of the bound"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--cuda", action="store_true")
    told = parser.parse_args()
    if told.cuda:
        for dtype in (torch.float32, torch.bfloat16):
            bound("cuda", dtype, 896, 4864, 24, 14, 2, 151_936)
        return
    for name in ("faithful-a", "r100"):
        model, cases = organism_cases(name, told.items)
        print(
            f"{name}, d = {model.config.hidden_size}, {sum(len(rows) for *_, rows in cases)} rows"
            f" of {len(cases)} items"
        )
        same(model, cases)
        for threads in (1, 2):
            compare(threads, model, cases)
    bound("cpu", torch.float32, 1024, 2816, 6, 16, 4, 32_000)


if __name__ == "__main__":
    main()
