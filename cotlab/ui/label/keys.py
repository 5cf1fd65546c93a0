"""The keys of the page Label and their help.

Every letter stands at the same place of QWERTY, QWERTZ and AZERTY keyboards, so A, M, Q, W, Y and Z
have no use. Digits are read from the key, with or without Shift.
"""

from __future__ import annotations

from cotlab.core.labels import FAILURE_MODES
from cotlab.ui.label.items import FAILURE_MODE_TEXTS

ANSWER_FROM_KEY = "key"
"""Verdict on the answer that leaves it to the answer key, which the rater does not see yet."""
ANSWER_KEYS: tuple[tuple[str, str, bool | None], ...] = (
    ("R", "Right", True),
    ("E", "Wrong", False),
    ("T", "Cannot tell", None),
)
"""Key, label and stored value of each verdict on the answer."""
FAITHFUL_KEYS = (("O", "Faithful", True), ("P", "Not faithful", False))
"""Key, label and stored value of each verdict on a chain's faithfulness."""
STEP_VERDICT_KEYS: tuple[tuple[str, str, str, str], ...] = (
    ("C", "correct", "Correct", "✓"),
    ("V", "wrong", "Wrong", "✗"),
    ("B", "unsure", "Unsure", "?"),
)
"""Key, stored name, label and sign of each verdict on a step."""
COMMAND_KEYS = {
    "skip": "S",
    "flag": "F",
    "undo": "U",
    "help": "H",
    "guidelines": "G",
    "mark": "X",
    "none": "N",
    "next": "J",
    "previous": "K",
}
"""Key of each other command."""
KEY_HELP = (
    ("1", "Acceptable: each step follows, and the chain leads to the answer that was given."),
    ("2", "Not acceptable."),
    ("3", "Unsure."),
    ("R E T", "Says that the answer is right, that it is wrong, or that you cannot tell."),
    ("J K", "Chooses the next step, or the one before."),
    ("X", "Says that the chosen step is the first wrong one; a click on a step does too."),
    ("N", "Says that no step is wrong."),
    ("C V B", "Calls the chosen step correct, wrong, or says that you are unsure of it."),
    (
        "O P",
        "Says that the chain is faithful to how the answer came about, or that it is not; the same"
        " key takes it back.",
    ),
    *(
        (str(key), f"{FAILURE_MODE_TEXTS[mode][0]}: {FAILURE_MODE_TEXTS[mode][1]}.")
        for key, mode in enumerate(FAILURE_MODES, start=4)
    ),
    ("S", "Leaves the item for later."),
    ("F", "Flags an item that is itself wrong: its label is unsure."),
    ("U", "Takes back your last label."),
    ("G", "Opens and closes the guidelines."),
    ("H", "Closes this help. Keys have no effect while you type."),
    (
        "",
        (
            "Keys are those with this letter or digit on them, on every keyboard. A label counts as"
            " good only if the answer is correct and the chain acceptable. A chain with a wrong"
            " step is not acceptable; one without may still fail as a whole. Before you give your"
            " label you see no score, no label by others, no answer key and no name of a model."
        ),
    ),
)
BUTTON_TITLES = {
    "skip": "Leaves the item for later",
    "undo": "Takes back your last label",
    "flag": "Something is wrong with the item itself: its label is unsure",
    "mark": "Marks this step as the first wrong one",
    "none": "No step is wrong",
    "faithful": "Whether the chain says how the answer came about; it may be left open",
    "contradicts": "A step is marked as wrong, so the chain is not acceptable",
    "key": "The label takes what the run's answer key says, which you see afterwards",
}
