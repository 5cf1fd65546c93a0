"""What makes a run's numbers doubtful stands on every page that shows them, as on the page Run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cotlab
from tests.run.test_attack import small_suite
from tests.support.hostile import ALL, RAW
from tests.support.loopback import serving
from tests.ui.test_pages import open_page

DOUBT = "could not be established"
CUT = "replies were cut off at 64 output tokens"


@pytest.mark.soak
@pytest.mark.parametrize("is_doubtful", [True, False])
def test_a_doubtful_run_says_so_on_each_page_of_its_numbers(
    is_doubtful: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    suite = small_suite(tmp_path, 2, 3)
    ids = []
    with serving() as server:
        for seed in (1, 2):
            if is_doubtful:
                server.script(then={"text": "We add 3 and", "finish": "length"})
            else:
                server.script(then={"text": "So the answer is 7319."})
            options = {"provider": "openai_compat", "model": f"m {ALL}", "seed": seed}
            options |= {"base_url": server.base_url, "probe": "auto"}
            options |= {"given": "prefix" if is_doubtful else "user"}
            scorers = ["ablation", "causal"]
            run = cotlab.run_suite(suite, store=tmp_path, scorer=scorers, **options)
            ids.append(run.run_id)
    shown = {
        "run": {"run": ids[0]},
        "items": {"run": ids[0], "item": "i0"},
        "robustness": {"run": ids[0]},
        "compare": {"base": ids[0], "other": ids[1]},
    }
    for page, query in shown.items():
        app = open_page(page, **query)
        assert not app.exception, page
        warnings = " ".join(warning.value for warning in app.warning)
        assert (DOUBT in warnings) is (CUT in warnings) is is_doubtful, (page, warnings)
        unescaped = re.sub(r"\\.", "", warnings)
        assert not [raw for raw in RAW if raw in unescaped], page
        if is_doubtful and page == "compare":
            assert warnings.count(DOUBT) == len(ids)
