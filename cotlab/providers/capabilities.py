"""What each provider declares: its key, its hosts, its prices, and what its models accept.

``provider_info`` returns the declaration. Those of the providers that ship with cotlab are in
``SHIPPED``, so that reading one imports no SDK and no torch. Any other provider declares itself by
an attribute ``info`` of its class::

    class Mistral:
        answers = frozenset({Complete.kind})
        info = ProviderInfo(
            key_variable="MISTRAL_API_KEY",
            hosts=("api.mistral.ai",),
            price_family="mistral",
            families=((r"", Family("mistral", temperature=1.5)),),
        )

A model that no row of ``families`` names is treated as the newest of its vendor, which accepts
least; parameters that a model does not accept are not sent. Sources, read in November 2026:

- OpenAI: the reference of chat completions ("stop: not supported with latest reasoning models"),
  the guide to the latest model ("parameter compatibility": gpt-5.1, 5.2 and 5.4 take temperature
  and logprobs with reasoning effort none, which is their default), the 400s that users of gpt-5,
  gpt-5.6 and the o-series report.
- Anthropic: the migration guides (prefill is a 400 from 4.6 on, temperature from 4.7 on, thinking
  is on by default from 5 on), the 400 "each stop sequence must contain non-whitespace"; no model
  gives log-probabilities or takes a seed.
- Google: "What's new in Gemini 3.6" (temperature is ignored from 3.5 flash-lite on, and an error
  later), the thinking guide (2.5 flash-lite does not think by default), the 400 "Logprobs is not
  enabled for models/gemini-2.5-flash".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from cotlab.core.errors import Unsupported
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete

THINKING = 8_192
"""Output tokens allowed beyond the visible reply for models with hidden reasoning. They are billed,
so they are reserved too."""
_KEY_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*_(KEY|TOKEN)")
"""Name of a variable that holds a key, like MISTRAL_API_KEY."""
_PREFIXES = re.compile(r"^(ft:|models/)")
"""What precedes the name of the base model: ft:gpt-4o-mini:org, models/gemini-3-pro."""


@dataclass(frozen=True, slots=True)
class Family:
    """What one family of models accepts."""

    name: str
    """Name of the family, for messages."""
    temperature: float | None = 2.0
    """Highest temperature; None where the models accept none."""
    seed: bool = True
    """Whether a seed is accepted."""
    stop: bool = True
    """Whether stop sequences are accepted."""
    prefill: bool = False
    """Whether the models continue the beginning of their own turn."""
    logprobs: int = 20
    """Most alternatives a token can list; 0 where there are no log-probabilities."""
    batch: bool = False
    """Whether the vendor's batch interface takes these models."""
    headroom: int = 0
    """Output tokens that may go into hidden reasoning on top of those requested."""
    effort: str = ""
    """Reasoning effort that has to be sent for the other fields to hold."""
    blank_stop: bool = True
    """Whether a stop sequence may be white space only."""


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """What a provider declares about itself. The default describes one without a key or a price."""

    key_variable: str = ""
    """Environment variable of the key, like MISTRAL_API_KEY; "" without a key."""
    key_required: bool = True
    """False where servers exist that need no key."""
    hosts: tuple[str, ...] = ()
    """Hosts of the vendor, the only ones to get the key; () where the user names the server."""
    price_family: str = ""
    """Provider's id in the table of genai-prices; "" where the server's address decides."""
    free: bool = False
    """Whether calls cost nothing."""
    families: tuple[tuple[str, Family], ...] = ()
    """Regular expression and family; the first that the beginning of a model's name matches."""

    def __post_init__(self) -> None:
        if self.key_variable and not _KEY_VARIABLE.fullmatch(self.key_variable):
            raise ValueError(f"key_variable {self.key_variable!r} must be like MISTRAL_API_KEY")


