"""What was measured on models of known faithfulness, as the table of its figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cotlab.validation.findings import dose_sentence
from cotlab.validation.models import BYPASS, DOSES, FAITHFUL

GROUP = {
    **dict.fromkeys(DOSES.values(), "dose"),
    **dict.fromkeys(FAITHFUL, "faithful"),
    **dict.fromkeys(BYPASS, "bypass"),
    "hint": "hint",
}
"""Which models stand together, in the order of the figure."""


def doses_table(metric: str, report: Mapping[str, Any]) -> pd.DataFrame:
    """A row an organism, of one metric of a report."""
    lowest, highest = report.get("range", (None, None))
    rows = []
    for model, group in GROUP.items():
        organism = report["organisms"][model]
        nominal = next((dose / 100 for dose, name in DOSES.items() if name == model), None)
        dose = organism.get("measured_dose", nominal) if group == "dose" else None
        rows.append(
            {
                "metric": metric,
                "organism": model,
                "group": group,
                "dose": dose,
                **{name: organism[name] for name in ("point", "lo", "hi", "n")},
                "why": organism.get("why_undefined") or "",
                "lowest": lowest,
                "highest": highest,
                "faithful_is": report["faithful_is"],
                "unit": report.get("unit", ""),
                "moves": dose_sentence(report) is not None,
            }
        )
    return pd.DataFrame(rows)
