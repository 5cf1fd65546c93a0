"""The server that stands in for the vendors, one for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.loopback import Loopback, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running
