"""Which options of a multiple-choice question an answer names.

An answer names options by letter, text or position; one that names none, or could be two, names
nothing here and is compared as any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cotlab.text.answers.cues import RETRACTION_PATTERN
from cotlab.text.answers.extract import final_answer, marked_answer, same_answer
from cotlab.text.answers.openings import opening_sentence
from cotlab.text.answers.qualifiers import qualified_number
from cotlab.text.answers.question_choices import LETTER_RE, MAX_CHARACTERS
from cotlab.text.answers.reading import answer_key, tidy_answer, to_plain_text
from cotlab.text.steps import sentence_spans
from cotlab.text.written_numbers import word_list

_MAX_SHORT_REPLY = 300
"""Characters of a reply that may be an option as a whole."""
_POSITION_WORDS = word_list("first second third fourth fifth sixth seventh eighth ninth tenth")
# "the second option", "option 2", "#2"
_POSITION_RE = re.compile(
    rf"(?i)(?:the\s+)?({'|'.join(_POSITION_WORDS)}|last)(?:\s+(?:one|option|choice|answer))"
    r"|(?:(?:option|choice|answer|number|no\.)\s*#?|#)(\d{1,2})"
)
# "A", "(b)", "option C", "d. blotter", "[B]: x"
_LETTER_ANSWER_RE = re.compile(
    r"(?is)(?:(?:option|choice|answer)\s+)?(?:[(\[]([A-Z])[)\]]|([A-Z])(?=[.):,]|\s+[-–—]\s|\s*$))"
    r"[.):,]?\s*(?:[-–—:]\s*)?(.*)"
)
_NUMBER_LABEL_RE = re.compile(r"(?:option |choice )?\(?(\d{1,2})[).:]\s{1,3}(\S.{0,200})")
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
_EXPLANATION_RE = re.compile(r"(?i)[\s*_#]{0,9}(?:explanation|reason(?:ing)?|rationale)\b")
_FUNCTION_TERMS = frozenset(
    word_list(
        "a an the it they them he she we you this that these those is are was were be do does"
    )
)
"""Words in which a text beside a letter may differ from its option."""
# "A, C and D", "both (a) and (c)"
# " (about 78% by volume; oxygen is around 21%)" after the text of an option
_ASIDE_RE = re.compile(r"\s\([^()\n]{1,200}\)$")
# "Right coronary artery (option C)"
_TRAILING_LETTER_RE = re.compile(
    r"(?s)(.{1,400}?)[(\[](?:(?:[Oo]ption|[Cc]hoice) )?([A-Za-z])[)\]]"
)
_LETTERS_RE = re.compile(
    r"(?i)(?:both|either|all of|options?|choices?|answers?)?\s*"
    r"(?:[(\[]?[A-Z][)\]]?(?:\s*(?:,|;|&|/|\band\b))+\s*)+[(\[]?([A-Z])[)\]]?"
)
# ", and " of "A, C, and D"
_BETWEEN_PIECES_RE = re.compile(r"(?:(?<!\s)\s+)?[,;]\s*(?:and\s+)?|(?<!\s)\s+and\s+")
_ALL_RE = re.compile(
    r"(?i)all (?:of )?(?:the |these |those )?(?:above|options|choices|these|them)?"
)
_NONE_RE = re.compile(
    r"(?i)none (?:of )?(?:the |these |those )?(?:above |given |listed )?"
    r"(?:above|options|choices|answers|numbers|values|statements|these|them)"
)
# " are both correct" after "A and C"
_ARE_RIGHT_RE = re.compile(
    r"(?i)(?<=[A-Z)\]])\s(?:are|is)\s(?:both\s|all\s)?"
    r"(?:correct|right|true|the (?:correct |right )?(?:answers?|options?|choices?))$"
)
_SIGN_RE = re.compile(r"[^\w\s]")
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
    r"|\W{0,4}(?:Option|Choice|Ending|Answer|Response)\s\(?([A-J])\)?\sis\s"
    r"(?:the|correct|right|best)\b(?!\s(?:wrong|worst|least))[^\n]{1,200}$"
)
# "the second option is correct", "the answer must be the second one"
_CLOSING_POSITION_RE = re.compile(
    rf"(?i)\bthe\s+({'|'.join(_POSITION_WORDS)}|last)\s+(?:one|option|choice|answer)\b"
)
# "**terse**: both words ...", "Of the four, the first one. Each ..." at the start of a reply
_OPENING_RE = re.compile(
    rf"(?is)\s{{0,9}}(?:\*\*([^*\n]{{1,80}})\*\*\s?[:,;–—-]\s"
    rf"|(?:out of|of|among)\s[^,.\n]{{1,40}},\s(the\s(?:{'|'.join(_POSITION_WORDS)}|last)"
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
# "not", "isn't": the sentence may name an option that it rejects
_NEGATION_RE = re.compile(
    r"(?i)\b(?:not|never|no|nor|neither|cannot|rather than|instead|unlike|except|without|less|wrong"
    r"|incorrect|or|eliminate|rule out)\b|n['’]t\b"
)


def named_choices(answer: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the positions (from 0) of the options that an answer names.

    Parameters
    ----------
    answer : str
        An answer as `final_answer` gives it, or as a suite states it.
    choices : sequence of str
        Texts of the options, in order.

    Returns
    -------
    frozenset of int or None
        Several for "A and C", all others for the option "all of the above". None where no option
        is named, where letter and text disagree, and where letter and text are of two options.
    """
    answer = tidy_answer(to_plain_text(tidy_answer(answer)))[:MAX_CHARACTERS]
    answer = _ARE_RIGHT_RE.sub("", answer)
    by_text = _choice_of_text(answer, choices)
    by_letter = _choice_of_letter(answer, choices)
    if by_text is not None and by_letter is not None and by_text != by_letter:
        return None
    single = by_text if by_text is not None else by_letter
    if single is not None:
        if _ALL_RE.fullmatch(choices[single]) and len(choices) > 2:
            return frozenset(range(len(choices))) - {single}
        return frozenset([single])
    return _several_choices(answer, choices)


