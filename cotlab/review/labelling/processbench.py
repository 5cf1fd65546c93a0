"""Write the labels of a run's chains in ProcessBench's form: the first wrong step of each chain."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from cotlab.core.errors import ConfigError
from cotlab.review.labelling.judged_steps import load_judged_steps, measures_model_chains
from cotlab.review.labelling.truth import load_truth
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_metadata import load_item_metadata
from cotlab.store.recorded_models import GENERATOR_KEYS

PROCESSBENCH_FORMAT = "processbench"
NO_WRONG_STEP = -1
"""Label of a chain without a wrong step."""
UNLABELLED_REASON = "no rater has labelled it"
UNPLACED_REASON = "its raters do not settle where its first mistake is"
WHOLE_CHAIN_REASON = (
    "no step is wrong and the chain is not acceptable as a whole, which the form cannot say"
)
NO_CHAIN_REASON = "its chain is not in the store or its log"


class ProcessBenchLabels(NamedTuple):
    """The labelled chains of a run as a file in ProcessBench's form."""

    text: str
    """JSON Lines: ``id, generator, problem, steps, final_answer_correct, label``."""
    n_chains: int
    """Chains in it."""
    n_left_out_by_reason: Mapping[str, int]
    """Chains that are not in it."""


def processbench_labels(store: Store, run: str) -> ProcessBenchLabels:
    """Return the chains of a run whose first wrong step raters settled on, with that label.

    Parameters
    ----------
    store : Store
    run : str

    Returns
    -------
    ProcessBenchLabels
        ``label`` counts from 0; -1 where no step is wrong. ``final_answer_correct`` is what the
        raters settled on, else what the suite's file says, null where neither does. ``generator``
        is the model that wrote the chain, null where it is not known.

    Raises
    ------
    UnknownName
        If there is no such run.
    ConfigError
        If the run stored no texts.
    """
    row = read.get_run(store, run)
    if read.is_suite_redacted(store, row["suite"]):
        raise ConfigError(f"The run {run} stored no texts: its chains cannot be written.")
    truth = load_truth(store, [run], with_imported=False)
    answers = load_truth(store, [run])["answer_correct"].tolist()
    steps_by_item = load_judged_steps(store, [(run, str(item)) for item in truth["item_id"]])
    items = load_item_metadata(store, [run], GENERATOR_KEYS).set_index("item_id")
    is_model_chain = measures_model_chains(store, run)
    lines: list[str] = []
    n_left_out: Counter[str] = Counter()
    for record, is_correct in zip(truth.to_dict("records"), answers, strict=True):
        item_id = str(record["item_id"])
        steps = steps_by_item.get((run, item_id), ())
        if reason := _left_out_reason(record, len(steps)):
            n_left_out[reason] += 1
            continue
        item = items.loc[item_id]
        first = record["first_wrong_step"]
        line = {
            "id": item_id,
            "generator": row["model"] if is_model_chain else _generator(item),
            "problem": item["question"],
            "steps": list(steps),
            "final_answer_correct": is_correct,
            "label": NO_WRONG_STEP if first is None else int(first),
        }
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    return ProcessBenchLabels("".join(lines), len(lines), dict(n_left_out))


def _left_out_reason(record: Mapping[str, Any], n_steps: int) -> str:
    """Return why a chain is not written; "" where it is."""
    first = record["first_wrong_step"]
    if record["origin"] is None:
        return UNLABELLED_REASON
    if not record["steps_judged"]:
        return UNPLACED_REASON
    if not n_steps or (first is not None and first >= n_steps):
        return NO_CHAIN_REASON
    return WHOLE_CHAIN_REASON if first is None and record["sound"] is not True else ""


def _generator(item: Mapping[str, Any]) -> str | None:
    """Return who wrote the suite's chain, as the item's metadata say."""
    for key in GENERATOR_KEYS:
        name = json.loads(item[key]) if item[key] is not None else None
        if isinstance(name, str) and name.strip():
            return name
    return None
