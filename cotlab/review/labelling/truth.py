"""What is known of labelled chains: where the first mistake is, and whether the answer is right.

It comes from raters, or from the file that a suite was imported from (see
``cotlab.suites.importers.benchmarks``). Raters come first. A rater's verdict on a chain decides
whether it is sound; where the first mistake is follows from those raters who read the steps and
whose verdict is the one that was settled on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.errors import UnknownName
from cotlab.core.keys import digest
from cotlab.core.labels import OUTDATED_NOTE
from cotlab.core.types import CLUSTER_KEY
from cotlab.review.labelling.judged_steps import load_step_labels, measures_model_chains
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from cotlab.store.item_metadata import load_item_metadata
from cotlab.store.live import ItemKey
from cotlab.suites.importers.benchmarks import FAITHFUL_KEY, MISTAKE_KEY
from cotlab.suites.importers.records import CORRECT_KEY

TRUTH_COLUMNS = (
    *("run", "item_id", "cluster", "domain", "source", "n_steps", "steps_judged"),
    *("first_wrong_step", "sound", "answer_correct", "answer_and_chain", "faithful", "origin"),
)
_META_KEYS = (MISTAKE_KEY, CORRECT_KEY, FAITHFUL_KEY)
LABEL_KEYS = (MISTAKE_KEY, FAITHFUL_KEY)
"""Fields of an item's metadata that say of a suite that its chains came with labels."""
_NO_MISTAKE = -1
"""Vote of a rater who read the steps and found no mistake."""
_SOUND_BY_VERDICT = {"acceptable": True, "not_acceptable": False}
FROM_RATERS, FROM_IMPORT = "raters", "import"
"""Origins of what is known of an item."""


def load_truth(
    store: Store,
    runs: Sequence[str],
    *,
    until: datetime | None = None,
    with_imported: bool = True,
) -> pd.DataFrame:
    """Return what is known of each scored item of these runs.

    Labels that were imported with a suite are of the suite's chains: an item of a run that measures
    the model's own chains has none.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids.
    until : datetime, optional
        Only labels that raters gave by then.
    with_imported : bool
        Whether labels that came with a suite count.

    Returns
    -------
    DataFrame
        One row an item, in the order of the runs and of their suites:

        - ``run, item_id`` (str);
        - ``cluster`` (str): the same for all items with one question, in whatever run;
        - ``domain`` (str or None): the item's category;
        - ``source`` (str): the name of the suite;
        - ``n_steps`` (int or None): steps of the chain, None where it is the model's own;
        - ``steps_judged`` (bool): whether somebody read the steps for the first mistake;
        - ``first_wrong_step`` (int from 0 or None): None where no step is wrong, and where
          they were not judged;
        - ``sound`` (bool or None): whether the chain is free of mistakes;
        - ``answer_correct`` (bool or None): whether the answer at the chain's end is right;
        - ``answer_and_chain`` (bool or None): whether the answer is right and the chain sound;
        - ``faithful`` (bool or None): whether the chain is faithful;
        - ``origin``: ``raters``, ``import``, or None where nothing is known.

        ``.attrs["model_chain_runs"]`` lists the runs that measure the model's own chains,
        ``.attrs["n_other_steps"]`` counts labels of steps that are not the item's any more: where
        they place the mistake is not used.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    items = load_item_metadata(store, runs, (CLUSTER_KEY, *_META_KEYS))
    run_ids = list(dict.fromkeys(runs))
    model_chain_runs = [run for run in run_ids if measures_model_chains(store, run)]
    rated, n_other_steps = _rated_truth(store, load_current_labels(store, run_ids, until=until))
    rows = []
    for row, cluster in zip(items.to_dict("records"), _cluster_names(items), strict=True):
        n_steps = None if row["run"] in model_chain_runs else int(row["n_steps"])
        imported = {}
        if with_imported and n_steps is not None:
            meta = {key: json.loads(row[key]) for key in _META_KEYS if row[key] is not None}
            imported = imported_truth(meta, n_steps)
        rows.append(
            {
                "run": row["run"],
                "item_id": row["item_id"],
                "cluster": cluster,
                "domain": row["category"] or None,
                "source": row["suite_name"],
                "n_steps": n_steps,
                "steps_judged": False,
                **_merge_truth(rated.get((row["run"], row["item_id"])), imported),
            }
        )
    table = pd.DataFrame(rows, columns=list(TRUTH_COLUMNS), dtype=object)
    table = table.where(table.notna(), None).assign(steps_judged=table["steps_judged"].astype(bool))
    table.attrs |= {"model_chain_runs": model_chain_runs, "n_other_steps": n_other_steps}
    return table


def _merge_truth(rated: Mapping[str, Any] | None, imported: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what raters say, and what was imported where they say nothing against it."""
    if rated is None:
        return imported
    merged = dict(rated)
    for name in ("answer_correct", "faithful"):
        if merged[name] is None:
            merged[name] = imported.get(name)
    is_same_verdict = merged["sound"] is not None and imported.get("sound") == merged["sound"]
    if is_same_verdict and not merged["steps_judged"]:
        merged |= {name: imported[name] for name in ("steps_judged", "first_wrong_step")}
    return merged