def choice_in_reply(text: str, choices: Sequence[str], question: str = "") -> frozenset[int] | None:
    """Return the options that a whole reply gives as its answer; None where none is clear.

    The final answer decides. Where it names no option, the only line that is one option does, then
    a first sentence in the words of the question, then the last sentence, if it mentions one option
    alone and denies nothing.
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
    if answer is not None and (match := _LETTER_ANSWER_RE.fullmatch(answer)) and match[3]:
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
    if _NEGATION_RE.search(sentence) or len(letter_matches) > 1:
        return None
    if qualified_number(sentence.strip(" .*\n")):
        return None  # "more than 15"
    mentioned = [i for i, choice in enumerate(choices) if _word_key(choice) in _word_key(sentence)]
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


def _opening_choice(text: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the option that alone is the first line of a reply, with its explanation below."""
    lines = [m for m in _LINE_OF_OPTION_RE.finditer(text) if named_choices(m[1], choices)]
    if len(lines) != 1 or lines[0].start() or not text[lines[0].end() :].strip():
        return None
    rest = text[lines[0].end() :]
    next_sentence = rest[slice(*sentence_spans(rest)[0])]
    if re.search(rf"(?i)\b(?:{RETRACTION_PATTERN})\b", rest):
        return None
    if _SO_RE.search(rest) and not _EXPLANATION_RE.match(rest):
        return None
    if _NEGATION_RE.search(next_sentence):
        return None  # "**A) Sydney** / It is not the capital."
    return named_choices(lines[0][1], choices)


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
        is_stated = not _NEGATION_RE.search(conclusion)
        position = ord(letter[1]) - ord("A")
        return position if is_stated and position < len(choices) else None
    places = [m[0] for m in _CLOSING_POSITION_RE.finditer(conclusion)]
    if len(places) == 1 and _IT_IS_RE.match(conclusion) and not _NEGATION_RE.search(conclusion):
        return _choice_of_letter(places[0], choices)
    if _NEGATION_RE.search(sentence):
        return None
    places = [m[0] for m in _CLOSING_POSITION_RE.finditer(sentence)]
    if len({place.lower() for place in places}) == 1 and _IS_RIGHT_RE.search(
        _CLOSING_POSITION_RE.sub("", sentence)
    ):
        return _choice_of_letter(places[0], choices)
    sentence = _word_key(sentence)
    stated = [
        i
        for i, choice in enumerate(choices)
        if re.search(
            rf"\s(?:is|be|are|choose|pick|was|were) {re.escape(_word_key(choice).strip())} $",
            sentence,
        )
    ]
    return stated[0] if len(stated) == 1 else None


def _word_key(text: str) -> str:
    """Return the words of a text between spaces, for finding one text in another."""
    return f" {answer_key(_SIGN_RE.sub(' ', text))} "


def choice_text(positions: frozenset[int], choices: Sequence[str]) -> str:
    """Return how options are written: "(b) stress", "(a) ice, (c) snow"."""
    return ", ".join(f"({chr(ord('a') + i)}) {choices[i]}" for i in sorted(positions))


