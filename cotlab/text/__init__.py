"""Text of chains and replies: steps, final answers, arithmetic, edits and prompts; no I/O."""

from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.steps import split_steps, step_spans

__all__ = ["final_answer", "same_answer", "split_steps", "step_spans"]
