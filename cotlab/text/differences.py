"""What differs between two texts, word by word, and which steps of two chains correspond."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from cotlab.text.edits.ablations import NUMBER_RE, find_label_end, find_stated_number

ChangeKind = Literal["same", "removed", "added"]
_TOKEN_RE = re.compile(r"\d+(?:[.,]\d+)*|\w+|\s+|[^\w\s]")
_MAX_TOKENS = 2000
"""Longer texts are not compared word by word: that would take seconds."""
_MIN_SIMILARITY = 0.3
"""Texts with a smaller share of common words are shown as one removed and one added."""


class TextChange(NamedTuple):
    """A piece of two compared texts."""

    kind: ChangeKind
    """Whether both have it, only the first ("removed"), or only the second ("added")."""
    text: str
    """The piece."""


def text_changes(before: str, after: str) -> tuple[TextChange, ...]:
    """Return the pieces of two texts in order, whole words and numbers.

    The pieces "same" and "removed" add up to ``before``, "same" and "added" to ``after``.
    """
    if before == after:
        return (TextChange("same", before),) if before else ()
    tokens_before, tokens_after = _TOKEN_RE.findall(before), _TOKEN_RE.findall(after)
    if max(len(tokens_before), len(tokens_after)) > _MAX_TOKENS:
        return _replaced_text(before, after)
    matcher = SequenceMatcher(None, tokens_before, tokens_after, autojunk=False)
    n_common = sum(
        not token.isspace()
        for i, _, size in matcher.get_matching_blocks()
        for token in tokens_before[i : i + size]
    )
    n_tokens = sum(not token.isspace() for token in (*tokens_before, *tokens_after))
    if 2 * n_common < _MIN_SIMILARITY * n_tokens:
        return _replaced_text(before, after)
    changes: list[TextChange] = []
    for operation, i, i_end, j, j_end in matcher.get_opcodes():
        if operation == "equal":
            changes.append(TextChange("same", "".join(tokens_before[i:i_end])))
        else:
            changes += _replaced_text(
                "".join(tokens_before[i:i_end]), "".join(tokens_after[j:j_end])
            )
    return tuple(changes)


def _replaced_text(before: str, after: str) -> tuple[TextChange, ...]:
    changes = (TextChange("removed", before), TextChange("added", after))
    return tuple(change for change in changes if change.text)


def without_label(step: str) -> str:
    """Return a step without its label ("Step 2: "); all of it where nothing else is left."""
    return step[find_label_end(step) :].strip() or step.strip()


def states_otherwise(step: str, other_step: str) -> bool:
    """Return whether two wordings of a step state something else.

    By their numbers where one of them has any, else by their words: rules cannot tell another
    statement in words from a rewording.
    """
    text, other_text = without_label(step), without_label(other_step)
    numbers, other_numbers = (sorted(NUMBER_RE.findall(t)) for t in (text, other_text))
    if numbers or other_numbers:
        return numbers != other_numbers
    return text.lower().split() != other_text.lower().split()


def stated_number(step: str) -> str | None:
    """Return the number that a step ends on: the result of its last "=", or its last number."""
    body = step[find_label_end(step) :]
    matches = list(NUMBER_RE.finditer(body))
    return find_stated_number(body, matches).group() if matches else None


def align_steps(steps: Sequence[str], written_steps: Sequence[str]) -> tuple[str | None, ...]:
    """Return, for each step, the one that was written in its place; None where there is none.

    Chains of the same length correspond one to one. Else equal steps are matched first, and the
    others between them in their order; steps that were written beyond that are left out.
    """
    if len(steps) == len(written_steps):
        return tuple(written_steps)
    aligned: list[str | None] = [None] * len(steps)
    keys, written_keys = (
        [without_label(text).lower() for text in texts] for texts in (steps, written_steps)
    )
    matcher = SequenceMatcher(None, keys, written_keys, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for k in range(min(i_end - i, j_end - j)):
            aligned[i + k] = written_steps[j + k]
    return tuple(aligned)


def pair_steps(
    steps: Sequence[str], other_steps: Sequence[str]
) -> tuple[tuple[int | None, int | None], ...]:
    """Return which steps of two chains stand beside each other; None where one has no counterpart.

    Equal steps are matched first, by their words without labels; those between them stand beside
    each other in their order.
    """
    keys, other_keys = (
        [" ".join(without_label(text).lower().split()) for text in texts]
        for texts in (steps, other_steps)
    )
    pairs: list[tuple[int | None, int | None]] = []
    matcher = SequenceMatcher(None, keys, other_keys, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for k in range(max(i_end - i, j_end - j)):
            pairs.append((i + k if i + k < i_end else None, j + k if j + k < j_end else None))
    return tuple(pairs)
