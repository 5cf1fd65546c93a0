"""The model of a run that asks none: whose chains it reads, as the items of its suite say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

RECORDED_CHAINS = "none (recorded chains"
"""Start of the model's name of a run that asks none and reads the chains that its suite holds; the
generator of the chains follows where the items name it, in their meta."""
GENERATOR_KEYS = ("generator", "target_model", "model")
"""Fields of an item's metadata that name the model that wrote its chain; the first one holds."""
CHAIN_READERS = (
    *("flags", "text_features", "verification", "process_reward", "critic", "rubric"),
    *("tool_trace", "ratings"),
)
"""Scorers that read a suite's chains and never ask the run's own model."""
ECHO_MODEL = "echo/echo"
"""Model of runs that may ask none."""
_OFFLINE_PROFILE = '"profile":"offline"'
_KEYS_SQL = ", ".join(f"json_extract_string(meta, '$.{key}')" for key in GENERATOR_KEYS)
_GENERATORS_SQL = f"""
    SELECT suite, count(DISTINCT name), any_value(name) FROM (
        SELECT suite,
               left(regexp_replace(coalesce({_KEYS_SQL}), '[[:cntrl:]]', ' ', 'g'), 80) AS name
        FROM items WHERE list_contains(?, suite))
    WHERE name <> '' GROUP BY suite
    """


def with_recorded_models(connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of runs in which those that ask no model have the generator of their chains."""
    suites = sorted(set(runs["suite"][runs["model"] == ECHO_MODEL]))
    rows = connection.execute(_GENERATORS_SQL, [suites]).fetchall() if suites else []
    generators = {
        suite: name if n_names == 1 else f"{n_names} models" for suite, n_names, name in rows
    }

    def model_of(model: str, suite: str, plan: str) -> str:
        generator = generators.get(suite)
        if model != ECHO_MODEL or not (
            _OFFLINE_PROFILE in plan or (generator and _reads_chains(plan))
        ):
            return model
        return f"{RECORDED_CHAINS}{f' of {generator}' if generator else ''})"

    return runs.assign(model=list(map(model_of, runs["model"], runs["suite"], runs["plan"])))


def _reads_chains(plan: str) -> bool:
    """Return whether each scorer of a plan reads the chains of the suite."""
    scorers = json.loads(plan).get("scorers")
    return scorers is not None and all(
        scorer["name"] in CHAIN_READERS
        and scorer.get("params", {}).get("chain") in (None, "reference")
        for scorer in scorers
    )


def short_model_name(model: str) -> str:
    """Return how a run's model is called in headings and figures.

    It is the name without the provider, of a folder's path its last part; recorded chains, which no
    model of the run wrote, keep their whole text.
    """
    name = model.partition("/")[2]
    if not name or model.startswith(RECORDED_CHAINS):
        return model
    is_path = name.startswith(("/", "./", "../", "~")) or "\\" in name
    last_part = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return (last_part if is_path else "") or name


def captioned_model_name(model: str) -> str:
    """Return how captions name a run's model: with the provider, a folder by its last part."""
    if "/" not in model or model.startswith(RECORDED_CHAINS):
        return model
    return f"{model.partition('/')[0]}/{short_model_name(model)}"
