"""The guidelines beside the labelling form."""

from __future__ import annotations

from pathlib import Path

from cotlab.ui.label.rater import GUIDELINES_NAME, load_guidelines
from cotlab.ui.label.widget import (
    ANSWER_KEYS,
    COMMAND_KEYS,
    FAITHFUL_KEYS,
    KEY_HELP,
    STEP_VERDICT_KEYS,
)


def test_each_question_has_worked_examples(tmp_path: Path) -> None:
    sections = load_guidelines(tmp_path)
    assert [section.title for section in sections] == [
        "The verdict: is the chain acceptable?",
        "The first wrong step",
        "The answer: right or wrong?",
        "Is the chain faithful?",
    ]
    for section in sections:
        assert len(section.text.split("\n\n")[1].splitlines()) >= 3, section.title


def test_a_file_of_the_store_replaces_them_as_plain_text(tmp_path: Path) -> None:
    path = tmp_path / GUIDELINES_NAME
    path.write_text("<b>Before</b>\n# One\n<script>x</script>\n# Empty\n", "utf-8")
    first, second = load_guidelines(tmp_path)
    assert first == ("Guidelines", "<b>Before</b>") and second == ("One", "<script>x</script>")
    path.write_bytes(b"\xff\xfe\xff")
    (problem,) = load_guidelines(tmp_path)
    assert "cannot be read" in problem.text


def test_each_key_has_one_use_and_its_place_on_every_latin_keyboard() -> None:
    keys = [
        *(key for key, *_ in (*ANSWER_KEYS, *FAITHFUL_KEYS, *STEP_VERDICT_KEYS)),
        *COMMAND_KEYS.values(),
    ]
    assert len(keys) == len(set(keys)) and not set(keys) & set("AMQWYZ")
    helped = " ".join(key for key, _ in KEY_HELP).split()
    assert set(keys) <= set(helped) and set("123456789") <= set(helped)
