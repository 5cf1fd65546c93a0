"""Requests to models and their responses. The key of a request is the digest of its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Literal

from cotlab.core.keys import canonical_bytes, keyed_fields, to_json_value
from cotlab.core.types import ModelRef

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    """Who speaks."""
    content: str
    """Text of the turn."""


@dataclass(frozen=True, slots=True)
class Request:
    """One model call."""

    kind: ClassVar[str] = ""
    """Name of the kind of request, part of its key."""
    model: ModelRef
    """Model that the request is for."""
    sample: int = field(default=0, kw_only=True)
    """Number of the draw of the same request, from 0."""
    _key: str = field(default="", init=False, repr=False, compare=False)
    _coded: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def key(self) -> str:
        """SHA-256 of the request as made, before a provider drops unsupported fields.

        Computed once.
        """
        if not self._key:
            object.__setattr__(self, "_key", sha256(self.json_bytes).hexdigest())
        return self._key

    @property
    def json_bytes(self) -> bytes:
        """The request as canonical JSON.

        Its length exceeds the number of tokens, whatever the model's template adds.
        """
        if not self._coded:
            object.__setattr__(self, "_coded", canonical_bytes(self._keyed_values()))
        return self._coded

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON values, with its kind.

        A field with ``absent`` in its metadata is left out at that value, which all requests of
        before it had.
        """
        return {name: to_json_value(value) for name, value in self._keyed_values().items()}

    def _keyed_values(self) -> dict[str, Any]:
        """Return the kind and the fields that identify the request, as they are."""
        request_type: Any = type(self)
        values = {
            name: value
            for name, absent_value in keyed_fields(request_type) or ()
            if (value := getattr(self, name)) != absent_value
        }
        return {"kind": self.kind, **values}


@dataclass(frozen=True, slots=True)
class Complete(Request):
    """A completion of a conversation."""

    kind: ClassVar[str] = "complete"
    messages: tuple[Message, ...]
    """Conversation so far."""
    system: str = ""
    """System prompt."""
    prefix: str = ""
    """Assistant text that the model continues (prefill); only providers render it."""
    max_tokens: int = 256
    """Largest number of output tokens."""
    temperature: float = 0.0
    """Sampling temperature."""
    seed: int | None = None
    """Sampling seed, for vendors that take one."""
    stop: tuple[str, ...] = ()
    """Texts at which the completion ends."""
    top_logprobs: int = 0
    """Number of alternatives to return for each token."""
    reply_schema: Mapping[str, Any] = field(
        default_factory=dict, hash=False, metadata={"absent": {}}
    )
    """JSON schema of the reply, for vendors that can enforce one; empty for text."""


@dataclass(frozen=True, slots=True)
class Embed(Request):
    """An embedding vector for each of ``texts``."""

    kind: ClassVar[str] = "embed"
    texts: tuple[str, ...]
    """Texts to embed."""


SAME_ANSWER_SIGN = "≟"
"""Between two answers, in the hypothesis that asks a computation whether they are the same."""


@dataclass(frozen=True, slots=True)
class Entail(Request):
    """The confidence in [0, 1] that ``premise`` supports ``hypothesis``."""

    kind: ClassVar[str] = "entail"
    premise: str
    """Supporting text."""
    hypothesis: str
    """Text that may be supported."""


@dataclass(frozen=True, slots=True)
class StepRewards(Request):
    """The probability in [0, 1] that each of ``steps`` is right, given what stands before it."""

    kind: ClassVar[str] = "step_rewards"
    question: str
    """The problem that the steps solve."""
    steps: tuple[str, ...]
    """Text of each step of the chain, in order."""


@dataclass(frozen=True, slots=True)
class LogProb(Request):
    """log P(answer | messages, prefix) in nats for each of ``answers``, summed over its tokens.

    With ``top_logprobs`` the response also has the tokens of the answers, one answer after the
    other, each token with its alternatives.
    """

    kind: ClassVar[str] = "logprob"
    messages: tuple[Message, ...]
    """Conversation before the answer."""
    answers: tuple[str, ...]
    """Answers to score."""
    system: str = ""
    """System prompt."""
    prefix: str = ""
    """Assistant text before the answer."""
    top_logprobs: int = 0
    """Number of alternatives to return for each token."""


PREFIX_INDEX = -1
"""Number of the part of a prompt that is the assistant's prefix; messages count from 0."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters of one part of a prompt."""

    part: int
    """Index of the message, or ``ENV_PREFIX``."""
    start: int
    """First character."""
    end: int
    """Character after the last."""


