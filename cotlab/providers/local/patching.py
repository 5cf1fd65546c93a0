"""Answer patching requests: rows of one text are merged and packed into batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete, Patched, Source
from cotlab.core.rng import derive_seed
from cotlab.providers.local.backend import Backend, PatchRow
from cotlab.providers.local.load import Loaded
from cotlab.providers.local.render import encode, encode_with_answers, filler_id, render

MAX_CACHE_BYTES = 1 << 30
"""Bytes of residuals that are cached; the runs that one text needs at once may be more."""
Pack = TypeVar("Pack")
MAX_CUDA_TOKENS = 65_536
"""Most tokens of a batch on a GPU."""
CACHED_NUMBERS = 98_304
"""Numbers of a layer's states (tokens × width) that fit into a CPU core's cache, where a batch is
fastest."""


class ResidualCache:
    """Residuals of texts, least recently used evicted first.

    A text is also found as the beginning of a longer one.
    """

    def __init__(self, backend: Backend, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._backend, self._max_bytes, self._bytes = backend, max_bytes, 0
        self._entries: OrderedDict[tuple[int, ...], tuple[tuple[int, ...], torch.Tensor]] = (
            OrderedDict()
        )

    def residuals(self, ids: Sequence[int], n_answer: int = 0) -> torch.Tensor:
        """Return the residuals of ``ids``: tensor (layers, tokens, width).

        The last ``n_answer`` ids are an answer; the entry is cached under the text before it.
        """
        tokens = tuple(ids)
        text = tokens[: len(tokens) - n_answer]
        entry = self._entries.get(text)
        if entry is None or entry[0][: len(tokens)] != tokens:
            entry = tokens, self._backend.residuals(tokens)
            self._forget(text)
            self._entries[text] = entry
            self._bytes += _bytes(entry[1])
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                self._forget(next(iter(self._entries)))
        else:
            self._entries.move_to_end(text)
        return entry[1][:, : len(tokens)]

    def _forget(self, text: tuple[int, ...]) -> None:
        entry = self._entries.pop(text, None)
        self._bytes -= _bytes(entry[1]) if entry else 0


@dataclass(slots=True)
class _Work:
    """All rows of one text and answer, and the states that they take."""

    ids: list[int]
    n_answer: int
    clean: torch.Tensor
    states: list[torch.Tensor] = field(default_factory=list)
    columns: int = 0
    rows: list[tuple[int, int, PatchRow]] = field(default_factory=list)
    known: dict[Source, tuple[int, int]] = field(default_factory=dict)
    """Of each source but noise: the bank's first column of it, and how many it has."""

    def add(self, states: torch.Tensor) -> int:
        """Append states to the bank and return their first column."""
        self.states.append(states)
        self.columns += states.shape[1]
        return self.columns - states.shape[1]


class _Pack(NamedTuple):
    """Rows that run together, and the states that they take."""

    work: _Work
    bank: torch.Tensor
    rows: list[tuple[int, int, PatchRow]]


