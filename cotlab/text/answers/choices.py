"""Which options of a multiple-choice question a whole reply gives as its answer.

It names options by letter, text or position; one that names none, or could be two, names nothing
here and is compared as any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cotlab.text.answers.cues import RETRACTION_PATTERN
from cotlab.text.answers.extract import final_answer, marked_answer
from cotlab.text.answers.named_choices import (
    LETTER_ANSWER_RE,
    NEGATION_RE,
    POSITION_WORDS,
    choice_of_letter,
    named_choices,
    word_key,
)
from cotlab.text.answers.openings import opening_sentence
from cotlab.text.answers.qualifiers import qualified_number
from cotlab.text.answers.question_choices import MAX_CHARACTERS
from cotlab.text.answers.reading import answer_key
from cotlab.text.answers.restated import question_terms
from cotlab.text.steps import sentence_spans

_MIN_SHARE = 0.75
"""Share of the question's words in a sentence that answers it, whatever other sentences name."""
_MAX_SHORT_REPLY = 300
"""Characters of a reply that may be an option as a whole."""
# "The most plausible one is:" before "**B. waits a few minutes**" on a line
_OPTION_LINE_RE = re.compile(
    r"\b(?:is|be|answer|option|choice):[*_ ]{0,4}\n\s{0,3}[>*_]{0,6}"
    r"(\(?[A-J][).:]\s{1,3}[^\n*]{1,300}?)[*_.]{0,4}[ \t]{0,3}(?:\n|$)"
)
# "**C) 9.8 m/s² downward**" on a line of its own
_LINE_OF_OPTION_RE = re.compile(
    r"(?m)(?:\A\s{0,9}|^[ \t]{0,9})[>*_-]{0,6}(\(?[A-J][).:]\s{1,3}[^\n*]{1,300}?)[*_.]{0,4}"
    r"[ \t]{0,3}$"
)
_EXPLANATION_RE = re.compile(r"(?i)[\s*_#]{0,9}(?:explanation|reason(?:ing)?|rationale)[*_]{0,3}:")
_RETRACTED_RE = re.compile(rf"(?i)\b(?:{RETRACTION_PATTERN})\b")
# "is the medulla (option B)"
_PARENTHESISED_RE = re.compile(r"\((?:[Oo]ption|[Cc]hoice|[Aa]nswer) ([A-J])\)")
_DOUBT_RE = re.compile(r"(?i)\b(?:would|might|could|may|many|some|often|if|whether)\b")
_OTHERS_RE = re.compile(r"(?i)\b(?:many|some|most) (?:students|people|readers|candidates)\b")
_TURN_RE = re.compile(r"(?i)\b(?:is|are|but|most|answer|correct)\b")
# "which is option B", "(B)", a line that begins with "B)"
_OTHER_OPTION_RE = re.compile(
    r"\b(?i:option|choice|answer)(?:\sis)?\s\(?[A-J]\b|\([A-J]\)|(?m:^[*_>-]{0,6}[A-J][).:]\s)"
)
# "Thus, B." and "So it's (c)" at the end of a reply
_CLOSING_LETTER_RE = re.compile(
    r"(?i:(?<!\bnot\s)\b(?:thus|so|therefore|hence|then))\b[,:]?\s+(?:it(?:['’]s| is| must be)\s+)?"
    r"(?:[(\[]([A-Za-z])[)\]]|([A-J]))[\s.*]{0,6}$"
    r"|(?i:\bthe\s(?:correct|right|best)\sone\s(?:is|must be)\s)\(?([A-J])[)\s.*]{0,6}$"
)
# "Not A but B", "A? No, B" at the end, "so B it is"
_CORRECTED_LETTER_RE = re.compile(
    r"(?i:\bnot\s)\(?[A-J]\)?,?\s(?:but|rather)\s\(?([A-J])\)?[\s.*]{0,4}$"
    r"|(?i:\b(?:no|wait|rather|actually)),\s(?i:it(?:['’]s| is)\s)?\(?([A-J])\)?[\s.*]{0,4}$"
)
_IT_IS_AFTER_RE = re.compile(
    r"(?i)\bso,?\s(?:it['’]s\s)?([^.,;:\n]{1,60}?)\s(?:it is|then)[\s.*!]{0,4}$"
)
# "B, since A is wrong" as a whole reply
_FIRST_LETTER_RE = re.compile(
    r"\W{0,4}\(?([A-J])\)?,?\s(?:since|because)\s[^\n]{1,200}$"
    r"|\W{0,4}(?:Option|Choice|Ending|Answer|Response)\s\(?([A-J])\)?\sis\s(?:(?:the\s)?"
    r"(?:correct|right|best|natural|most plausible)(?:\s(?:answer|option|choice|one|ending|response"
    r"|continuation))?|the answer)(?:[.!]?|(?::|,?\s(?:because|since|as|for|it))\s"
    r"(?![^\n]*\b(?:[Bb]ut|yet|however|while|[Oo]ption|[Ee]nding)\b)[^\n]{1,200})$"
)
# "the second option is correct", "the answer must be the second one"
_CLOSING_POSITION_RE = re.compile(
    rf"(?i)\bthe\s+({'|'.join(POSITION_WORDS)}|last)\s+(?:one|option|choice|answer)\b"
)
# "**terse**: both words ...", "Of the four, the first one. Each ..." at the start of a reply
_OPENING_RE = re.compile(
    rf"(?is)\s{{0,9}}(?:\*\*([^*\n]{{1,80}})\*\*\s?[:,;–—-]\s"
    rf"|(?:out of|of|among)\s[^,.\n]{{1,40}},\s(the\s(?:{'|'.join(POSITION_WORDS)}|last)"
    r"\s(?:one|option|choice))\.\s)"
)
# "B is the smallest" after "so "
_LETTER_IS_RE = re.compile(r"\s{0,3}\(?([A-J])\)?\s(?:is|must be|has)\s[a-z]")
# "so ", "hence " before a conclusion, and "it is " at its start
_SO_RE = re.compile(r"(?i)\b(?:so|hence|thus|therefore)\b,?\s")
_IT_IS_RE = re.compile(r"(?i)\s{0,3}(?:it\s(?:is|must be|has to be)|it['’]s|that leaves)\s")
_IS_RIGHT_RE = re.compile(r"(?i)\b(?:correct|right|best|answer|choose|pick|select|go with|fits)\b")
# "is **D) Nitrous oxide**." at the end: what the sentence denies stands before
_STATED_OPTION_RE = re.compile(
    r"\b(?:is|are|must be)\s(?:therefore |thus )?\*{0,2}\(?([A-J])[).:]\s{1,3}([^*\n]{1,120}?)"
    r"\*{0,2}[.!]?\*{0,2}\s*$"
)
_DENIED_THAT_RE = re.compile(
    r"(?i)\bnot (?:true|the case|clear|certain)\b|\b(?:false|wrong|incorrect|whether|if"
    r"|eliminat\w+|exclud\w+|unlikely)\b"
)