def _choice_of_text(answer: str, choices: Sequence[str]) -> int | None:
    """Return the one option whose text an answer is."""
    key = answer_key(answer)
    equal = [i for i, choice in enumerate(choices) if answer_key(choice) == key]
    if len(equal) == 1:
        return equal[0]
    if _LETTER_ANSWER_RE.fullmatch(answer):
        return None
    if marked_answer(answer)[0] is not None:
        return None  # "Final answer: (B) ice" may be of two options
    same = [i for i, choice in enumerate(choices) if same_answer(choice, answer)]
    return same[0] if len(same) == 1 else None


def _choice_of_letter(answer: str, choices: Sequence[str]) -> int | None:
    """Return the option of a letter or position, and of its text where it is given too."""
    if position_match := _POSITION_RE.fullmatch(answer):
        word, digits = position_match[1], position_match[2]
        position = (
            int(digits) - 1
            if digits
            else len(choices) - 1
            if word.lower() == "last"
            else _POSITION_WORDS.index(word.lower())
        )
        return position if 0 <= position < len(choices) else None
    if (
        answer.isdecimal()
        and len(answer) <= 2
        and not any(any(c.isdigit() for c in choice) for choice in choices)
    ):
        return int(answer) - 1 if 1 <= int(answer) <= len(choices) else None
    if numbered := _NUMBER_LABEL_RE.fullmatch(answer):  # "3) Ottawa"
        position = int(numbered[1]) - 1
        is_there = 0 <= position < len(choices)
        return position if is_there and same_answer(numbered[2], choices[position]) else None
    match = _LETTER_ANSWER_RE.fullmatch(answer)
    if match is None:
        trailing = _TRAILING_LETTER_RE.fullmatch(answer)
        if trailing is None or LETTER_RE.search(trailing[1]):
            return None
        letter, rest = trailing[2], trailing[1]
    else:
        letter, rest = match[1] or match[2], match[3]
    position = ord(letter.lower()) - ord("a")
    if position >= len(choices):
        return None
    rest = tidy_answer(rest)
    without_aside = tidy_answer(_ASIDE_RE.sub("", rest))
    if rest and not any(
        _is_text_of(each, position, choices) for each in {rest, without_aside or rest}
    ):
        return None
    return position


def _is_text_of(text: str, position: int, choices: Sequence[str]) -> bool:
    """Return whether a text beside a letter is its option's, in whole or with more words."""
    others = [i for i in range(len(choices)) if i != position]
    if same_answer(text, choices[position]):
        return True
    key = _word_key(text)
    if _has_all_terms(text, choices[position]) and not any(
        _has_all_terms(text, choices[i]) for i in others
    ):
        return True
    return _word_key(choices[position]) in key and not any(
        _word_key(choices[i]) in key and _word_key(choices[i]) not in _word_key(choices[position])
        for i in others
    )


def _has_all_terms(text: str, choice: str) -> bool:
    """Return whether a text has the content of an option in other function words.

    It has each of its terms, the same numbers, and denies as much.
    """
    keys = [set(_word_key(side).split()) - _FUNCTION_TERMS for side in (choice, text)]
    denials = [len(_NEGATION_RE.findall(side)) for side in (choice, text)]
    numbers = [sorted(re.findall(r"\d+", side)) for side in (choice, text)]
    is_same = denials[0] == denials[1] and numbers[0] == numbers[1]
    return is_same and len(keys[0]) > 2 and keys[0] <= keys[1]


def _several_choices(answer: str, choices: Sequence[str]) -> frozenset[int] | None:
    """Return the options of "A and C", "stress, joy", "all of the above"."""
    if _ALL_RE.fullmatch(answer) and " " in answer:
        return frozenset(range(len(choices)))
    if _NONE_RE.fullmatch(answer):
        none_positions = [i for i, choice in enumerate(choices) if _NONE_RE.fullmatch(choice)]
        return frozenset(none_positions if len(none_positions) == 1 else ())
    if re.fullmatch(r"[A-J]{2,10}", answer) and list(answer) == sorted(set(answer)):
        positions = frozenset(ord(letter) - ord("A") for letter in answer)  # "ACD"
        return positions if max(positions) < len(choices) else None
    if _LETTERS_RE.fullmatch(answer):
        letters = re.findall(r"(?i)(?<![a-z])[a-z](?![a-z])", answer)
        positions = frozenset(ord(letter.lower()) - ord("a") for letter in letters)
        return positions if max(positions) < len(choices) else None
    pieces = [part for part in _BETWEEN_PIECES_RE.split(answer) if part]
    pieces = [re.sub(r"(?i)^both\s+", "", part) for part in pieces]
    if not 2 <= len(pieces) <= len(choices):
        return None
    named = [
        _choice_of_text(part, choices)
        if _choice_of_text(part, choices) is not None
        else _choice_of_letter(part, choices)
        for part in pieces
    ]
    positions = frozenset(i for i in named if i is not None)
    return positions if None not in named and len(positions) == len(pieces) else None