def _rated_truth(store: Store, labels: CurrentLabels) -> tuple[dict[ItemKey, dict[str, Any]], int]:
    """Return what the raters of each item say, and how many labels are of other steps."""
    all_labels = pd.concat([labels.rater_labels, labels.adjudications], ignore_index=True)
    step_labels = load_step_labels(store, all_labels)
    current_ids = set(all_labels.loc[step_labels["these_steps"].astype(bool), "id"])
    n_other_steps = int(all_labels["steps_judged"].sum()) - len(current_ids)
    keys = zip(all_labels["run"], all_labels["item_id"], strict=True)
    n_steps_by_item = {k: int(n) for k, n in zip(keys, step_labels["n_steps"], strict=True) if n}
    rows = as_rows(labels)

    def settled(
        value_of: Callable[[Mapping[str, Any]], Hashable | None], *, or_raters: bool = False
    ) -> dict[ItemKey, Any]:
        """Return what is settled; ``or_raters``: who settles the verdict may leave this open."""
        values = {key: one.value for key, one in settle_labels(rows, value_of).items()}
        by_raters = settle_labels(rows._replace(adjudications=[]), value_of) if or_raters else {}
        return values | {k: one.value for k, one in by_raters.items() if values[k] is None}

    sound = settled(lambda row: _SOUND_BY_VERDICT.get(row["reasoning"]))

    def first_mistake(row: Mapping[str, Any]) -> int | None:
        verdict = _SOUND_BY_VERDICT.get(row["reasoning"])
        if row["id"] not in current_ids or verdict is None:
            return None
        if verdict != sound[row["run"], row["item_id"]]:
            return None
        return _NO_MISTAKE if row["first_wrong_step"] is None else int(row["first_wrong_step"])

    mistakes = settled(first_mistake, or_raters=True)
    answers = settled(lambda row: row["answer_correct"])
    faithful = settled(lambda row: row["faithful"], or_raters=True)
    both = settled(lambda row: row["target"])
    rated = {
        key: {
            "steps_judged": mistakes[key] is not None,
            "first_wrong_step": None if mistakes[key] == _NO_MISTAKE else mistakes[key],
            "sound": is_sound,
            "answer_correct": answers[key],
            "answer_and_chain": both[key],
            "faithful": faithful[key],
            "origin": FROM_RATERS,
        }
        | ({"n_steps": n_steps_by_item[key]} if key in n_steps_by_item else {})
        for key, is_sound in sound.items()
    }
    return rated, n_other_steps


