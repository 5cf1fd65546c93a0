"""What each provider declares: its key, its hosts, its prices, and what its models accept.

``provider_info`` returns the declaration. Those of the providers that ship with cotlab are in
``SHIPPED_PROVIDERS``, so that reading one imports no SDK and no torch. Any other provider declares
itself by an attribute ``info`` of its class::

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

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from cotlab.core.errors import Unsupported
from cotlab.core.registry import PROVIDERS
from cotlab.core.requests import Complete

logger = logging.getLogger(__name__)
THINKING_TOKENS = 8_192
"""Output tokens allowed beyond the visible reply for models with hidden reasoning. They are billed,
so they are reserved too."""
KEY_VARIABLE_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*_(KEY|TOKEN)")
"""Name of a variable that holds a key, like MISTRAL_API_KEY."""
_MODEL_PREFIX_PATTERN = re.compile(r"^(ft:|models/)")
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
    json_schema: bool = False
    """Whether the models can be held to a JSON schema."""


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
    in_process: bool = False
    """Whether it needs no network, so that no limit of requests a minute applies."""

    def __post_init__(self) -> None:
        if self.key_variable and not KEY_VARIABLE_PATTERN.fullmatch(self.key_variable):
            raise ValueError(f"key_variable {self.key_variable!r} must be like MISTRAL_API_KEY")


_GPT_EARLY_FAMILY = Family("gpt-3.5 and gpt-4", batch=True)
_GPT_CHAT_FAMILY = Family("gpt-4o, gpt-4.1 and gpt-5-chat", batch=True, json_schema=True)
_GPT_REASONING_FAMILY = replace(
    _GPT_CHAT_FAMILY,
    name="o-series and gpt-5",
    temperature=None,
    stop=False,
    logprobs=0,
    headroom=THINKING_TOKENS,
)
_OPENAI_FAMILIES = (
    # gpt-3.5-turbo, gpt-4, gpt-4-turbo-2024-04-09, chatgpt-4o-latest
    (r"gpt-(3\.5|4($|[-:]))|chatgpt-4", _GPT_EARLY_FAMILY),
    # gpt-4o-mini, gpt-4.1, gpt-5-chat-latest
    (r"gpt-4|gpt-5-chat", _GPT_CHAT_FAMILY),
    # gpt-5.1-2025-11-13, gpt-5.4-mini. These reason only on request, and accept temperature and
    # logprobs only while they do not ("parameter compatibility").
    (
        r"gpt-5\.[124](-mini|-nano)?(-\d{4}-\d\d-\d\d)?(:|$)",
        replace(
            _GPT_CHAT_FAMILY,
            name="gpt-5.1, 5.2 and 5.4 without reasoning",
            stop=False,
            effort="none",
        ),
    ),
    # o4-mini, gpt-5-nano
    (r"o\d|gpt-5", _GPT_REASONING_FAMILY),
    (r"", replace(_GPT_REASONING_FAMILY, name="gpt-6 and later", seed=False)),
)
_CLAUDE_FAMILY = Family(
    "claude 5 and later",
    None,
    seed=False,
    logprobs=0,
    batch=True,
    headroom=THINKING_TOKENS,
    blank_stop=False,
    json_schema=True,
)
_CLAUDE_45_FAMILY = replace(
    _CLAUDE_FAMILY, name="claude 4.5", temperature=1.0, prefill=True, headroom=0
)
_ANTHROPIC_FAMILIES = (
    # claude-haiku-4-5-20251001
    (r"claude-(opus|sonnet|haiku)-4-5(-\d{8})?$", _CLAUDE_45_FAMILY),
    # claude-3-7-sonnet-latest, claude-instant-1.2, claude-opus-4-1-20250805
    (
        r"claude-([123]|instant|(opus|sonnet|haiku)-4(-[01])?(-\d{8})?$)",
        replace(_CLAUDE_45_FAMILY, name="claude up to 4.1", json_schema=False),
    ),
    # claude-sonnet-4-6
    (
        r"claude-(opus|sonnet)-4-6",
        replace(_CLAUDE_FAMILY, name="claude 4.6", temperature=1.0, headroom=0),
    ),
    # claude-opus-4-7
    (r"claude-opus-4-[78]", replace(_CLAUDE_FAMILY, name="claude 4.7 and 4.8", headroom=0)),
    (r"", _CLAUDE_FAMILY),
)
_GEMINI_FAMILY = Family(
    "gemini 3.5 flash-lite, 3.6 and later",
    None,
    logprobs=0,
    headroom=THINKING_TOKENS,
    json_schema=True,
)
_GOOGLE_FAMILIES = (
    # gemini-1.5-pro, gemma-3-27b-it
    (r"gemini-1|gemma", Family("gemini 1 and gemma", logprobs=0)),
    # gemini-2.0-flash
    (r"gemini-2\.0", Family("gemini 2.0", json_schema=True)),
    # gemini-2.5-flash-lite-preview
    (
        r"gemini-2\.5-flash-lite",
        Family("gemini 2.5 flash-lite", logprobs=0, json_schema=True),
    ),
    # gemini-2.5-pro, gemini-3-pro-preview, gemini-3.5-flash
    (
        r"gemini-(2\.5|3-|3\.1|3\.5-flash(?!-lite))",
        replace(_GEMINI_FAMILY, name="gemini 2.5 to 3.5", temperature=2.0),
    ),
    (r"", _GEMINI_FAMILY),
)
SHIPPED_PROVIDERS: dict[str, ProviderInfo] = {
    "openai": ProviderInfo(
        "OPENAI_API_KEY",
        hosts=("api.openai.com",),
        price_family="openai",
        families=_OPENAI_FAMILIES,
    ),
    "anthropic": ProviderInfo(
        "ANTHROPIC_API_KEY",
        hosts=("api.anthropic.com",),
        price_family="anthropic",
        families=_ANTHROPIC_FAMILIES,
    ),
    "google": ProviderInfo(
        "GOOGLE_API_KEY",
        hosts=("generativelanguage.googleapis.com",),
        price_family="google",
        families=_GOOGLE_FAMILIES,
    ),
    "openai_compat": ProviderInfo(
        "OPENAI_COMPAT_API_KEY",
        key_required=False,
        families=((r"", Family("any", prefill=True, json_schema=True)),),
    ),
    **dict.fromkeys(
        ("organism", "local", "embedder", "symbolic", "nli", "prm", "echo", "scripted", "recorded"),
        ProviderInfo(free=True, in_process=True),
    ),
}
_EMPTY_INFO = ProviderInfo()
_DEFAULT_FAMILY = Family("not a vendor's", prefill=True)
"""Family of the models of a provider that declares none."""


def provider_info(provider: str) -> ProviderInfo:
    """Return what a provider declares; the default where it declares nothing or is unknown."""
    if provider in SHIPPED_PROVIDERS:
        return SHIPPED_PROVIDERS[provider]
    return (
        _declared_info(provider, PROVIDERS.require(provider))
        if provider in PROVIDERS
        else _EMPTY_INFO
    )


@cache
def _declared_info(provider: str, target: str) -> ProviderInfo:
    """Read ``info``, or the older ``free = True``, from the class that an entry point names."""
    try:
        provider_class = PROVIDERS[provider]
    except Exception as error:  # noqa: BLE001 - a broken package raises anything
        logger.warning(
            "The package of the provider %r (%s) cannot be imported: %s: %s. Its key, hosts and"
            " prices are unknown. Repair, update or uninstall that package.",
            provider,
            target,
            type(error).__name__,
            error,
        )
        return _EMPTY_INFO
    info = getattr(provider_class, "info", None)
    is_free = getattr(provider_class, "free", False) is True
    return info if isinstance(info, ProviderInfo) else replace(_EMPTY_INFO, free=is_free)


def family_of(provider: str, model: str) -> Family:
    """Return what a model accepts; fine-tuned and path-like names count as their base model."""
    name = _MODEL_PREFIX_PATTERN.sub("", model.lower())
    family_patterns = provider_info(provider).families
    return next(
        (family for pattern, family in family_patterns if re.match(pattern, name)), _DEFAULT_FAMILY
    )


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
    reply_schema: Mapping[str, Any]
    """JSON schema of the reply; empty where none was requested or the model takes none."""
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
    is_dropped_by_name = {
        "temperature": family.temperature is None,
        "seed": request.seed is not None and not family.seed,
        "stop": stop != request.stop,
        "top_logprobs": request.top_logprobs > 0 and not top_logprobs,
        "reply_schema": bool(request.reply_schema) and not family.json_schema,
    }
    return SupportedParams(
        request.max_tokens + family.headroom,
        request.temperature if family.temperature is not None else None,
        request.seed + request.sample if request.seed is not None and family.seed else None,
        stop,
        top_logprobs,
        request.reply_schema if family.json_schema else {},
        tuple(sorted(name for name, is_dropped in is_dropped_by_name.items() if is_dropped)),
    )