class Patcher:
    """Answers ``Patched`` requests of one model by a backend.

    With several ``workers``, packs run in threads of one core each, else in torch's own threads.
    """

    def __init__(self, loaded: Loaded, backend: Backend, workers: int = 1) -> None:
        self._loaded, self._backend, self._workers = loaded, backend, workers
        self._runs = ResidualCache(backend)
        self.layers = backend.layers

    def answer(self, requests: Sequence[Patched]) -> list[list[float] | Unsupported]:
        """Return each request's log-probabilities in nats, or why it cannot be answered."""
        works: dict[tuple[str, str], _Work | Unsupported] = {}
        out: list[list[float] | Unsupported] = []
        for i, request in enumerate(requests):
            key = render(self._loaded, request), request.answer
            try:
                if key not in works:
                    works[key] = self._work(*key)
                work = works[key]
                if isinstance(work, Unsupported):
                    raise work
                work.rows += [(i, k, row) for k, row in enumerate(self._rows(request, work))]
                out.append([0.0] * len(request.rows))
            except Unsupported as error:
                works.setdefault(key, error)
                out.append(error)
        chosen = [
            pack for work in works.values() if isinstance(work, _Work) for pack in self._packs(work)
        ]
        for pack, numbers in zip(
            chosen, in_threads(self._numbers, chosen, self._workers), strict=True
        ):
            for (i, k, _), number in zip(pack.rows, numbers, strict=True):
                values = out[i]
                assert isinstance(values, list)
                values[k] = number
        return out

    def _work(self, text: str, answer: str) -> _Work:
        (scored,) = encode_with_answers(self._loaded, text, [answer])
        if encode(self._loaded, text) != scored.ids[: -scored.n]:
            raise Unsupported(
                "the answer's first token merges with the text before it, so positions would not"
                " hold"
            )
        return _Work(scored.ids, scored.n, self._runs.residuals(scored.ids, scored.n))

    def _rows(self, request: Patched, work: _Work) -> Iterator[PatchRow]:
        source, text = request.source, len(work.ids) - work.n_answer
        begin = width = 0
        if source.kind in ("noise", "mean") and not (
            source.at and 0 <= min(source.at) <= max(source.at) < text
        ):
            raise Unsupported(
                "the positions that a source draws on lie outside its text, or there are none"
            )
        if source.kind != "noise":
            if source not in work.known:
                states = self._states(request, source, work)
                work.known[source] = work.add(states), states.shape[1]
            begin, width = work.known[source]
        for k, row in enumerate(request.rows):
            if row.at and not 0 <= min(row.at) <= max(row.at) < text:
                raise Unsupported("a row patches positions of the answer, or beyond the text")
            if any(not 0 <= layer < self._backend.layers for layer in row.layers):
                raise Unsupported(
                    f"a row patches a layer that the model's {self._backend.layers} do not have"
                )
            if source.kind == "noise":
                noise = _noise(
                    work.clean[:, list(source.at)],
                    len(row.at),
                    derive_seed("noise", source.seed, k),
                )
                first = work.add(noise)
                columns = tuple(range(first, first + len(row.at)))
            elif source.kind == "mean":
                columns = (begin,) * len(row.at)
            else:
                if len(row.take) != len(row.at) or (
                    row.take and not 0 <= min(row.take) <= max(row.take) < width
                ):
                    raise Unsupported(
                        "a row takes states from outside its source, which ends before any answer"
                    )
                columns = tuple(begin + t for t in row.take)
            yield PatchRow(tuple(sorted({*row.layers})), row.at, columns)

    def _states(self, request: Patched, source: Source, work: _Work) -> torch.Tensor:
        """Return the states of a source, (layers, columns, width), without any answer."""
        if source.messages:
            ids = encode(
                self._loaded,
                render(
                    self._loaded, Complete(request.model, source.messages, prefix=source.prefix)
                ),
            )
        else:
            ids = work.ids[: len(work.ids) - work.n_answer]
        if source.kind == "filler":
            if not source.at or not 0 <= min(source.at) <= max(source.at) < len(ids):
                raise Unsupported("the filler's positions lie outside its text")
            dots, at = filler_id(self._loaded.tokenizer), set(source.at)
            ids = [dots if i in at else token for i, token in enumerate(ids)]
        states = (
            self._runs.residuals(ids)
            if source.messages or source.kind == "filler"
            else work.clean[:, : len(ids)]
        )
        return states[:, list(source.at)].mean(1, keepdim=True) if source.kind == "mean" else states

    def _packs(self, work: _Work) -> Iterator[_Pack]:
        bank = torch.cat(work.states, 1) if work.states else work.clean[:, :0]
        tokens = len(work.ids)
        budget = token_budget(self._loaded.model, work.n_answer / tokens)
        for chosen in pack_rows([row for _, _, row in work.rows], tokens, budget, self._backend):
            yield _Pack(work, bank, [work.rows[k] for k in chosen])

    def _numbers(self, pack: _Pack) -> list[float]:
        work = pack.work
        return self._backend.patched(
            work.ids, work.n_answer, work.clean, pack.bank, [row for _, _, row in pack.rows]
        )


def in_threads(
    work: Callable[[Pack], list[float]], packs: Sequence[Pack], workers: int
) -> list[list[float]]:
    """Return ``work`` of each pack; several workers have one torch thread each."""
    if workers < 2 or len(packs) < 2:
        return [work(pack) for pack in packs]
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(work, packs))


def pack_rows(
    rows: Sequence[PatchRow], tokens: int, budget: int, backend: Backend
) -> Iterator[list[int]]:
    """Yield the indices of rows that run together, each pack within ``budget`` tokens.

    Rows that patch through the same layers share a pack, as do those of similar cost or with as
    much
    text before the patch. Within a pack, rows are sorted by their first layer.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, row in enumerate(rows):
        groups.setdefault(row.layers if row.through else (), []).append(k)
    for layers, group in groups.items():
        weights = {k: backend.weight(rows[k], tokens) for k in group}
        group.sort(key=lambda k: (weights[k] if layers else 0, -min(rows[k].at, default=0)))
        pack: list[int] = []
        for k in group:
            if pack and (len(pack) + 1) * max(weights[k], weights[pack[0]]) > budget:
                yield sorted(pack, key=lambda k: rows[k].first)
                pack = []
            pack.append(k)
        yield sorted(pack, key=lambda k: rows[k].first)


def token_budget(model: Any, answers: float = 0.1) -> int:
    """Return the most tokens of a batch: half the free memory, and no more than is fast.

    Parameters
    ----------
    model : transformers model
    answers : float in [0, 1]
        Share of tokens that need logits.
    """
    config, weights = model.config.get_text_config(), next(model.parameters())
    wide = int(getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    each = (
        16 * config.hidden_size + 4 * wide
    ) * weights.element_size() + answers * 8 * config.vocab_size
    free = torch.cuda.mem_get_info(weights.device)[0] if weights.is_cuda else _free_bytes()
    fast = (
        MAX_CUDA_TOKENS
        if weights.is_cuda
        else max(1024, CACHED_NUMBERS // config.hidden_size) * torch.get_num_threads()
    )
    return max(256, min(fast, int(free / 2 / each)))


def _free_bytes() -> int:
    try:
        text = Path("/proc/meminfo").read_text()
        return int(text.split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return 1 << 30


def _noise(states: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    """Return Gaussian states (layers, n, width), the same on any device.

    Each layer has the mean and standard deviation of ``states``.
    """
    wide = states.float()
    mean, spread = wide.mean((1, 2), keepdim=True), wide.std((1, 2), keepdim=True)
    sampled = torch.randn(
        states.shape[0], n, states.shape[2], generator=torch.Generator().manual_seed(seed)
    )
    return (mean + spread * sampled.to(states.device)).to(states.dtype)


def _bytes(states: torch.Tensor) -> int:
    return states.numel() * states.element_size()
