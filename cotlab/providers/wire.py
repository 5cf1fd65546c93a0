"""What all vendors share: addresses, requests, the reading of replies, and the table of errors."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import (
    AliasPath,
    BaseModel,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from cotlab.core.errors import (
    BadReply,
    ConfigError,
    NotFound,
    ProviderError,
    RateLimited,
    TimedOut,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from cotlab.core.requests import Complete, Response
from cotlab.core.text_safety import printable_line
from cotlab.core.types import Form, ModelRef
from cotlab.providers.http_client import MAX_BODY_BYTES
from cotlab.providers.keys import mask_keys

_BILLABLE_STATUSES = (408, 502, 504, 520, 524)
"""Error statuses of a call that may have been processed: the server's own time-out, and a gateway
that lost the server's reply. Any other error status says that the model did not answer."""
MAX_MESSAGE_CHARS = 300
"""Characters of a server's message that are shown."""
_HOST_PATTERN = re.compile(r"[\w.:%\[\]-]+")
"""Host and port of an address: api.openai.com, 127.0.0.1:8000, [::1]:80."""


def clean_base_url(url: str, *, removed_suffixes: tuple[str, ...] = ()) -> str:
    """Return a base address without the first of the endings ``removed_suffixes`` that it has.

    Raises
    ------
    ConfigError
        If it is no usable address.
    """
    try:
        components = urlsplit(url)
        is_usable = (
            components.scheme in ("http", "https")
            and bool(httpx2.URL(url).host)
            and components.port != 0
        )
    except (ValueError, httpx2.InvalidURL):
        is_usable = False
    if (
        not is_usable
        or not _HOST_PATTERN.fullmatch(components.netloc)
        or components.query
        or components.fragment
    ):
        raise ConfigError(
            "--base-url takes http://HOST/PATH or https://HOST/PATH without a password; keys go"
            " elsewhere."
        )
    url = url.rstrip("/")
    return next(
        (url.removesuffix(suffix) for suffix in removed_suffixes if url.endswith(suffix)), url
    )


def resolve_form(ref: ModelRef) -> Form:
    """Return how the model receives a chain: as a chat turn, as a prefill, or as raw text."""
    if ref.form == "continuation" and ref.endpoint == "completions":
        return "continuation"
    return "prefill" if ref.form == "prefill" else "chat"


class VendorRequest(NamedTuple):
    """A request in the vendor's form."""

    body: dict[str, Any]
    """What is sent."""
    sent_params: dict[str, Any]
    """Record of the parameters that are sent, without texts."""


def build_request(
    text_fields: dict[str, Any],
    parameters: dict[str, Any],
    *,
    has_prefix: bool,
    dropped_params: tuple[str, ...],
) -> VendorRequest:
    """Combine texts and parameters into a vendor's request and its record."""
    form_record = {
        "given": "prefix" if has_prefix else "user",
        **({"not_sent": list(dropped_params)} if dropped_params else {}),
    }
    return VendorRequest({**parameters, **text_fields}, {**parameters, **form_record})


def chat_messages(request: Complete) -> list[dict[str, str]]:
    """Return system prompt and turns of a request as OpenAI's interface writes them."""
    turns = [("system", request.system)] if request.system else []
    turns += [(message.role, message.content) for message in request.messages]
    return [{"role": role, "content": replace_surrogates(content)} for role, content in turns]


def build_response(
    request: Complete, sent_params: Mapping[str, Any], **response_fields: Any
) -> Response:
    """Build a response to ``request``, received now."""
    return Response(
        request.key, sent=sent_params, received_at=datetime.now(UTC).isoformat(), **response_fields
    )


def refusal_response(request: Complete, sent_params: Mapping[str, Any]) -> Response:
    """Return the response for a prompt that was rejected for its content."""
    return build_response(request, sent_params, finish="content_filter", refused=True)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which files, databases and servers reject."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


# Reading replies


class Body(BaseModel):
    """A JSON object of a server. A form names what is read of it; the rest is ignored."""


def _absent_if_wrong(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


_Value = TypeVar("_Value")
Lenient = Annotated[_Value | None, WrapValidator(_absent_if_wrong)]
"""What counts as absent where it has another type, because no score rests on it."""
Count = Lenient[Annotated[int, Field(strict=True, ge=0)]]
"""A number of tokens or requests."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=-1e300, lt=1e300)]
"""A log-probability, or a number of a vector."""
AnyNumber = Annotated[float, Field(strict=True)]
"""The same of an alternative, which some servers send as -inf: it has none then."""


def field_at(path: str) -> Any:
    """Return a field that stands deeper in the body, like choices.0.text; absent by default."""
    first, *rest = path.split(".")
    parts = [int(part) if part.isdigit() else part for part in rest]
    return Field(None, validation_alias=AliasPath(first, *parts))


class Named(Body):
    """An object of which the id is read."""

    id: str


class Listing(Body):
    """A listing of models."""

    data: list[Named]


class ServerError(Body):
    """What a server says of a failure."""

    code: Lenient[int | str] = None
    message: Lenient[str] = None


_Form = TypeVar("_Form", bound=Body)


def read_body(form: type[_Form], value: Any) -> _Form:
    """Return a parsed JSON value in the vendor's form.

    Raises
    ------
    BadReply
        If it does not have that form.
    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise form_error(".".join(map(str, first["loc"])) or "the body", first["msg"]) from error


def form_error(field_name: str, problem: str) -> BadReply:
    """Return the error for a reply whose field is not as the vendor's interface promises."""
    return BadReply(
        "the server's reply does not have the promised form:"
        f" {shorten_message(f'{field_name}: {problem}')}"
    )


def decode_body(body: bytes | str) -> Any:
    """Parse a JSON body; lone surrogates in it are replaced.

    Raises
    ------
    Unavailable
        If it is not JSON: it was cut off, or comes from something between us and the vendor.
    """
    try:
        return parse_json(body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(
            f"the server's reply was cut or is not JSON: {str(error)[:MAX_MESSAGE_CHARS]}"
        ) from error


def parse_json(text: bytes | bytearray | str) -> Any:
    """Parse JSON; ValueError or RecursionError where it is none."""
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    value = json.loads(text)
    if "\\ud" in text.lower():  # half of a character, or a pair, which stays
        value = json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False)))
    return value