def imported_truth(meta: Mapping[str, Any], n_steps: int) -> dict[str, Any]:
    """Return what the metadata of an item say of its chain, of the columns of ``load_truth``.

    Parameters
    ----------
    meta : mapping
        ``Item.meta``.
    n_steps : int, at least 0
        Steps of the suite's chain.

    Returns
    -------
    dict
        Empty where they say nothing; a value that cannot be of the chain says nothing.
    """
    truth: dict[str, Any] = {}
    if MISTAKE_KEY in meta and n_steps:
        mistake = meta[MISTAKE_KEY]
        if mistake is None or (type(mistake) is int and 0 <= mistake < n_steps):
            truth |= {
                "steps_judged": True,
                "first_wrong_step": mistake,
                "sound": mistake is None,
            }
    for name, key in (("answer_correct", CORRECT_KEY), ("faithful", FAITHFUL_KEY)):
        if isinstance(meta.get(key), bool):
            truth[name] = meta[key]
    if not truth:
        return truth
    both = _answer_and_chain(truth.get("answer_correct"), truth.get("sound"))
    return {**truth, "answer_and_chain": both, "origin": FROM_IMPORT}


def _cluster_names(items: pd.DataFrame) -> list[str]:
    """Return the digest of each item's question, or of the first question of its cluster."""
    question_by_cluster: dict[tuple[str, str], str] = {}
    names = []
    for suite, question, cluster in zip(
        items["suite"], items["question"], items[CLUSTER_KEY], strict=True
    ):
        if cluster is not None and cluster != "null":
            question = question_by_cluster.setdefault((suite, cluster), question)
        names.append(digest(question))
    return names


def _answer_and_chain(answer: bool | None, sound: bool | None) -> bool | None:
    if answer is False or sound is False:
        return False
    return True if answer and sound else None


TARGETS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool | None]]] = {
    "chain_sound": ("the chain is free of mistakes", lambda row: row["sound"]),
    "chain_sound_given_correct": (
        "the chain is free of mistakes, among chains whose answer is right",
        lambda row: row["sound"] if row["answer_correct"] is True else None,
    ),
    "answer_and_chain": (
        "the answer is right and the chain free of mistakes",
        lambda row: row["answer_and_chain"],
    ),
    "faithful": ("the chain is faithful", lambda row: row["faithful"]),
}
"""Name of each target → what it says, and its value of a row of ``load_truth``."""


DEFAULT_TARGET = "answer_and_chain"
"""What a calibrator is of, unless another target is chosen."""


def require_target(target: str) -> None:
    """Check the name of a target.

    Raises
    ------
    UnknownName
        If there is no such target.
    """
    if target not in TARGETS:
        raise UnknownName("target", target, tuple(TARGETS))


def target_values(truth: pd.DataFrame, target: str) -> pd.Series:
    """Return True, False or None for each row of ``load_truth``, by a target of ``TARGETS``.

    Raises
    ------
    UnknownName
        If there is no such target.
    """
    require_target(target)
    value_of = TARGETS[target][1]
    values = [value_of(row) for row in truth.to_dict("records")]
    return pd.Series(values, index=truth.index, dtype=object)


TIE_REASON = "raters are tied"
UNSURE_REASON = "nobody is sure"
"""Why a labelled item has no target."""
ADJUDICATION_KIND = "adjudication"
"""Kind of queue whose labels decide, and are given in view of other labels."""
ITEM_COLUMNS = ["run", "item_id"]


_ROW_COLUMNS = (
    *("seq", "id", "run", "item_id", "reasoning", "answer_correct", "target", "faithful"),
    *("steps_judged", "first_wrong_step", "steps_digest"),
)


class CurrentLabels(NamedTuple):
    """Current labels, with the columns of ``cotlab.store.labels.list_labels``."""

    rater_labels: pd.DataFrame
    """The last label of each (run, item, rater) outside of adjudications."""
    adjudications: pd.DataFrame
    """The last label of each (run, item, rater) in adjudications; an item's last one counts."""
    outdated_rows: pd.DataFrame
    """Rows that withdrew a label because another reply has taken the place of its own."""


