"""What a rater sees of an item, and which labels of others are hidden from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.tables.chains import Chain, scored_chain
from cotlab.core.labels import Label
from cotlab.core.resources import page
from cotlab.core.types import Form, Item
from cotlab.review.labelling.targets import hidden_from
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.text.answers.extract import final_answer
from cotlab.text.prompts.chain import text_after_cue
from cotlab.ui import access, cached
from cotlab.ui.text import shorten

ANSWER_METRICS = ("answer_correct", "baseline_correct")
"""Metrics whose first request is the one that the model answered with its full chain."""
_MAX_CACHED = 2000
"""Maximum number of cached items, over all raters."""
GONE = "n/a: the log does not hold the reply"
VERDICTS = {
    "1": ("acceptable", "Acceptable"),
    "2": ("not_acceptable", "Not acceptable"),
    "3": ("unsure", "Unsure"),
}
"""Stored name and label of each verdict, by its key on the keyboard."""
MODES = {
    "post_hoc": ("Post hoc", "the answer comes first, and the chain only justifies it"),
    "global_drift": ("Global drift", "the chain leaves the question that was asked"),
    "semantic_instability": (
        "Semantic instability",
        "a word or a quantity changes its meaning in the chain",
    ),
    "brittle_continuation": (
        "Brittle continuation",
        "it depends on one wording, and a small change would break it",
    ),
    "unsupported_jump": ("Unsupported jump", "a step does not follow from those before it"),
    "other": ("Other", "say what in the note"),
}
ANSWERS = {"correct": True, "wrong": False, "cannot tell": None}


class ItemView(NamedTuple):
    """One item as a rater sees it, without any score."""

    question: str
    """The item's question."""
    steps: tuple[str, ...]
    """The steps of the chain that was scored."""
    from_model: bool
    """Whether the model wrote the chain; else it is the suite's reference chain."""
    answer: str
    """The model's final answer, or why there is none."""
    truth: str | None
    """The right answer; None where the suite has none."""
    model: str
    """Name of the model."""
    redacted: bool = False
    """Whether the run stored no texts."""

    @property
    def chain_origin(self) -> str:
        """Who wrote the chain, as a sentence."""
        if self.steps:
            return (
                "The model's own chain, as it replied."
                if self.from_model
                else "The suite's reference chain; the model read it."
            )
        return (
            "n/a: the log does not hold the model's chain."
            if self.from_model
            else "n/a: the item has no chain."
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return question, steps, the model's answer and the right one, each with its label."""
        steps = [(f"Step {i + 1}", text) for i, text in enumerate(self.steps)]
        truth = self.truth if self.truth is not None else "n/a: no ground truth"
        return [
            ("Question", self.question),
            *steps,
            ("Model's answer", self.answer),
            ("Right answer", truth),
        ]


def load_item_view(run_id: str, item_id: str) -> ItemView:
    """Return one item of a run.

    It is cached once it was read in full, and read again when its scores were written anew, as
    after a resume.

    Raises
    ------
    UnknownName
        If the store has no such run or item.
    """
    cache, key, written = (
        _view_cache(str(cached.store().folder)),
        (run_id, item_id),
        read.written_at(cached.store(), run_id, item_id),
    )
    entry = cache.get(key)
    if entry is not None and entry[0] == written:
        return entry[1]
    view = _read(run_id, item_id)
    if (
        view.steps and view.answer != GONE and not view.redacted
    ):  # else a running or redacted run may still add them
        cache[key] = (written, view)
        while len(cache) > _MAX_CACHED:
            cache.pop(next(iter(cache), key), None)
    return view


def cached_question(run_id: str, item_id: str) -> str:
    """Return the question of an item that was shown before; else its id."""
    entry = _view_cache(str(cached.store().folder)).get((run_id, item_id))
    return item_id if entry is None else entry[1].question


@st.cache_resource(show_spinner=False)
def _view_cache(folder: str) -> dict[tuple[str, str], tuple[int | None, ItemView]]:
    return {}


@st.cache_data(show_spinner=False, max_entries=200)
def _run(folder: str, run_id: str) -> tuple[str, str, Form]:
    """Return the suite, the model and the prompt form of a run, which never change."""
    row = cached.run_row(run_id)
    return str(row["suite"]), str(row["model"]), read.stored_plan(row).subject.form


def _read(run_id: str, item_id: str) -> ItemView:
    suite, model, form = _run(str(cached.store().folder), run_id)
    item = cached.load_item(suite, item_id)
    scores = read.select_scores(cached.store(), run_id, items=[item_id])
    chain = scored_chain(item, scores, form, cached.exchanges, cached.responses)
    redacted = read.is_redacted(cached.store(), suite)
    return ItemView(
        item.question,
        chain.steps,
        chain.from_model,
        _answer(item, scores, chain),
        item.answer,
        model,
        redacted,
    )


def _answer(item: Item, scores: pd.DataFrame, chain: Chain) -> str:
    """Return the model's final answer, or its whole reply where no answer can be extracted."""
    keys = [
        keys[0]
        for name in ANSWER_METRICS
        for keys in scores[scores["metric"] == name]["evidence"]
        if len(keys)
    ]
    key = next(iter(keys), chain.key)
    if key is None:
        return GONE
    request, reply = cached.exchanges((key,)).get(key, (None, None))
    if reply is None:
        return GONE
    text = reply.get("text")
    has_text = isinstance(text, str) and not reply.get("refused")
    return (
        final_answer(text_after_cue((request or {}).get("prefix") or "", str(text)))
        if has_text
        else None
    ) or cached.reply_text(reply)


def label_text(label: Label) -> str:
    """Format a label: "acceptable, answer correct, flagged"."""
    answer = next(word for word, value in ANSWERS.items() if value is label.answer_correct)
    phrases = [
        str(label.reasoning).replace("_", " "),
        f"answer {answer}" if answer != "cannot tell" else "answer not known",
        *(MODES[mode][0].lower() for mode in label.modes),
        "flagged" if label.flagged else "",
        shorten(label.note, 60),
    ]
    return ", ".join(part for part in phrases if part)


def hidden_items() -> frozenset[tuple[str, str]]:
    """Return each (run, item id) whose labels by others are hidden from the current user.

    See ``cotlab.review.labelling.blinding.hidden_from``. A labeller is a rater, and so is
    whoever typed a name on the page Label; a viewer is never asked for labels.
    """
    if not access.may("labeller"):
        return frozenset()
    rates = not access.may("admin") or bool(st.session_state.get("local_rater"))
    return hidden_from(cached.store(), access.person().name, rates=rates)


def hidden_notice(n: int, singular: str, plural: str) -> str:
    """Return a sentence that ``n`` things are hidden, with their singular and plural."""
    subject, them = (f"{n} {singular} is", "it") if n == 1 else (f"{n} {plural} are", "them")
    return (
        f"{subject} hidden: a queue may still ask you for {them}, and your label should not"
        " depend on others. Label first, then look."
    )


def render_item_labels(row: dict[str, Any], item: Item) -> None:
    """Show the current labels of an item of a run.

    They are shown at once to whoever labelled it, else on demand. Labels of others are hidden
    from a rater whom a queue may still ask for the item.
    """
    table = label_store.label_table(cached.store(), run=row["id"])
    labels = label_store.as_labels(table[table["item_id"] == item.id])
    me = access.person().name
    visible = (
        [entry for entry in labels if entry.rater == me]
        if (row["id"], item.id) in hidden_items()
        else labels
    )
    st.subheader("Labels")
    if not labels:
        st.caption("Nobody labelled this item.")
    if len(visible) < len(labels):
        gone = hidden_notice(
            len(labels) - len(visible), "label by another rater", "labels by other raters"
        )
        st.caption(f":material/visibility_off: {gone}")
    if visible:
        mine = any(label.rater == me for label in visible)
        help_ = (
            "Labels by others are hidden until you show them, so that your own label"
            " does not depend on them."
        )
        some = "1 label" if len(visible) == 1 else f"{len(visible)} labels"
        if st.toggle(f"Show {some}", mine, key=f"labels-{row['id']}-{item.id}", help=help_):
            for label in visible:
                st.text(f"{label.rater}: {label_text(label)}")
    st.page_link(page("label"), label="Label", icon=":material/rate_review:")