def sum_known_counts(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None where none is known."""
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if known_counts else None


async def json_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the objects of a JSONL stream, skipping lines that are none.

    Raises
    ------
    ValueError
        If a line is longer than ``MAX_BODY_BYTES``.
    """
    remainder = bytearray()
    async for chunk in chunks:
        remainder += chunk
        if b"\n" in chunk:
            *complete_lines, remainder = remainder.split(b"\n")
            for line in complete_lines:
                if (value := _parse_json_object(line)) is not None:
                    yield value
        elif len(remainder) > MAX_BODY_BYTES:
            raise ValueError(f"a line of it is longer than {MAX_BODY_BYTES:,} bytes")
    if (value := _parse_json_object(remainder)) is not None:
        yield value


def _parse_json_object(line: bytearray) -> dict[str, Any] | None:
    try:
        value = parse_json(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# Errors


class ContentRejected(Unsupported):
    """The vendor rejects the prompt for its content: a refusal, which is a reply."""


@contextmanager
def mapped_errors(
    map_error: Callable[[Exception, str], ProviderError], key_variable: str
) -> Iterator[None]:
    """Raise whatever a vendor's package raises within as what ``map_error`` makes of it.

    Which errors those can be depends on what a server sends: a body that is no UTF-8 or too long is
    a ValueError, one that is nested too deeply a RecursionError.
    """
    try:
        yield
    except Exception as error:
        raise map_error(error, key_variable) from error


def shorten_message(text: str) -> str:
    """Return a server's message without keys and control characters, on one line, shortened."""
    return printable_line(replace_surrogates(mask_keys(text)))[:MAX_MESSAGE_CHARS]


def error_from_status(
    status: int, message: str, key_variable: str, retry_wait_s: float | None = None
) -> ProviderError:
    """Return the error for an HTTP status.

    Errors of the key, which ``key_variable`` holds, of the account, the model or the path, which no
    request of the run can avoid, are Unauthorised or NotFound.
    """
    message = shorten_message(message)
    if status == 401 or status == 403:
        hint = (
            f"check {key_variable}"
            if key_variable
            else "name its variable by --role ROLE.key_variable"
        )
        return Unauthorised(f"the server refused the key ({status}): {hint}. It says: {message}")
    if status == 402:
        return quota_error(message)
    if status == 404:
        return NotFound(f"the server knows no such model, or --base-url is wrong (404): {message}")
    if status == 429:
        return RateLimited(f"too many requests (429): {message}", retry_wait_s)
    if status >= 500 or status < 400 or status in (408, 409):
        return Unavailable(
            f"the server answered {status}: {message}",
            may_be_billed=status < 400 or status in _BILLABLE_STATUSES,
            retry_wait_s=retry_wait_s,
        )
    return Unsupported(f"the server answered {status}: {message}")


def quota_error(message: str) -> Unauthorised:
    """Return the error for an account without money or quota."""
    return Unauthorised(
        f"the account behind the key is out of money or quota: {shorten_message(message)}"
    )


def error_from_connection(error: BaseException) -> ProviderError:
    """Return the error for a failed connection or a reply that cannot be read.

    It is made from the innermost cause.
    """
    import aiohttp  # a run whose replies are all in the log needs none

    connection_errors = (
        httpx2.HTTPError,
        httpx2.StreamError,
        httpx2.InvalidURL,
        aiohttp.ClientError,
        OSError,
    )
    # of a request that did not leave: there was no connection to send it on
    never_sent_errors = (
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
        aiohttp.InvalidURL,
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.ProxyError,
        httpx2.InvalidURL,
        httpx2.UnsupportedProtocol,
    )
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and cause not in causes:
        causes.append(cause)
    # The vendors' packages report a refused or broken connection as a time-out too, so aiohttp's
    # error decides.
    aiohttp_error = next((e for e in reversed(causes) if isinstance(e, aiohttp.ClientError)), None)
    is_timeout = (
        isinstance(aiohttp_error, TimeoutError)
        if aiohttp_error
        else any(isinstance(e, httpx2.TimeoutException) for e in causes)
    )
    message = shorten_message(str(causes[-1]) or type(causes[-1]).__name__)
    if not any(isinstance(cause, connection_errors) for cause in causes):
        return BadReply(f"the server's reply cannot be read: {message}")
    may_be_billed = not (
        isinstance(aiohttp_error, never_sent_errors)
        if aiohttp_error
        else any(isinstance(e, never_sent_errors) for e in causes)
    )
    if is_timeout:
        return TimedOut(
            f"the server did not answer in time: {message}", may_be_billed=may_be_billed
        )
    return Unavailable(
        f"the server cannot be reached, or broke off: {message}", may_be_billed=may_be_billed
    )
