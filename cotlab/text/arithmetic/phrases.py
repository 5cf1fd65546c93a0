"""The phrases around an expression: whether it is a part of a larger amount or of a rate.

"2 inches" of "5 feet 2 inches", "$2 + $1" of "3 bags at $2 + $1" and "2" of "10 : 2" are read
alone, and are equal to something else than the whole. A phrase reaches up to punctuation, a word
such as "so", or a verb.
"""

from __future__ import annotations

from collections.abc import Sequence

from cotlab.text.arithmetic.lexer import RELATION, Token
from cotlab.text.keywords import word_set
from cotlab.text.written_numbers import COUNT_NUMERALS

PART_REASON = "it may be a part of a larger amount or a rate"
"""Reason for doubt about an expression next to another number of its phrase."""
_MAX_PHRASE_TOKENS = 24
"""Tokens of a phrase that are read on either side."""
CLAUSE_STARTS = word_set(
    "so then thus hence therefore and but because since as that means now have know see : know"
)
"""Words before a clause."""
_BREAK_TERMS = (CLAUSE_STARTS - {"as"}) | word_set(
    "which who where when while if let we he she they i you"
)
"""Words that end a phrase: "5 bags, so"."""
_VERBS = word_set(
    "is are was were be been has had gets get got cost costs pay pays paid spend spends spent make"
    " makes made earn earns earned need needs needed take takes took give gives gave equal equals"
    " sell sells sold buy buys bought eat eats ate use uses used read reads run runs ran walk walks"
    " walked drive drives drove become becomes remain remains left yield yields obtain find compute"
    " calculate contribute contributes contain contains weigh weighs produce produces receive"
    " receives received save saves saved work works worked"
)
"""Verbs: the number before them is their subject, and what follows a statement of its own."""
_DISTRIBUTIVES = word_set("each every per apiece")
"""Words of a rate, which a verb does not end: "each of 2 gets 3 + 1"."""
_NUMERALS = (
    word_set(
        "half halves third thirds quarter quarters fourth fifth twice thrice double triple percent"
        " percentage"
    )
    | COUNT_NUMERALS
) - {"one"}
MULTIPLE_TERMS = word_set(
    "halved doubled tripled split shared twice thrice factorial factorials"
    " halves thirds quarters fourths fifths sixths eighths tenths hundredths"
    " twos threes fours fives sixes sevens eights nines tens twenties hundreds thousands millions"
    " pair pairs couple couples score gross nickel nickels dime dimes"
)
"""Words after a number that make it another one: "6 tens", "30 halved"."""
_LABEL_NOUNS = word_set(
    "level grade chapter figure fig page row column room team group class problem question item"
    " number no day week month year age size box machine friend side part exercise example section"
    " table round game line floor stage phase player person student child version"
    " apartment apt test quiz tank gate bus"
)
"""Nouns that a number behind them names: "level 5"."""
_RATIO_TERMS = word_set("is are be ratio ratios proportion odds")
"""Words before the first number of a ratio: "the ratio is 10 : 2"."""
_NUMBER_KINDS = ("num", "pct", "fact")


def phrase_doubt_before(text: str, tokens: Sequence[Token], start: int) -> str:
    """Return why an expression that begins at ``start`` may be a part of its phrase, or ""."""
    if not start:
        return ""
    before = tokens[start - 1]
    if before.kind == "stop":
        return PART_REASON if _is_counted(text, tokens, start - 1) else ""
    if _word(before) in _LABEL_NOUNS:
        return PART_REASON
    has_verb = has_number = False
    for index in range(start - 1, max(-1, start - 1 - _MAX_PHRASE_TOKENS), -1):
        token, word = tokens[index], _word(tokens[index])
        is_number = token.kind in _NUMBER_KINDS or word in _NUMERALS
        if (is_number and not has_verb) or (token.kind == "op" and not has_verb):
            return PART_REASON
        has_number |= is_number
        if word in _DISTRIBUTIVES and has_number:
            return PART_REASON
        is_break = word in _BREAK_TERMS and not (word == "and" and index == start - 1)
        if not (word or is_number) or is_break:
            break
        has_verb |= word in _VERBS
    return ""


