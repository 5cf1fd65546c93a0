"""The final answer of a reply, and whether two answers are the same."""

from __future__ import annotations

from cotlab.text.answers.equality import same_value
from cotlab.text.answers.markers import MARKS, read_answer
from cotlab.text.answers.options import chosen_options, listed_options, option_text


def final_answer(text: str, question: str = "") -> str | None:
    """Return the final answer of a reply, or None where it has none that can be read.

    Parameters
    ----------
    text : str
        A whole reply.
    question : str
        Where it lists options, the answer is the option that the reply names: "(b) stress".

    Examples
    --------
    >>> final_answer("3 * 6 = 18. So the answer is 18.")
    '18'
    """
    value = read_answer(text).value
    options = listed_options(question) if question and value is not None else ()
    chosen = chosen_options(value, options) if options and value is not None else None
    return value if chosen is None else option_text(chosen, options)


def same_answer(a: str | None, b: str | None) -> bool | None:
    """Return whether two answers, or replies that mark one, are the same.

    Parameters
    ----------
    a, b : str or None
        Answers as `final_answer` gives them, or whole replies.

    Returns
    -------
    bool or None
        None where one is missing, where both are words, and where formulas differ in writing:
        those only a model or a computation can decide.

    Notes
    -----
    Numbers are compared exactly, whatever their script and separators; 50% is 50 and is 0.5. A unit
    that only one side has is no difference, two units are converted. Options are the same by their
    letter, yes and true are the same, words by case, articles and punctuation alone.
    """
    if a is None or b is None:
        return None
    values = [reading.value if (reading := read_answer(t)).how in MARKS else t for t in (a, b)]
    return same_value(values[0] or a, values[1] or b)
