"""Final answers of replies: extraction by the field's conventions, and comparison."""

from cotlab.text.answers.extract import final_answer, same_answer

__all__ = ["final_answer", "same_answer"]
