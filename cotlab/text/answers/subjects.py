"""Who a last sentence says did what the question asks: "so Evelyn finished first"."""

from __future__ import annotations

import re

from cotlab.text.answers.question import last_question
from cotlab.text.answers.statements import DENIAL_RE, after_conclusion, plain_sentence
from cotlab.text.answers.verbs import verb_base
from cotlab.text.written_numbers import word_list

# "Who finished first", "Which train arrives earlier", "which of the two boys is taller"
_WHO_RE = re.compile(
    r"(?i)(?:^|[,.:;]\s|\b(?:then|so|but)\s)(?:who|which\s(?:of\s(?:them|the\s(?:\w+\s)?\w+)|\w+))\s"
    r"([^?,;:]{3,120})"
)
# "Evelyn ", "the express " before a verb
_SUBJECT_RE = re.compile(
    r"(?:it (?:is|was) )?"
    r"((?:[Tt]he\s)?[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*){0,2}|[Tt]he\s[a-z]+)\s(?=[a-z])"
)
_PRONOUNS = frozenset(
    word_list(
        "It That This These Those There He She They We You I So The Both Each Every All None Nobody"
        " Either Neither Since Because As If When While One Another Everyone Someone Only"
        " Its His Her"
    )
)
_VERB_AND_PRONOUN_RE = re.compile(r"([a-z]{3,20}) (?:it|him|her|them)")
_STOPWORDS = frozenset(
    word_list(
        "the a an is are was were be been do does did has have had of in on at to for by that it"
    )
)
_OTHER_CLAUSE_RE = re.compile(r"(?i)[,;:]|\b(?:and|but|while|whereas|who|which|because|since|or)\b")
_THAN_RE = re.compile(r"\sthan\b.*$")
_DEGREES = (
    "old young tall short fast slow heavy light long large small big great high low early late"
    " cheap warm cold rich poor near far strong weak dark bright thick thin wide narrow deep hard"
    " easy"
)
_DEGREE_BY_WORD = {
    form: base
    for base in word_list(_DEGREES)
    for stem in (base.rstrip("e"), base[:-1] + "i", base + base[-1])
    for form in (f"{stem}er", f"{stem}est")
} | {word: word for word in word_list("first last second third fourth fifth best worst")}
_DEGREE_BY_WORD |= {"more": "more", "most": "more", "less": "less", "least": "less"}
_DEGREE_BY_WORD |= {
    "fewer": "less",
    "fewest": "less",
    "won": "first",
    "wins": "first",
    "win": "first",
}
_DEGREE_BY_WORD |= {"lost": "lose", "loses": "lose", "lose": "lose"}
_ORDINALS = frozenset(word_list("second third fourth fifth last"))
_DEGREE_TERMS = frozenset(map(verb_base, _DEGREE_BY_WORD)) | frozenset(
    map(verb_base, word_list("finish come came race get game match arrive contest"))
)
_AUXILIARIES = frozenset(word_list("does did is was has do"))
_VAGUE_SUBJECTS = frozenset(
    f"the {noun}"
    for noun in word_list(
        "answer result other others first second one former latter winner reason total number sum"
        " difference correct right"
    )
)
# " of the three"
_OF_ALL_RE = re.compile(r"(?i)\s(?:of|among)\s(?:the|them|all|these|those)\b.*$")


def closing_subject(sentence: str, question: str) -> str | None:
    """Return whom or what a sentence ends by naming with the predicate of the question.

    Examples
    --------
    >>> closing_subject("Tom has 14 and Ann has 17, so Ann has more.", "Who has more?")
    'Ann'
    """
    terms = _predicate_terms(question)
    plain = plain_sentence(sentence)
    if not terms or not plain or DENIAL_RE.search(last_question(question)):
        return None
    clause = _THAN_RE.sub("", after_conclusion(plain).strip(" ,"))
    match = _SUBJECT_RE.match(clause)
    if match is None or match[1].split()[0] in _PRONOUNS - {"The"}:
        return None
    subject, predicate = match[1], clause[match.end() :]
    if subject.lower() in _VAGUE_SUBJECTS or subject.endswith(("'", "’", "'s", "’s")):
        return None
    names = set(re.findall(r"\b[A-Z]\w+", predicate)) - set(re.findall(r"\w+", question))
    if DENIAL_RE.search(clause) or _OTHER_CLAUSE_RE.search(predicate) or names:
        return None
    if predicate in _AUXILIARIES or terms <= _terms(predicate):
        return subject
    of_pronoun = _VERB_AND_PRONOUN_RE.fullmatch(predicate)
    if of_pronoun and re.search(
        rf"(?i)\bwho\s{re.escape(of_pronoun[1])}\b", last_question(question)
    ):
        return subject  # "Fleming discovered it" beside "Who discovered penicillin?"
    return subject if _same_degree(clause, after_conclusion(plain), question) else None


def _same_degree(clause: str, conclusion: str, question: str) -> bool:
    """Return whether a clause says who won where it says who was first, and most for more."""
    last = last_question(question).lower()
    degrees = _degrees(last)
    is_compared = _THAN_RE.search(conclusion) and re.search(r"est\b|\bmost\b", last)
    rest = {term for term in _predicate_terms(question) if term not in _DEGREE_TERMS}
    is_same = bool(degrees) and degrees == _degrees(clause.lower()) and rest <= _terms(clause)
    return is_same and not is_compared


def _degrees(text: str) -> set[str]:
    """Return the degrees of a text in lower case: "old" for older and oldest."""
    return {
        _DEGREE_BY_WORD[token] for token in re.findall(r"[a-z]+", text) if token in _DEGREE_BY_WORD
    }


def _predicate_terms(question: str) -> frozenset[str]:
    """Return the words that say what the one who is asked for did; empty for other questions."""
    match = _WHO_RE.search(last_question(question))
    return _terms(_OF_ALL_RE.sub("", match[1])) if match else frozenset()


def _terms(text: str) -> frozenset[str]:
    tokens = re.findall(r"[a-z]{2,}", text.lower())
    return frozenset(verb_base(token) for token in tokens if token not in _STOPWORDS)


def is_of_other_degree(sentence: str, question: str) -> bool:
    """Return whether a sentence says who is the oldest where a question asks for the youngest."""
    last = last_question(question)
    if not _WHO_RE.search(last):
        return False
    expected = _degrees(last.lower())
    stated = _degrees(after_conclusion(plain_sentence(sentence)).lower())
    return bool(stated and (expected - stated) & _ORDINALS) or bool(
        expected and stated and not expected & stated
    )