def choice_in_reply(text: str, choices: Sequence[str], question: str = "") -> frozenset[int] | None:
    """Return the options that a whole reply gives as its answer; None where none is clear.

    The final answer decides. Where it names no option, the only line that is one option does, then
    a first line that is one, the only one that is named as "(option B)", a first sentence in the
    words of the question, then the last sentence, if it mentions one option alone and denies
    nothing.
    """
    named = named_choices(text, choices) if len(text) <= _MAX_SHORT_REPLY else None
    if named is not None:
        return named
    if marked_answer(text)[0] is None:
        lines = {m[1] for m in _OPTION_LINE_RE.finditer(text) if named_choices(m[1], choices)}
        if len(lines) == 1 and not _DENIED_THAT_RE.search(text):
            return named_choices(lines.pop(), choices)
        if (opening_line := _opening_choice(text, choices)) is not None:
            return opening_line
        if (lettered := _only_lettered(text, choices, question)) is not None:
            return lettered
        first_sentence = opening_sentence(text, question)
        letter_is = _LETTER_IS_RE.match(first_sentence) if first_sentence else None
        if letter_is is not None:
            return named_choices(letter_is[1], choices)
        named = choice_in_reply(first_sentence, choices) if first_sentence else None
        if named is not None:
            return named
    if (closing := _closing_choice(text, choices)) is not None:
        return named_choices(choices[closing], choices)
    answer = final_answer(text)
    if answer is not None and answer.isdecimal() and marked_answer(text)[0] is None:
        answer = None  # a number of the reasoning is no position
    named = None if answer is None else named_choices(answer, choices)
    spans = sentence_spans(text[-MAX_CHARACTERS:])
    if answer is not None and (match := LETTER_ANSWER_RE.fullmatch(answer)) and match[3]:
        return named  # a letter with the text of another option is neither
    if named is not None or not spans:
        return named
    sentence = text[-MAX_CHARACTERS:][slice(*spans[-1])]
    letter_matches = {m[1].upper() for m in re.finditer(r"[(\[]([A-Za-z])[)\]]", sentence)}
    opening = _OPENING_RE.match(text)
    if opening and (named := named_choices(opening[1] or opening[2], choices)) is not None:
        return named
    if (stated := _STATED_OPTION_RE.search(sentence)) and not _DENIED_THAT_RE.search(sentence):
        return named_choices(f"({stated[1]}) {stated[2]}", choices)
    if NEGATION_RE.search(sentence) or _OTHERS_RE.search(sentence) or len(letter_matches) > 1:
        return None
    if qualified_number(sentence.strip(" .*\n")):
        return None  # "more than 15"
    mentioned = [i for i, choice in enumerate(choices) if word_key(choice) in word_key(sentence)]
    longest = [
        i
        for i in mentioned
        if not any(i != j and answer_key(choices[i]) in answer_key(choices[j]) for j in mentioned)
    ]
    if letter_matches:
        position = ord(letter_matches.pop()) - ord("A")
        is_clear = position < len(choices) and set(longest) <= {position}
        return frozenset([position]) if is_clear else None
    return frozenset(longest) if len(longest) == 1 else None


