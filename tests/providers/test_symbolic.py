"""The verifier that computes: what it decides and what it leaves undecided."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cotlab.core.errors import Unsupported
from cotlab.core.provider import InProcessProvider
from cotlab.core.requests import Complete, Entail, Message, Response
from cotlab.core.types import ModelRef
from cotlab.providers.symbolic import Symbolic
from cotlab.providers.symbolic_worker import check_statements

REF = ModelRef("symbolic", "arithmetic-and-units")


@pytest.fixture(scope="module")
def provider() -> Iterator[Symbolic]:
    opened = Symbolic(REF)
    yield opened
    opened.stop()


@pytest.mark.parametrize(
    ("premise", "hypothesis", "told"),
    [
        ("2x + 3 = 7", "x = 2", True),
        ("2x + 3 = 7", "2x = 4; x = 2", True),
        ("2x + 3 = 7", "x = 3", False),
        ("x + y = 10; x - y = 2", "x = 6; y = 4", True),
        ("4s + 16 = 2s + 32", "2s + 16 = 32", True),
        ("x = 2y; y = 3", "x + 1 = 7", True),
        ("x^2 = 4; x = y + 4; y = -2", "x = 2", True),
        ("", "x + x = 2x", True),
        ("", "x + x = 3x", None),
        ("x + y = 10", "x = 3", None),
        ("x = 3", "y = 3", None),
        ("x = 1; x = 2", "x = 1", None),
        ("", "\\frac{1}{2} + \\frac{1}{3} = \\frac{5}{6}", True),
        ("", "\\frac{1}{2} + \\frac{1}{3} = \\frac{2}{5}", False),
        ("", "\\sqrt{16} = 4", True),
        ("", "1,000 + 1 = 1001", True),
        ("", "2/3 = 0.667", None),
        ("", "5 km = 5000 m", True),
        ("", "5 km = 500 m", False),
        ("", "36 km/h = 10 m/s", True),
        ("", "2 hours = 120 minutes", True),
        ("", "Birds fly.", None),
        ("", "5 m^2 = 50000 cm^2", True),
        ("", "5 m = 5 m^2", None),
        ("", "5 miles = 8 km", None),
        ("", "1 month = 4 weeks", None),
        ("", "1 year = 12 months", True),
        ("", "1 year = 10 months", False),
        ("", "3 apples = 4 pears", None),
        ("2x = 4", "", None),
        ("", "9**9**9 = 3", None),
        ("", "9^{99999999} = 3", None),
        ("", "__import__('os').getcwd() = 3", None),
        ("", "1/0 = 1", None),
        ("", "０ = 1", None),
        ("", "2m = 9", None),
        ("", "R - r = 5 - 1", None),
        ("A + B = 10; A - B = 2", "A = 6", True),
        # an equation that holds for every x: sympy.solve does not end on it
        ("x - (3/4)x = (1/4)x", "(1/4)x = 20", None),
        ("y - \\frac{y}{3} = \\frac{2y}{3}; \\frac{2y}{3} = 100", "y = 150; 2y = 300", True),
        ("x^2 - 3(20)x + 20^2 = x^2 - 60x + 400", "x^2 - 60x + 400 = (x - 20)^2", None),
        # a power with a letter in it is no fraction of polynomials
        ("2^{2a} = 5; 2^{3d} = 8", "2^{2a} = 5; 2^{3d} = 8", True),
    ],
)
def test_decisions(premise: str, hypothesis: str, told: bool | None) -> None:
    found = check_statements(premise, hypothesis)
    assert found is told if told is not None else isinstance(found, str) and found


def test_replies_are_one_zero_or_unsupported(provider: Symbolic) -> None:
    assert isinstance(provider, InProcessProvider) and provider.answers == {"entail"}
    assert provider.ref.revision and "sympy" in provider.ref.revision
    asked = [
        Entail(REF, "2x = 4", "x = 2"),
        Entail(REF, "2x = 4", "x = 3"),
        Entail(REF, "", "Birds fly."),
    ]
    right, wrong, neither = provider.send_batch(asked)
    assert isinstance(right, Response) and right.numbers == (1.0,) and right.key == asked[0].key
    assert isinstance(wrong, Response) and wrong.numbers == (0.0,)
    assert isinstance(neither, Unsupported) and "not decidable" in str(neither)
    (other,) = provider.send_batch([Complete(REF, (Message("user", "Hi"),))])
    assert isinstance(other, Unsupported)
