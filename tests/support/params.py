"""Parameters of tests: these for every run of the tests, the others for the long one."""

from __future__ import annotations

from typing import Any

import pytest


def soak(*values: Any) -> Any:
    """Return a case that only `make soak` runs."""
    return pytest.param(*values, marks=pytest.mark.soak)
