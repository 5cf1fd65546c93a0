"""What a question asks for: a count, a unit, yes or no, one of named words, a set without order."""

from __future__ import annotations

import re
from typing import NamedTuple

from cotlab.text.answers.quantities import read_noun
from cotlab.text.answers.verbs import question_verb
from cotlab.text.written_numbers import word_list
from cotlab.text.written_units import CURRENCIES, find_units

_MAX_CHARACTERS, _LAST_CHARACTERS = 1000, 200
"""Characters at the end of a question that are read for a count, and for all else."""
# "how many duck eggs"
_HOW_MANY_RE = re.compile(r"(?i)\bhow many\s+(?:more |fewer |other |total )?([^?.!,;:]{1,80})")
# "do" of "how many boxes do they need": the noun ends before
_VERB_RE = re.compile(
    r"(?i)\s(?:do|does|did|can|could|has|have|had|must|should|may|might|need|remain)\b.*"
)
# "in percent", "what percentage"
_IN_UNIT_RE = re.compile(r"(?i)\b(?:in|what)\s+([a-z%°]{1,12}?)(?:ages?)?\b")
_HOW_MUCH_RE = re.compile(r"(?i)\bhow much\b|\b(?:cost|price|profit|dollars|euros|money)\b")
_MONEY_RE = re.compile(
    r"(?i)\b(?:money|costs?|prices?|pay|paid|spen[dt]|earn\w*|sav\w+|profits?|change|bills?|owes?"
    r"|dollars?|euros?|worth|salary|wages?|charge\w*|revenue|income)\b"
)
_DIMENSIONS_BY_ADJECTIVE = {
    "long": frozenset({"time", "month", "length"}),
    "old": frozenset({"month", "time"}),
    "heavy": frozenset({"mass"}),
} | dict.fromkeys(("far", "tall", "wide", "high", "deep"), frozenset({"length"}))
_HOW_RE = re.compile(rf"(?i)\bhow ({'|'.join(_DIMENSIONS_BY_ADJECTIVE)})\b")
# "discount" of "What is the discount in percent?"
_LABEL_RE = re.compile(
    r"(?i)\bwhat\s?(?:is|was|are|were|will be|would be|'s)\s(?:the |his |her |its |their )"
    r"((?:[a-z-]+\s){0,4}?[a-z-]+)(?=\s(?:of|in|for|to|that|she|he|they|between|at|on|from)\b|[?,.])"
)
# "interior angle" of "Find the interior angle of a regular octagon."
_FIND_LABEL_RE = re.compile(
    r"(?i)\b(?:find|determine|compute|calculate)\s(?:the|his|her|its|their)\s"
    r"((?:[a-z-]+\s){0,2}?[a-z-]+)(?=\s(?:of|in|for|to|that|between|at|on|from)\b|[?,.])"
)
# "angle A" of "Find angle A."
_NAMED_LABEL_RE = re.compile(
    r"\b(?:[Ff]ind|[Dd]etermine|[Cc]ompute|[Cc]alculate|[Ww]hat is)\s"
    r"((?:angle|side|segment|edge|arc)\s[A-Z]{1,3})(?![A-Za-z])"
)
_VAGUE_LABELS = frozenset(
    word_list("value number sum solution result answer expression equation point product set")
)
_NUMBER_RE = re.compile(r"\d(?:[\d.,]*\d)?")
# "By what percent", "how much more", "the percent increase"
_CHANGE_RE = re.compile(
    r"(?i)\bby (?:what|how)\b"
    r"|\bpercent(?:age)? (?:of )?(?:increase|decrease|change|rise|drop|discount|reduction|gain"
    r"|loss)\b"
)
LIMIT_QUESTION_RE = re.compile(r"(?i)\blimit\b|\blim\b|\\lim(?![a-z])")
EIGENVALUES_QUESTION_RE = re.compile(r"(?i)\beigenvalues\b")
TOGETHER = frozenset({"together", "altogether", "total", "combined"})
"""Words that ask for a total."""
_WHEN_RE = re.compile(r"(?i)\b(?:when|what (?:time|date|day)|which (?:date|day))\b")
_VERBS = "would|will|could|can|should|is|are|was|were|do|does|did|has|have|had|may|might|must|shall"
# "Would a pear sink in water?"
_YES_NO_QUESTION_RE = re.compile(
    rf"(?i)(?:^|[.!?:,;]\s+|\n)({_VERBS})\s((?:[^?.!]|\.(?=\d)|\.{{3}}){{2,160}})\?"
)
# "Is the following sentence plausible?", "Is this argument deductively valid?"
_PROPERTY_QUESTION_RE = re.compile(
    r"(?i)\b(?:is|are)\s(?:the\s(?:following\s)?|this\s|that\s|these\s|it\b)(?:[a-z]+\s){0,2}?"
    r"(?:[a-z]+ly\s)?([a-z]{4,})\?"
)
_CONDITION_RE = re.compile(r"(?i)\W{0,3}(?:if|unless|assuming|suppose|provided)\b")
_INTERROGATIVE_RE = re.compile(r"(?i)\b(?:how|what|which|who|whom|whose|when|where|why)\b")
# "valid or invalid", "solid, liquid or gas"
_ALTERNATIVES_RE = re.compile(
    r"(?i)((?:['\"]?[a-z-]{2,20}['\"]?,\s+){0,4}['\"]?[a-z-]{2,20}['\"]?),?\s+or\s+(?:an?\s|the\s)?"
    r"['\"]?([a-z-]{2,20})\b"
)
# words that make it uncertain what a sentence says of one that it names
_HEDGE_RE = re.compile(
    r"(?i)\b(?:if|whether|unless|until|only|except|no|none|nobody|nothing|hardly|doubt\w*|unlikely"
    r"|false|wrong|either|neither|nor|or|but|although|though|however|without|than|seems?|appears?)\b"
)
_NOT_RE = re.compile(r"(?i)\b(?:not|never|cannot)\b|n['’]t\b")
_STOPWORDS = frozenset(word_list("a an the it they he she in on of to be been have at by for"))
_NEGATIVE_PREFIXES = ("in", "im", "un", "ir", "il", "non", "dis", "non-")
_SEVERAL_RE = re.compile(
    r"(?i)\b(?:all|both|list|name|which (?:two|three|four)|what are|the (?:two|three|four))\b"
    r"|\b(?:solutions|roots|zeros|solution set|factors|divisors|values)\b"
)
_ORDERED_RE = re.compile(
    r"(?i)\b(?:order|ordered|pairs?|triples?|tuples?|coordinates?|points?|respectively|sequence"
    r"|ascending|descending|sort|first|next|then|vector|steps?)\b"
)


