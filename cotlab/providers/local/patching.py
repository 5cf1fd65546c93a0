"""Answer patching requests: rows of one text are merged and packed into batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from cotlab.core.errors import Unsupported
from cotlab.core.keys import derive_seed
from cotlab.core.requests import Complete, Patched, Source
from cotlab.providers.local.backend import Backend, PackShape, PatchRow
from cotlab.providers.local.load import LoadedModel
from cotlab.providers.local.render import encode, encode_with_answers, filler_id, render_prompt

MAX_CACHE_BYTES = 1 << 30
"""Bytes of residuals that are cached; the runs that one text needs at once may be more."""
Pack = TypeVar("Pack")
MAX_CACHED_ENCODINGS = 1024
"""Texts whose token ids are cached: one text is the source of many patches."""
MAX_CUDA_TOKENS = 65_536
"""Most tokens of a batch on a GPU."""
MAX_CPU_STATE_NUMBERS = 98_304
"""Numbers of a layer's states (tokens × width) that fit into a CPU core's cache, where a batch is
fastest."""


class ResidualCache:
    """Residuals of texts, least recently used evicted first.

    A text is also a hit if it is the beginning of a longer one, where ``shares_prefixes``.
    """

    def __init__(
        self, backend: Backend, max_bytes: int = MAX_CACHE_BYTES, *, shares_prefixes: bool = True
    ) -> None:
        self._backend, self._max_bytes, self._bytes = backend, max_bytes, 0
        self._shares_prefixes = shares_prefixes
        self._entries: OrderedDict[tuple[int, ...], tuple[tuple[int, ...], torch.Tensor]] = (
            OrderedDict()
        )

    def residuals(self, ids: Sequence[int], n_answer: int = 0) -> torch.Tensor:
        """Return the residuals of ``ids``: tensor (layers, tokens, width).

        The last ``n_answer`` ids are an answer; the entry is cached under the text before it, where
        prefixes are shared.
        """
        token_ids = tuple(ids)
        text_ids = token_ids[: len(token_ids) - n_answer] if self._shares_prefixes else token_ids
        entry = self._entries.get(text_ids)
        if entry is None or entry[0][: len(token_ids)] != token_ids:
            entry = token_ids, self._backend.residuals(token_ids)
            self._remove_entry(text_ids)
            self._entries[text_ids] = entry
            self._bytes += _n_bytes(entry[1])
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                self._remove_entry(next(iter(self._entries)))
        else:
            self._entries.move_to_end(text_ids)
        return entry[1][:, : len(token_ids)]

    def _remove_entry(self, text_ids: tuple[int, ...]) -> None:
        entry = self._entries.pop(text_ids, None)
        self._bytes -= _n_bytes(entry[1]) if entry else 0


@dataclass(slots=True)
class _PatchJob:
    """All rows of one text and answer, and the states that they take."""

    ids: list[int]
    n_answer: int
    clean_states: torch.Tensor
    states: list[torch.Tensor] = field(default_factory=list)
    n_columns: int = 0
    rows: list[tuple[int, int, PatchRow]] = field(default_factory=list)
    columns_by_source: dict[Source, tuple[int, int]] = field(default_factory=dict)
    """Of each source but noise: the bank's first column of it, and how many it has."""

    def add_states(self, states: torch.Tensor) -> int:
        """Append states to the bank and return their first column."""
        self.states.append(states)
        self.n_columns += states.shape[1]
        return self.n_columns - states.shape[1]


class _RowPack(NamedTuple):
    """Rows that run together, and the states that they take."""

    job: _PatchJob
    source_states: torch.Tensor
    rows: list[tuple[int, int, PatchRow]]


