"""A diagnosis of the address is named where a run has none, and so no picker of them."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def filtered_page() -> None:
    import pandas as pd

    from cotlab.ui.address import render_unknown_values, start_page
    from cotlab.ui.reliability import _filter_by_diagnosis

    start_page("run")
    _filter_by_diagnosis(pd.DataFrame({"item": ["a", "b"], "diagnosis": ["", ""]}))
    render_unknown_values()


@pytest.mark.parametrize(("value", "is_known"), [(None, True), ("any", True), ("9" * 99, False)])
def test_an_unknown_diagnosis_is_named_in_a_line(value: str | None, is_known: bool) -> None:
    app = AppTest.from_function(filtered_page, default_timeout=120)
    if value is not None:
        app.query_params["diagnosis"] = value
    app.run()
    assert not app.exception, [error.value for error in app.exception]
    warnings = [warning.value for warning in app.warning]
    assert len(warnings) == (0 if is_known else 1)
    assert is_known or "diagnosis = 999" in warnings[0].replace("\\", "")
