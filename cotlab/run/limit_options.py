"""The options of a run that limit its requests, its time and its money."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from annotated_types import Ge
from pydantic import AliasChoices
from pydantic_settings import BaseSettings

from cotlab.run.fields import ALL_COMMANDS, RUN_AND_RESUME, option

_limits_option = partial(option, "limits", commands=RUN_AND_RESUME)
_sampling_option = partial(option, "sampling")


class LimitOptions(BaseSettings):
    """Fields of ``RunConfig`` about requests, time and money."""

    max_concurrent: int = _limits_option(
        10, "Requests in flight at once (default 10).", "Requests in flight", ge=1, le=256
    )
    max_cost: float = _limits_option(
        10.0,
        "Cap on the spend in US dollars (default 10.0).",
        "Cap on the spend, US dollars",
        ge=0,
        allow_inf_nan=False,
        validation_alias=AliasChoices("max_cost", "COTLAB_MAX_COST", "FAITHCHECK_MAX_COST"),
    )
    max_requests_per_minute: Annotated[int, Ge(1)] | Literal["auto", "default"] | None = (
        _limits_option(
            "default",
            "Rate limit (default: 60 to a vendor, none at a private address; auto: the server's).",
            "Requests a minute",
            hint="A number, default or auto. default: 60 to a vendor, no limit for a server on this"
            " machine or in a private network. auto: as many as the server's replies allow; where"
            " they do not say it, the default.",
        )
    )
    max_tokens_per_minute: int | None = _limits_option(
        None, "Rate limit in tokens, input and output (default: none).", "Tokens a minute", ge=1
    )
    max_tries: int = _limits_option(
        10,
        "Tries of a request that fails (default 10); a 429 does not count.",
        "Tries of a request that fails",
        ge=1,
        le=100,
    )
    timeout_s: float = _limits_option(
        120.0,
        "Seconds to wait for a reply (default 120).",
        "Seconds to wait for a reply",
        step=1.0,
        gt=0,
        le=86_400,
        allow_inf_nan=False,
    )
    probe: Literal["auto", "always", "never"] = _limits_option(
        "auto",
        "Check what a server does with this plan's requests before the first one: auto (default;"
        " a server that --base-url names), always (vendors too), never.",
        "Check the server first",
        hint="At most four small requests: whether the server continues a prefix, gives"
        " log-probabilities, cuts long prompts, and how it returns reasoning. auto: a server that"
        " you name. always: a vendor's too.",
    )
    batch: bool = _sampling_option(
        False,
        "Use the vendor's batch interface: half the price, an answer within a day.",
        "Use the vendor's batch interface",
        commands=ALL_COMMANDS,
        hint="OpenAI and Anthropic: half the price, and an answer within a day. The run may be"
        " stopped and resumed meanwhile.",
    )
    prices: str | None = _limits_option(
        None,
        "YAML file of prices: MODEL: {input: 0.5, output: 1.5}, dollars a million.",
        "File of prices (YAML)",
        commands=ALL_COMMANDS,
        path="path",
    )
    fail_on_error: float | None = _limits_option(
        None,
        "Exit with code 3 past this share (below 1) or count of failed items.",
        "Failed items that fail the run",
        ge=0,
    )
