"""Items of a run a second of the processor, and its generation against transformers' ``generate``.

The run is steps stated otherwise and reworded, on the organism r100. Its requests to the model are
then sent once more: by cotlab in the batches of the run, and to ``generate`` in batches of
``HF_ROWS`` of similar length, which ends a batch with its longest reply. Both decode on one thread,
in turns. Usage: ``python benchmarks/run_speed.py [items]``: 100 by default.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401 - imported here so that the run below does not pay for it
import statsmodels.stats.proportion  # noqa: F401
import transformers.models.llama.modeling_llama  # noqa: F401

from cotlab.analysis.report import report_run
from cotlab.core.requests import Complete, Response
from cotlab.core.types import ModelRef
from cotlab.providers.local.batching import single_torch_thread
from cotlab.providers.local.load import max_positions
from cotlab.providers.local.provider import LocalModel, open_organism
from cotlab.providers.local.readers import pad_left
from cotlab.providers.local.render import encode, render_prompt
from cotlab.run.config import read_config
from cotlab.run.launch import start_run
from cotlab.store.database import Store

HF_ROWS, ROUNDS = 64, 3


def run_items(items: int) -> tuple[float, list[list[Complete]]]:
    """Processor seconds of a run with its report, and the batches that its model was sent."""
    batches, send = list[list[Complete]](), LocalModel.send_batch

    def keep(model: LocalModel, requests: Sequence[Any]) -> Any:
        batches.append([request for request in requests if isinstance(request, Complete)])
        return send(model, requests)

    modes = ["corrupt", "paraphrase"]
    config = read_config(
        {"model": "r100", "task_suite": "wordproblems", "limit": items, "mode": modes}
    )
    LocalModel.send_batch = keep  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        began, store = time.process_time(), Store(Path(folder))
        report_run(store, start_run(config, store))
        took = time.process_time() - began
    LocalModel.send_batch = send  # type: ignore[method-assign]
    return took, batches


def by_cotlab(model: LocalModel, requests: Sequence[Complete]) -> list[str]:
    return [reply.text for reply in model.send_batch(requests) if isinstance(reply, Response)]


def by_transformers(model: LocalModel, requests: Sequence[Complete]) -> list[str]:
    loaded, texts = model._loaded_model, [""] * len(requests)
    prompts = [encode(loaded, render_prompt(loaded, request)) for request in requests]
    order = sorted(range(len(requests)), key=lambda i: (requests[i].max_tokens, len(prompts[i])))
    for start in range(0, len(order), HF_ROWS):
        rows = order[start : start + HF_ROWS]
        length = max(len(prompts[i]) for i in rows)
        ids, mask = pad_left([prompts[i] for i in rows], length, "cpu")
        n_new = min(max(requests[i].max_tokens for i in rows), max_positions(loaded.model) - length)
        found = loaded.model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=n_new, do_sample=False
        )
        for i, reply in zip(rows, found[:, length:].tolist(), strict=True):
            end = reply.index(1) if 1 in reply else len(reply)
            texts[i] = model._token_texts.text(reply[:end])
    return texts


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    took, batches = run_items(items)
    n_requests, model = sum(map(len, batches)), open_organism(ModelRef("organism", "r100"))
    print(f"{items} items, {n_requests} requests: {took:.1f} s, {items / took:.1f} items/s")
    found = dict[Any, list[list[str]]]()
    spent: dict[Any, list[float]] = {by_cotlab: [], by_transformers: []}
    with single_torch_thread():
        for _ in range(ROUNDS):
            for way, seconds in spent.items():
                began = time.process_time()
                found[way] = [way(model, requests) for requests in batches]
                seconds.append(time.process_time() - began)
    ratios = sorted(x / y for x, y in zip(spent[by_transformers], spent[by_cotlab], strict=True))
    print(
        f"generation {min(spent[by_cotlab]):.2f} s, transformers' generate"
        f" {min(spent[by_transformers]):.2f} s, ratio {ratios[len(ratios) // 2]:.2f}"
        f" [{ratios[0]:.2f}, {ratios[-1]:.2f}];"
        f" the same texts: {found[by_cotlab] == found[by_transformers]}"
    )


if __name__ == "__main__":
    main()
