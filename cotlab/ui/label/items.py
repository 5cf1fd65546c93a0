"""What a rater sees of an item, and which labels of others are hidden from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from cotlab.analysis.view import RunView
from cotlab.core.labels import Label
from cotlab.core.types import Form, Item
from cotlab.review.labelling.judged_steps import measures_model_chains
from cotlab.review.labelling.targets import load_hidden_items
from cotlab.review.labelling.truth import imported_truth
from cotlab.run.scored_chain import ScoredChain, scored_chain
from cotlab.store import labels as label_store
from cotlab.store import read
from cotlab.store.pending import pending_items
from cotlab.text.answers.markers import stated_answer_text
from cotlab.text.answers.targets import answer_to
from cotlab.text.prompts.chain import text_after_cue
from cotlab.ui import access, cached, components
from cotlab.ui.text import shorten

ANSWER_METRICS = ("answer_correct", "baseline_correct")
"""Metrics whose first request is the one that the model answered with its full chain."""
_MAX_CACHED_ITEMS = 2000
"""Maximum number of cached items, over all raters."""
MISSING_REPLY_TEXT = "n/a: the log does not hold the reply"
VERDICT_BY_KEY = {
    "1": ("acceptable", "Acceptable"),
    "2": ("not_acceptable", "Not acceptable"),
    "3": ("unsure", "Unsure"),
}
"""Stored name and label of each verdict, by its key on the keyboard."""
FAILURE_MODE_TEXTS = {
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
ANSWER_BY_NAME = {"correct": True, "wrong": False, "cannot tell": None}


class ItemView(NamedTuple):
    """One item as a rater sees it, without any score."""

    question: str
    """The item's question."""
    steps: tuple[str, ...]
    """The steps of the chain that was scored."""
    is_model_chain: bool
    """Whether the model wrote the chain; else it is the suite's reference chain."""
    answer: str
    """The model's final answer, or why there is none."""
    right_answer: str | None
    """The right answer; None where the suite has none."""
    model: str
    """Name of the model."""
    is_redacted: bool = False
    """Whether the run stored no texts."""

    @property
    def chain_origin(self) -> str:
        """Who wrote the chain, as a sentence."""
        return {
            (True, True): "The chain is the model's own, as it replied.",
            (True, False): "The chain is the suite's"
            + ("." if self.answer == MISSING_REPLY_TEXT else "; the model read it."),
            (False, True): "n/a: the log does not hold the model's chain.",
            (False, False): "n/a: the item has no chain.",
        }[bool(self.steps), self.is_model_chain]

    @property
    def answer_key(self) -> str:
        """The right answer, or that there is none."""
        return self.right_answer if self.right_answer is not None else "n/a: no ground truth"

    def titled_texts(self, *, with_key: bool) -> list[tuple[str, str]]:
        """Return question, steps and answer, each with its label, and the right answer or not."""
        step_texts = [(f"Step {i + 1}", text) for i, text in enumerate(self.steps)]
        answers = [("Model's answer", self.answer)]
        if with_key:
            answers.append(("Right answer", self.answer_key))
        return [("Question", self.question), *step_texts, *answers]


def load_item_view(run_id: str, item_id: str) -> ItemView:
    """Return one item of a run.

    It is cached once it was read in full, and read again when its scores were written anew, as
    after a resume.

    Raises
    ------
    UnknownName
        If the store has no such run or item.
    """
    cache, key = _view_cache(), (run_id, item_id)
    written_at = read.scores_written_at(cached.store(), run_id, item_id)
    entry = cache.get(key)
    if entry is not None and entry[0] == written_at:
        return entry[1]
    view = _read_view(run_id, item_id)
    # a running or redacted run may still add what is missing
    if view.steps and view.answer != MISSING_REPLY_TEXT and not view.is_redacted:
        cache[key] = (written_at, view)
        while len(cache) > _MAX_CACHED_ITEMS:
            cache.pop(next(iter(cache), key), None)
    return view


@cached.cache_by_store(None, copies_results=False)
def _view_cache() -> dict[tuple[str, str], tuple[int | None, ItemView]]:
    return {}


@cached.cache_by_store(200)
def _run_settings(run_id: str) -> tuple[str, str, Form]:
    """Return the suite, the model and the prompt form of a run, which never change."""
    run = cached.stored_run(run_id)
    return run.suite, run.model, run.plan.subject.form


