"""What each family of models takes. Read before a request: what a model does not take is not sent.

A model that no row knows is treated as the newest of its vendor, which takes least. Sources, read
in November 2026:

- OpenAI: the reference of chat completions ("stop: not supported with latest reasoning models"),
the guide to the latest
  model ("parameter compatibility": gpt-5.1, 5.2 and 5.4 take temperature and logprobs with
  reasoning effort none, which is their default), the 400s that users of gpt-5, gpt-5.6 and the
  o-series report.
- Anthropic: the migration guides (prefill is a 400 from 4.6 on, temperature from 4.7 on, thinking
is on by default from 5
  on), the 400 "each stop sequence must contain non-whitespace"; no model gives log-probabilities or
  takes a seed.
- Google: "What's new in Gemini 3.6" (temperature is ignored from 3.5 flash-lite on, and an error
later), the thinking guide
  (2.5 flash-lite does not think by default), the 400 "Logprobs is not enabled for
  models/gemini-2.5-flash".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from cotlab.core.errors import Unsupported
from cotlab.core.requests import Complete

THINKING = 8_192
"""Output tokens allowed beyond the visible reply to a model that reasons unseen; they are billed,
so they are reserved too."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of models.

    ``temperature`` is the highest it takes (None: none at all), ``logprobs`` how many alternatives
    a token may list, ``headroom`` how many output tokens it may use for reasoning on top of those
    asked for, ``effort`` the reasoning effort that it has to be sent for the rest of its row to
    hold, ``blank_stop`` whether a stop may be white space only.
    """

    name: str
    temperature: float | None = 2.0
    seed: bool = True
    stop: bool = True
    prefill: bool = False
    logprobs: int = 20
    batch: bool = False
    headroom: int = 0
    effort: str = ""
    blank_stop: bool = True


_CHAT = Family("gpt-3.5, gpt-4 and gpt-5-chat", batch=True)
_REASONING = replace(
    _CHAT, name="o-series and gpt-5", temperature=None, stop=False, logprobs=0, headroom=THINKING
)
_CLAUDE = Family(
    "claude 5 and later",
    None,
    seed=False,
    logprobs=0,
    batch=True,
    headroom=THINKING,
    blank_stop=False,
)
_GEMINI = Family("gemini 3.5 flash-lite, 3.6 and later", None, logprobs=0, headroom=THINKING)

_TABLE: dict[str, tuple[tuple[str, Family], ...]] = {
    "openai": (
        (r"gpt-(3\.5|4)|chatgpt-4|gpt-5-chat", _CHAT),
        # These do not reason unless told to, and take temperature and logprobs only then
        # ("parameter compatibility").
        (
            r"gpt-5\.[124](-mini|-nano)?(-\d{4}-\d\d-\d\d)?(:|$)",
            replace(
                _CHAT, name="gpt-5.1, 5.2 and 5.4 without reasoning", stop=False, effort="none"
            ),
        ),
        (r"o\d|gpt-5", _REASONING),
        (r"", replace(_REASONING, name="gpt-6 and later", seed=False)),
    ),
    "anthropic": (
        (
            r"claude-([123]|instant|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)",
            replace(_CLAUDE, name="claude up to 4.5", temperature=1.0, prefill=True, headroom=0),
        ),
        (
            r"claude-(opus|sonnet)-4-6",
            replace(_CLAUDE, name="claude 4.6", temperature=1.0, headroom=0),
        ),
        (r"claude-opus-4-[78]", replace(_CLAUDE, name="claude 4.7 and 4.8", headroom=0)),
        (r"", _CLAUDE),
    ),
    "google": (
        (r"gemini-1|gemma", Family("gemini 1 and gemma", logprobs=0)),
        (r"gemini-2\.0", Family("gemini 2.0")),
        (r"gemini-2\.5-flash-lite", Family("gemini 2.5 flash-lite", logprobs=0)),
        (
            r"gemini-(2\.5|3-|3\.1|3\.5-flash(?!-lite))",
            replace(_GEMINI, name="gemini 2.5 to 3.5", temperature=2.0),
        ),
        (r"", _GEMINI),
    ),
    "openai_compat": ((r"", Family("any", prefill=True)),),
}
"""Rows in order; the first whose pattern the model's name begins with holds."""
_OTHER_FAMILY = Family("not a vendor's", prefill=True)


def family_of(provider: str, model: str) -> Family:
    """What the model ``model`` of ``provider`` takes. Fine-tuned and path-like names count as their base model."""
    name = re.sub(r"^(ft:|models/)", "", model.lower())
    return next(
        (family for pattern, family in _TABLE.get(provider, ()) if re.match(pattern, name)),
        _OTHER_FAMILY,
    )


class SupportedParams(NamedTuple):
    """What of a request a model takes; ``not_sent`` names what it was asked for besides, sorted."""

    max_tokens: int
    temperature: float | None
    seed: int | None
    stop: tuple[str, ...]
    top_logprobs: int
    not_sent: tuple[str, ...]


def supported_params(request: Complete, family: Family) -> SupportedParams:
    """The part of ``request`` that the family takes. Each draw has a seed of its own.

    Raises
    ------
    Unsupported
        If the temperature is above the family's, or the request begins the model's own turn where
        the family rejects that.
    """
    if family.temperature is not None and request.temperature > family.temperature:
        raise Unsupported(
            f"{request.model} takes a temperature up to {family.temperature:g}, not"
            f" {request.temperature:g}"
        )
    if request.prefix and not family.prefill:
        raise Unsupported(
            f"{request.model} ({family.name}) does not go on from the start of its own turn"
        )
    stop = tuple(s for s in request.stop if family.stop and (family.blank_stop or s.strip()))
    top_logprobs = min(request.top_logprobs, family.logprobs)
    dropped = {
        "temperature": family.temperature is None,
        "seed": request.seed is not None and not family.seed,
        "stop": stop != request.stop,
        "top_logprobs": request.top_logprobs > 0 and not top_logprobs,
    }
    return SupportedParams(
        request.max_tokens + family.headroom,
        request.temperature if family.temperature is not None else None,
        request.seed + request.sample if request.seed is not None and family.seed else None,
        stop,
        top_logprobs,
        tuple(sorted(name for name, is_dropped in dropped.items() if is_dropped)),
    )
