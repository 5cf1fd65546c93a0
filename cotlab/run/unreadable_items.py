"""Count the items that a model cannot read, before a run: its words are not in the vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cotlab.core.resources import shipped_organisms
from cotlab.core.types import MIN_VERDICT_ITEMS, Item, ModelRef, Plan, Suite
from cotlab.core.vocabulary import UnknownWord
from cotlab.suites.wordproblems import MAX_NUMBER

N_EXAMPLES = 3
"""Unknown words that a caution names."""
MIN_TELLING_LETTERS = 4
"""Shorter unknown words are named only where there are no others."""


class UnreadableItems(NamedTuple):
    """Items with a text that the model cannot read; at least one."""

    n: int
    """Items whose question or chain it cannot read."""
    n_items: int
    """Items that the run measures."""
    unknown: tuple[UnknownWord, ...]
    """The unknown words that most of the ``n`` items have, longer ones first; at most
    ``N_EXAMPLES`` of each explanation."""
    reads_questions: bool
    """Whether it can read the question of each item."""

    @property
    def is_all(self) -> bool:
        """Return whether no item can be read."""
        return self.n == self.n_items

    @property
    def words_text(self) -> str:
        """Return why the ``n`` items cannot be read, with examples of the words."""
        words_by_explanation: dict[str, list[str]] = {}
        for word in self.unknown:
            words_by_explanation.setdefault(word.explanation, []).append(repr(word.text))
        return "; ".join(
            f"words such as {', '.join(examples)} are {explanation}"
            for explanation, examples in words_by_explanation.items()
        )

    def caution(self, model: str) -> str:
        """Return sentences on what that means for a run of a model."""
        count = f"{self.n:,} of {self.n_items:,} items" if self.n_items > 1 else "the item"
        sentences = [f"{model} cannot read {count}: {self.words_text}. Such items have no value."]
        n_left = self.n_items - self.n
        if n_left < MIN_VERDICT_ITEMS:
            items = "1 item" if n_left == 1 else f"{n_left:,} items"
            sentences.append(f"That leaves {items}, and a verdict needs {MIN_VERDICT_ITEMS}.")
        if self.reads_questions:
            sentences.append("It reads the questions; it can write the chains itself: --chain own.")
        if any(not word.is_known_after_space for word in self.unknown):
            sentences.append(
                "The shipped organisms read suites made of their own words (wordproblems) alone,"
                f" with numbers up to {MAX_NUMBER}, and so do their copies. A model with a general"
                " vocabulary, here or on a server, reads any text."
            )
        return " ".join(sentences)


def find_unreadable_items(plan: Plan, suite: Suite) -> UnreadableItems | None:
    """Return what the subject of a plan cannot read of its suite; None where it reads all.

    Models behind a server, and those whose tokenizer has a token for every text, read all. Of an
    item the question is looked at, and where a scorer gives the model its reference chain, that
    chain as it is: a changed step may hold an unknown word all the same. Linear in the length of
    the suite; loads a tokenizer and no model.
    """
    path = _tokenizer_path(plan.subject)
    items = plan.items_of(suite)
    if path is None or not items or find_spec("tokenizers") is None:
        return None
    from cotlab.providers.local.vocabulary import find_unknown_words

    in_questions = list(find_unknown_words(path, (f"Q: {item.question}" for item in items)))
    in_items = in_questions
    if any(spec.params.get("chain") == "reference" for spec in plan.scorers):
        chains = find_unknown_words(path, map(_chain_text, items))
        in_items = [question | chain for question, chain in zip(in_questions, chains, strict=True)]
    n = sum(map(bool, in_items))
    if not n:
        return None
    return UnreadableItems(n, len(items), _frequent_words(in_items), not any(in_questions))


def _frequent_words(unknown: Iterable[set[UnknownWord]]) -> tuple[UnknownWord, ...]:
    """Return the unknown words that most items have, at most ``N_EXAMPLES`` of each explanation."""
    n_items_by_word = Counter[UnknownWord](word for words in unknown for word in words)
    ranked = sorted(
        n_items_by_word,
        key=lambda word: (not _is_telling(word.text), -n_items_by_word[word], word.text),
    )
    n_by_explanation = Counter[str]()
    frequent = []
    for word in ranked:
        n_by_explanation[word.explanation] += 1
        if n_by_explanation[word.explanation] <= N_EXAMPLES:
            frequent.append(word)
    return tuple(frequent)


def _is_telling(word: str) -> bool:
    """Whether a word says what a text is about, as signs and short words do not."""
    return word.isalpha() and len(word) >= MIN_TELLING_LETTERS


def _chain_text(item: Item) -> str:
    return "\n".join(step.text for step in item.steps)


def _tokenizer_path(model: ModelRef) -> Path | None:
    """Return the file of a model's tokenizer; None where it is not on this machine."""
    if model.provider == "organism":
        entry = shipped_organisms().get(model.name)
        folder = entry[0] if entry else None
    else:
        folder = Path(model.name) if model.provider == "local" else None
    path = None if folder is None else folder / "tokenizer.json"
    return path if path is not None and path.is_file() else None