class Patcher:
    """Answers ``Patched`` requests of one model by a backend.

    With several ``workers``, packs run in threads of one core each, else in torch's own threads.
    On an accelerator, whose products round differently for another number of rows, what is computed
    together follows from the request alone: no rows or states of another one.
    """

    def __init__(
        self,
        loaded_model: LoadedModel,
        backend: Backend,
        n_workers: int = 1,
        *,
        joins_requests: bool | None = None,
    ) -> None:
        self._loaded_model, self._backend, self._workers = loaded_model, backend, n_workers
        self._joins_requests = (
            loaded_model.device == "cpu" if joins_requests is None else joins_requests
        )
        self._max_pack_tokens = None if self._joins_requests else stable_budget(loaded_model.model)
        self._residual_cache = ResidualCache(backend, shares_prefixes=self._joins_requests)
        self.n_layers = backend.n_layers
        self._encode = lru_cache(maxsize=MAX_CACHED_ENCODINGS)(partial(encode, loaded_model))

    def answer_requests(self, requests: Sequence[Patched]) -> list[list[float] | Unsupported]:
        """Return each request's log-probabilities in nats, or the error that prevents them."""
        job_by_key: dict[tuple[str, str, int], _PatchJob | Unsupported] = {}
        replies: list[list[float] | Unsupported] = []
        for i, request in enumerate(requests):
            prompt = render_prompt(self._loaded_model, request)
            key = prompt, request.answer, 0 if self._joins_requests else i
            try:
                if key not in job_by_key:
                    job_by_key[key] = self._make_job(prompt, request.answer)
                job = job_by_key[key]
                if isinstance(job, Unsupported):
                    raise job
                job.rows += [(i, k, row) for k, row in enumerate(self._patch_rows(request, job))]
                replies.append([0.0] * len(request.rows))
            except Unsupported as error:
                job_by_key.setdefault(key, error)
                replies.append(error)
        packs = [
            pack
            for job in job_by_key.values()
            if isinstance(job, _PatchJob)
            for pack in self._make_packs(job)
        ]
        for pack, pack_log_probs in zip(
            packs, map_in_threads(self._pack_log_probs, packs, self._workers), strict=True
        ):
            for (i, k, _), log_prob in zip(pack.rows, pack_log_probs, strict=True):
                log_probs = replies[i]
                assert isinstance(log_probs, list)
                log_probs[k] = log_prob
        return replies

    def _make_job(self, text: str, answer: str) -> _PatchJob:
        (answer_ids,) = encode_with_answers(self._loaded_model, text, [answer])
        if self._encode(text) != answer_ids.ids[: -answer_ids.n_answer]:
            raise Unsupported(
                "the answer's first token merges with the text before it, so positions would not"
                " hold"
            )
        return _PatchJob(
            answer_ids.ids,
            answer_ids.n_answer,
            self._residual_cache.residuals(answer_ids.ids, answer_ids.n_answer),
        )

    def _patch_rows(self, request: Patched, job: _PatchJob) -> Iterator[PatchRow]:
        source, n_text_tokens = request.source, len(job.ids) - job.n_answer
        first_column = n_columns = 0
        if source.kind in ("noise", "mean") and not (
            source.at and 0 <= min(source.at) <= max(source.at) < n_text_tokens
        ):
            raise Unsupported(
                "the positions that a source draws on lie outside its text, or there are none"
            )
        if source.kind != "noise":
            if source not in job.columns_by_source:
                states = self._source_states(request, source, job)
                job.columns_by_source[source] = job.add_states(states), states.shape[1]
            first_column, n_columns = job.columns_by_source[source]
        for k, row in enumerate(request.rows):
            if row.at and not 0 <= min(row.at) <= max(row.at) < n_text_tokens:
                raise Unsupported("a row patches positions of the answer, or beyond the text")
            if any(not 0 <= layer < self._backend.n_layers for layer in row.layers):
                raise Unsupported(
                    f"a row patches a layer that the model's {self._backend.n_layers} do not have"
                )
            if source.kind == "noise":
                noise = _gaussian_states(
                    job.clean_states[:, list(source.at)],
                    len(row.at),
                    derive_seed("noise", source.seed, k),
                )
                first_noise_column = job.add_states(noise)
                columns = tuple(range(first_noise_column, first_noise_column + len(row.at)))
            elif source.kind == "mean":
                columns = (first_column,) * len(row.at)
            else:
                if len(row.take) != len(row.at) or (
                    row.take and not 0 <= min(row.take) <= max(row.take) < n_columns
                ):
                    raise Unsupported(
                        "a row takes states from outside its source, which ends before any answer"
                    )
                columns = tuple(first_column + source_position for source_position in row.take)
            yield PatchRow(tuple(sorted({*row.layers})), row.at, columns)

    def _source_states(self, request: Patched, source: Source, job: _PatchJob) -> torch.Tensor:
        """Return the states of a source, (layers, columns, width), without any answer."""
        if source.messages:
            ids = self._encode(
                render_prompt(
                    self._loaded_model,
                    Complete(request.model, source.messages, prefix=source.prefix),
                ),
            )
        else:
            ids = job.ids[: len(job.ids) - job.n_answer]
        if source.kind == "filler":
            if not source.at or not 0 <= min(source.at) <= max(source.at) < len(ids):
                raise Unsupported("the filler's positions lie outside its text")
            filler_token_id = filler_id(self._loaded_model.tokenizer)
            filler_positions = set(source.at)
            ids = [
                filler_token_id if i in filler_positions else token for i, token in enumerate(ids)
            ]
        states = (
            self._residual_cache.residuals(ids)
            if source.messages or source.kind == "filler"
            else job.clean_states[:, : len(ids)]
        )
        return states[:, list(source.at)].mean(1, keepdim=True) if source.kind == "mean" else states

    def _make_packs(self, job: _PatchJob) -> Iterator[_RowPack]:
        source_states = torch.cat(job.states, 1) if job.states else job.clean_states[:, :0]
        n_tokens = len(job.ids)
        max_tokens = self._max_pack_tokens or token_budget(
            self._loaded_model.model, job.n_answer / n_tokens
        )
        for row_indices in pack_rows(
            [row for _, _, row in job.rows], n_tokens, job.n_answer, max_tokens, self._backend
        ):
            yield _RowPack(job, source_states, [job.rows[k] for k in row_indices])

    def _pack_log_probs(self, pack: _RowPack) -> list[float]:
        job = pack.job
        return self._backend.patched_log_probs(
            job.ids,
            job.n_answer,
            job.clean_states,
            pack.source_states,
            [row for _, _, row in pack.rows],
        )