_CHAT = Family("gpt-3.5, gpt-4 and gpt-5-chat", batch=True)
_REASONING = replace(
    _CHAT, name="o-series and gpt-5", temperature=None, stop=False, logprobs=0, headroom=THINKING
)
_OPENAI = (
    # gpt-4o-mini, chatgpt-4o-latest, gpt-5-chat-latest
    (r"gpt-(3\.5|4)|chatgpt-4|gpt-5-chat", _CHAT),
    # gpt-5.1-2025-11-13, gpt-5.4-mini. These reason only on request, and accept temperature and
    # logprobs only while they do not ("parameter compatibility").
    (
        r"gpt-5\.[124](-mini|-nano)?(-\d{4}-\d\d-\d\d)?(:|$)",
        replace(_CHAT, name="gpt-5.1, 5.2 and 5.4 without reasoning", stop=False, effort="none"),
    ),
    # o4-mini, gpt-5-nano
    (r"o\d|gpt-5", _REASONING),
    (r"", replace(_REASONING, name="gpt-6 and later", seed=False)),
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
_ANTHROPIC = (
    # claude-3-7-sonnet-latest, claude-instant-1.2, claude-opus-4-1-20250805
    (
        r"claude-([123]|instant|(opus|sonnet|haiku)-4(-[015])?(-\d{8})?$)",
        replace(_CLAUDE, name="claude up to 4.5", temperature=1.0, prefill=True, headroom=0),
    ),
    # claude-sonnet-4-6
    (r"claude-(opus|sonnet)-4-6", replace(_CLAUDE, name="claude 4.6", temperature=1.0, headroom=0)),
    # claude-opus-4-7
    (r"claude-opus-4-[78]", replace(_CLAUDE, name="claude 4.7 and 4.8", headroom=0)),
    (r"", _CLAUDE),
)
_GEMINI = Family("gemini 3.5 flash-lite, 3.6 and later", None, logprobs=0, headroom=THINKING)
_GOOGLE = (
    # gemini-1.5-pro, gemma-3-27b-it
    (r"gemini-1|gemma", Family("gemini 1 and gemma", logprobs=0)),
    # gemini-2.0-flash
    (r"gemini-2\.0", Family("gemini 2.0")),
    # gemini-2.5-flash-lite-preview
    (r"gemini-2\.5-flash-lite", Family("gemini 2.5 flash-lite", logprobs=0)),
    # gemini-2.5-pro, gemini-3-pro-preview, gemini-3.5-flash
    (
        r"gemini-(2\.5|3-|3\.1|3\.5-flash(?!-lite))",
        replace(_GEMINI, name="gemini 2.5 to 3.5", temperature=2.0),
    ),
    (r"", _GEMINI),
)
_IN_PROCESS = ("organism", "local", "embedder", "symbolic", "nli", "echo", "scripted")
SHIPPED: dict[str, ProviderInfo] = {
    "openai": ProviderInfo(
        "OPENAI_API_KEY", hosts=("api.openai.com",), price_family="openai", families=_OPENAI
    ),
    "anthropic": ProviderInfo(
        "ANTHROPIC_API_KEY",
        hosts=("api.anthropic.com",),
        price_family="anthropic",
        families=_ANTHROPIC,
    ),
    "google": ProviderInfo(
        "GOOGLE_API_KEY",
        hosts=("generativelanguage.googleapis.com",),
        price_family="google",
        families=_GOOGLE,
    ),
    "openai_compat": ProviderInfo(
        "OPENAI_COMPAT_API_KEY", key_required=False, families=((r"", Family("any", prefill=True)),)
    ),
    **dict.fromkeys(_IN_PROCESS, ProviderInfo(free=True)),
}
_NONE = ProviderInfo()
_OTHER_FAMILY = Family("not a vendor's", prefill=True)
"""Family of the models of a provider that declares none."""


def provider_info(provider: str) -> ProviderInfo:
    """Return what a provider declares; the default where it declares nothing or is unknown."""
    if provider in SHIPPED:
        return SHIPPED[provider]
    return _declared_info(provider, PROVIDERS.require(provider)) if provider in PROVIDERS else _NONE


@cache
def _declared_info(provider: str, target: str) -> ProviderInfo:
    """Read ``info``, or the older ``free = True``, from the class that an entry point names."""
    try:
        declaring = PROVIDERS[provider]
    except Exception:  # noqa: BLE001 - a package may fail in any way; opening the provider says how
        return _NONE
    info = getattr(declaring, "info", None)
    free = getattr(declaring, "free", False) is True
    return info if isinstance(info, ProviderInfo) else replace(_NONE, free=free)


def family_of(provider: str, model: str) -> Family:
    """Return what a model accepts; fine-tuned and path-like names count as their base model."""
    name = _PREFIXES.sub("", model.lower())
    rows = provider_info(provider).families
    return next((family for pattern, family in rows if re.match(pattern, name)), _OTHER_FAMILY)


class SupportedParams(NamedTuple):
    """The parameters of a request that a model accepts."""

    max_tokens: int
    """Output limit, hidden reasoning included."""
    temperature: float | None
    """None where the model accepts none."""
    seed: int | None
    """Seed of this draw; None where none was requested or the model accepts none."""
    stop: tuple[str, ...]
    """Stop sequences."""
    top_logprobs: int
    """Alternatives listed for each token."""
    not_sent: tuple[str, ...]
    """Names of requested parameters that are left out, sorted."""


def supported_params(request: Complete, family: Family) -> SupportedParams:
    """Return the parameters of ``request`` that the family accepts; each draw has its own seed.

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
