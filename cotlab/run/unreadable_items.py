"""Count the items that a model cannot read, before a run: its words are not in the vocabulary."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cotlab.core.resources import shipped_organisms
from cotlab.core.types import Item, ModelRef, Plan, Suite

N_EXAMPLES = 3
"""Unknown words that a caution names."""
MIN_TELLING_LETTERS = 4
"""Shorter unknown words are named only where there are no others."""


class UnreadableItems(NamedTuple):
    """Items with a word outside the model's vocabulary; at least one."""

    n: int
    """How many there are."""
    n_items: int
    """Items that the run measures."""
    unknown: tuple[str, ...]
    """The unknown words that most items have, longer ones first; at most ``N_EXAMPLES``."""

    @property
    def is_all(self) -> bool:
        """Return whether no item can be read."""
        return self.n == self.n_items

    def caution(self, model: str) -> str:
        """Return a sentence on what that means for a run of a model."""
        examples = ", ".join(repr(word) for word in self.unknown)
        count = f"{self.n:,} of {self.n_items:,} items" if self.n_items > 1 else "the item"
        return (
            f"{model} cannot read {count}: words outside its vocabulary, such as {examples}."
            " They will have no value. The shipped organisms read suites made of their own words"
            " (wordproblems) alone; a local model or a server reads any text."
        )


def find_unreadable_items(plan: Plan, suite: Suite) -> UnreadableItems | None:
    """Return what the subject of a plan cannot read of its suite; None where it reads all.

    Models behind a server, and those whose tokenizer has a token for every text, read all. Of an
    item the question is looked at, and its reference chain where a scorer gives it to the model.
    Linear in the length of the suite; loads a tokenizer and no model.
    """
    path = _tokenizer_path(plan.subject)
    items = plan.items_of(suite)
    if path is None or not items or find_spec("tokenizers") is None:
        return None
    from cotlab.providers.local.vocabulary import find_unknown_words

    gives_chain = any(spec.params.get("chain") == "reference" for spec in plan.scorers)
    n, n_items_by_word = 0, Counter[str]()
    for unknown in find_unknown_words(path, (_item_text(item, gives_chain) for item in items)):
        n += bool(unknown)
        n_items_by_word.update(unknown)
    if not n:
        return None
    ranked = sorted(
        n_items_by_word, key=lambda word: (not _is_telling(word), -n_items_by_word[word], word)
    )
    return UnreadableItems(n, len(items), tuple(ranked[:N_EXAMPLES]))


def _is_telling(word: str) -> bool:
    """Whether a word says what a text is about, as signs and short words do not."""
    return word.isalpha() and len(word) >= MIN_TELLING_LETTERS


def _item_text(item: Item, gives_chain: bool) -> str:
    steps = [step.text for step in item.steps] if gives_chain else []
    return "\n".join((f"Q: {item.question}", *steps))


def _tokenizer_path(model: ModelRef) -> Path | None:
    """Return the file of a model's tokenizer; None where it is not on this machine."""
    if model.provider == "organism":
        entry = shipped_organisms().get(model.name)
        folder = entry[0] if entry else None
    else:
        folder = Path(model.name) if model.provider == "local" else None
    path = None if folder is None else folder / "tokenizer.json"
    return path if path is not None and path.is_file() else None
