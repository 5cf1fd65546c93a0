"""Paraphrase a question by seeded rules or by a model; its numbers and names stay."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cotlab.core.requests import Message
from cotlab.text.prompts.chain import Prompt

# "18", "1,080", "3:30", "3/4"
_NUMBER_RE = re.compile(r"\d+(?:[.,:/]\d+)*")
# "Ann" of "then Ann"
_NAME_RE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
# " " of "apples. She"
_SENTENCE_BREAK_RE = re.compile(r"(?<=[.?]) ")
# "Ann has 7 apples." and the other sentences of the organisms' word problems
_PROBLEM_START_RE = re.compile(r"(?:At first )?([A-Z][a-z]+) (?:has|starts with) (\d+) ([a-z]+)\.")
# "Then she buys 5 more."
_PROBLEM_CHANGE_RE = re.compile(r"(?:Then (he|she)|(He|She)) ([a-z]+ \d+(?: more)?)\.")
# "Tom thinks the answer is 14."
_HINT_REMARK_RE = re.compile(r"[A-Z][a-z]+ thinks the answer is \d+\.")
# "How many apples are left?"
_FINAL_QUESTION_RE = re.compile(r"How many ([a-z]+) (?:now|are left|does (?:he|she) have now)\?")
# "If a book costs $5, how much do 3 cost?"
_CONDITION_RE = re.compile(
    r"(?:If|When|Suppose that|Given that) ((?:[^,.?!]|(?<=\d)[,.](?=\d))+), "
    r"(?:then )?((?:how|what|which|where|when|who|by how) (?:[^?.!]|(?<=\d)[,.](?=\d))+)\?"
)
# "“rain”", "`x`", "$x$", "(a) the moon"
_QUOTED_RE = re.compile(r"\"[^\"]*\"|“[^“”]*”|`[^`]*`|\$[^$]*\$|\([a-zA-Z]\).*", re.DOTALL)
_SYNONYMS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("altogether", ("in total", "in all")),
    ("in total", ("altogether", "in all")),
    ("in all", ("altogether", "in total")),
    ("each day", ("every day", "per day")),
    ("every day", ("each day", "per day")),
    ("each week", ("every week", "per week")),
    ("each month", ("every month", "per month")),
    ("each year", ("every year", "per year")),
    ("are left", ("remain", "are left over")),
    ("is left", ("remains", "is left over")),
    ("remain", ("are left",)),
    ("buys", ("purchases",)),
    ("bought", ("purchased",)),
    ("purchases", ("buys",)),
    ("begins", ("starts",)),
    ("begin", ("start",)),
    ("receives", ("gets",)),
    ("most likely", ("most probably",)),
    ("Calculate", ("Work out", "Compute")),
    ("Compute", ("Work out", "Calculate")),
    ("Evaluate", ("Work out", "Calculate")),
    ("Work out", ("Calculate", "Compute")),
    ("Determine", ("Find", "Work out")),
    ("Find", ("Determine",)),
)
"""Phrases and their synonyms in order of search; only the first phrase found is replaced, and never
in quotations, formulas or listed options."""
_OPENINGS = (
    "",
    "Please answer this question. ",
    "Here is a question. ",
    "Consider the following question. ",
    "Question: ",
    "Can you answer this? ",
    "Read this carefully. ",
    "I would like to know the following. ",
    "Please help me with this. ",
)
_CLOSINGS = ("", " Take your time.", " Thank you.")
_MAX_TRIES = 40


class ParaphraseSplit(NamedTuple):
    """Paraphrases in two parts."""

    public_paraphrases: tuple[str, ...]
    """Paraphrases that are not held out."""
    hidden_paraphrases: tuple[str, ...]
    """Held-out paraphrases."""


def reword_question(
    question: str, k: int, rng: random.Random, author_paraphrases: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return up to ``k`` paraphrases of a question, all different.

    Parameters
    ----------
    question : str
    k : int, at least 0
    rng : random.Random
        The same state gives the same paraphrases.
    author_paraphrases : sequence of str
        Paraphrases of the suite's author; they come first, those with other numbers are dropped.

    Returns
    -------
    tuple of str
        Fewer than ``k`` if the rules give no more; none for a blank question. Each has the same
        numbers as the question. A word problem in the organisms' language stays in that language;
        any other question gets a polite opening, its condition after what it asks, or a synonymous
        phrase.
    """
    if not question.strip():
        return ()
    paraphrases: dict[str, None] = {}
    candidates = (
        _reword_problem(question, rng)
        if _is_word_problem(question)
        else _reword_plain_question(question, rng)
    )
    for text in (*author_paraphrases, *candidates):
        if len(paraphrases) == k:
            break
        if text.strip() and text != question and same_numbers(question, text):
            paraphrases[text] = None
    return tuple(paraphrases)


def same_numbers(first_text: str, second_text: str) -> bool:
    """Return whether two texts have the same numbers in digits, in any order."""
    return sorted(_NUMBER_RE.findall(first_text)) == sorted(_NUMBER_RE.findall(second_text))


