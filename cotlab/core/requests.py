"""What can be asked of a model, and what comes back. A request carries its model; its key is the digest of what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, ClassVar, Literal

from cotlab.core.keys import canonical_bytes, to_json_value
from cotlab.core.types import ModelRef

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. ``sample`` says which draw of the same question this is."""

    kind: ClassVar[str] = ""
    model: ModelRef
    sample: int = field(default=0, kw_only=True)
    _key: str = field(default="", init=False, repr=False, compare=False)
    _coded: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def key(self) -> str:
        """SHA-256 of the request as asked, before a provider drops what its model cannot take; computed once."""
        if not self._key:
            object.__setattr__(self, "_key", sha256(self.json_bytes).hexdigest())
        return self._key

    @property
    def json_bytes(self) -> bytes:
        """The request as asked, as canonical JSON; it is longer than it has tokens, whatever a model's template adds."""
        if not self._coded:
            object.__setattr__(self, "_coded", canonical_bytes(self.to_json()))
        return self._coded

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values, its kind among them."""
        return {
            "kind": self.kind,
            **{
                f.name: to_json_value(getattr(self, f.name))
                for f in fields(self)
                if f.name[0] != "_"
            },
        }


@dataclass(frozen=True, slots=True)
class Complete(Request):
    """Continue a conversation. ``prefix`` is what the model's own turn already says; only providers render it."""

    kind: ClassVar[str] = "complete"
    messages: tuple[Message, ...]
    system: str = ""
    prefix: str = ""
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True)
class Embed(Request):
    """One vector a text."""

    kind: ClassVar[str] = "embed"
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entail(Request):
    """The confidence in [0, 1] that ``premise`` supports ``hypothesis``."""

    kind: ClassVar[str] = "entail"
    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class LogProb(Request):
    """log P(answer | messages, prefix) in nats, summed over the answer's tokens, for each of ``answers``.

    With ``top_logprobs`` the reply also holds the answers' tokens, one answer after the other, each
    with its alternatives.
    """

    kind: ClassVar[str] = "logprob"
    messages: tuple[Message, ...]
    answers: tuple[str, ...]
    system: str = ""
    prefix: str = ""
    top_logprobs: int = 0


PREFIX = -1
"""The part of a text that is the model's own turn so far; the other parts are the messages, by
their index."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` to ``end`` of one part of a text: of a message, by its index, or of the ``PREFIX``."""

    part: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Locate(Request):
    """The token positions of ``spans`` in the rendered text of messages and prefix."""

    kind: ClassVar[str] = "locate"
    messages: tuple[Message, ...]
    spans: tuple[Span, ...]
    system: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where patched states come from.

    ``run``: the run of messages and prefix (none: the patched text itself). ``filler``: the same,
    with dots in the place of the tokens ``at``. ``mean``: the mean over ``at`` of such a run, at
    every position that is patched. ``noise``: Gaussian, with each layer's mean and standard
    deviation of the patched text's own states at ``at``; row k draws from ``seed`` and k.
    """

    kind: Literal["run", "filler", "mean", "noise"]
    messages: tuple[Message, ...] = ()
    prefix: str = ""
    at: tuple[int, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PatchRow:
    """One patched forward: at the input of each of ``layers``, positions ``at`` take the source's states at ``take``.

    Both hold as many positions; for the sources ``mean`` and ``noise``, which have one state a
    position, ``take`` is empty.
    """

    layers: tuple[int, ...]
    at: tuple[int, ...]
    take: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Patched(Request):
    """log P(answer | messages, prefix) in nats under each patched row. The answer's own positions cannot be patched."""

    kind: ClassVar[str] = "patched"
    messages: tuple[Message, ...]
    answer: str
    source: Source
    rows: tuple[PatchRow, ...]
    system: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens counted by the provider; None where it counts none. ``cached`` and ``reasoning`` are parts of the other two."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token with its log-probability and the likeliest alternatives, in nats."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Located:
    """Where the spans of a text lie: the token positions of each, every token's text, and the model's number of layers.

    ``dtype`` names the type of the model's states: how exact its numbers can be.
    """

    positions: tuple[tuple[int, ...], ...]
    pieces: tuple[str, ...]
    layers: int
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Response:
    """A reply. ``numbers`` answer LogProb, Patched and Entail, ``vectors`` Embed, ``located`` Locate; ``sent`` records what was
    really sent.

    ``model`` is the version that answered, in the vendor's words; ``reasoning`` what it wrote
    before its reply, where told.
    """

    key: str
    text: str | None = None
    numbers: tuple[float, ...] | None = None
    vectors: tuple[tuple[float, ...], ...] | None = None
    located: Located | None = None
    tokens: tuple[Token, ...] = ()
    usage: Usage = Usage()
    finish: str = ""
    refused: bool = False
    reasoning: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)
    device: str = ""
    batch: int | None = None
    received_at: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that got no reply after all its tries: it costs the scores that need it, not the item.

    ``unsupported`` says that the model cannot take it (an unknown word, say): its scores are
    undefined, not errors.
    """

    key: str
    error: str
    tries: int
    unsupported: bool = False


Reply = Response | Failed
