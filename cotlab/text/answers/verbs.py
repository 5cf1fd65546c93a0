"""The verb of a question that counts, and the clauses of a sentence with that verb.

"She had 12 apples and ate 7 of them" answers "How many does she eat?" with 7 and "How many did she
have?" with 12. Where neither clause has the verb, what one of them counts is no answer.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cotlab.text.written_numbers import COUNT_NUMERALS, word_list

_PAST_FORMS = (
    "ate/eaten:eat bought:buy sold:sell gave/given:give spent:spend threw/thrown:throw caught:catch"
    " broke/broken:break lost:lose kept:keep took/taken:take got/gotten:get made:make found:find"
    " drank/drunk:drink wrote/written:write drove/driven:drive flew/flown:fly swam/swum:swim"
    " ran:run rode/ridden:ride won:win sent:send left:leave came:come went/gone:go saw/seen:see"
    " grew/grown:grow knew/known:know paid:pay said:say told:tell taught:teach brought:bring"
    " thought:think held:hold stood:stand built:build fed:feed met:meet fell/fallen:fall"
    " chose/chosen:choose stole/stolen:steal began/begun:begin sang/sung:sing lent:lend meant:mean"
    " shot:shoot slept:sleep wore/worn:wear sewed/sewn:sew picked:pick lit:light dug:dig used:use"
    " owed:owe laid:lay hid/hidden:hide drew/drawn:draw blew/blown:blow shook/shaken:shake"
    " spoke/spoken:speak bit/bitten:bite tore/torn:tear woke/woken:wake bent:bend"
    " bound:bind fought:fight hung:hang led:lead shone:shine"
    " sank/sunk:sink slid:slide swept:sweep swung:swing wound:wind has:have"
    " did/done:do"
)
_BASES = {
    form: base
    for entry in word_list(_PAST_FORMS)
    for forms, _, base in [entry.partition(":")]
    for form in forms.split("/")
}
# "do she eat" of "How many apples does she eat?"
_AUXILIARY_RE = re.compile(
    r"(?i)\b(did|does|do|can|could|will|would|has|have|had|must|should|are|is|were|was)\s+(.*)"
)
_COUNT_RE = re.compile(r"(?i).*\bhow (?:many|much)\s+([^?!]{1,160})")
# what ends the run of words whose last is the verb
_STOPWORDS = frozenset(
    word_list(
        "in into on onto at for from with of per by after before if when than every as during over"
        " while since until so because each between through throughout against without"
    )
)
_NOT_VERBS = frozenset(
    word_list(
        "there left remaining remain remains away back up off out down altogether total all today"
        " now yesterday tomorrow again still together more in away it them him her us me not also"
        " actually only ever be been being need needs needed want wants left over"
    )
)
_RIGHT_NOUNS = frozenset(
    word_list(
        "away back up off out down more today now yesterday too again others other left remaining"
    )
)
"""Words after a number that name nothing else than what is counted: "threw 4 back"."""
_BETWEEN_VERB_AND_NUMBER = frozenset(
    word_list("away up out off back only just exactly about another")
)
# ", " or " and " between clauses
_CLAUSE_END_RE = re.compile(
    r"[,;:]\s|\s(?:and|while|but|so|whereas|since|because|of which|which|who|that|before|after"
    r"|then)\s"
)
_OF_THEM_RE = re.compile(r"(?i)\sof\s(?:them|these|those|which|the|his|her|their|its|it|the)\b")
_DENIAL_RE = re.compile(
    r"(?i)\b(?:not|never|no|if|would|could|might|should|wants?|wanted|plan(?:s|ned)?|hop(?:es?|ed)|than)\b"
    r"|n['’]t\b"
)
_OPENING_TERMS = frozenset(
    word_list(
        "The They She His Her Their There Then Thus Therefore Hence This That These Those After"
        " Since Because And But Finally Each Every Both All Next First Second Third Now Today When"
        " While From For With Total Altogether"
    )
)
# "not break any"
_NOT_RE = re.compile(r"(?i)(?:\b(?:not|never)|n['’]t)\s((?:[a-z]+\s?){1,3})")
_NAME_RE = re.compile(r"\b[A-Z][a-z]{2,}\b")
# "all", "two", without digits
_UNNUMBERED_RE = re.compile(
    r"(?i)^(?!.*\d).*\b(?:all|none|some|half|most|few|several"
    rf"|{'|'.join(sorted(COUNT_NUMERALS - {'one'}))})\b"
)
# " of the 10 cars" after 6
_OF_TOTAL_RE = re.compile(r"(?i)\sof (?:the|these|those|his|her|their) \d")
_ARE_THERE_RE = re.compile(r"(?i)\b(?:are|were|is|was) there\b")
# "How many are left?", "How many does he have now?"
_REMAINING_RE = re.compile(
    r"(?i)\b(?:left|leftover|remain\w*|still|now|in the end|finally|afterwards?)\b"
)
_REMAINS_RE = re.compile(
    r"(?i)\b(?:left|leaves?|leaving|leftover|remain\w*|still|now|over|end|ends|after|keeps?|has|have"
    r"|unsold|uneaten|unused|total|there (?:are|is))\b"
)
# "had ", "started with " right before a number
_HAD_RE = re.compile(
    r"(?i)\b(?:had|(?:started|starts|begins?|began)(?: out| off)? with|there (?:were|was)"
    r"|originally|initially|at first)\s(?:about |exactly |a total of |only )?[$*\\(]{0,3}$"
)
_FIRST_RE = re.compile(
    r"(?i)\b(?:had|start\w*|began|begin\w*|first|initial\w*|original\w*|were there|was there"
    r"|did .{1,40} have|earlier|before)\b"
)

Spans = list[tuple[int, int]]


class _Clause(NamedTuple):
    """A number with the clause that it stands in."""

    span: tuple[int, int]
    start: int
    end: int


def verb_base(word: str) -> str:
    """Return a form that is equal for the forms of a verb: "eat" for ate, eats and eating."""
    word = word.lower()
    word = _BASES.get(word, word)
    for ending in ("ing", "ied", "ies", "ed", "es", "s", "e", "y"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and re.search(r"[aeiouy]", stem):
            word = f"{stem}i" if ending in ("ied", "ies", "y") else stem
            break
    return word[:-1] if len(word) > 2 and word[-1] == word[-2] else word


def question_verb(sentence: str) -> str:
    """Return the base of the verb of a sentence that asks how many; "" where that is open.

    Examples
    --------
    >>> question_verb("How many apples does she eat a week?"), question_verb("How many are left?")
    ('eat', '')
    """
    match = _COUNT_RE.match(sentence)
    if match is None:
        return ""
    auxiliary = _AUXILIARY_RE.search(match[1])
    run: list[str] = []
    for token in re.findall(r"[A-Za-z'’-]+|[,;:]", auxiliary[2] if auxiliary else match[1]):
        if token.lower() in _STOPWORDS or not token[0].isalpha():
            break
        if token.lower() in ("a", "an") and run:  # "eat a week"
            break
        run.append(token)
    tokens = [
        token
        for token in run
        if not (token[0].isupper() or token in _NOT_VERBS or token.endswith("ly") or token == "to")
    ]
    if not tokens or len(tokens[-1]) < 2 or "take" in run[1:2]:  # "will it take to"
        return ""
    verb = tokens[-1].lower()
    is_past = verb in _BASES or verb.endswith("ed")
    if auxiliary is None:
        return verb_base(verb) if is_past and len(tokens) > 1 else ""
    if auxiliary[1].lower() in ("are", "is", "was", "were") and not is_past:
        return ""
    return "had" if verb == "have" and auxiliary[1].lower() == "did" else verb_base(verb)


def _clauses(sentence: str, spans: Spans) -> list[_Clause]:
    """Return the clauses of numbers; a clause without a verb of its own is of the one before."""
    ends = [match.start() for match in _CLAUSE_END_RE.finditer(sentence)] + [len(sentence)]
    return [
        _Clause(
            span,
            max((end for end in ends if end < span[0]), default=0),
            min(end for end in ends if end >= span[1] - 1),
        )
        for span in spans
    ]


def has_verb(text: str, verb: str) -> bool:
    """Return whether a text has a form of a verb."""
    return any(verb_base(token) == verb for token in re.findall(r"[A-Za-z]{2,}", text))


def _holders(sentence: str, clauses: list[_Clause], verb: str) -> list[_Clause]:
    """Return the clauses of numbers that have a verb."""
    return [clause for clause in clauses if has_verb(sentence[clause.start : clause.end], verb)]


def spans_with_verb(sentence: str, spans: Spans, verb: str, question: str) -> Spans:
    """Return the numbers of the clauses that have the verb of a question.

    Nothing where all have it or none, where the clause is denied, and where it is of another name
    than the question has.
    """
    clauses = _clauses(sentence, spans) if verb else []
    holders = _holders(sentence, clauses, verb)
    question_names = _question_names(question)
    if len(holders) > 1:  # "wanted to buy 9 but bought only 6"
        holders = [clause for clause in holders if not _supposes(sentence, clause, question)]
    others = [clause for clause in clauses if clause not in holders]
    if any(_names(sentence, clause) & question_names for clause in holders):
        holders = [clause for clause in holders if _names(sentence, clause) & question_names]
    elif any(_names(sentence, clause) & question_names for clause in others):
        return []
    if len(holders) == len(clauses):
        return []
    is_denial = _denies(question, verb)
    for clause in holders:
        names = _names(sentence, clause)
        if question_names and names - question_names:
            return []
        text = sentence[clause.start : clause.end]
        if is_denial != _denies(text, verb) or _supposes(sentence, clause, question):
            return []
    return [clause.span for clause in holders]


def _supposes(sentence: str, clause: _Clause, question: str) -> bool:
    """Return whether a clause denies or supposes what the question does not."""
    text = sentence[clause.start : clause.end]
    return bool(_DENIAL_RE.search(text)) and not _DENIAL_RE.search(question)


def _denies(text: str, verb: str) -> bool:
    """Return whether a text denies a verb: "did not break any"."""
    return any(has_verb(match[1], verb) for match in _NOT_RE.finditer(text))


def _question_names(question: str) -> set[str]:
    """Return the names of a question that counts."""
    return set(_NAME_RE.findall(question)) - _OPENING_TERMS - {"How"}


def _names(sentence: str, clause: _Clause) -> set[str]:
    """Return the names of a clause; those of the last before it where it has none."""
    in_clause = set(_NAME_RE.findall(sentence[clause.start : clause.end]))
    names = in_clause - _OPENING_TERMS
    return names or set(_NAME_RE.findall(sentence[: clause.start])[-1:]) - _OPENING_TERMS


def is_elliptical(sentence: str, span: tuple[int, int]) -> bool:
    """Return whether a number stands for what the clause before counts: "7 of them", "4 back"."""
    rest = sentence[span[1] :]
    if _OF_THEM_RE.match(rest):
        return True
    following = re.match(r"\s([a-z]+)", rest)
    if following is None or following[1] in _RIGHT_NOUNS or following[1] in _STOPWORDS | {"to"}:
        return True
    return following[1] in _BASES or following[1].endswith("ed")  # "5 broke"


def stands_at_verb(sentence: str, span: tuple[int, int], verb: str) -> bool:
    """Return whether a number stands beside a verb: "ate 7", "gave away 6 of them", "5 broke"."""
    before = re.findall(r"[A-Za-z]+|[^\sA-Za-z$*\\(]", sentence[: span[0]])[-3:]
    while before and before[-1].lower() in _BETWEEN_VERB_AND_NUMBER:
        before.pop()
    after = re.match(r"\s(?:were |was |are |have |had )?([a-z]+)", sentence[span[1] :])
    tokens = [*before[-1:], *([after[1]] if after else [])]
    return is_elliptical(sentence, span) and any(verb_base(word) == verb for word in tokens)


def verb_is_unnumbered(sentence: str, span: tuple[int, int], verb: str) -> bool:
    """Return whether the verb follows a number with "all" or "two": "sees 9 and buys all but two".

    A number that stands at the verb itself is of it.
    """
    if not verb or stands_at_verb(sentence, span, verb):
        return False
    return any(
        has_verb(piece, verb) and _UNNUMBERED_RE.search(piece)
        for piece in _CLAUSE_END_RE.split(sentence[span[1] :])[1:]
    )


def is_of_other_verb(
    sentence: str, spans: Spans, span: tuple[int, int], verb: str, question: str
) -> bool:
    """Return whether a number may be of another verb than that of the question.

    That is what someone had at first, and what stands before "and ate 7 of them", where the
    question asks neither for that nor with that verb.
    """
    if _OF_TOTAL_RE.match(sentence, span[1]) and _ARE_THERE_RE.search(question):
        return True
    clauses = _clauses(sentence, spans)
    chosen = next((clause for clause in clauses if clause.span == span), None)
    if chosen is None:
        return False
    others = [clause for clause in clauses if clause.start != chosen.start]
    if not others:
        return False
    if _HAD_RE.search(sentence[: span[0]]) and any(clause.span > span for clause in others):
        return not _FIRST_RE.search(question)
    text = sentence[chosen.start : chosen.end]
    question_names = _question_names(question)
    names = _names(sentence, chosen)
    if (
        names
        and not names & question_names
        and any(_names(sentence, clause) & question_names for clause in others)
    ):
        return True  # "Bob ate 12 and Ann had 7" where Ann is asked for
    if _REMAINING_RE.search(question):
        return not _REMAINS_RE.search(text)
    if not verb:
        return False
    if has_verb(text, verb) or _denies(sentence, verb):
        is_denied = _denies(question, verb) != _denies(text, verb)
        is_supposed = len(holders := _holders(sentence, clauses, verb)) > 1 and chosen in holders
        return (
            is_denied
            or not has_verb(text, verb)
            or (is_supposed and _supposes(sentence, chosen, question))
        )
    if verb_is_unnumbered(sentence, span, verb):
        return True
    return any(clause.span > span and is_elliptical(sentence, clause.span) for clause in others)