_ALL_LISTS_RE = re.compile(
    r"(?i)\b(?:all|every|which|possible)\b[^.?!]{0,60}?\b(?:pairs|triples|triplets|quadruples|tuples|lists"
    r"|sequences|solutions|points|functions|sets)\b"
)


class ExpectedAnswer(NamedTuple):
    """What a question asks for, where its answer is a number or a date."""

    nouns: frozenset[str]
    """What "how many" counts, without endings."""
    dimensions: frozenset[str]
    """Dimensions of units that the answer may have: "time", "usd"."""
    label: str
    """What "what is the …" names."""
    is_date: bool
    """Whether it asks for a date or a time of day."""
    is_change: bool
    """Whether it asks by how much something changes."""
    terms: frozenset[str]
    """The words of its last sentence that say which number is asked for."""
    verb: str
    """The verb of "how many apples does she eat"; "" where it has none."""
    question: str
    """Its last sentence."""
    numbers: frozenset[str]
    """The numbers that it gives, as written."""


def read_expected(question: str) -> ExpectedAnswer:
    """Read what the last question of a text asks for; empty fields where it does not say."""
    question = question[-_MAX_CHARACTERS:]
    nouns: frozenset[str] = frozenset()
    dimensions: set[str] = set()
    if phrase := counted_phrase(question):
        nouns, end = read_noun(phrase)
        for word in phrase[:end].split():
            dimensions |= _dimensions(word)
    elif how := list(_HOW_RE.finditer(question)):
        dimensions |= _DIMENSIONS_BY_ADJECTIVE[how[-1][1].lower()]
    elif _HOW_MUCH_RE.search(question) and _MONEY_RE.search(question):
        dimensions |= CURRENCIES
    end_of_question = question[-_LAST_CHARACTERS:]
    for match in _IN_UNIT_RE.finditer(end_of_question):
        dimensions |= _dimensions(match[1])
    if "percent" in dimensions:
        dimensions = {"percent"}
    labels = (
        _NAMED_LABEL_RE.findall(end_of_question)
        or _LABEL_RE.findall(end_of_question)
        or [
            label
            for label in _FIND_LABEL_RE.findall(end_of_question)
            if label.split()[-1].lower().removesuffix("s") not in _VAGUE_LABELS
        ]
    )
    last = last_question(question)
    return ExpectedAnswer(
        nouns,
        frozenset(dimensions),
        labels[-1].lower() if labels else "",
        bool(_WHEN_RE.search(end_of_question)) and not nouns,
        bool(_CHANGE_RE.search(end_of_question)),
        _terms(last) - nouns - frozenset(map(word_stem, nouns)),
        question_verb(last) if nouns else "",
        last,
        frozenset(_NUMBER_RE.findall(question)),
    )