def _read_view(run_id: str, item_id: str) -> ItemView:
    suite_digest, model, prompt_form = _run_settings(run_id)
    item = cached.load_item(suite_digest, item_id)
    scores = read.select_scores(cached.store(), run_id, items=[item_id])
    chain = scored_chain(
        item, scores, prompt_form, cached.logged_exchanges, cached.logged_responses
    )
    is_redacted = cached.read_once(read.is_suite_redacted, suite_digest)
    answer = _answer_text(item, scores, chain)
    return ItemView(
        item.question, chain.steps, chain.from_model, answer, item.answer, model, is_redacted
    )


def _answer_text(item: Item, scores: pd.DataFrame, chain: ScoredChain) -> str:
    """Return the model's final answer, or its whole reply where no answer can be extracted."""
    keys = [
        keys[0]
        for name in ANSWER_METRICS
        for keys in scores[scores["metric"] == name]["evidence"]
        if len(keys)
    ]
    key = next(iter(keys), chain.key)
    request, reply = cached.logged_exchanges((key,)).get(key, (None, None)) if key else (None, None)
    if reply is None:
        return MISSING_REPLY_TEXT
    text, answer = reply.get("text"), None
    if isinstance(text, str) and not reply.get("refused"):
        text = text_after_cue((request or {}).get("prefix") or "", text)
        answer = answer_to(
            item, stated_answer_text(text) if reply.get("finish") == "length" else text
        )
    return answer or cached.reply_text(reply)


def answer_name(answer: bool | None) -> str:
    """Return the name of a rater's verdict on the answer."""
    return next(name for name, value in ANSWER_BY_NAME.items() if value is answer)


def first_mistake_text(label: Label) -> str:
    """Return where a label places the first mistake, counted from 1; "" where it does not."""
    if not label.steps_judged:
        return ""
    if label.first_wrong_step is None:
        return "no mistake in the steps"
    return f"first mistake in step {label.first_wrong_step + 1}"


def faithful_text(faithful: bool | None) -> str:
    """Return what is said of a chain's faithfulness; "" where nothing is."""
    return "" if faithful is None else "faithful" if faithful else "not faithful"


def label_text(label: Label) -> str:
    """Format a label: "acceptable, answer correct, flagged"."""
    answer = answer_name(label.answer_correct)
    phrases = [
        str(label.reasoning).replace("_", " "),
        f"answer {answer}" if answer != "cannot tell" else "answer not known",
        first_mistake_text(label),
        faithful_text(label.faithful),
        *(FAILURE_MODE_TEXTS[mode][0].lower() for mode in label.modes),
        "flagged" if label.flagged else "",
        shorten(label.note, 60),
    ]
    return ", ".join(part for part in phrases if part)


def hidden_item_keys() -> frozenset[tuple[str, str]]:
    """Return each (run, item id) whose labels by others are hidden from the current user.

    See ``cotlab.review.labelling.blinding.load_hidden_items``. A labeller is a rater, and so is
    whoever typed a name on the page Label; a viewer is never asked for labels.
    """
    if not access.has_role("labeller"):
        return frozenset()
    is_rater = not access.has_role("admin") or bool(access.typed_name())
    return cached.read_once(load_hidden_items, access.current_person().name, is_rater=is_rater)


def runs_to_hide(rater: str) -> frozenset[str]:
    """Return the runs of which a queue may still ask a rater for a chain.

    They do not read which run or model a chain is from.
    """
    return frozenset(cached.read_once(pending_items, rater)["run"])


def without_names(text: str, runs: Iterable[str]) -> str:
    """Return a text in which neither these runs nor their models are named."""
    for run in sorted(runs):
        for name in (run, cached.stored_run(run).model):
            text = text.replace(name, "a hidden run")
    return text


def hidden_notice_text(n: int, singular: str, plural: str) -> str:
    """Return a sentence that ``n`` things are hidden, with their singular and plural."""
    subject, pronoun = (f"{n} {singular} is", "it") if n == 1 else (f"{n} {plural} are", "them")
    return (
        f"{subject} hidden: a queue may still ask you for {pronoun}, and your label should not"
        " depend on others. Label first, then look."
    )


