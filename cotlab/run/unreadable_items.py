"""Count the items that a model cannot read, before a run: its words are not in the vocabulary."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cotlab.core.resources import shipped_organisms
from cotlab.core.types import MIN_VERDICT_ITEMS, Item, ModelRef, Plan, Suite
from cotlab.suites.wordproblems import MAX_NUMBER

N_EXAMPLES = 3
"""Unknown words that a caution names."""


class UnreadableItems(NamedTuple):
    """Items with a text that the model cannot read; at least one."""

    n: int
    """Items whose question or chain it cannot read."""
    n_items: int
    """Items that the run measures."""
    words_text: str
    """Why they cannot be read, with examples of the words."""
    reads_questions: bool
    """Whether it can read the question of each item."""

    @property
    def is_all(self) -> bool:
        """Return whether no item can be read."""
        return self.n == self.n_items

    def caution(self, model: str) -> str:
        """Return sentences on what that means for a run of a model."""
        text = (
            f"{model} cannot read {self.n:,} of {self.n_items:,} items: {self.words_text}. Such"
            f" items have no value, and a verdict needs {MIN_VERDICT_ITEMS}."
        )
        if self.reads_questions:
            return f"{text} It reads the questions; it can write the chains itself: --chain own."
        return (
            f"{text} The shipped organisms read suites made of their own words (wordproblems)"
            f" alone, with numbers up to {MAX_NUMBER}. A model with a general vocabulary, here or"
            " on a server, reads any text."
        )


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
    n_items_by_word = Counter(word for words in in_items for word in words)
    # signs and short words say little of a text
    ranked = sorted(
        n_items_by_word, key=lambda word: (len(word.text) < 4, -n_items_by_word[word], word.text)
    )
    examples = [word for word in ranked if word.explanation == ranked[0].explanation][:N_EXAMPLES]
    words_text = ", ".join(repr(word.text) for word in examples)
    return UnreadableItems(
        n,
        len(items),
        f"words such as {words_text} are {ranked[0].explanation}",
        not any(in_questions),
    )


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
