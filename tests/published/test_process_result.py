"""Process and result words on 300 real responses of a published study, beside that study's own
counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy import stats

from cotlab.text.keywords import KeywordCounts, count_keywords

DATA = Path(__file__).parents[3] / "shared" / "data" / "unfaithful_sdf"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/unfaithful_sdf is absent")


def test_per_response_counts_add_up_to_the_published_totals_and_ratio() -> None:
    """analysis_base_Qwen3-4B.json: 5,613 process and 5,690 result words, process_ratio
    0.9864674868189807."""
    told = json.loads((DATA / "analysis_base_Qwen3-4B.json").read_text("utf-8"))[
        "process_vs_result"
    ]
    total = KeywordCounts(
        sum(told["base_process_per_response"]), sum(told["base_result_per_response"])
    )
    assert total == (told["base_process"], told["base_result"]) == (5613, 5690)
    assert total.process_ratio == pytest.approx(told["process_ratio"], abs=1e-15)


def test_our_lists_count_otherwise_but_rank_the_responses_alike() -> None:
    """The study's lists are its own, so totals differ; over responses the counts go together
    (Spearman, p < 0.001)."""
    told = json.loads((DATA / "analysis_Qwen3-4B_20000docs_1epoch.json").read_text("utf-8"))[
        "process_vs_result"
    ]
    texts = json.loads((DATA / "comparison_Qwen3-4B_20000docs_1epoch.json").read_text("utf-8"))[
        "results"
    ]["base_responses"]
    ours = [count_keywords(text) for text in texts]
    assert count_keywords("\n\n".join(texts)) == (
        sum(c.n_process for c in ours),
        sum(c.n_result for c in ours),
    )
    for kind, least in (("process", 0.5), ("result", 0.2)):
        found = stats.spearmanr(
            [getattr(counts, f"n_{kind}") for counts in ours], told[f"base_{kind}_per_response"]
        )
        assert found.statistic > least and found.pvalue < 0.001
