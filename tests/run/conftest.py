"""One warm process and one server for all runs of these tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.forked import Forking, forking
from tests.support.loopback import Loopback, serving


@pytest.fixture(scope="session")
def runs() -> Iterator[Forking]:
    with forking() as warm:
        yield warm


@pytest.fixture(scope="session")
def server() -> Iterator[Loopback]:
    with serving() as running:
        yield running


@pytest.fixture
def environment_as_it_was() -> Iterator[None]:
    """What a file brings into the environment is gone after the test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
