"""Final answers of replies: extraction and comparison."""

from cotlab.text.answers.extract import final_answer, same_answer

__all__ = ["final_answer", "same_answer"]
