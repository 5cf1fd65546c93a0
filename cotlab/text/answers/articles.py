"""Articles and primes of answers in lower case: "a dog" is "dog", "a, c" is not "c", nor f' f."""

from __future__ import annotations

import re

from cotlab.text.written_numbers import word_list

# "a " before "dog", "the " before "5", not the "a" of "a-level" nor of "a b"
_ARTICLE_RE = re.compile(r"(?<![\w'-])(an?|the)\s+(?=(\w+))")
# "is " before "a dog", nothing at the start, ", " in a list
_BEFORE_RE = re.compile(r"(?<![^\W\d_])([^\W\d_]+)\s+$|(?:^|[,;:.!?(\"“&/-])\s*$")
_BEFORE_CHARACTERS = 24
# "x, " of "x, the y"
_LETTERS_BEFORE_RE = re.compile(r"(?:[a-z],\s?){1,5}")
_BEFORE_ARTICLE = frozenset(
    word_list(
        "is are was were be been being am as of in on at by for from with without to into onto upon"
        " over under and or but than like near after before during through about it's that's he's"
        " she's there's s not also just only both either what such if when while then so has have"
        " had having gets get got makes make made takes take took gives give gave uses use used"
        " needs need needed becomes become became called named contains contain includes include"
        " eats eat buys buy wears wear sees see saw finds find found builds build"
    )
)
"""Words after which "a" is an article; after others it is a name: vitamin A, plan A."""
_AFTER_NAME = frozenset(
    word_list(
        "to and or of in on at by for from with is are was were has have had plus minus times over"
        " than but not nor only alone too also versus vs then because since if when while into onto"
        " through it he she they we sin cos tan cot sec csc ln log exp sqrt pi alpha beta gamma"
        " theta max min mod equals gives first second third fourth fifth sixth seventh eighth ninth"
        " tenth"
    )
)
"""Words before which "a" is a name, or makes another number: "A to B", "a sin x", "a third"."""
_LABEL_ENDINGS = frozenset(
    word_list("positive negative minus plus major minor flat sharp natural level levels")
)
"""Words that make a name with an "a" before them where nothing follows: A positive, A minor."""
# "b" of "a, b": another label beside "a"; not the i of "I" nor the s of "Bob's"
_LABEL_RE = re.compile(r"(?<![\w'.-])[b-hj-z](?![\w'.-])")
# "50%", "5-4 decision" after an article, not "2" of "a 2"
_COUNTED_RE = re.compile(r"\d[\d.,/-]{0,20}(?:%|\s?[^\W\d_]{2,})")
# "f'", "f''" and the ends of "a'b'c'"; not the apostrophes of "Bob's" and "o'clock"
_PRIME_RE = re.compile(r"(?<![\w'])(?:[^\W\d_]'{1,3})+(?![\w'])|(?<![\w'])[^\W\d_]'{2,3}(?!')")
# "f(x)'"
_PRIME_AFTER_RE = re.compile(r"(?<=\w\))('{1,3})(?![\w'])")
_CAPITALS_RE = re.compile(r"(?<![\w'])(?:[^\W\d_]'{1,3}){1,12}[^\W\d_](?![\w'])")
# "'plan b'" in quotes
_QUOTED_RE = re.compile(r"(?<!\w)'([^'\n]{1,200})'(?!\w)")
# 'f"(x)' for f''(x)
_SECOND_PRIME_RE = re.compile(r"(?<![\w\"])([^\W\d_])\"(?=\s?\()")
PRIME = "′"
"""Stands for an apostrophe that is a prime."""


def without_articles(text: str, *, is_formula: bool = False) -> str:
    """Return a text in lower case without the articles before its nouns.

    Parameters
    ----------
    text : str
        A text in lower case.
    is_formula : bool, default False
        Whether letters may be factors: the "a" of "y = a x".

    Examples
    --------
    >>> without_articles("a dog, the cat and vitamin a")
    'dog, cat and vitamin a'
    >>> without_articles("a, c")
    'a, c'
    """
    has_labels = bool(_LABEL_RE.search(text))

    def replace(match: re.Match[str]) -> str:
        start, end = match.span()
        before = _BEFORE_RE.search(text[max(0, start - _BEFORE_CHARACTERS) : start])
        if match[1] != "a":
            is_factor = is_formula and match[1] == "an" and start > 0 and not before
            is_in_list = (  # "x, the y", not "the x, the y"
                len(match[2]) == 1 and _LETTERS_BEFORE_RE.fullmatch(text, 0, start)
            )
            return match[0] if is_factor or is_in_list else ""
        following = match[2]
        if following[0].isdigit():
            return "" if start == 0 and _COUNTED_RE.match(text, end) and not has_labels else "a "
        is_letter = len(following) < 2 and text[end + 1 : end + 2] != "-"  # "a t-shirt"
        if has_labels or is_letter or following in _AFTER_NAME or not before:
            return match[0]
        if before[1] and before[1] not in _BEFORE_ARTICLE:
            return match[0]
        if is_formula and start > 0 and not before[1] and text[start - 1] in "-/(":
            return match[0]
        is_name = following in _LABEL_ENDINGS and not text[end + len(following) :].strip(" .")
        return match[0] if is_name else ""

    return _ARTICLE_RE.sub(replace, text)


def mark_primes(text: str) -> str:
    """Return a text in lower case whose primes stand apart from its apostrophes.

    Examples
    --------
    >>> mark_primes("f' of bob's")
    "f′ of bob's"
    """
    text = _QUOTED_RE.sub(r"\1", text.replace(PRIME, "'"))
    text = _SECOND_PRIME_RE.sub(rf"\1{PRIME}{PRIME}", text)
    if "'" not in text:
        return text
    for pattern in (_PRIME_RE, _CAPITALS_RE):
        text = pattern.sub(
            lambda match: match[0] if _is_contraction(match[0]) else match[0].replace("'", PRIME),
            text,
        )
    return _PRIME_AFTER_RE.sub(lambda match: " prime" * len(match[1]), text)


def _is_contraction(text: str) -> bool:
    """Return whether two letters with an apostrophe between are a word: i'm, i'd, a's."""
    return len(text) == 3 and text[1] == "'" and (text[2] == "s" or text in ("i'm", "i'd"))
