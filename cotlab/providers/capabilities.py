"""What each family of models takes. Read before a request: what a model does not take is not sent.

Sources, read in November 2026: the vendors' parameter references and the 400s that their newer models answer with. A model
that no row knows is treated as the newest of its vendor, which takes least.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

THINKING = 8_192
"""Output tokens allowed beyond the visible reply to a model that reasons unseen; they are billed, so they are reserved too."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of models.

    ``temperature`` is the highest it takes (None: none at all), ``logprobs`` how many alternatives a token may list,
    ``headroom`` how many output tokens it may use for reasoning on top of those asked for.
    """

    name: str
    temperature: float | None = 2.0
    seed: bool = True
    stop: bool = True
    prefill: bool = False
    logprobs: int = 20
    batch: bool = False
    headroom: int = 0


_TABLE: dict[str, tuple[tuple[str, Family], ...]] = {
    "openai": (
        (r"(gpt-(3\.5|4)|chatgpt-4|gpt-\d+(\.\d+)?-chat)", Family("gpt-4 and chat", batch=True)),
        (r"", Family("reasoning (o-series, gpt-5 and later)", None, seed=False, stop=False, logprobs=0, batch=True,
                     headroom=THINKING)),
    ),
    "anthropic": (
        (r"claude-([123]|instant|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)",
         Family("claude up to 4.5", 1.0, seed=False, prefill=True, logprobs=0, batch=True)),
        (r"claude-(opus|sonnet)-4-6", Family("claude 4.6", 1.0, seed=False, logprobs=0, batch=True)),
        (r"", Family("claude 4.7 and later", None, seed=False, logprobs=0, batch=True, headroom=THINKING)),
    ),
    "google": (
        (r"gemini-(1|2\.0)", Family("gemini up to 2.0")),
        (r"", Family("gemini 2.5 and later", headroom=THINKING)),
    ),
    "openai_compat": ((r"", Family("any", prefill=True)),),
}  # fmt: skip
"""Rows in order; the first whose pattern the model's name begins with holds."""
_ELSEWHERE = Family("not a vendor's", prefill=True)


def family_of(provider: str, model: str) -> Family:
    """What the model ``model`` of ``provider`` takes. Fine-tuned and path-like names count as their base model."""
    name = re.sub(r"^(ft:|models/)", "", model.lower())
    return next((family for pattern, family in _TABLE.get(provider, ()) if re.match(pattern, name)), _ELSEWHERE)