def phrase_doubt_after(text: str, tokens: Sequence[Token], end: int) -> str:
    """Return why an expression that ends before ``end`` may be a part of its phrase, or ""."""
    for index in range(end, min(len(tokens), end + _MAX_PHRASE_TOKENS)):
        token, word = tokens[index], _word(tokens[index])
        is_sum = word == "and" and tokens[index + 1 : index + 2] and tokens[index + 1].kind == "num"
        if token.kind in ("num", "op") or word in MULTIPLE_TERMS or (is_sum and index > end):
            return PART_REASON
        if token.kind == "stop":
            return PART_REASON if _goes_on(text, tokens, index) else ""
        if token.kind == "open":
            return PART_REASON if _has_operator_behind(tokens, index) else ""
        if not word or (word in _BREAK_TERMS or word in _VERBS):
            return ""
    return ""


def is_rate(tokens: Sequence[Token], end: int) -> bool:
    """Return whether an expression that ends before ``end`` is so much of each: "20 each day"."""
    return any(_word(token) in ("each", "apiece") for token in tokens[end : end + 2])


def is_alone(text: str, tokens: Sequence[Token], start: int) -> bool:
    """Return whether an amount that begins at ``start`` begins its clause, without other numbers.

    Only such an amount is compared with another: 5 km = 5000 m. A number before it in its sentence
    may belong to it, but that of a label: "Step 2: 5 km = 5000 m".
    """
    if start and not (
        tokens[start - 1].kind == "stop" or _word(tokens[start - 1]) in CLAUSE_STARTS
    ):
        return False
    for index in range(start - 1, -1, -1):
        token = tokens[index]
        if token.kind == "stop" and token.text in (".", "!", "?", ";", "\n", "\\\\", "\\[", "$$"):
            is_label = token.text == "." and _is_list_number(tokens, index - 1)
            return is_label or not _is_ratio_sign(text, tokens, index)
        if token.kind == "op" or _word(token) in _NUMERALS:
            return False
        if token.kind in _NUMBER_KINDS:
            is_label = index > 0 and _word(tokens[index - 1]) in ("step", "case", "part")
            if not is_label:
                return False
    return True


def _is_ratio_sign(text: str, tokens: Sequence[Token], index: int) -> bool:
    """Return whether the token at ``index`` is the colon of a ratio: 10 : 2; not of "Step 2: "."""
    colon = tokens[index]
    is_after_number = index > 0 and tokens[index - 1].kind in _NUMBER_KINDS
    if colon.text != ":" or not is_after_number:
        return False
    if tokens[index - 1].kind == "pct":
        return True
    label = _word(tokens[index - 2]) if index > 1 else ""
    has_space_before, has_space_after = (
        text[position : position + 1].isspace() for position in (colon.start - 1, colon.end)
    )
    return has_space_before == has_space_after or label in _RATIO_TERMS


def _word(token: Token) -> str:
    """Return a word in lower case, also one inside mathematics; "" for any other token."""
    is_word = token.kind == "word" or (token.kind == "odd" and token.text.isalpha())
    return token.text.lower() if is_word else ""


def _is_list_number(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the token at ``index`` is the number of a list item: "2. "."""
    is_first = index == 0 or (index > 0 and tokens[index - 1].text == "\n")
    return is_first and tokens[index].kind == "num"


def _is_counted(text: str, tokens: Sequence[Token], index: int) -> bool:
    """Return whether a colon or comma at ``index`` stands after an amount: "2 bags, "."""
    if _is_ratio_sign(text, tokens, index):
        return True
    if tokens[index].text != ",":
        return False
    for position in range(index - 1, max(-1, index - 4), -1):
        if tokens[position].kind in _NUMBER_KINDS:
            label = _word(tokens[position - 1]) if position else ""
            return label not in ("step", "case", "part", *_LABEL_NOUNS)
        if not _word(tokens[position]) or _word(tokens[position]) in _VERBS:
            return False
    return False


def _goes_on(text: str, tokens: Sequence[Token], index: int) -> bool:
    """Return whether punctuation at ``index`` is followed by the rest of a ratio or a list."""
    is_number = index + 1 < len(tokens) and tokens[index + 1].kind == "num"
    if not is_number or tokens[index].text == RELATION:
        return False
    is_list = tokens[index].text == "," and index + 2 < len(tokens) and _word(tokens[index + 2])
    return _is_ratio_sign(text, tokens, index) or bool(is_list)


def _has_operator_behind(tokens: Sequence[Token], index: int) -> bool:
    """Return whether an operator follows the bracket that opens at ``index``: 20 (per day) + 40."""
    depth = 0
    for position in range(index, min(len(tokens), index + _MAX_PHRASE_TOKENS)):
        depth += (tokens[position].kind == "open") - (tokens[position].kind == "close")
        if not depth:
            return position + 1 < len(tokens) and tokens[position + 1].kind == "op"
    return False
