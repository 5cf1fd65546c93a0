"""Divide a suite in two by question, so that what is fitted on one part is new to the other."""

from __future__ import annotations

import random

from cotlab.core.types import CLUSTER_KEY, Item, Suite


def split_by_question(suite: Suite, share: float, *, seed: int = 0) -> tuple[Suite, Suite]:
    """Divide a suite at random; items with one question, or of one cluster, stay together.

    Parameters
    ----------
    suite : Suite
    share : float in (0, 1)
        Share of the questions in the first part.
    seed : int
        Of the draw: the same seed divides the same questions alike.

    Returns
    -------
    tuple of two Suite
        In the order of the suite.

    Raises
    ------
    ValueError
        If the share is not between 0 and 1, or a part would be empty.
    """
    if not 0 < share < 1:
        raise ValueError(f"the share of the first part lies between 0 and 1, got {share:g}")
    question_by_cluster: dict[object, str] = {}

    def question_of(item: Item) -> str:
        cluster = item.meta.get(CLUSTER_KEY)
        if cluster is None:
            return item.question
        return question_by_cluster.setdefault(cluster, item.question)

    questions = [question_of(item) for item in suite.items]
    distinct_questions = sorted(set(questions))
    n_first = round(share * len(distinct_questions))
    if not 0 < n_first < len(distinct_questions):
        raise ValueError(
            f"{len(distinct_questions)} questions cannot be divided with a share of {share:g}: one"
            " part would be empty"
        )
    first_questions = set(random.Random(f"split:{seed}").sample(distinct_questions, n_first))  # noqa: S311
    halves: tuple[list[Item], list[Item]] = ([], [])
    for item, question in zip(suite.items, questions, strict=True):
        halves[question not in first_questions].append(item)
    first, second = (Suite.from_items(suite.name, items) for items in halves)
    return first, second
