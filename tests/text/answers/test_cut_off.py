"""A reply that was cut off has an answer only where it states one in full."""

from __future__ import annotations

import pytest

from cotlab.text.answers.cut_off import stated_answer_text
from cotlab.text.answers.extract import final_answer

STATED = {
    "9 * 2 = 18. So the answer is 18. Let me": "18",
    "So the answer is 18 eggs.": "18 eggs",
    "So the answer is 18\nbecause 9 *": "18",
    "So the answer is 7.5. Th": "7.5",
    "Therefore, the correct answer is 7. Th": "7",
    "Thus the **answer is 7**. Th": "7",
    "**Final Answer**\n18 eggs\n\nExplan": "18 eggs",
    "Answer:\n18\nBecause": "18",
    "Thus \\boxed{18} which": "18",
    "#### 18\nmore": "18",
    '{"answer": 18}\nx': "18",
    "18 is the answer. Th": "18",
    "So the answer is (b) stress. Because": "(b) stress",
    "<think>9</think>So the answer is 7. Now": "7",
    "analysisThe answer is 9. Noassistantfinal So the answer is 7. Now": "7",
    "The final answer is \\(18\\). I": "18",
}
NOT_STATED = [
    "",
    "Step 2: 11 - 3 = 8, then",
    "To find the answer, we add 3 and 4 = 7. Then",
    "To find the answer: 3 + 4 = 7. Then",
    "We need the answer in hours. 3 * 60 = 180. So",
    "Step 1 answer: 12. Next",
    "The answer to the first part is 7. Then",
    "We see whether the answer is 7. Then 9 =",
    "If the answer is 7. Th",
    "Suppose the answer is 4. Then",
    "The answer is not 7. It",
    "So the answer is 1",  # 18?
    "So the answer is 7.",  # 7.5?
    "#### 1",
    "Thus \\boxed{18",
    "The answer is 7. Wait, 3 + 5 =",
    "The answer is 7. But that leaves out 3, so",
    "The answer is 5. So the answer is 7. And",
    "<think>So the answer is 7. Now",
    "[THINK]So the answer is 7. Now",
    "<|ponder|>So the answer is 7. Now",
]


@pytest.mark.parametrize("text", STATED)
def test_a_stated_answer_is_read_up_to_its_end(text: str) -> None:
    stated = stated_answer_text(text)
    assert stated and text.endswith(stated, 0, text.index(stated) + len(stated))
    assert final_answer(stated) == STATED[text]


@pytest.mark.parametrize("text", NOT_STATED)
def test_a_chain_that_did_not_end_states_none(text: str) -> None:
    assert stated_answer_text(text) == ""


def test_a_hostile_reply_is_read_in_bounded_time() -> None:
    for text in ("answer is " * 20_000, "\\boxed{" * 20_000, "** " * 50_000 + "answer:"):
        assert stated_answer_text(text) == ""