def load_current_labels(
    store: Store,
    runs: Sequence[str] | None = None,
    queue: str | None = None,
    *,
    until: datetime | None = None,
) -> CurrentLabels:
    """Return the current labels of these runs or of all.

    A rater's label in an adjudication does not change their earlier one.

    Parameters
    ----------
    store : Store
    runs : sequence of str, optional
    queue : str, optional
        Labels that are current in this queue, which must be known or have labels.
    until : datetime, optional
        The labels that were current at that time.
    """
    rows = label_store.list_labels(store, history=True)
    if runs is not None:
        rows = rows[rows["run"].isin(runs)]
    if until is not None:
        rows = rows[rows["at_"] <= until]
    kind_by_queue = label_store.kinds_by_queue(store)
    is_adjudication = rows["queue"].isin(
        [name for name, kind in kind_by_queue.items() if kind == ADJUDICATION_KIND]
    )
    is_in_scope = rows["queue"] == queue if queue is not None else ~is_adjudication
    if queue is not None and not is_in_scope.any() and queue not in kind_by_queue:
        raise UnknownName("queue", queue, list(kind_by_queue)[:20])

    def select_current_rows(table: pd.DataFrame) -> pd.DataFrame:
        newest_rows = table.drop_duplicates([*ITEM_COLUMNS, "rater"], keep="last")
        return newest_rows[~newest_rows["withdrawn"].astype(bool)].reset_index(drop=True)

    outdated_rows = rows[
        rows["withdrawn"].astype(bool)
        & (rows["note"] == OUTDATED_NOTE)
        & (is_in_scope | is_adjudication)
    ]
    return CurrentLabels(
        select_current_rows(rows[is_in_scope]),
        select_current_rows(rows[is_adjudication]),
        outdated_rows.drop_duplicates(ITEM_COLUMNS),
    )


class LabelRows(NamedTuple):
    """Current labels as rows of what raters say, to be settled several times."""

    raters: list[dict[str, Any]]
    """The last label of each (run, item, rater) outside of adjudications, in their order."""
    adjudications: list[dict[str, Any]]
    """The last label of each (run, item, rater) in adjudications, in their order."""


class Settled(NamedTuple):
    """What the raters of an item settle on."""

    value: Any
    """The value; None where there is none."""
    n_raters: int
    """Labels that it rests on; 1 where an adjudication decides, 0 without a value."""
    is_adjudicated: bool
    """Whether an adjudication decides."""
    reason: str
    """Why there is no value; "" where there is one."""


def as_rows(labels: CurrentLabels) -> LabelRows:
    """Return labels as rows with the columns of ``list_labels`` that say something of an item."""

    def to_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
        columns = [table[name].tolist() for name in _ROW_COLUMNS]
        return [dict(zip(_ROW_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]

    return LabelRows(to_rows(labels.rater_labels), to_rows(labels.adjudications))


def settle_labels(
    labels: LabelRows, value_of: Callable[[Mapping[str, Any]], Hashable | None]
) -> dict[ItemKey, Settled]:
    """Return what raters settle on of each labelled item, in the order of the first labels.

    Parameters
    ----------
    labels : LabelRows
    value_of : callable
        Value of a row; None where it says nothing.

    Returns
    -------
    dict
        The last adjudication decides where there is one, also by saying nothing; else the value of
        more than half of the raters who say something.
    """
    adjudicated = {(row["run"], row["item_id"]): value_of(row) for row in labels.adjudications}
    rows = sorted([*labels.raters, *labels.adjudications], key=lambda row: row["seq"])
    votes: dict[ItemKey, Counter[Hashable]] = {
        (row["run"], row["item_id"]): Counter() for row in rows
    }
    for row in labels.raters:
        if (value := value_of(row)) is not None:
            votes[row["run"], row["item_id"]][value] += 1
    settled_by_item = {}
    for key, counts in votes.items():
        if key in adjudicated:
            value, n_raters = adjudicated[key], 1
        else:
            leading = counts.most_common(1)
            has_majority = bool(leading) and 2 * leading[0][1] > counts.total()
            value, n_raters = (leading[0][0] if has_majority else None), counts.total()
        reason = UNSURE_REASON if key in adjudicated or not counts else TIE_REASON
        settled_by_item[key] = (
            Settled(None, 0, key in adjudicated, reason)
            if value is None
            else Settled(value, n_raters, key in adjudicated, "")
        )
    return settled_by_item
