"""Formulas that close a text without a marker, and whether a text is one expression."""

from __future__ import annotations

import re

from cotlab.text.answers import reading
from cotlab.text.answers.formulas import is_plain_number, read_formula
from cotlab.text.answers.notation import rewrite_notation
from cotlab.text.answers.quantities import read_quantity

# "\\(a + b = 7\\)." at the end of a reply
_FINAL_MATHS_RE = re.compile(
    r"(?s)(?:\\\(((?:(?!\\\().){1,300}?)\\\)|\\\[((?:(?!\\\[).){1,300}?)\\\]"
    r"|\$\$?([^$]{1,300})\$\$?)[\s.*]{0,6}$"
)
# "\\(\\sqrt{72}\\) cm long." at the end of a sentence
_MATHS_WITH_UNIT_RE = re.compile(
    r"(?:\\\(([^$\n]{1,200}?)\\\)|\$([^$\n]{1,200})\$)\s((?:[a-z]+\s?){1,4})[\s.*]{0,3}$"
)
# ", and " between two formulas
_BEFORE_MATHS_RE = re.compile(r"(?:,|,?\s(?:and|or))\s{0,3}$")
# "cm^2"
_UNIT_POWER_RE = re.compile(r"[a-z]{1,5}\^[23]")
# "x ≠ 2" as a whole reply
_UNEQUAL_RE = re.compile(r"\A(?!.*\b[A-Za-z]{3,}\b)[^≠]{1,40}≠[^≠]{1,40}")
# "4210_7", "1.01_2", "(12)_3": a number of another base
_BASE_RE = re.compile(r"-?\(?[\dA-F]{1,60}(?:\.[\dA-F]{1,60})?\)?\s?_\{?\d{1,2}\}?", re.ASCII)
# "twice 3", "half of 10" as a whole reply
_MULTIPLE_RE = re.compile(
    r"(?i)(?:twice|thrice|double|triple|half|the (?:square|cube) root)\s(?:of\s)?[\d.]{1,20}$"
)
# "8!/(3!2!)", "√50" in a sentence
_FORMULA_TOKEN_RE = re.compile(r"(?<!\S)[^\s,;:]*(?:√|\\[dt]?binom\{|\d!|!/|\)!|/\(|\^)[^\s,;:]*")
# "is (m_1 - m_2)g/(m_1 + m_2)" at the end of a sentence
_IS_FORMULA_RE = re.compile(r"(?:\b(?:is|are|equals|gives|get)|[:=])\s+([^:=]{1,80}?)[\s.*]{0,3}$")
_LETTER_RE = re.compile(r"\\?[A-Za-z]'?(?:_\{?\w\}?)?")
# "for all ", "for each " before a formula that says where something holds
_FOR_ALL_RE = re.compile(r"(?i)\bfor\s(?:all|every|each|any)(?:\s[a-z]+){0,3}\s$")
# "it is not true that x = 5" at the end of a sentence
_DENIED_RE = re.compile(
    r"(?i)(?:(?:\b(?:not|never)|n['’]t)\s(?:true|the case|correct|right)"
    r"|\b(?:untrue|false|wrong|incorrect)(?: to (?:say|think|claim))?)"
    r" that\s[^.;\n]{1,80}[\s.]{0,4}$"
)
# "is ", "equals: "
_IS_RE = re.compile(r"(?i)(?:\b(?:is|are|be|equals?|variable|answer|option|choice)|[=:])\W{0,6}$")
# "√3", "4!" as the last word
_FINAL_FORMULA_RE = re.compile(r"(?:^|\s)(\S{0,40}(?:√|\\frac|\\sqrt|π|\^)\S{1,60}?)[\s.]{0,6}$")
# the word before such a formula; "\\omega_L " or "+ " is a part of it
_BEFORE_FORMULA_RE = re.compile(r"(?:^|[^\W\d_]{2}[,:;]?|[=≈:])\s*(?:(?:[*$]|\\[(\[])+\s*)?$")


def closing_mathematics(text: str) -> str:
    r"""Return the formula that closes a text, or those of its list ("\(a\) and \(b\)"); else ""."""
    text = text.rstrip()[-400:]
    closing_match = _FINAL_MATHS_RE.search(text)
    if closing_match is None:
        return ""
    matches = [closing_match]
    while len(matches) < 9 and (
        match := _FINAL_MATHS_RE.search(_BEFORE_MATHS_RE.sub("", text[: matches[-1].start()]))
    ):
        if not _BEFORE_MATHS_RE.search(text[: matches[-1].start()]):
            break
        matches.append(match)
    formulas = [reading.tidy_answer(next(group for group in m.groups() if group)) for m in matches]
    before = text[: matches[-1].start()]
    if _FOR_ALL_RE.search(before):
        return ""
    if all(map(_LETTER_RE.fullmatch, formulas)) and not _IS_RE.search(before):
        return ""  # "in the domain of f"
    return " and ".join(reversed(formulas))


