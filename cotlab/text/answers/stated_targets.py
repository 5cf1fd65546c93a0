"""Whether a reply to a question for a fact says the ground truth in the sentence that answers it.

Replies write a name in many ways: "Marie Skłodowska Curie was the first woman", "the **Japanese
yen (¥)**", "in Spain's capital city, Madrid". A sentence that has the words of the ground truth is
read as it where nothing in it denies, compares or joins them.
"""

from __future__ import annotations

import re
import unicodedata

from cotlab.text.answers.emphasis import NEGATION_RE, is_about_amount
from cotlab.text.answers.openings import concludes, is_doubtful
from cotlab.text.answers.question import is_yes_no_question, last_question
from cotlab.text.answers.question_endings import WHO_RE
from cotlab.text.answers.restated import question_terms
from cotlab.text.steps import sentence_spans
from cotlab.text.written_numbers import word_list

_MAX_CHARACTERS, _MAX_SENTENCES = 1200, 6
_MAX_QUESTION_CHARACTERS = 250
_MAX_TERMS = 5
"""Words of a ground truth that is looked for."""
_MIN_SHARE, _MIN_TERMS = 0.6, 2
"""Share of the question's terms that the sentence has beside the name, and fewest of them."""
_FACT_QUESTION_RE = re.compile(
    r"(?i)(?:who|whom|which|what|where|how do you (?:say|spell|call))\b(?!['’]re)"
    r"|.*\b(?:who|whom|which|what|where)\b(?!['’]).*\?"
)
_NOT_A_FACT_RE = re.compile(r"[=$\\`^+<>{}|]|\n\s{0,4}\(?[Aa1][).:]\s|\b(?:why|how (?!do you))\b")
"""Mathematics, code, lists of options, and what no name answers."""
_NAME_RE = re.compile(r"[^\W\d_]+(?:[ '’.-]{1,2}[^\W\d_]+)*\.?")
_WORD_RE = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
_FOLLOWERS = frozenset(
    word_list(
        "in on at of from to by for with as is was were are has had who which that during since"
        " until between when where while after before because and or but it he she they"
    )
)
"""Lowercase words that may follow a name without being part of it, beside those of the question."""
# "country" of "Which country hosted"
_KIND_RE = re.compile(r"(?i)\b(which|what)\s[a-z]{3,15}\b")
_WOULD_RE = re.compile(r"(?i)\bwould\b")
# "Ann was first and Bob was third, so Carl finished second"
_ARGUES_RE = re.compile(
    r"(?i)\b(?:so|thus|hence|therefore|since|because|than|although|though|while|whereas|but|or|most"
    r" people|ahead|behind)\b"
)
_NAME_ONLY_RE = re.compile(r"\s?(?:[.!;–—]|--|-\s|\(|$)")
"""What follows a name that opens a reply and is its answer: "Canberra. It is", "Diamond – it"."""
_COMPARED_RE = re.compile(
    r"(?i)\b(?:than|for|to|after|before|unlike|like|beside|besides|near|nearest|over|behind|beyond|not|with"
    r"|without|against|versus|vs|from|and|or|nor|both|either|except"
    r"|(?:husband|wife|brother|sister|son|daughter|father|mother|student|pupil|friend|colleague"
    r"|rival|successor|predecessor|teacher|part|south|north|east|west|outside|neighbou?r) of)"
    r"(?:\s(?:the|an?))?\s*$"
)
"""What sets a name beside the answer, right before it."""
_JOINED_RE = re.compile(r"(?:,?\s(?:and|or|nor)|/|,\s(?:[A-Z][\w'’-]*\s){1,4}and)\s")
_ARTICLES = frozenset(word_list("the a an"))
_PREFIXES = frozenset(word_list("north south east west northern southern eastern western new old"))


def stated_target(text: str, targets: tuple[str, ...], question: str) -> str | None:
    """Return the ground truth that the first sentence of a reply states; None for other replies.

    Parameters
    ----------
    text : str
        A reply without an answer marker.
    targets : tuple of str
        The right answers, any of which counts.
    question : str
        The question. Of one for an amount, yes or no, named alternatives, mathematics or code no
        first sentence is read so.

    Returns
    -------
    str or None
        The ground truth as the item states it.
    """
    sentence, last = _opening_sentence(text, question), last_question(question)
    matching = [target for target in targets if sentence and _has_name(sentence, target, last)]
    return matching[0] if matching else None


def other_statement(text: str, question: str) -> str | None:
    """Return the first sentence of such a reply, where it has the words of the question.

    Without the ground truth in it, it states something else: an answer that is another, in words
    that cannot be told apart from those of a third.
    """
    sentence = _opening_sentence(text, question)
    return sentence if sentence and _restates(sentence, last_question(question)) else None