def word_stem(word: str) -> str:
    """Return a word without the endings that verbs have: "arriv" for "arriving"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word.removesuffix("s")


def _terms(sentence: str) -> frozenset[str]:
    """Return the words of a question that tell one number from another."""
    words = frozenset(re.findall(r"[a-z]{3,}", sentence.lower()))
    tokens = frozenset(map(word_stem, words)) - _STOPWORDS
    is_total = words & TOGETHER or re.search(r"(?i)\bin all\b", sentence)
    return tokens | {"together"} if is_total else tokens


def is_yes_no_question(question: str) -> bool:
    """Return whether the last sentence of a question asks for yes or no."""
    match = _YES_NO_QUESTION_RE.fullmatch(last_question(question).strip())
    return match is not None and " or " not in match[2] and not match[2].startswith("you ")


def yes_or_no(sentence: str, question: str) -> str | None:
    """Return "yes" or "no" where a sentence repeats the verb of a yes-or-no question.

    Examples
    --------
    >>> yes_or_no("Its density is low, so it would not sink.", "Would a pear sink in water?")
    'no'
    """
    if _CONDITION_RE.match(sentence) and _PROPERTY_QUESTION_RE.search(question[-_MAX_CHARACTERS:]):
        return None
    if word := _has_property(sentence, question):
        return word
    questions = _YES_NO_QUESTION_RE.findall(question[-_MAX_CHARACTERS:])
    if _INTERROGATIVE_RE.search(last_question(question)):
        return None
    if not questions or not question.rstrip().endswith(questions[-1][1] + "?"):
        return None
    verb, rest = questions[-1]
    terms = {term.lower() for term in re.findall(r"[A-Za-z]{2,}", rest)} - _STOPWORDS
    if _NOT_RE.search(rest) or " or " in rest:
        return None
    pattern = re.compile(
        rf"(?i)\b(?:{verb}|wo(?=n['’]t)|ca(?=n['’]t))(?P<no>n['’]t|not|\snot|\snever)?\s"
        r"(?:(?:an?|the|also|then|probably|likely|actually|certainly|indeed|therefore)\s)*([a-z]{2,})"
    )
    conclusion = re.split(r"(?i)[,;]\s|\b(?:so|because|since|therefore|hence|thus)\b", sentence)
    answers: set[str] = set()
    for clause in conclusion:
        for match in pattern.finditer(clause):
            if match[2].lower() in terms:
                rest_of_clause = clause[: match.start()] + clause[match.end() :]
                if _HEDGE_RE.search(rest_of_clause) or _NOT_RE.search(rest_of_clause):
                    return None
                answers.add("no" if match["no"] else "yes")
    return answers.pop() if len(answers) == 1 else None


def _has_property(sentence: str, question: str) -> str | None:
    """Return "no" for "It is not plausible" beside "Is this sentence plausible?"."""
    asked = _PROPERTY_QUESTION_RE.findall(question[-_MAX_CHARACTERS:])
    if not asked or " or " in asked[-1]:
        return None
    adjective = asked[-1].lower()
    match = re.search(
        rf"(?i)\b(?:is|are)(n['’]t|\snot|\snever)?\s(?:[a-z]+ly\s|indeed\s)?\W{{0,3}}"
        rf"({'|'.join(_NEGATIVE_PREFIXES)})?{adjective}\W{{0,4}}$",
        sentence,
    )
    if not match:
        return None
    before = re.sub(r"[\"“”][^\"“”]*[\"“”]", "", sentence[: match.start()])
    if _HEDGE_RE.search(before) or _NOT_RE.search(before):
        return None
    return "no" if bool(match[1]) != bool(match[2]) else "yes"


def named_alternative(sentence: str, question: str) -> str | None:
    """Return the one of the words that a question names ("valid or invalid") that a sentence says.

    "Not valid" is "invalid" where that is the other word.
    """
    matches = _ALTERNATIVES_RE.findall(question[-_LAST_CHARACTERS:])
    if not matches or re.search(r"(?i)\bhow\b", last_question(question)):
        return None
    alternatives: list[str] = [word.strip("'\" ").lower() for word in matches[-1][0].split(",")]
    alternatives.append(matches[-1][1].lower())
    if set(alternatives) & {"yes", "no", "not", "more", "less", "fewer"}:
        return None
    tokens = re.findall(r"[a-z-]+", sentence.lower())
    mentioned = [word for word in alternatives if word in tokens]
    if len(mentioned) != 1 or re.search(r"(?i)\b(?:whether|if|or|neither|nor|than)\b", sentence):
        return None
    if not _NOT_RE.search(sentence):
        return mentioned[0]
    others = [word for word in alternatives if word != mentioned[0]]
    is_opposite = len(others) == 1 and any(
        prefix + mentioned[0] == others[0] or prefix + others[0] == mentioned[0]
        for prefix in _NEGATIVE_PREFIXES
    )
    is_denied = re.search(
        rf"(?i)(?:\bnot|\bcannot be|n['’]t)(?:\s\w+)?\s{re.escape(mentioned[0])}\b", sentence
    )
    return others[0] if is_opposite and is_denied else None


def expects_set(question: str, *, of_lists: bool = False) -> bool:
    """Return whether a question asks for several answers whose order says nothing.

    With ``of_lists``, "all ordered pairs" are such: the order is within each.
    """
    question = question[-_LAST_CHARACTERS:]
    if of_lists:
        return bool(_ALL_LISTS_RE.search(question))
    return bool(_SEVERAL_RE.search(question)) and not _ORDERED_RE.search(question)


def last_question(question: str) -> str:
    """Return the last sentence of a question."""
    return re.split(r"(?<!\.\.)[.!?\n]\s", question[-_MAX_CHARACTERS:].strip())[-1]


def counted_phrase(question: str) -> str:
    """Return what the last "how many" counts, as written; "" without one."""
    matches = _HOW_MANY_RE.findall(question)
    return _VERB_RE.sub("", f" {matches[-1]}").strip() if matches else ""


def _dimensions(name: str) -> set[str]:
    """Return the dimensions of a unit that is written as a word."""
    return {base for dims, _ in find_units(name) for base, _ in dims} if len(name) > 2 else set()
