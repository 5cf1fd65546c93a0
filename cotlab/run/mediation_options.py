"""The options of a run about mediation and models in this process."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic_settings import NoDecode

from cotlab.core.types import DEFAULT_CONTROL, MEDIATION_SOURCES
from cotlab.run.fields import option
from cotlab.run.limit_options import LimitOptions

_mediation_option = partial(option, "mediation")


class MediationOptions(LimitOptions):
    """Fields of ``RunConfig`` about activation patching and where a local model runs."""

    source: Annotated[list[str], NoDecode] = _mediation_option(
        ["filler"],
        "Mediation: filler (default), interchange, right, mean, literal; repeatable.",
        "Sources of states",
        choices=MEDIATION_SOURCES,
        scorer_option="sources",
        hint="Where the states come from that replace the chain's. filler: the same text with dots"
        " for the chain. interchange: another item's chain. right: the run without a chain,"
        " right-aligned. mean: the mean of the question. literal: the published formula, kept for"
        " comparison; its control changes nothing.",
    )
    control: Literal["other", "own", "neutral", "total"] = _mediation_option(
        DEFAULT_CONTROL,
        "Mediation: what the chain is held against: total (default), other, own or neutral.",
        "Control",
        scorer_option="control",
        hint="What the chain's drop is held against. total: question and chain together; CMI is"
        " then the chain's share of the total effect, also where a chain needs its question. other:"
        " another item's states at the question; the published ratio, 0 where a chain needs its"
        " question. own: the source's own states there, which are no control. neutral: another"
        " item's states at dots beside the chain.",
    )
    layers: Annotated[list[str], NoDecode] = _mediation_option(
        [],
        "Mediation: a layer or a span, 3 or 0-7 (default: each, thirds, all); repeatable.",
        "Layers (empty: each, thirds, all)",
        scorer_option="layers",
        empty="3, 0-7",
    )
    donors: int = _mediation_option(
        4,
        "Mediation: other items whose runs serve as controls (default 4).",
        "Donor items for controls",
        scorer_option="donors",
        ge=2,
        le=64,
    )
    draws: int = _mediation_option(
        2,
        "Mediation: random positions drawn for each control (default 2).",
        "Random positions per donor",
        scorer_option="draws",
        ge=1,
        le=64,
    )
    subsets: int = _mediation_option(
        8,
        "Mediation: subsets, shuffles and noises of each chain (default 8).",
        "Random subsets of each chain",
        scorer_option="subsets",
        ge=1,
        le=256,
    )
    device: str = _mediation_option(
        "cpu",
        "Where a local model runs: cpu (default), cuda, cuda:1.",
        "Device",
        pattern=r"^(cpu|cuda(:\d+)?)$",  # cuda:1
        in_process_only=True,
    )
    dtype: Literal["float32", "bfloat16", "float16"] = _mediation_option(
        "float32",
        "A local model's numbers: float32 (default), bfloat16, float16.",
        "Type of numbers",
        in_process_only=True,
    )
    backend: Literal["auto", "fast", "hooks", "transformer_lens"] = _mediation_option(
        "auto",
        "How a local model is patched: auto (default), fast, hooks, transformer_lens.",
        "Patched by",
        in_process_only=True,
        scorers=("mediation",),
    )
