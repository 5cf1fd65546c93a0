"""What the last sentence of a reply states: a set, a list, an expression, an equation.

"So the diagonal is 5*sqrt(2) cm" states 5*sqrt(2) cm, "it holds for x < -1 or x > 4" a set, "the
circle is (x - 2)^2 + y^2 = 25" an equation and not 25. What a sentence denies or supposes it does
not state, and one that states two values states neither.
"""

from __future__ import annotations

import re

from cotlab.text.answers import reading
from cotlab.text.answers.formulas import FUNCTIONS, is_plain_number, read_formula
from cotlab.text.answers.general_solutions import names_integer_parameter, same_general_solution
from cotlab.text.answers.notation import (
    is_power_of_ten,
    matching_brackets,
    rewrite_notation,
    split_items,
)
from cotlab.text.answers.points import closing_point
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.question import read_expected
from cotlab.text.answers.real_sets import read_real_set
from cotlab.text.written_units import find_units

_MAX_CHARACTERS, _MAX_TOKENS, _MAX_ITEMS = 400, 40, 20
# "$x = 5$", "\\(x = 5\\)": delimiters around what has no words
_DOLLARS_RE = re.compile(r"\$\$?((?:(?!(?<!\\)\b[A-Za-z]{3,}\s)[^$\n]){1,200})\$\$?")
_DELIMITER_RE = re.compile(r"\\[()\[\]]")
# " (approximately 7.07)", ", or about 7.07 cm", ", which is roughly 7.07" at the end
_ROUNDED_RE = re.compile(
    r"(?:(?<!\s)\s+\((?:which is\s)?|,?(?<!\s)\s+(?:or|which is)\s|,\s+)"
    r"(?:[≈~]|about|approximately|approx\.|roughly)\s?-?[\d.,]{1,20}%?(?:\s[a-z]{1,12}){0,2}\)?$"
)
DENIAL_RE = re.compile(
    r"(?i)\b(?:not|never|cannot|neither|nor|if|whether|unless|would|might|could|may|suppose|assum\w*"
    r"|instead|rather|except|than|guess\w*|wrong|incorrect|unlikely|no longer|seems?|appears?"
    r"|false|fails?|undefined"
    r"|at (?:most|least))\b|n['’]t\b"
)
# "so ", "which means ": what the sentence concludes follows
_CONCLUSION_RE = re.compile(
    r"(?i)\b(?:so|thus|therefore|hence|then|giving|means|implies|conclude|get|obtain)\b|⟹|→|:\s"
)
_SUBORDINATE_RE = re.compile(r"(?i)\W{0,3}(?:since|as|because|given|with|when|for|in|after|by)\b")
COPULA_RE = re.compile(
    r"(?i)\b(?:is|are|was|were|be|equals?|becomes?|gives?|includes?|namely|get|obtain|have"
    r"|simplifies to|(?:written|expressed) as|factors as|equal to|works for|by)\b|:\s|[=≈→]"
)
_ADVERB_RE = re.compile(
    r"(?i)\s*(?:(?:exactly|precisely|equal to|given by|simply|just|therefore|thus|then|also|always"
    r"|approximately|about|roughly|either|both|the (?:set|interval|point|pair)s?|now)\b[:,]?\s*)*"
)
_VALUE_RE = re.compile(r"(?i)\b(?:is|are|was|equals?)\s[^\w(\\√-]{0,3}[\d√(\\-]")
# "for ", "when " before an inequality, which is where something holds
_WHERE_RE = re.compile(
    r"(?i)\b(?:for|when|where|while|with|since|because|provided|as|at)(?:\sall)?$"
)
_HOLDS_RE = re.compile(
    r"(?i)\b(?:holds?|true|satisf\w+|valid|works|positive|negative|non-?negative|defined"
    r"|increas\w+|decreas\w+|converges?|domain|solution)\b"
)
# "the probability is 5 out of 12", "a 1 in 6 chance"
_CHANCE_RE = re.compile(
    r"(?i)\b(?:probability|chances?|odds|likelihood|fraction|proportion)\b[^.\d]{0,80}?\s"
    r"(?:is|are|was|be|of|equals)\s(?:exactly |simply )?(\d{1,6} (?:out of|in)"
    r"(?: a total of| every)? \d{1,6})$"
    r"|\b(?:is|are|have|has|be|['’]s)\san?\s(\d{1,6}[ -](?:out[ -]of|in)[ -]\d{1,6})"
    r"\s(?:chance|probability)"
)
# "all real numbers except x = 2"
_ALL_EXCEPT_RE = re.compile(
    r"(?i)(?:all|any|every) real (?:numbers?|values?)(?: of [a-z]| [a-z])?"
    r"(?:,? (?:except|other than|excluding)(?: for)? (?:[a-z]\s?=\s?)?[^,\s]{1,30})?"
)
# "Note that x > 0", "We need to check x > 3"
_REMARK_RE = re.compile(
    r"(?i)(?:note|recall|assume|assuming|suppose|let|check|here|remember|we (?:need|have) to)\b"
)
# ", with radius 5"
_TAIL_RE = re.compile(r",\s(?:with|where|since|because|as)\s[^=]{1,80}$")
# ", valid for x ≠ 1, -2"
_VALID_RE = re.compile(
    r",?(?<!\s)\s+(?:valid\s+)?(?:for|where|when|provided)\s[^.≠]{1,30}≠[^.]{1,40}$"
)
_NAME_RE = re.compile(r"(?:(?<!\s)\s+)?\\?[A-Za-z]{1,2}(?:_\{?\w\}?|[1-9]|\([a-z]\))?\s?=\s?")
# "P(A)", "cos(x)", "AB" before "="
_BEFORE_EQUALS_RE = re.compile(
    r"((?:\\?(?:sin|cos|tan|cot|sec|csc|log|ln)\s)?"
    r"(?:[A-Za-z\\][A-Za-z]{0,9}\s?\([^()]{0,30}\)"
    r"|(?:[A-Za-z0-9^{}*]{1,20}\s[-+]\s){0,6}[^\s=]{1,60}))\s*$"
)
# "5 * 9.8" of "F = 5 * 9.8 = 49", not "+ 5" of "x + 5 = 3y"
_PRODUCT_RE = re.compile(
    r"(?:^|=|[a-z]{2}|[:,])\s?(\(?[\d.]{1,12}\)?(?:\s?[-+*/]\s?\(?[\d.]{1,12}(?:\^-?\d{1,3})?\)?){1,6})\s?$"
)
# "4.2 * 10^-5", "49 kg*m/s^2"
_RESULT_RE = re.compile(
    r"-?\d[\d.,]{0,20}(?:\s?\*\s?10\s?\^\s?\{?-?\d{1,3}\}?)?(?:\s[A-Za-zΩµ°][\w*/^{}-]{0,20})?"
)
_PLAIN_NAME_RE = re.compile(r"\\?[A-Za-z](?:_\{?\w\}?|[1-9])?")
_WORD_RE = re.compile(r"[A-Za-z]{2,}")
_OPERATION_RE = re.compile(r"[-+*/^√!|°]|sqrt|pi\b|\\[a-zA-Z]|\d\s?[a-zA-Z(]")
# "n·(n-1)", "(2n)!/n", "8!/5" before "!"
_FACTORIAL_END_RE = re.compile(
    r"(?:[\d)*/^!}]|(?<![A-Za-z'’])[A-Za-z])[*/]\s?(?:\d+|[A-Za-z])$|\)$|(?<=\s)[b-hj-z]$"
)
# "- x = 2", "1. (2, 3)" on a line of its own
_BULLET_RE = re.compile(r"\s{0,8}(?:[-*•]|\(?\d{1,2}[.)])\s{1,4}(\S.{0,79})")