def split_paraphrases(
    paraphrases: Sequence[str], n_public: int, n_hidden: int, rng: random.Random
) -> ParaphraseSplit:
    """Split paraphrases at random; if there are too few, the public part is filled first."""
    shuffled_paraphrases = list(paraphrases[: n_public + n_hidden])
    rng.shuffle(shuffled_paraphrases)
    return ParaphraseSplit(
        tuple(shuffled_paraphrases[:n_public]), tuple(shuffled_paraphrases[n_public:])
    )


def paraphrase_prompt(question: str) -> Prompt:
    """Ask a model for one paraphrase; several are draws of the same request."""
    instruction = (
        "Rewrite the question below in other words. Keep its meaning, every number, name and unit,"
        " and every option to choose from. Do not answer it. Reply with the new question alone."
    )
    return Prompt((Message("user", f"{instruction}\n\nQuestion: {question}"),), "")


def read_paraphrase(question: str, reply: str) -> str | None:
    """Read a paraphrase; None if it is blank, the question itself, or has other numbers."""
    text = re.sub(
        r"^(?:\W*(?:new |rewritten )?question\W*:)\s*", "", reply.strip(), flags=re.IGNORECASE
    ).strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "“”"):
        text = text[1:-1].strip()
    is_new = text and text.casefold().split() != question.casefold().split()
    return text if is_new and same_numbers(question, text) else None


def _is_word_problem(question: str) -> bool:
    """Return whether a question is a word problem in the organisms' language."""
    sentences = _SENTENCE_BREAK_RE.split(question)
    is_middle_valid = all(
        _PROBLEM_CHANGE_RE.fullmatch(part) or _HINT_REMARK_RE.fullmatch(part)
        for part in sentences[1:-1]
    )
    return len(sentences) > 1 and bool(
        _PROBLEM_START_RE.fullmatch(sentences[0])
        and _FINAL_QUESTION_RE.fullmatch(sentences[-1])
        and is_middle_valid
    )


def _reword_problem(question: str, rng: random.Random) -> Iterator[str]:
    """Yield a word problem with other openings, connectives and final questions."""
    first_sentence, *middle_sentences, last_sentence = _SENTENCE_BREAK_RE.split(question)
    start_match = _PROBLEM_START_RE.fullmatch(first_sentence)
    question_match = _FINAL_QUESTION_RE.fullmatch(last_sentence)
    pronoun = next(
        (
            change_match[1] or change_match[2]
            for change_match in map(_PROBLEM_CHANGE_RE.fullmatch, middle_sentences)
            if change_match
        ),
        "they",
    ).lower()
    assert start_match is not None and question_match is not None
    person, start_count, item_name = start_match.groups()
    openings = (
        f"{person} has {start_count} {item_name}.",
        f"{person} starts with {start_count} {item_name}.",
        f"At first {person} has {start_count} {item_name}.",
    )
    closings = [f"How many {item_name} now?", f"How many {item_name} are left?"]
    if pronoun != "they":
        closings.append(f"How many {item_name} does {pronoun} have now?")
    for _ in range(_MAX_TRIES):
        sentences = [rng.choice(openings)]
        for sentence in middle_sentences:
            # "Then" is as frequent as in the language itself
            subject = f"Then {pronoun}" if rng.random() < 0.3 else pronoun.capitalize()
            change_match = _PROBLEM_CHANGE_RE.fullmatch(sentence)
            sentences.append(f"{subject} {change_match[3]}." if change_match else sentence)
        yield " ".join([*sentences, rng.choice(closings)])


def _reword_plain_question(question: str, rng: random.Random) -> Iterator[str]:
    """Yield a question with every synonym, opening and closing, in a seeded order."""
    bodies = [question]
    condition_match = _CONDITION_RE.fullmatch(question.strip())
    if condition_match:
        bodies.append(
            f"{condition_match[2][0].upper()}{condition_match[2][1:]} if {condition_match[1]}?"
        )
    bodies += [reworded_body for body in tuple(bodies) for reworded_body in _replace_synonym(body)]
    variants = [
        (opening, body, closing)
        for body in bodies
        for opening in _OPENINGS
        for closing in _CLOSINGS
    ]
    rng.shuffle(variants)
    # changes of the wording itself come first
    variants.sort(key=lambda frame: bool(frame[2]) + (frame[1] == question))
    for opening, body, closing in variants:
        if sorted(_NAME_RE.findall(question)) == sorted(_NAME_RE.findall(body)):
            yield f"{opening}{body}{closing}"


def _replace_synonym(question: str) -> Iterator[str]:
    """Yield the question with the first known phrase replaced by each of its synonyms."""
    quoted_spans = [match.span() for match in _QUOTED_RE.finditer(question)]
    for phrase, synonyms in _SYNONYMS:
        for match in re.finditer(rf"\b{phrase}\b", question):
            if not any(
                begin < match.end() and match.start() < stop for begin, stop in quoted_spans
            ):
                start, end = match.span()
                yield from (f"{question[:start]}{synonym}{question[end:]}" for synonym in synonyms)
                return
