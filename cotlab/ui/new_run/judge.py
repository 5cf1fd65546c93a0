"""What the form of New run asks about a judge."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cotlab.run.config import DEFAULT_JUDGE

JUDGE_HELP = (
    "Who compares: provider/model, with commas between several, whose agreement is then shown."
)
RUN_HELP = (
    "The id of a run that asked its model for chains of its own. Both together take the place of"
    " the suite above."
)


_FIELDS = {
    "--base-run": "Run of the base model",
    "--tuned-run": "Run of the fine-tuned model",
    "--scorer judge": "the scorer judge",
    "--profile": "a rollout phase",
    "--judge": "Judges",
}


def use_form_labels(message: str) -> str:
    """A message about a pair of runs with the labels of this page in place of the options of the command line."""
    for option, label in _FIELDS.items():
        message = message.replace(f"{option} RUN", label).replace(option, label)
    return message


def judge_options(before: dict[str, Any]) -> dict[str, Any]:
    """The widgets; settings as fields of a configuration."""
    a, b, c = st.columns(3)
    usual = ", ".join(before["judge"] if before.get("judge") is not None else [DEFAULT_JUDGE])
    judges = a.text_input("Judges", usual, key="new-judge", help=JUDGE_HELP)
    base, tuned = before.get("base_run") or "", before.get("tuned_run") or ""
    return {
        "judge": [part.strip() for part in judges.split(",") if part.strip()],
        "base_run": (
            b.text_input("Run of the base model", base, key="new-base-run", help=RUN_HELP).strip()
        ),
        "tuned_run": (
            c.text_input(
                "Run of the fine-tuned model", tuned, key="new-tuned-run", help=RUN_HELP
            ).strip()
        ),
    }
