"""The verdict on a run that ended, computed once and kept in the store.

Its evidence is kept, from which the sentences are made again. It counts for one revision and status
of its run, one version of how evidence is collected, and one state of what is known of the
measures; with any other it is computed anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cotlab.analysis.verdict.collect import collect_evidence
from cotlab.analysis.verdict.measures import RunEvidence
from cotlab.analysis.verdict.record import RunVerdict, judge_evidence, judge_stored_run
from cotlab.analysis.verdict.validated import load_measure_validation
from cotlab.analysis.view import RunView
from cotlab.core.keys import digest
from cotlab.store.database import Store
from cotlab.store.run_results import RunState, keep_results, read_results
from cotlab.validation.report import REPORT_FILE, REPORT_FOLDER, SHIPPED_REPORT_PATH

RULES_VERSION = 1
"""Version of how evidence is collected: raised whenever a run would have other evidence."""


def verdict_rules(store_folder: Path) -> str:
    """Return the digest of the rules and of what is known of the measures, as a store has it."""
    paths = (store_folder / REPORT_FOLDER / REPORT_FILE, SHIPPED_REPORT_PATH)
    return _rules_digest(str(store_folder), tuple(map(_changed_at, paths)))


def _changed_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.is_file() else 0


@lru_cache(maxsize=8)
def _rules_digest(store_folder: str, changed_at: tuple[int, ...]) -> str:
    validation = load_measure_validation(store_folder)
    known = {
        name: [value.auroc, value.text, [asdict(reading) for reading in value.dose_readings]]
        for name, value in validation.items()
    }
    return digest([RULES_VERSION, known])


def load_verdicts(store: Store, states: Iterable[RunState]) -> dict[RunState, RunVerdict]:
    """Return the kept verdicts on runs in these states; a run that has none is not in it."""
    texts = read_results(store, "verdict", states, verdict_rules(store.folder))
    results = {}
    for state, text in texts.items():
        with suppress(ValueError):  # what cannot be read is computed anew
            results[state] = verdict_from_json(text)
    return results


def keep_verdicts(store: Store, results: Mapping[RunState, RunVerdict]) -> bool:
    """Keep verdicts on runs that ended, as ``keep_results`` does."""
    texts = {
        state: verdict_to_json(result)
        for state, result in results.items()
        if result.evidence.status == state.status
    }
    return keep_results(store, "verdict", texts, verdict_rules(store.folder))


def judge_run_once(view: RunView) -> RunVerdict:
    """Return the verdict on a run as it is stored: the kept one, else a computed one, then kept."""
    state = RunState(view.id, view.revision, view.status)
    result = load_verdicts(view.store, [state]).get(state)
    if result is None:
        result = judge_stored_run(view)
        keep_verdicts(view.store, {state: result})
    return result


def stored_evidence(view: RunView) -> RunEvidence:
    """Return what the verdict on a run depends on: that of the kept verdict, else computed."""
    state = RunState(view.id, view.revision, view.status)
    result = load_verdicts(view.store, [state]).get(state)
    return collect_evidence(view) if result is None else result.evidence


def verdict_to_json(result: RunVerdict) -> str:
    """Return the evidence of a verdict as JSON text: ``verdict_from_json`` judges it again."""
    return json.dumps(asdict(result.evidence), ensure_ascii=False, allow_nan=False)


def verdict_from_json(text: str) -> RunVerdict:
    """Return the verdict on the evidence of a JSON text."""
    return judge_evidence(_adapter().validate_python(json.loads(text)))


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(RunEvidence)
