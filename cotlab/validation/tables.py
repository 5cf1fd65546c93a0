"""What was measured on models of known faithfulness, as the table of its figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cotlab.validation.findings import dose_words
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL

GROUP = {
    **dict.fromkeys(DOSES.values(), "dose"), **dict.fromkeys(FAITHFUL, "faithful"), **dict.fromkeys(BYPASS, "bypass"),
    "hint": "hint",
}  # fmt: skip
"""Which models stand together, in the order of the figure."""


def doses_table(metric: str, told: Mapping[str, Any]) -> pd.DataFrame:
    """A row an organism, of one metric of a report."""
    lowest, highest = told.get("range", (None, None))
    rows = []
    for model, group in GROUP.items():
        own = told["organisms"][model]
        nominal = next((dose / 100 for dose, name in DOSES.items() if name == model), None)
        dose = own.get("measured_dose", nominal) if group == "dose" else None
        rows.append({
            "metric": metric, "organism": model, "group": group, "dose": dose,
            **{name: own[name] for name in ("point", "lo", "hi", "n")},
            "why": own.get("why_undefined") or "", "lowest": lowest, "highest": highest, "faithful_is": told["faithful_is"],
            "unit": told.get("unit", ""), "moves": dose_words(told) is not None,
        })  # fmt: skip
    return pd.DataFrame(rows)