def closing_statement(text: str, sentence: str, question: str = "") -> str | None:
    """Return what the last sentence of a reply states, in plain text; None where that is open.

    Parameters
    ----------
    text, sentence : str
        The reply and its last sentence.
    question : str, default ""
        The question: one that counts wants no list.
    """
    if bullets := _closing_bullets(text):
        return None if read_expected(question).nouns else bullets
    plain = plain_sentence(sentence)
    if not plain or len(plain) > _MAX_CHARACTERS or _REMARK_RE.match(plain):
        return None
    stated = _stated(plain, question)
    head = _TAIL_RE.sub("", plain) if stated is None else plain
    return _stated(head, question) if head != plain else stated


def _stated(plain: str, question: str) -> str | None:
    """Return what a plain sentence states."""
    if stated := _stated_set(plain):
        return stated
    if chance := _CHANCE_RE.search(plain):
        stated = (chance[1] or chance[2]).replace("-", " ")
        return stated if not _is_open(plain[: chance.start()]) else None
    if label := _labelled_point(plain, question):
        return label
    if point := closing_point(plain, question):
        return point if not _is_open(plain[: -len(point)]) else None
    counts = bool(read_expected(question).nouns)
    joints = [(match.start(), match.end()) for match in COPULA_RE.finditer(plain)]
    for start, end in [(0, 0), *joints[:_MAX_ITEMS]]:
        before, rest = plain[:start], plain[end:]
        rest = rest[_end_of(_ADVERB_RE, rest) :].strip()
        if not rest or len(rest) > 200 or _is_open(before):
            continue
        if not counts and _is_list(rest):
            return rest
        name = _BEFORE_EQUALS_RE.search(before) if plain[start:end] == "=" else None
        if name and not counts and (solutions := _solutions_of_name(name[1], rest)):
            return solutions
        if name and not _PLAIN_NAME_RE.fullmatch(name[1]) and _is_expression(rest):
            product = _PRODUCT_RE.search(before)
            is_computed = product and product[1].strip() != name[1] and _is_number(product[1])
            if is_computed and _RESULT_RE.fullmatch(rest):
                return rest  # 5 * 9.8 = 49
            return f"{name[1]} = {rest}"  # whose value it is may matter
        if _ALL_EXCEPT_RE.fullmatch(rest) or _is_expression(rest) or _is_equation(rest):
            return rest
    return None


