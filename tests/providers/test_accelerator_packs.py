"""What an accelerator computes together follows from the request alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from cotlab.core.requests import Patched
from cotlab.core.types import ModelRef
from cotlab.providers.local.fast import FastBackend
from cotlab.providers.local.load import load_organism
from cotlab.providers.local.patching import Patcher, stable_budget, token_budget
from cotlab.providers.local.provider import open_organism
from tests.providers.test_batch_invariance import patched_rows

REF = ModelRef("organism", "r50", form="continuation")


class CountingBackend(FastBackend):
    """The product's backend, which notes what it is given at once."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.packs: list[Any] = []
        self.texts: list[Any] = []

    def residuals(self, ids: Sequence[int]) -> Any:
        self.texts.append(tuple(ids))
        return super().residuals(ids)

    def patched_log_probs(
        self, ids: Sequence[int], n_answer: int, clean: Any, source: Any, rows: Any
    ) -> list[float]:
        self.packs.append((tuple(ids), n_answer, source.shape, tuple(rows)))
        return super().patched_log_probs(ids, n_answer, clean, source, rows)


@pytest.mark.parametrize("joins_requests", [False, True])
def test_no_pack_and_no_text_follows_from_what_else_is_asked(joins_requests: bool) -> None:
    organism = open_organism(REF, backend="fast")
    requests = [r for r in patched_rows(organism, REF, 4) if isinstance(r, Patched)][:12]
    loaded_model = load_organism("r50")

    def computed(batches: Sequence[Sequence[Patched]]) -> tuple[Any, Any, Any]:
        backend = CountingBackend(loaded_model.model)
        patcher = Patcher(loaded_model, backend, joins_requests=joins_requests)
        replies = [reply for batch in batches for reply in patcher.answer_requests(batch)]
        return Counter(backend.packs), set(backend.texts), replies

    packs, texts, replies = computed([[request] for request in requests])
    joined_packs, joined_texts, joined_replies = computed([requests])
    assert joined_replies == replies
    if joins_requests:  # on a CPU, whose sums are the same in any company, fewer packs are faster
        assert joined_packs.total() < packs.total()
    else:
        assert joined_packs == packs and joined_texts == texts


def test_the_size_of_a_pack_does_not_follow_what_is_free_to_the_byte() -> None:
    model = load_organism("r50").model
    budget = stable_budget(model)
    assert budget & (budget - 1) == 0
    assert token_budget(model, answer_share=1) / 2 < budget <= token_budget(model, answer_share=1)
