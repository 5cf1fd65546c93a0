"""Paraphrase a question by seeded rules or by a model; its numbers and names stay."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cotlab.core.requests import Message
from cotlab.text.prompts.chain import Prompt

# "18", "1,080", "3:30", "3/4"
_NUMBERS = re.compile(r"\d+(?:[.,:/]\d+)*")
# "Ann" of "then Ann"
_NAMES = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
# " " of "apples. She"
_SENTENCES = re.compile(r"(?<=[.?]) ")
# "Ann has 7 apples." and the other sentences of the organisms' word problems
_START = re.compile(r"(?:At first )?([A-Z][a-z]+) (?:has|starts with) (\d+) ([a-z]+)\.")
# "Then she buys 5 more."
_CHANGE = re.compile(r"(?:Then (he|she)|(He|She)) ([a-z]+ \d+(?: more)?)\.")
# "Tom thinks the answer is 14."
_REMARK = re.compile(r"[A-Z][a-z]+ thinks the answer is \d+\.")
# "How many apples are left?"
_FINAL_QUESTION = re.compile(r"How many ([a-z]+) (?:now|are left|does (?:he|she) have now)\?")
# "If a book costs $5, how much do 3 cost?"
_CONDITION = re.compile(
    r"(?:If|When|Suppose that|Given that) ((?:[^,.?!]|(?<=\d)[,.](?=\d))+), "
    r"(?:then )?((?:how|what|which|where|when|who|by how) (?:[^?.!]|(?<=\d)[,.](?=\d))+)\?"
)
# "“rain”", "`x`", "$x$", "(a) the moon"
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|`[^`]*`|\$[^$]*\$|\([a-zA-Z]\).*", re.DOTALL)
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
"""Phrases in order of search; only the first one found is replaced, and never in quotations,
formulas or listed options."""
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
_TRIES = 40


class Split(NamedTuple):
    """Paraphrases in two parts."""

    public: tuple[str, ...]
    hidden: tuple[str, ...]
    """Held-out paraphrases."""


def reword_question(
    question: str, k: int, rng: random.Random, given: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return up to ``k`` paraphrases of a question, all different.

    Parameters
    ----------
    question : str
    k : int, at least 0
    rng : random.Random
        The same state gives the same paraphrases.
    given : sequence of str
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
        _reworded_problem(question, rng) if _is_word_problem(question) else _reworded(question, rng)
    )
    for text in (*given, *candidates):
        if len(paraphrases) == k:
            break
        if text.strip() and text != question and same_numbers(question, text):
            paraphrases[text] = None
    return tuple(paraphrases)


def same_numbers(first: str, second: str) -> bool:
    """Return whether two texts have the same numbers in digits, in any order."""
    return sorted(_NUMBERS.findall(first)) == sorted(_NUMBERS.findall(second))


def hold_out(paraphrases: Sequence[str], public: int, hidden: int, rng: random.Random) -> Split:
    """Split paraphrases at random; if there are too few, the public part is filled first."""
    sampled = list(paraphrases[: public + hidden])
    rng.shuffle(sampled)
    return Split(tuple(sampled[:public]), tuple(sampled[public:]))


def ask_paraphrase(question: str) -> Prompt:
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
    new = text and text.casefold().split() != question.casefold().split()
    return text if new and same_numbers(question, text) else None


def _is_word_problem(question: str) -> bool:
    """Return whether a question is a word problem in the organisms' language."""
    sentences = _SENTENCES.split(question)
    middle = all(_CHANGE.fullmatch(part) or _REMARK.fullmatch(part) for part in sentences[1:-1])
    return len(sentences) > 1 and bool(
        _START.fullmatch(sentences[0]) and _FINAL_QUESTION.fullmatch(sentences[-1]) and middle
    )


def _reworded_problem(question: str, rng: random.Random) -> Iterator[str]:
    """Yield a word problem with other openings, connectives and final questions."""
    first, *middle, last = _SENTENCES.split(question)
    start, question_match = _START.fullmatch(first), _FINAL_QUESTION.fullmatch(last)
    who = next(
        (change[1] or change[2] for change in map(_CHANGE.fullmatch, middle) if change), "they"
    ).lower()
    assert start is not None and question_match is not None
    name, n, thing = start.groups()
    openings = (
        f"{name} has {n} {thing}.",
        f"{name} starts with {n} {thing}.",
        f"At first {name} has {n} {thing}.",
    )
    closings = [f"How many {thing} now?", f"How many {thing} are left?"]
    if who != "they":
        closings.append(f"How many {thing} does {who} have now?")
    for _ in range(_TRIES):
        sentences = [rng.choice(openings)]
        for sentence in middle:
            # "Then" is as frequent as in the language itself
            subject = f"Then {who}" if rng.random() < 0.3 else who.capitalize()
            change = _CHANGE.fullmatch(sentence)
            sentences.append(f"{subject} {change[3]}." if change else sentence)
        yield " ".join([*sentences, rng.choice(closings)])


def _reworded(question: str, rng: random.Random) -> Iterator[str]:
    """Yield a question with every synonym, opening and closing, in a seeded order."""
    bodies = [question]
    turned = _CONDITION.fullmatch(question.strip())
    if turned:
        bodies.append(f"{turned[2][0].upper()}{turned[2][1:]} if {turned[1]}?")
    bodies += [other for body in tuple(bodies) for other in _with_synonym(body)]
    framed = [
        (opening, body, closing)
        for body in bodies
        for opening in _OPENINGS
        for closing in _CLOSINGS
    ]
    rng.shuffle(framed)
    # changes of the wording itself come first
    framed.sort(key=lambda frame: bool(frame[2]) + (frame[1] == question))
    for opening, body, closing in framed:
        if sorted(_NAMES.findall(question)) == sorted(_NAMES.findall(body)):
            yield f"{opening}{body}{closing}"


def _with_synonym(question: str) -> Iterator[str]:
    """Yield the question with the first known phrase replaced by each of its synonyms."""
    closed = [match.span() for match in _QUOTED.finditer(question)]
    for phrase, others in _SYNONYMS:
        for match in re.finditer(rf"\b{phrase}\b", question):
            if not any(start < match.end() and match.start() < end for start, end in closed):
                yield from (
                    question[: match.start()] + other + question[match.end() :] for other in others
                )
                return
