"""Quantities and their units: what is read, and what does not belong."""

from __future__ import annotations

import pytest

from cotlab.text.arithmetic.mismatches import unit_mismatches
from cotlab.text.arithmetic.units import find_quantities, unit_dimension

L, T, M = "[length]", "[time]", "[mass]"


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("40 m", ((L, 1),)),
        ("40 m^2", ((L, 2),)),
        ("40 m²", ((L, 2),)),
        ("40 m2", ((L, 2),)),
        ("40 square metres", ((L, 2),)),
        ("40 cm squared", ((L, 2),)),
        ("2 L", ((L, 3),)),
        ("60 km/h", ((L, 1), (T, -1))),
        ("60 km per hour", ((L, 1), (T, -1))),
        ("60 mph", ((L, 1), (T, -1))),
        ("5 mg/kg", ()),
        ("5 mg/kg/day", ((T, -1),)),
        ("$40", (("[money]", 1),)),
        ("$1.5 million", (("[money]", 1),)),
        ("$40/h", (("[money]", 1), (T, -1))),
        ("3 euros", (("[money]", 1),)),
        ("10 N", ((L, 1), (M, 1), (T, -2))),
        ("1,200.5 g", ((M, 1),)),
        ("12-mile", ((L, 1),)),
        ("7", None),
        ("7 apples", None),
        ("20%", None),
        ("30 days/month", None),
        ("5 mg per tablet", None),
    ],
)
def test_a_quantity_and_its_dimension(text: str, dimension: object) -> None:
    (found,) = find_quantities(f"It is {text}.")
    assert found.dimension == dimension and found.start == len("It is ")


def test_dimensions_are_pints() -> None:
    assert (
        unit_dimension("hectare") == ((L, 2.0),)
        and unit_dimension("joule/newton") == ((L, 1.0),)
        and unit_dimension("") == ()
    )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("8 m * 5 m = 40 m^2.", []),
        ("8 m * 5 m = 40 m.", ["40 m"]),
        ("(3 m + 2 m) * 4 = 20 m", []),
        ("80 kg / (2 m)^2 = 20 kg/m^2", []),
        ("80 kg / (2 m)^2 = 20 kg/m", ["20 kg/m"]),
        ("5 kg + 3 m", ["3 m"]),
        ("1 kg = $4 and 2 h = 120 km", []),  # rates, not equations
        ("2 weeks * 7 days = 14 days", []),  # days a week
        ("14 hours x $10 = $140", []),  # dollars an hour
        ("3 h * $40/h = 120 h", ["120 h"]),
        ("L * 8 m * 5 m = 40 m^3", []),  # L may be a length
        ("4 * 5 m = 20 m^2", []),  # 4 may be metres
        ("3-5 kg and 4 m", []),
        ("Area: 40 m", ["40 m"]),
        ("Divide by the speed: 12 miles / 4 mph = 3 hours", []),
        ("The area is 60 square metres, while the deed says 60 m.", ["60 m"]),
        ("The area is 16 m^2 and the perimeter is 16 m.", []),
        ("$10 + $0.50 = $10.50 per hour", []),
        ("$600 per year / 12 months = $50 per month", []),
    ],
)
def test_what_does_not_belong(text: str, wrong: list[str]) -> None:
    assert [text[one.start : one.end] for one in unit_mismatches(text)] == wrong