def _only_lettered(text: str, choices: Sequence[str], question: str) -> frozenset[int] | None:
    """Return the only option that a reply names as "(option B)", where its sentence states it.

    None where another sentence names an option by its text, unless this one has the words of the
    question.
    """
    letters = {match[1] for match in _PARENTHESISED_RE.finditer(text)}
    if len(letters) != 1:
        return None
    match = next(_PARENTHESISED_RE.finditer(text))
    spans = [span for span in sentence_spans(text) if span[0] <= match.start() < span[1]]
    start, end = spans[0] if spans else (0, len(text))
    sentence, elsewhere = text[start:end], word_key(f"{text[:start]} {text[end:]}")
    is_contested = any(word_key(choice) in elsewhere for choice in choices)
    terms = question_terms(question.partition("?")[0])
    if is_contested and len(question_terms(sentence) & terms) < _MIN_SHARE * len(terms):
        return None
    is_open = NEGATION_RE.search(sentence) or _DOUBT_RE.search(sentence)
    if is_open or _RETRACTED_RE.search(text[match.end() :]):
        return None
    return named_choices(letters.pop(), choices)


def _opening_choice(text: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the option that alone is the first line of a reply, with its explanation below."""
    lines = [m for m in _LINE_OF_OPTION_RE.finditer(text) if named_choices(m[1], choices)]
    if len(lines) != 1 or lines[0].start() or not text[lines[0].end() :].strip():
        return None
    rest = text[lines[0].end() :]
    next_sentence = rest[slice(*sentence_spans(rest)[0])]
    if _RETRACTED_RE.search(rest):
        return None
    if _SO_RE.search(rest) and not _EXPLANATION_RE.match(rest):
        return None
    if NEGATION_RE.search(next_sentence) or _OTHER_OPTION_RE.search(rest):
        return None  # "**A) Sydney** / It is not the capital.", "The capital is option B."
    named = named_choices(lines[0][1], choices) or frozenset()
    others = [word_key(choice) for i, choice in enumerate(choices) if i not in named]
    is_other_named = any(
        other in word_key(rest) for other in others if not other.strip().isdecimal()
    )
    return None if is_other_named and _TURN_RE.search(rest) else named


def _closing_choice(text: str, choices: Sequence[str]) -> int | None:
    """Return the option that closes a reply without a marker: "so it has to be a blotter"."""
    if corrected := _CORRECTED_LETTER_RE.search(text[-60:]) or _FIRST_LETTER_RE.fullmatch(text):
        letter_position = ord(next(group for group in corrected.groups() if group)) - ord("A")
        return letter_position if letter_position < len(choices) else None
    if it_is := _IT_IS_AFTER_RE.search(text[-100:]):
        named = named_choices(it_is[1], choices)
        return next(iter(named)) if named and len(named) == 1 else None
    spans = sentence_spans(text[-MAX_CHARACTERS:])
    if not spans or marked_answer(text)[0] is not None:
        return None
    if letter := _CLOSING_LETTER_RE.search(text[-200:]):
        position = ord((letter[1] or letter[2] or letter[3]).lower()) - ord("a")
        return position if position < len(choices) else None
    sentence = text[-MAX_CHARACTERS:][slice(*spans[-1])]
    conclusion = _SO_RE.split(sentence)[-1]
    if conclusion != sentence and (letter := _LETTER_IS_RE.match(conclusion)):
        is_stated = not NEGATION_RE.search(conclusion)
        position = ord(letter[1]) - ord("A")
        return position if is_stated and position < len(choices) else None
    places = [m[0] for m in _CLOSING_POSITION_RE.finditer(conclusion)]
    if len(places) == 1 and _IT_IS_RE.match(conclusion) and not NEGATION_RE.search(conclusion):
        return choice_of_letter(places[0], choices)
    if NEGATION_RE.search(sentence):
        return None
    places = [m[0] for m in _CLOSING_POSITION_RE.finditer(sentence)]
    if len({place.lower() for place in places}) == 1 and _IS_RIGHT_RE.search(
        _CLOSING_POSITION_RE.sub("", sentence)
    ):
        return choice_of_letter(places[0], choices)
    sentence = word_key(sentence)
    stated = [
        i
        for i, choice in enumerate(choices)
        if re.search(
            rf"\s(?:is|be|are|choose|pick|was|were) {re.escape(word_key(choice).strip())} $",
            sentence,
        )
    ]
    return stated[0] if len(stated) == 1 else None
