"""What was found of a server: on the page of a run, and by the button of the form."""

from __future__ import annotations

from pathlib import Path

import pytest

import cotlab
from cotlab.providers.probe import MAX_REQUESTS
from tests.support.loopback import serving
from tests.support.misbehaving import misbehaving
from tests.ui.test_pages import open_page


@pytest.mark.soak
def test_findings_are_shown_beside_the_numbers_and_checked_by_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    with serving() as server, misbehaving(server.root, "no logprobs") as seen:
        server.script(models=["m"], then={"text": "<|ponder|>Hm.<|reply|>7"})
        options = {"provider": "openai_compat", "model": "m", "base_url": seen.base_url, "limit": 1}
        run = cotlab.run_suite("wordproblems", store=tmp_path, probe="auto", **options)
        app = open_page("run", run=run.run_id)
        assert not app.exception and "Server check" in [s.value for s in app.header]
        tables = [frame.value for frame in app.dataframe]
        found = next(table for table in tables if "found" in table).set_index("check")["found"]
        assert found["Reasoning before the reply"] == "not read"
        assert any("unknown format" in warning.value for warning in app.warning)

        form = open_page("new_run")
        form.selectbox(key="new-provider").set_value("openai_compat").run()
        form.text_input(key="new-model-openai_compat").set_value("m").run()
        form.text_input(key="new-url-openai_compat").set_value(seen.base_url).run()
        n_before = len(seen.bodies)
        next(button for button in form.button if button.label == "Check the server").click().run()
        assert not form.exception and 0 < len(seen.bodies) - n_before <= MAX_REQUESTS
        (table,) = [frame.value for frame in form.dataframe if "found" in frame.value]
        assert table.set_index("check")["found"]["Log-probabilities"] == "absent"