def _is_number(text: str) -> bool:
    formula = read_formula(text)
    return formula is not None and is_plain_number(formula)


def states_two_values(sentence: str) -> bool:
    """Return whether what a sentence concludes has two values: "AB is 5√2 and BC is 3√2"."""
    return len(_VALUE_RE.findall(after_conclusion(plain_sentence(sentence)))) > 1


def plain_sentence(sentence: str) -> str:
    """Return a sentence in plain text without bold signs, delimiters and its closing mark."""
    if len(sentence) > 2 * _MAX_CHARACTERS:
        return ""
    sentence = _DOLLARS_RE.sub(r"\1", sentence.replace("**", "").replace("`", ""))
    sentence = _DELIMITER_RE.sub("", sentence.replace("\\;", " ").replace("\\,", " "))
    plain = _without_end(reading.to_plain_text(sentence))
    plain = re.sub(r"(?<=\d)\s?x\s?(?=10\s?\^)", " * ", plain)
    return _ROUNDED_RE.sub("", _VALID_RE.sub("", plain)).strip(" .,;")


def _without_end(plain: str) -> str:
    """Return a sentence without its closing mark, which the "!" of a factorial is not."""
    body = plain.strip(" \t\n.!*_>")
    is_factorial = plain.lstrip(" \t\n.!*_>")[len(body) :][:1] == "!"
    return f"{body}!" if is_factorial and _FACTORIAL_END_RE.search(body) else body