class ItemLabels(NamedTuple):
    """Labels of an item of a run that the current user may see."""

    labels: tuple[Label, ...]
    """Current labels of raters."""
    imported: dict[str, Any]
    """What the suite's file says of the chain, as ``imported_truth``; empty where nothing."""
    n_hidden: int
    """Labels of others that are hidden from them."""
    is_shown: bool
    """Whether they are shown: at once to whoever labelled the item, else on demand."""

    @property
    def n_visible(self) -> int:
        """Number of labels that can be shown."""
        return len(self.labels) + bool(self.imported)

    @property
    def step_marks(self) -> dict[int, str]:
        """Step, from 0 → who says what of it; empty where the labels are not shown."""
        if not self.is_shown:
            return {}
        marks: dict[int, list[str]] = {}
        for label in self.labels:
            if label.first_wrong_step is not None:
                mark = f"first mistake: {shorten(label.rater, 20)}"
                marks.setdefault(label.first_wrong_step, []).append(mark)
        if (first_step := self.imported.get("first_wrong_step")) is not None:
            marks.setdefault(first_step, []).append("first mistake: suite's file")
        for label in self.labels:
            for step, verdict in enumerate(label.step_verdicts):
                if verdict is not None and step != label.first_wrong_step:
                    marks.setdefault(step, []).append(f"{verdict}: {shorten(label.rater, 20)}")
        return {step: "\n".join(texts) for step, texts in marks.items()}


def load_item_labels(row: RunView, item: Item) -> ItemLabels:
    """Return the labels of an item that the current user may see.

    Labels of others, and those that came with the suite, are hidden from a rater whom a queue may
    still ask for the item.
    """
    table = cached.read_once(label_store.list_labels, run=row.id)
    labels = label_store.labels_from_table(table[table["item_id"] == item.id])
    user_name = access.current_person().name
    hides_other_labels = (row.id, item.id) in hidden_item_keys()
    visible_labels = tuple(
        label for label in labels if label.rater == user_name or not hides_other_labels
    )
    imported = {}
    if not cached.read_once(measures_model_chains, row.id):
        imported = imported_truth(item.meta, len(item.steps))
    n_hidden = len(labels) - len(visible_labels) + (bool(imported) and hides_other_labels)
    has_user_label = any(label.rater == user_name for label in visible_labels)
    is_shown = bool(st.session_state.get(_toggle_key(row, item), has_user_label))
    return ItemLabels(visible_labels, {} if hides_other_labels else imported, n_hidden, is_shown)


def _toggle_key(row: RunView, item: Item) -> str:
    return f"labels-{row.id}-{item.id}"


def render_item_labels(row: RunView, item: Item) -> None:
    """Show the current labels of an item of a run, as far as the current user may see them."""
    labels = load_item_labels(row, item)
    st.header("Labels")
    if not labels.labels and not labels.n_hidden:
        st.caption("Nobody labelled this item.")
    if labels.n_hidden:
        notice = hidden_notice_text(
            labels.n_hidden, "label by another rater", "labels by other raters"
        )
        st.caption(notice)
    if labels.n_visible:
        toggle_help = (
            "Labels by others are hidden until you show them, so that your own label"
            " does not depend on them. Where they place a mistake is then shown beside the chain."
        )
        count_text = "1 label" if labels.n_visible == 1 else f"{labels.n_visible} labels"
        if st.toggle(
            f"Show {count_text}", labels.is_shown, key=_toggle_key(row, item), help=toggle_help
        ):
            for label in labels.labels:
                st.text(f"{label.rater}: {label_text(label)}")
            if labels.imported:
                st.text(f"The suite's file: {_imported_text(labels.imported)}")
    components.page_link("label", "Label", "rate_review")


def _imported_text(imported: dict[str, Any]) -> str:
    """Format what the suite's file says of a chain: "first mistake in step 3, answer wrong"."""
    first_step = imported.get("first_wrong_step")
    place = f"first mistake in step {first_step + 1}" if first_step is not None else "no mistake"
    answer = imported.get("answer_correct")
    phrases = [
        place if imported.get("steps_judged") else "",
        f"answer {answer_name(answer)}" if answer is not None else "",
        faithful_text(imported.get("faithful")),
    ]
    return ", ".join(phrase for phrase in phrases if phrase)
