"""Features of each step of a chain, by its text alone: what a hazard of the first mistake reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate

from cotlab.text.arithmetic.readings import StepReading, read_steps
from cotlab.text.chain_features.vocabulary import (
    WORD_PATTERN,
    WORDING_FAMILIES,
    count_wording,
    numerals_of,
    overlap,
    terms_of,
)

POSITION_FEATURES: Mapping[str, str] = {
    "position": "steps before this one",
    "is_first": "1 for the first step, else 0",
    "is_last": "1 for the last step, else 0",
    "relative_position": "steps before this one / (steps − 1)",
    "n_steps": "steps of the chain",
}
"""Where a step stands → what each says."""
LENGTH_FEATURES: Mapping[str, str] = {
    "characters": "characters of the step",
    "relative_length": "characters of the step / their mean over the chain",
    "chain_characters": "characters of the chain",
    "question_characters": "characters of the question",
}
"""How long a step is, its chain and its question → what each says."""
TEXT_FEATURES: Mapping[str, str] = {
    "words": "words of three letters or more",
    "distinct_numbers": "different numbers in digits",
    "new_numbers": "those that neither the question nor a step before has",
    "long_new_numbers": "those of them with three digits or more, or a decimal point",
    "known_number_share": "share of the different numbers that stood before",
    "decimals": "numbers with a decimal point",
    "approximations": "signs and words of rounding",
    "equalities": "equals signs",
    "inequalities": "signs of inequality",
    "is_boxed": "1 where the step boxes an answer, else 0",
    "question_overlap": "words shared with the question / words of either",
    "previous_overlap": "words shared with the step before / words of either",
    "repetition": "the largest overlap with one of the four steps before",
    "new_word_share": "share of the step's words that neither the question nor a step before has",
    "question_word_share": "share of the question's words that the step has",
}
"""Numbers, signs and the overlap of words → what each says."""
EQUATION_FEATURES: Mapping[str, str] = {
    "equations": "equations that compute something",
    "true_equations": "those that hold",
    "has_false_equation": "1 where one of them is false, else 0",
    "false_steps_before": "steps before this one with a false equation",
    "false_steps": "steps of the chain with a false equation",
}
"""Equations of the step by arithmetic → what each says."""
BASELINE_FEATURES = (*POSITION_FEATURES, *LENGTH_FEATURES)
"""Features without the content of a step: the baseline that a fit must beat."""
STEP_FEATURES = (*BASELINE_FEATURES, *TEXT_FEATURES, *WORDING_FAMILIES, *EQUATION_FEATURES)
"""Every feature of ``step_features``."""
MAX_COMPARED_STEPS = 4
"""Steps before a step with which its repetition is measured."""
_ROUNDING_RE = re.compile(r"(?i)\\approx|≈|approximately")
_INEQUALITY_RE = re.compile(r"\\leq?|\\geq?|[<>≤≥]")


def step_features(question: str, steps: Sequence[str]) -> list[dict[str, float | None]]:
    """Return the features of each step of a chain.

    Parameters
    ----------
    question : str
    steps : sequence of str
        The steps in order.

    Returns
    -------
    list of dict
        ``STEP_FEATURES`` → value for each step: counts from 0, shares in [0, 1], None where a share
        is of nothing. What each counts is in ``POSITION_FEATURES``, ``LENGTH_FEATURES``,
        ``TEXT_FEATURES``, the lists of ``WORDING_FAMILIES`` and ``EQUATION_FEATURES``.

    Notes
    -----
    None of them reads what a step claims, but for equations that arithmetic can decide: a chain can
    be written to have any of the others.
    """
    n_steps, chain_characters = len(steps), sum(map(len, steps))
    question_terms = terms_of(question)
    known_numbers, known_terms = set(numerals_of(question)), set(question_terms)
    terms_by_step = [terms_of(step) for step in steps]
    readings = read_steps(steps)
    false_steps = [reading.mistake is not None for reading in readings]
    n_false, false_before = sum(false_steps), [0, *accumulate(false_steps)]
    rows: list[dict[str, float | None]] = []
    for i, step in enumerate(steps):
        terms, numbers = terms_by_step[i], numerals_of(step)
        new_numbers = numbers - known_numbers
        earlier_terms = terms_by_step[max(0, i - MAX_COMPARED_STEPS) : i]
        rows.append(
            {
                "position": i,
                "is_first": i == 0,
                "is_last": i == n_steps - 1,
                "relative_position": i / (n_steps - 1) if n_steps > 1 else None,
                "n_steps": n_steps,
                "characters": len(step),
                "relative_length": _share(len(step) * n_steps, chain_characters),
                "chain_characters": chain_characters,
                "question_characters": len(question),
                "words": len(WORD_PATTERN.findall(step)),
                "distinct_numbers": len(numbers),
                "new_numbers": len(new_numbers),
                "long_new_numbers": sum(len(n) > 2 or "." in n for n in new_numbers),
                "known_number_share": _share(len(numbers) - len(new_numbers), len(numbers)),
                "decimals": sum("." in number for number in numbers),
                "approximations": len(_ROUNDING_RE.findall(step)),
                "equalities": step.count("="),
                "inequalities": len(_INEQUALITY_RE.findall(step)),
                "is_boxed": "\\boxed" in step,
                "question_overlap": overlap(terms, question_terms),
                "previous_overlap": overlap(terms, terms_by_step[i - 1]) if i else None,
                "repetition": max((overlap(terms, t) or 0.0 for t in earlier_terms), default=0.0),
                "new_word_share": _share(len(terms - known_terms), len(terms)),
                "question_word_share": _share(len(terms & question_terms), len(question_terms)),
                **count_wording(step),
                **_equation_features(readings[i]),
                "false_steps_before": false_before[i],
                "false_steps": n_false,
            }
        )
        known_numbers |= numbers
        known_terms |= terms
    return [{k: None if v is None else float(v) for k, v in row.items()} for row in rows]


def _equation_features(reading: StepReading) -> dict[str, float]:
    return {
        "equations": len(reading.equations),
        "true_equations": sum(e.holds is True for e in reading.equations),
        "has_false_equation": reading.mistake is not None,
    }


def _share(part: int, total: int) -> float | None:
    return part / total if total else None