def _end_of(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def after_conclusion(before: str) -> str:
    """Return the clause that ends a text: what follows "so" or a subordinate clause."""
    ends = [match.end() for match in _CONCLUSION_RE.finditer(before)]
    clause = before[ends[-1] :] if ends else before
    if _SUBORDINATE_RE.match(clause) and "," in clause:
        clause = clause.rpartition(",")[2]
    return clause


def _is_open(before: str) -> bool:
    """Return whether the words before a value deny or suppose it, or state another."""
    clause = after_conclusion(before)
    return bool(DENIAL_RE.search(clause) or _VALUE_RE.search(clause))


def _stated_set(plain: str) -> str | None:
    """Return the inequalities, union or general solution that end a sentence."""
    if not re.search(r"[<>≤≥≠∪∈]|\\in\b|\\cup\b|\bis an? ?\w* ?integer|\bintegers?\b", plain):
        return None
    tokens = list(re.finditer(r"\S+", plain))[-_MAX_TOKENS:]
    for token in tokens:
        before, rest = plain[: token.start()].rstrip(), plain[token.start() :]
        if len(rest) > 200:
            continue
        is_set = (read := read_real_set(rest)) is not None and not read.is_bare
        is_family = not is_set and names_integer_parameter(rest)
        if is_family:
            is_set = same_general_solution(rest, rest) is True
        if not is_set:
            continue
        if re.search(r"[-+*/=<>≤≥(|]$|[\w)]\^$", before):
            return None  # a part of a longer expression
        clause = after_conclusion(before)
        if DENIAL_RE.search(clause) or (_WHERE_RE.search(before) and not _HOLDS_RE.search(clause)):
            return None
        return rest if not _VALUE_RE.search(clause) else None
    return None


def _is_list(text: str) -> bool:
    """Return whether a text is a list of numbers, expressions, named values or points."""
    if text[0] in "{(" and matching_brackets(text):
        items = split_items(text[1:-1])
        return (len(items) > 1 or text[0] == "{") and all(map(_is_item, items))
    items = split_items(re.sub(r",?(?<!\s)\s+(?:or|and)\s+", ", ", text))
    if not 2 <= len(items) <= _MAX_ITEMS:
        return False
    names = [_NAME_RE.match(item) for item in items]
    if all(names) and len(items) > 1:
        return all(_is_item(item[_end_of(_NAME_RE, item) :]) for item in items)
    if names[0] and not any(names[1:]):
        items = (items[0][_end_of(_NAME_RE, items[0]) :], *items[1:])
    return all(map(_is_item, items))


def _solutions_of_name(name: str, rest: str) -> str | None:
    """Return "x = 2 + √5 or x = 2 - √5" where each item after "x =" is of the same name."""
    items = split_items(f"{name} = {rest}")
    ends = [_end_of(_NAME_RE, item) for item in items]
    if len(items) < 2 or not _PLAIN_NAME_RE.fullmatch(name) or not all(ends):
        return None
    letters = {item[:end].strip(" =") for item, end in zip(items, ends, strict=True)}
    values = [item[end:] for item, end in zip(items, ends, strict=True)]
    return " or ".join(items) if letters == {name} and all(map(_is_item, values)) else None


def _is_item(item: str) -> bool:
    """Return whether a text is a number, an expression without words, or a point."""
    item = item.strip()
    if not item or len(item) > 60:
        return False
    if item[0] in "([{" and matching_brackets(item):
        members = split_items(item[1:-1])
        if len(members) > 1:
            return all(read_formula(member) is not None for member in members)
    if "±" in item:
        return item.count("±") == 1 and _is_item(item.replace("±", "+").lstrip("+ "))
    quantity = read_quantity(item)
    return quantity is not None or (read_formula(item) is not None and not _has_words(item))


def _has_words(text: str) -> bool:
    """Return whether a text has words that are no function, pi or, at the end, a unit."""
    tokens = text.split()
    terms = [
        token
        for i, token in enumerate(tokens)
        if _WORD_RE.fullmatch(token)
        and token not in FUNCTIONS
        and token != "pi"
        and not (i == len(tokens) - 1 and i and find_units(token))
        and not (i == len(tokens) - 1 and token in ("units", "radians", "rad"))
        and not (i == len(tokens) - 2 and token in ("square", "cubic"))
    ]
    return bool(terms)


def _is_expression(text: str) -> bool:
    """Return whether a text is one expression that is more than a number with a unit."""
    text = text[_end_of(_NAME_RE, text) :] if text.count("=") == 1 else text
    exact, sign, approximate = text.partition("≈")
    if sign and read_quantity(approximate.strip()) is None:
        return False
    exact = exact.strip()
    if is_power_of_ten(exact) or re.fullmatch(r"-?\d{1,9}/\d{1,9}", exact):
        return True
    if not _OPERATION_RE.search(exact) or _has_words(exact):
        return False
    if "±" in exact:
        rewritten = rewrite_notation(exact)
        return rewritten != exact and isinstance(
            reading.read_answer(rewritten), reading.CompoundAnswer
        )
    is_quantity = read_quantity(exact) is not None
    return not is_quantity and (
        read_formula(exact) is not None or read_quantity(rewrite_notation(exact)) is not None
    )


def _is_equation(text: str) -> bool:
    """Return whether a text is an equation that defines more than the value of a letter."""
    left, equals, right = (part.strip() for part in text.partition("="))
    if not equals or "=" in right or _has_words(left) or _has_words(right):
        return False
    formulas = read_formula(left), read_formula(right)
    if formulas[0] is None or formulas[1] is None or is_plain_number(formulas[0]):
        return False
    letters = set(re.findall(r"[A-Za-z]", left + right))
    if formulas[0].tree[0] == "symbol":
        return left in "yz" and not is_plain_number(formulas[1])
    return len(letters) > 1 and reading.named_value(text) == text


def _labelled_point(plain: str, question: str) -> str | None:
    """Return "(2, -3)" of "the centre is (2, -3) and the radius 5" where the centre is wanted."""
    label = read_expected(question).label
    if not label:
        return None
    pattern = (
        rf"(?i)\b{re.escape(label)}\b(?:\s[\w']{{1,12}}){{0,3}}?\s?(?:(?:is|at|=|:)\s)?(?:at\s)?"
        r"(\([^()]{1,60}\))"
    )
    points = [
        match
        for match in re.finditer(pattern, plain)
        if _is_list(match[1]) and re.search(r"\d", match[1])
    ]
    is_stated = len(points) == 1 and not DENIAL_RE.search(plain[: points[0].start()])
    return points[0][1] if is_stated else None


def _closing_bullets(text: str) -> str | None:
    """Return the values of a list that ends a reply, one on each line, after a line with ":"."""
    lines = [line for line in text.rstrip().split("\n")[-_MAX_ITEMS:] if line.strip()]
    items: list[str] = []
    while lines and (match := _BULLET_RE.fullmatch(lines[-1].rstrip())):
        items.insert(0, plain_sentence(match[1]))
        lines.pop()
    if len(items) < 2 or not lines or not lines[-1].rstrip(" *_").endswith(":"):
        return None
    joined = ", ".join(items)
    return joined if all(items) and len(joined) <= _MAX_CHARACTERS and _is_list(joined) else None