def are_open_statements(first: str, second: str, question: str) -> bool:
    """Return whether two answers are sentences of this kind, which may state the same or not."""
    return other_statement(first, question) is not None is not other_statement(second, question)


def _opening_sentence(text: str, question: str) -> str | None:
    """Return the first sentence of a reply to a question for a name, without emphasis.

    None where it denies, doubts, argues or is taken back.
    """
    spans = sentence_spans(text) if len(text) <= _MAX_CHARACTERS else []
    if not 1 <= len(spans) <= _MAX_SENTENCES or not _is_name_question(question):
        return None
    sentence = re.sub(r"[*_“”\"]|(?<!\w)['‘]|['’](?!\w)", "", text[slice(*spans[0])]).strip()
    doubted = _WOULD_RE.sub("", sentence) if _WOULD_RE.search(question) else sentence
    is_open = is_doubtful(doubted) or _ARGUES_RE.search(sentence) or NEGATION_RE.search(sentence)
    return None if is_open or concludes(text[spans[0][1] :]) else sentence


def _restates(sentence: str, last: str) -> bool:
    """Return whether a sentence has most words of a question, beside "country" of its start."""
    terms = question_terms(_KIND_RE.sub(r"\1", last))
    shared = question_terms(sentence) & terms
    return len(terms) >= _MIN_TERMS and len(shared) >= _MIN_SHARE * len(terms)


def _is_name_question(question: str) -> bool:
    last = last_question(question)
    return (
        len(last) <= _MAX_QUESTION_CHARACTERS
        and _FACT_QUESTION_RE.match(last) is not None
        and _NOT_A_FACT_RE.search(question) is None
        and not is_about_amount(question)
        and not is_yes_no_question(last)
        and re.search(r"\bor\b", last) is None
    )


def _has_name(sentence: str, target: str, last: str) -> bool:
    """Return whether a sentence has the words of a name, alone and in order, as its answer."""
    names = [_folded(word) for word in _WORD_RE.findall(target)]
    names = [word for word in names if word not in _ARTICLES]
    if not names or len(names) > _MAX_TERMS or not _NAME_RE.fullmatch(target.strip()):
        return False
    if any(len(word) < 2 for word in _WORD_RE.findall(target)):
        return False  # "Plan A"
    terms = question_terms(last)
    if question_terms(target) <= terms:
        return False  # it is in the question
    tokens = list(_WORD_RE.finditer(sentence))
    starts = [i for i in range(len(tokens)) if _match_from(tokens, i, names)]
    if len(starts) != 1:
        return False
    start, end = starts[0], _match_from(tokens, starts[0], names)
    is_person = WHO_RE.search(last) is not None
    before, after = sentence[: tokens[start].start()], sentence[tokens[end - 1].end() :]
    if _COMPARED_RE.search(before) or _JOINED_RE.match(after) or re.match(r"['’]s?\b", after):
        return False
    preceding = [word for word in before.split()[-3:] if word.lower() not in _ARTICLES]
    if preceding[-1:] == ["of"] and question_terms(" ".join(preceding)) & terms:
        return False  # "the opposite of 'cold' is 'hot'"
    is_name = target[:1].isupper()
    previous = tokens[start - 1] if start and before.endswith((" ", "-")) else None
    if previous is not None and _folded(previous[0]) in _PREFIXES:
        return False
    is_longer = previous is not None and previous[0][0].isupper() and start > 1
    if is_longer and is_name and not is_person and previous and previous[0][:5] not in last:
        return False  # "Guinea" of "Papua Guinea"
    if not start and _NAME_ONLY_RE.match(after):
        return True
    if not _restates(f"{before} {after}", last):
        return False
    return _ends_name(tokens, end, after, terms, is_person=is_person)


def _match_from(tokens: list[re.Match[str]], start: int, names: list[str]) -> int:
    """Return where words that begin at a token end, or 0; middle names may be between."""
    i = start
    for k, word in enumerate(names):
        limit = min(len(tokens), start + 2 * len(names)) if k else 0
        while i < limit and _is_middle_name(tokens[i], word):
            i += 1
        if i >= len(tokens) or _folded(tokens[i][0]) != word:
            return 0
        i += 1
    return i


def _is_middle_name(token: re.Match[str], word: str) -> bool:
    return _folded(token[0]) != word and (token[0][0].isupper() or token[0] in ("of", "the", "de"))


def _ends_name(
    tokens: list[re.Match[str]], end: int, after: str, terms: frozenset[str], *, is_person: bool
) -> bool:
    """Return whether a name ends before what follows: "paper" does not in "paper towel"."""
    if not re.match(r"\s[^\W\d_]", after):
        return not re.match(r"-\w", after)
    following = tokens[end][0]
    if following[0].isupper():
        return is_person
    return following in _FOLLOWERS or bool(question_terms(following) & terms)


def _folded(word: str) -> str:
    """Return a word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).strip(".")
