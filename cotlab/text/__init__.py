"""Strings only: how a chain divides into steps, what a reply gives as its answer, whether two answers are the same."""

from cotlab.text.answers.extract import final_answer, same_answer
from cotlab.text.steps import split_steps, step_spans

__all__ = ["final_answer", "same_answer", "split_steps", "step_spans"]
