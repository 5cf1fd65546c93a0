"""How a run's model is called where there is no room for its whole name."""

from __future__ import annotations

import pytest

from cotlab.store.recorded_models import captioned_model_name, short_model_name


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("none (recorded chains of Qwen/Qwen2-7B)", "none (recorded chains of Qwen/Qwen2-7B)"),
        ("openai_compat/meta-llama/Llama-3-8B", "meta-llama/Llama-3-8B"),
        ("local//models/team/alpha", "alpha"),
        ("local/./alpha/", "alpha"),
        ("local/C:\\models\\alpha", "alpha"),
        ("local//", "/"),
        ("organism/r100", "r100"),
        ("echo", "echo"),
    ],
)
def test_a_heading_names_the_model_and_of_recorded_chains_their_writer(
    model: str, short: str
) -> None:
    assert short_model_name(model) == short


@pytest.mark.parametrize(
    ("model", "captioned"),
    [
        ("none (recorded chains of Qwen/Qwen2-7B)", "none (recorded chains of Qwen/Qwen2-7B)"),
        ("openai_compat/meta-llama/Llama-3-8B", "openai_compat/meta-llama/Llama-3-8B"),
        ("local//models/team/alpha", "local/alpha"),
        ("organism/r100", "organism/r100"),
        ("echo", "echo"),
    ],
)
def test_a_caption_names_the_provider_and_no_folder(model: str, captioned: str) -> None:
    assert captioned_model_name(model) == captioned
