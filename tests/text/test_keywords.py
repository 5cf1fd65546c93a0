"""Keywords of process and result: the traps of counting words, each by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.text.keywords import (
    PROCESS_PHRASES,
    RESULT_PHRASES,
    KeywordCounts,
    count_keywords,
    find_keywords,
)

SHORT = ("step", "step by step", "check"), ("answer", "the answer is", "check the answer", "thus")


def phrases(text: str) -> list[tuple[str, str]]:
    return [(found.phrase, found.kind) for found in find_keywords(text, *SHORT)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "So the answer is 5.",
            [("the answer is", "result")],
        ),  # the longest: not "answer" once more
        ("The answer, step by step", [("answer", "result"), ("step by step", "process")]),
        (
            "I check the answer.",
            [("check the answer", "result")],
        ),  # over both lists: not "check" as process too
        ("step step by step", [("step", "process"), ("step by step", "process")]),
        ("STEP BY\nSTEP", [("step by step", "process")]),
        ("step-by-step", [("step by step", "process")]),
        ("steps, footstep, multistep, step2", []),  # whole words only
        ("two-step, step-wise", []),  # part of a hyphenated word
        ("step - check", [("step", "process"), ("check", "process")]),
        ("enthusiast", []),
        ("the answer's", []),
        ("'answer'", [("answer", "result")]),
        ("step—check…thus", [("step", "process"), ("check", "process"), ("thus", "result")]),
        ("éstep stepé step\u0301", []),
        ("ＴＨＵＳ", [("thus", "result")]),  # full-width letters
        ("ſtep", [("step", "process")]),  # the long s
        ("", []),
    ],
)
def test_what_is_a_keyword(text: str, found: list[tuple[str, str]]) -> None:
    assert phrases(text) == found


def test_a_typographic_apostrophe_is_an_apostrophe() -> None:
    assert [
        f.phrase for f in find_keywords("Let’s see. Let's see. Lets see.", ["let's", "let"], [])
    ] == ["let's", "let's"]


def test_a_phrase_listed_twice_counts_once_and_one_in_both_lists_is_refused() -> None:
    assert count_keywords("Thus, check.", ["check", "Check", " check "], ["thus", "THUS"]) == (1, 1)
    with pytest.raises(ValueError, match="not of both: thus"):
        find_keywords("x", ["Thus"], ["thus"])
    assert find_keywords("anything", [], []) == ()


def test_the_lists_are_disjoint_and_without_repetition() -> None:
    assert len(set(PROCESS_PHRASES)) == len(PROCESS_PHRASES) and len(set(RESULT_PHRASES)) == len(
        RESULT_PHRASES
    )
    assert not set(PROCESS_PHRASES) & set(RESULT_PHRASES) and all(
        one == one.strip().lower() != "" for one in (*PROCESS_PHRASES, *RESULT_PHRASES)
    )


def test_every_listed_phrase_is_found_as_itself() -> None:
    for kind, listed in (("process", PROCESS_PHRASES), ("result", RESULT_PHRASES)):
        for phrase in listed:
            (found,) = find_keywords(f"({phrase.upper()})")
            assert (found.phrase, found.kind) == (phrase.replace("-", " "), kind)


def test_ratio_and_share_by_hand() -> None:
    """3 process and 1 result: 3 / 1 and 1 / 4."""
    assert (KeywordCounts(3, 1).process_ratio, KeywordCounts(3, 1).result_share) == (3.0, 0.25)
    assert (KeywordCounts(0, 2).process_ratio, KeywordCounts(0, 2).result_share) == (0.0, 1.0)
    assert (KeywordCounts(2, 0).process_ratio, KeywordCounts(2, 0).result_share) == (None, 0.0)
    assert (KeywordCounts(0, 0).process_ratio, KeywordCounts(0, 0).result_share) == (None, None)


@given(
    st.lists(
        st.sampled_from([*PROCESS_PHRASES, *RESULT_PHRASES, "apple", "7", "…"])
        | st.text(max_size=12),
        max_size=8,
    )
)
def test_counts_of_texts_add_up_to_the_count_of_all(texts: list[str]) -> None:
    each = [count_keywords(text) for text in texts]
    assert count_keywords(" | ".join(texts)) == (
        sum(c.n_process for c in each),
        sum(c.n_result for c in each),
    )


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from([*PROCESS_PHRASES, *RESULT_PHRASES]), max_size=9).map(" ".join)
)
def test_keywords_never_overlap(text: str) -> None:
    found = find_keywords(text)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert len(found) == sum(count_keywords(text))
