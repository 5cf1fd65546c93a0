"""Where chains divide. Expected values are by hand, from the rule that the comment beside them
names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotlab.text.steps import label_spans, sentence_spans, split_steps, step_spans

DIVISIONS = [
    # nothing to divide
    ("", ()),
    (" \n\t \n", ()),
    ("Only one step here", ("Only one step here",)),
    # reasoning between delimiters is the chain: no delimiter is a step, nor is the reply after it
    ("<think>\n3 + 4 = 7.\n\nSo 7.\n</think>\n\n1. Add.\n2. It is 7.", ("3 + 4 = 7.", "So 7.")),
    (
        "<|channel|>analysis<|message|>3 + 4 = 7.<|end|><|start|>assistant<|channel|>analysis"
        "<|message|>So 7.<|end|><|start|>assistant<|channel|>final<|message|>It is 7.",
        ("3 + 4 = 7.", "So 7."),
    ),
    ("Solve:\n<think>\n3 + 4 is", ("3 + 4 is",)),
    # … unless it is blank
    ("<think>\n\n</think>\n\n1. Add.\n2. It is 7.", ("1. Add.", "2. It is 7.")),
    # numbered steps, each with its label; the closing line is a step of its own
    (
        "Step 1: 7 + 5 = 12.\nStep 2: 12 - 3 = 9.\nSo the answer is 9.",
        ("Step 1: 7 + 5 = 12.", "Step 2: 12 - 3 = 9.", "So the answer is 9."),
    ),
    # … in one line too
    (
        "Step 1: 7 + 5 = 12. It grew. Step 2: 12 - 3 = 9. So the answer is 9.",
        ("Step 1: 7 + 5 = 12. It grew.", "Step 2: 12 - 3 = 9.", "So the answer is 9."),
    ),
    ("1. Add.\n2. Subtract.", ("1. Add.", "2. Subtract.")),
    ("1) Add.\n2) Subtract.", ("1) Add.", "2) Subtract.")),
    ("(1) Add.\n(2) Subtract.", ("(1) Add.", "(2) Subtract.")),
    ("**Step 1**: a\nmore of a\n**Step 3**: b", ("**Step 1**: a\nmore of a", "**Step 3**: b")),
    ("(a) Add. Twice.\n(b) Subtract.", ("(a) Add. Twice.", "(b) Subtract.")),
    # what precedes the first label is one step; indented lines continue theirs; after a blank line
    # the conclusion begins
    (
        (
            "Let us see.\nTwo things.\n\n1. **Add**:\n   3 + 4 = 7\n2. **Subtract**:\n   7 - 2 ="
            " 5\n\nThat leaves 5.\n#### 5"
        ),
        (
            "Let us see.\nTwo things.",
            "1. **Add**:\n   3 + 4 = 7",
            "2. **Subtract**:\n   7 - 2 = 5",
            "That leaves 5.",
            "#### 5",
        ),
    ),
    # a list inside a step is part of it; a heading keeps its body, even after blank lines
    (
        (
            "### Step 1: Count\n\n1. hens\n2. ducks\n\n### Step 2: Add\n\n3 + 4 = 7\n\n---\n\n###"
            " Final Answer\n\\boxed{7}"
        ),
        (
            "### Step 1: Count\n\n1. hens\n2. ducks",
            "### Step 2: Add\n\n3 + 4 = 7\n\n---",
            "### Final Answer\n\\boxed{7}",
        ),
    ),
    # a line that happens to begin with a number is no label; "Step 2 gives" refers to a step
    ("We get 5 + 7 =\n12. Then stop.", ("We get 5 + 7 =", "12. Then stop.")),
    ("We add.\nStep 2 gives nothing.\nWe stop.", ("We add.", "Step 2 gives nothing.", "We stop.")),
    # lines, as in GSM8K; bullets; paragraphs with hard-wrapped lines
    (
        "Janet sells 16 - 3 - 4 = 9 duck eggs a day.\nShe makes 9 * 2 = $18 every day.\nA: 18",
        (
            "Janet sells 16 - 3 - 4 = 9 duck eggs a day.",
            "She makes 9 * 2 = $18 every day.",
            "A: 18",
        ),
    ),
    ("- a\n- b\n  continued\n- c", ("- a", "- b\n  continued", "- c")),
    (
        (
            "This paragraph was wrapped by an editor at a fixed column, and it\ngoes on here. It"
            " ends.\n\nA second one."
        ),
        (
            (
                "This paragraph was wrapped by an editor at a fixed column, and it\ngoes on here."
                " It ends."
            ),
            "A second one.",
        ),
    ),
    # dollars are money: the two signs, each at the end of a line, do not enclose mathematics (a
    # GSM8K reference solution)
    (
        "It cost 2+3=$<<2+3=5>>5\nTax is 10*.1=$<<10*.1=1>>1",
        ("It cost 2+3=$<<2+3=5>>5", "Tax is 10*.1=$<<10*.1=1>>1"),
    ),
    # mathematics and code over several lines belong to the line before
    ("Expand:\n$$\na = 1\n\nb = 2\n$$\nDone.", ("Expand:\n$$\na = 1\n\nb = 2\n$$", "Done.")),
    (
        "So\n\\begin{align}\na &= 1 \\\\\n\nb &= 2\n\\end{align}\nDone.",
        ("So\n\\begin{align}\na &= 1 \\\\\n\nb &= 2\n\\end{align}", "Done."),
    ),
    (
        "Run:\n```\nx = 1\n\nprint(x). Y\n```\nDone.",
        ("Run:\n```\nx = 1\n\nprint(x). Y\n```", "Done."),
    ),
    # sentences, where there is one line only, with or without a closing line
    (
        "It is 5 and 6. So we get 11.\n\nThe answer is 11.",
        ("It is 5 and 6.", "So we get 11.", "The answer is 11."),
    ),
    # display mathematics: what goes on after it, or stands between two displays, is no step
    (
        "Add:\n\\[ 2x = 6 \\]\nwhich implies\n\\[ x = 3 \\]\nand\n\\[ y = 1. \\]\nSo y is odd.",
        (
            "Add:\n\\[ 2x = 6 \\]\nwhich implies\n\\[ x = 3 \\]\nand\n\\[ y = 1. \\]",
            "So y is odd.",
        ),
    ),
    (
        "We have\n\n$$x = 3$$\n\nwhere x is odd.\n\\]\nThe sum is:\n\\boxed{51}\nDone.",
        ("We have\n\n$$x = 3$$\n\nwhere x is odd.\n\\]", "The sum is:\n\\boxed{51}", "Done."),
    ),
    (
        "So\n\\begin{cases} a \\\\\nb \\end{cases}\nfor all a.\nThen b = 2.",
        ("So\n\\begin{cases} a \\\\\nb \\end{cases}\nfor all a.", "Then b = 2."),
    ),
    # paragraphs are steps where there are three
    (
        "Add them.\n3 + 4 = 7\n\nTake two.\n7 - 2 = 5\n\nDouble.\n2 * 5 = 10\nSo the answer is 10.",
        (
            "Add them.\n3 + 4 = 7",
            "Take two.\n7 - 2 = 5",
            "Double.\n2 * 5 = 10",
            "So the answer is 10.",
        ),
    ),
    # a list that a colon introduces is part of its step, unless the list is the chain
    (
        "She sells fruit to her friends.\nGiven:\n- a = 3\n- b = 4\nThe sum of both is a + b = 7.",
        (
            "She sells fruit to her friends.",
            "Given:\n- a = 3\n- b = 4",
            "The sum of both is a + b = 7.",
        ),
    ),
    (
        "Steps:\n- Add 3 and 4, which makes 7.\n- Take 2 away, which leaves 5.\n- Double.",
        (
            "Steps:",
            "- Add 3 and 4, which makes 7.",
            "- Take 2 away, which leaves 5.",
            "- Double.",
        ),
    ),
    # numbers within the reasoning are a list, not the steps
    (
        "The three prices are needed first.\nThe shop gives them in a table.\nThe equations are:\n"
        "1. a = 3\n2. b = 4\nAdding both gives the price of the basket.\nIt is 7 dollars.",
        (
            "The three prices are needed first.",
            "The shop gives them in a table.",
            "The equations are:\n1. a = 3\n2. b = 4",
            "Adding both gives the price of the basket.",
            "It is 7 dollars.",
        ),
    ),
    # a table, a rule, and a heading without its text
    (
        "Prices:\n| item | price |\n|---|---|\n| hen | 3 |\n\n---\n\nAdd.\n\nFinal answer\n\n42",
        (
            "Prices:\n| item | price |\n|---|---|\n| hen | 3 |\n\n---",
            "Add.",
            "Final answer\n\n42",
        ),
    ),
    ("He has 3.5 kg. Is it much? No! Done.", ("He has 3.5 kg.", "Is it much?", "No!", "Done.")),
    ("x is 5. y = 6. The sum is 11.", ("x is 5.", "y = 6.", "The sum is 11.")),
    ("它是五。所以是六。", ("它是五。", "所以是六。")),
]

WHOLE = [
    "Dr. Smith and Mrs. Jones met Prof. Li",
    "Take fruit, e.g. Apples, i.e. Malus, vs. Pears",
    "See No. 5 and Fig. 3 and Eq. (2) and p. 7",
    "J. K. Rowling and John F. Kennedy",
    "The U.S. Army has approx. 500 of them",
    "Well... that is, hmm… fine",
    "It is $3.50 and 1.08e3 and 0.5",
    "With $a. B$ and \\(c. D\\) and \\[e. F\\] it holds",
    "Call `f(x). G` now",
    "The 5! = 120 ways",
    "Inc. and Co. and Ltd. and etc. of the like",
]


@pytest.mark.parametrize(("text", "steps"), DIVISIONS)
def test_divisions_by_hand(text: str, steps: tuple[str, ...]) -> None:
    assert split_steps(text) == steps


@pytest.mark.parametrize("text", WHOLE)
def test_abbreviations_decimals_and_mathematics_survive(text: str) -> None:
    assert split_steps(text) == (text,)
    assert split_steps(f"{text}. Then we stop.") in (
        (f"{text}.", "Then we stop."),
        (f"{text}. Then we stop.",),
    )


def test_an_abbreviation_that_ends_a_sentence_ends_it() -> None:
    text = "They met at 5 p.m. Then he left the U.S. So he took vitamin C. He slept."
    assert split_steps(text) == (
        "They met at 5 p.m.",
        "Then he left the U.S.",
        "So he took vitamin C.",
        "He slept.",
    )


def test_spans_address_the_text() -> None:
    text = "  Step 1: a\r\n\r\nStep 2: b \u2028"
    assert step_spans(text) == ((2, 11), (15, 24))
    assert split_steps(text) == ("Step 1: a", "Step 2: b")


def test_sentences_end_at_lines_too() -> None:
    text = "One. Two\nThree"
    assert [text[a:b] for a, b in sentence_spans(text)] == ["One.", "Two", "Three"]


def test_labels() -> None:
    text = "Step 1: 7\n2. 8\n3.5 kg"
    assert [text[a:b] for a, b in label_spans(text)] == ["Step 1", "2."]


PIECES = st.lists(
    st.sampled_from(
        [
            *("Step 1: ", "Step 2", "1. ", "2) ", "**", "- ", "\n", "\n\n", "\r\n", " ", "  "),
            *(". ", "! ", "$", "$$", "\\(", "\\)", "\\[", "\\]", "```", "`", "\\begin{a}"),
            *("\\end{a}", "So the answer is ", "Dr. ", "5", "3.5", "a b", "The ", "# ", "..."),
            *("#### ", "é", "。", "\u2028"),
        ]
    ),
    max_size=40,
).map("".join)


@given(st.one_of(st.text(max_size=200), PIECES))
@settings(max_examples=400, deadline=None)
def test_no_character_is_lost_or_moved(text: str) -> None:
    spans = step_spans(text)
    steps = split_steps(text)
    assert "".join("".join(steps).split()) == "".join(text.split())
    assert all(step == step.strip() and step for step in steps)
    assert steps == tuple(text[a:b] for a, b in spans)
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in zip(spans, spans[1:], strict=False))


@given(st.lists(st.integers(0, 999), min_size=2, max_size=8))
def test_numbered_chains_come_back(numbers: list[int]) -> None:
    steps = tuple(f"Step {i}: {n} + 1 = {n + 1}." for i, n in enumerate(numbers, 1))
    assert split_steps("\n".join(steps)) == steps
    assert split_steps(" ".join(steps)) == steps
