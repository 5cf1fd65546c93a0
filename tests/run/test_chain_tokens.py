"""The limit of the output tokens of a chain: shown with its money, and within the context."""

from __future__ import annotations

from typing import Any

import pytest

from cotlab.cli.screen import print_dry_run
from cotlab.core.errors import ConfigError
from cotlab.run.config import read_config
from cotlab.run.dryrun import RequestCount
from cotlab.run.launch import dry_run, load_configured_suite

OWN_CHAINS = {
    "task_suite": "wordproblems",
    "provider": "openai",
    "model": "gpt-4.1",
    "chain": "own",
    "limit": 5,
}


def counted(**options: Any) -> RequestCount:
    config = read_config({**OWN_CHAINS, **options})
    return dry_run(config, load_configured_suite(config)[0])[1]


def test_the_dry_run_shows_the_limit_and_what_it_reserves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = counted(chain_tokens=512)
    # The model is asked once an item for its chain, at $8 a million output tokens.
    assert count.n_chain_requests == 5
    assert 5 * 512 * 8 <= count.max_chain_cost_micro < count.max_cost_micro
    print_dry_run(5, count, [])
    line = f"512 output tokens (--chain-tokens): ${count.max_chain_cost_micro / 1e6:.4f} of that."
    assert line in capsys.readouterr().out


def test_a_limit_above_the_context_of_the_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="--chain-tokens 9000: .* context of 8,192 tokens"):
        counted(model="gpt-4", chain_tokens=9_000)
    assert counted(model="gpt-4", chain_tokens=512).chain_tokens == 512