def map_in_threads(
    run_pack: Callable[[Pack], list[float]], packs: Sequence[Pack], n_workers: int
) -> list[list[float]]:
    """Return ``run_pack`` of each pack; several workers have one torch thread each."""
    if n_workers < 2 or len(packs) < 2:
        return [run_pack(pack) for pack in packs]
    with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(run_pack, packs))


def pack_rows(
    rows: Sequence[PatchRow], n_tokens: int, n_answer: int, max_tokens: int, backend: Backend
) -> Iterator[list[int]]:
    """Yield the indices of rows that run together, each pack within ``max_tokens`` tokens.

    Rows of a pack have one shape. Within a pack, rows are sorted by their first layer.
    """
    indices_by_shape: dict[PackShape, list[int]] = {}
    for k, row in enumerate(rows):
        indices_by_shape.setdefault(backend.pack_shape(row, n_tokens, n_answer), []).append(k)
    for shape, indices in indices_by_shape.items():
        size = max(1, max_tokens // shape.row_cost)
        for start in range(0, len(indices), size):
            yield sorted(indices[start : start + size], key=lambda k: rows[k].first_layer)


def token_budget(model: Any, answer_share: float = 0.1) -> int:
    """Return the most tokens of a batch: half the free memory, and no more than is fast.

    Parameters
    ----------
    model : transformers model
    answer_share : float in [0, 1]
        Share of tokens that need logits.
    """
    config, first_weights = model.config.get_text_config(), next(model.parameters())
    mlp_size = int(getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    bytes_per_token = (
        16 * config.hidden_size + 4 * mlp_size
    ) * first_weights.element_size() + answer_share * 8 * config.vocab_size
    free_bytes = (
        torch.cuda.mem_get_info(first_weights.device)[0] if first_weights.is_cuda else _free_bytes()
    )
    max_fast_tokens = (
        MAX_CUDA_TOKENS
        if first_weights.is_cuda
        else max(1024, MAX_CPU_STATE_NUMBERS // config.hidden_size) * torch.get_num_threads()
    )
    return max(256, min(max_fast_tokens, int(free_bytes / 2 / bytes_per_token)))


def stable_budget(model: Any) -> int:
    """Return the most tokens of a batch whose size must not follow from what is free at a time.

    A power of two, and for any answer: what other processes hold rarely moves it.
    """
    return 1 << (token_budget(model, answer_share=1).bit_length() - 1)


def _free_bytes() -> int:
    try:
        text = Path("/proc/meminfo").read_text()
        return int(text.split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return 1 << 30


def _gaussian_states(states: torch.Tensor, n_columns: int, seed: int) -> torch.Tensor:
    """Return Gaussian states (layers, n, width), the same on any device.

    Each layer has the mean and standard deviation of ``states``.
    """
    float_states = states.float()
    mean, std = float_states.mean((1, 2), keepdim=True), float_states.std((1, 2), keepdim=True)
    normal_samples = torch.randn(
        states.shape[0], n_columns, states.shape[2], generator=torch.Generator().manual_seed(seed)
    )
    return (mean + std * normal_samples.to(states.device)).to(states.dtype)


def _n_bytes(states: torch.Tensor) -> int:
    return states.numel() * states.element_size()