@dataclass(frozen=True, slots=True)
class Locate(Request):
    """The token positions of ``spans`` in the rendered text of messages and prefix."""

    kind: ClassVar[str] = "locate"
    messages: tuple[Message, ...]
    """Conversation."""
    spans: tuple[Span, ...]
    """Spans to locate."""
    system: str = ""
    """System prompt."""
    prefix: str = ""
    """Assistant text."""


@dataclass(frozen=True, slots=True)
class Source:
    """The run that patched states are taken from."""

    kind: Literal["run", "filler", "mean", "noise"]
    """Kind of states.

    ``run``: of the run of messages and prefix (none: of the patched text itself). ``filler``: the
    same with dots in place of the tokens ``at``. ``mean``: the mean over ``at`` of such a run, at
    every patched position. ``noise``: Gaussian, with each layer's mean and standard deviation of
    the patched text's own states at ``at``; row k draws from ``seed`` and k.
    """
    messages: tuple[Message, ...] = ()
    """Conversation of the source run."""
    prefix: str = ""
    """Assistant text of the source run."""
    at: tuple[int, ...] = ()
    """Token positions in the source."""
    seed: int = 0
    """Seed of the noise."""


@dataclass(frozen=True, slots=True)
class PatchRow:
    """One patched forward pass."""

    layers: tuple[int, ...]
    """Layers whose input is patched."""
    at: tuple[int, ...]
    """Token positions that are replaced."""
    take: tuple[int, ...] = ()
    """Positions of the source that replace them, as many; empty for ``mean`` and ``noise``."""


@dataclass(frozen=True, slots=True)
class Patched(Request):
    """log P(answer | messages, prefix) in nats under each patched row.

    The answer's own positions cannot be patched.
    """

    kind: ClassVar[str] = "patched"
    messages: tuple[Message, ...]
    """Conversation before the answer."""
    answer: str
    """Answer to score."""
    source: Source
    """Run that the states are taken from."""
    rows: tuple[PatchRow, ...]
    """Patched forward passes."""
    system: str = ""
    """System prompt."""
    prefix: str = ""
    """Assistant text before the answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts reported by the provider; None if it reports none."""

    tokens_in: int | None = None
    """Input tokens."""
    tokens_out: int | None = None
    """Output tokens."""
    cached: int | None = None
    """Input tokens read from the vendor's cache, part of ``tokens_in``."""
    reasoning: int | None = None
    """Hidden reasoning tokens, part of ``tokens_out``."""


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token with its log-probability."""

    text: str
    """Text of the token."""
    logprob: float
    """In nats."""
    top: tuple[tuple[str, float], ...] = ()
    """Most likely alternatives with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Located:
    """Token positions of the spans of a text."""

    positions: tuple[tuple[int, ...], ...]
    """Token positions of each span."""
    pieces: tuple[str, ...]
    """Text of every token."""
    layers: int
    """Number of layers of the model."""
    dtype: str = "float32"
    """Number format of the model's states, which limits the precision."""


@dataclass(frozen=True, slots=True)
class Response:
    """The reply to a request."""

    key: str
    """Key of the request."""
    text: str | None = None
    """Completion."""
    numbers: tuple[float, ...] | None = None
    """Result of LogProb, Patched, Entail or StepRewards."""
    vectors: tuple[tuple[float, ...], ...] | None = None
    """Result of Embed."""
    located: Located | None = None
    """Result of Locate."""
    tokens: tuple[Token, ...] = ()
    """Generated tokens with log-probabilities, if requested."""
    usage: Usage = Usage()
    """Token counts."""
    finish: str = ""
    """Why the completion ended."""
    refused: bool = False
    """Whether the model or the vendor refused to answer."""
    reasoning: str | None = None
    """Reasoning before the reply, if the vendor returns it."""
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What was sent to the vendor."""
    device: str = ""
    """Device of a local model."""
    batch: int | None = None
    """Size of the batch that a local model ran."""
    received_at: str = ""
    """ISO time."""
    model: str = ""
    """Version that answered, as the vendor names it."""


RECORDED_ERROR = "error"
"""``finish`` of a response that stands for an error, which another tool logged in place of a reply
or which would come again; ``sent["error"]`` is its message, ``sent["unsupported"]`` its kind."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that failed after all tries; only the scores that need it are lost."""

    key: str
    """Key of the request."""
    error: str
    """Message of the last error."""
    tries: int
    """Number of tries."""
    unsupported: bool = False
    """Whether the model cannot process it (unknown word): scores are undefined, not errors."""


Reply = Response | Failed