def denies_formula(sentence: str) -> bool:
    """Return whether a sentence ends by denying a formula: "It is not true that x = 5"."""
    match = _DENIED_RE.search(sentence[-300:])
    return match is not None and bool(re.search(r"[=<>≤≥∈$]|\\\(", match[0]))


def formula_in_sentence(sentence: str) -> str | None:
    """Return the one formula of a sentence, with its unit: "4√3 cm", "8!/(3!2!) arrangements"."""
    sentence = sentence[-300:]
    if (match := _IS_FORMULA_RE.search(sentence)) and re.search(r"[-+*/^√]", match[1]):
        formula = read_formula(reading.to_plain_text(reading.tidy_answer(match[1])))
        if formula and not is_plain_number(formula):
            return reading.tidy_answer(match[1])
    tokens = _FORMULA_TOKEN_RE.findall(sentence)
    if len(tokens) != 1 or re.search(r"\d", sentence.replace(tokens[0], "")):
        return None
    if sentence.partition(tokens[0])[0].rstrip()[-1:] in tuple("+-*/^·×"):
        return None  # a factor of what stands before
    plain = reading.to_plain_text(reading.tidy_answer(tokens[0]))
    if _UNIT_POWER_RE.fullmatch(plain) or read_formula(plain) is None:
        return None
    after = sentence.partition(tokens[0])[2].split()
    unit = after[0].strip(".,;*") if after else ""
    if unit in ("square", "cubic") and len(after) > 1:
        unit = f"{unit} {after[1].strip('.,;*')}"
    with_unit = read_formula(f"{plain} {unit}") if unit else None
    return f"{plain} {unit}" if with_unit and with_unit.unit else plain


def closing_equation(sentence: str) -> str | None:
    """Return the equation that closes a sentence, as in "The line is 2x - y + 3 = 0."."""
    before, equals, right = sentence[-200:].rstrip(" .*$").rpartition("=")
    right = reading.to_plain_text(reading.tidy_answer(right))
    if not equals or not read_formula(right):
        return None
    tokens = before.split()[-12:]
    for i in range(len(tokens)):
        left = reading.to_plain_text(reading.tidy_answer(" ".join(tokens[i:])))
        if not re.search(r"[A-Za-z]{2}|[=:]", left) and read_formula(left):
            return f"{left} = {right}" if re.search(r"[A-Za-z]", left) else None
    return None


def formula_with_unit(sentence: str) -> str | None:
    r"""Return the formula and unit of "So the diagonal is \(\sqrt{72}\) cm long."."""
    match = _MATHS_WITH_UNIT_RE.search(sentence[-300:])
    if match is None:
        return None
    maths = reading.to_plain_text(reading.tidy_answer(match[1] or match[2]))
    unit = match[3].split()[0]
    if unit in ("square", "cubic"):
        unit = " ".join(match[3].split()[:2])
    with_unit = read_formula(f"{maths} {unit}")
    if with_unit is None or not with_unit.unit or read_quantity(maths):
        return None
    return f"{maths} {unit}"


def is_one_expression(text: str) -> bool:
    """Return whether a plain text is one expression, equation, interval, matrix or set."""
    if any(pattern.fullmatch(text) for pattern in (_MULTIPLE_RE, _UNEQUAL_RE, _BASE_RE)):
        return True
    if read_formula(text):
        return True
    rewritten = rewrite_notation(text)
    if rewritten != text and (
        read_formula(rewritten)
        or isinstance(reading.read_answer(rewritten), reading.CompoundAnswer)
    ):
        return True
    left, equals, right = text.partition("=")
    right_formula = read_formula(right) if equals and read_formula(left) else None
    return right_formula is not None and (
        reading.named_value(text) == text or not is_plain_number(right_formula)
    )


def is_named_equation(text: str) -> bool:
    """Return whether a plain text is "cos(x) = 3/5" or "AB = 5": a name of several signs."""
    left, equals, right = text.partition("=")
    if not equals or "=" in right or not read_formula(right):
        return False
    formula = read_formula(left.replace("\\angle", "").replace("\\triangle", ""))
    return formula is not None and not is_plain_number(formula) and len(left.strip()) > 1


def closing_formula(sentence: str) -> str | None:
    """Return the formula that is the last word of a sentence, or the one that it has."""
    sentence_end = sentence[-200:]
    match = _FINAL_FORMULA_RE.search(sentence_end)
    if (
        match
        and _BEFORE_FORMULA_RE.search(sentence_end[: match.start(1)])
        and not _UNIT_POWER_RE.fullmatch(match[1])
        and read_formula(reading.to_plain_text(reading.tidy_answer(match[1])))
    ):
        return reading.tidy_answer(match[1])
    return formula_in_sentence(sentence)
