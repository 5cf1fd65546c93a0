"""The answer of a reply that marks none, refusals, and the words that open an answer."""

from __future__ import annotations

import re

from cotlab.text.answers import reading
from cotlab.text.answers.closing_formulas import (
    closing_equation,
    closing_formula,
    closing_mathematics,
    denies_formula,
    formula_with_unit,
    is_named_equation,
    is_one_expression,
)
from cotlab.text.answers.code_output import printed_output
from cotlab.text.answers.competing import find_main_value
from cotlab.text.answers.emphasis import (
    NEGATION_RE,
    bold_text,
    bold_value,
    is_about_amount,
    only_bold,
    only_title,
)
from cotlab.text.answers.formulas import MAX_CHARACTERS as MAX_FORMULA_CHARACTERS
from cotlab.text.answers.formulas import read_formula
from cotlab.text.answers.item_lists import listed_items
from cotlab.text.answers.notation import WORDED_BOUND_RE, is_remainder
from cotlab.text.answers.periods import value_before_period
from cotlab.text.answers.points import closing_list
from cotlab.text.answers.qualifiers import (
    denies_existence,
    is_other_value,
    is_range,
    names_decade,
    qualified_number,
)
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.question import named_alternative, read_expected, yes_or_no
from cotlab.text.answers.question_endings import closing_by_question, without_details
from cotlab.text.answers.spelled_counts import spelled_count, states_unknowns_only
from cotlab.text.answers.stated_words import (
    closing_behaviour,
    closing_day,
    closing_word,
    opening_yes_or_no,
    repeated_verb,
)
from cotlab.text.answers.statements import after_conclusion, closing_statement, states_two_values
from cotlab.text.answers.subjects import closing_subject, is_of_other_degree
from cotlab.text.steps import sentence_spans

MAX_ANSWER_CHARACTERS = 600
"""Characters of an answer that are read."""
# "So ", "I think that ", "It's ", "the total is "
_OPENING_PHRASE_RE = re.compile(
    r"(?i)(?:so|thus|therefore|hence|then|well|okay|ok|sure"
    r"|i (?:think|believe|guess|say|would say)(?: that)?"
    r"|it(?:'s| is| was| would be)|that(?:'s| is)?|this is|there (?:are|is)"
    r"|the (?:result|total|sum|value|number) is"
    r"|probably|likely|clearly|indeed|definitely|simply)\b[,:]?\s+"
)
# "I don't know", "I'm unable to answer", "we cannot determine", "I'm not sure", "N/A"
_REFUSAL_RE = re.compile(
    r"(?i)\b(?:i|we)\s(?:really |honestly )?(?:do not|don't|didn't)\s"
    r"(?:know|have (?:enough|an answer|the answer))"
    r"|\b(?:i|we)\s?(?:cannot|can not|can't|couldn't|could not|won't|will not"
    r"|(?:am |'m )(?:not able|unable) to|must decline)"
    r"\s(?:\w+\s){0,2}?(?:to\s)?(?:answer|help|assist|provide|determine|comply|solve|say|tell"
    r"|do that|continue|engage|discuss)"
    r"|\b(?:i'm|i am)\s(?:not (?:really )?sure|unsure)|\bno idea\b|\bas an ai\b"
    r"|\b(?:i|we) (?:could not|couldn't|can't|cannot) find (?:any |reliable |specific ){0,2}"
    r"(?:information|records?|data|evidence|details)\b|\bcan you (?:send|share|provide|paste)\b"
    r"|\bplease (?:share|provide|clarify|specify|send|paste)\b"
    r"|\btell me what you (?:get|find|think)\b"
    r"|\b(?:running|executing) (?:this|the) (?:script|code|program|snippet)\b[^\d]*$"
    r"|\A\W*(?:n/?a|idk|no answer|null)\W*\Z"
)
# "but I think", "my best guess": an answer follows a refusal after all
_GUESS_RE = re.compile(r"(?i)\b(?:but|my)\b.{0,30}\b(?:think|guess|believe|say|probably|likely)\b")
# "The largest $n$ is 34", "the average number of hamburgers is \\(1.25\\)"
_STATED_RE = re.compile(
    r"(?is)(?:the|its|his|her|their|there|this|that|each|[A-Z][a-z]+)\b[^=:;?!]{2,160}?"
    r"\s(?:is|are|equals|was|were|will be)(?:\s(?:equal to|exactly|only))?\s(.{1,160})"
)
# "P(A) = ", "\\angle B = ": a name without which the value may be another's
_EVENT_RE = re.compile(r"\s*(?:[A-Z][a-z]?\([A-Z]\w?\)|\\angle\s?[A-Z]{1,3})\s?=(?![^=]*=)")
# " because 10 - 4 = 6"
_BECAUSE_RE = re.compile(r"(?i)\d.{0,60}\s(?:because|since)\s[^\w.,]{0,3}\d")
# "= 18"
_FINAL_EQUALS_RE = re.compile(r"[=≈]\s*([^=≈\n]{1,80})$")
# "the solution set is empty", "there are no real solutions"
_EMPTY_RE = re.compile(
    r"(?i)\b(?:(?:solution set|set of (?:all )?(?:real )?(?:solutions|values)|intersection|set) is"
    r" (?:the )?empty(?: set)?)\b|\b(?:has|have|there (?:is|are)) (no (?:real |integer )?"
    r"(?:solutions?|roots?))\b"
)
# "it is false that " before "there are no solutions"
_DENIED_EMPTY_RE = re.compile(
    r"(?i)\b(?:false|wrong|incorrect|untrue|not|whether|if|unless|never|would|might|could)\b|n['’]t\b"
)
# "do not bring us to " before a date
_NOT_REACHED_RE = re.compile(
    r"(?i)(?:\bnot|n['’]t)\s(?:bring|take|get|lead|land|reach|arrive|come)\b[^,;.]{0,30}$"
)
# "are red, green and blue" at the end of a sentence
_WORD_LIST_RE = re.compile(
    r"\b(?:are|is|were|was|includes?|namely|:)\s((?:[\w'-]+(?: [\w'-]+){0,3},\s){0,9}"
    r"(?:and\s)?[\w'-]+(?: [\w'-]+){0,3}?,?\s(?:and|or)\s[\w'-]+(?: [\w'-]+){0,3})[\s.*]{0,3}$"
)
# "$" of "10$ units", "\\)" of "25\\) cm"
_DELIMITER_RE = re.compile(r"(?<=\w)\$(?!\w)|\\[()\[\]]")
# ", attained at x = 3", " when n = 5"
_ATTAINED_RE = re.compile(
    r"(?i)(?<=[\w)}$]),?\s+(?:(?:which |and )?(?:is |it is )?"
    r"(?:attained|achieved|reached|occur\w*|obtained)"
    r"|when|where|at)\b[^,.;=\d]{0,30}[\s$(]([a-z])\s?=\s?[^=,;]{1,40}[\s.$*]{0,3}$"
)
# "x = 2, y = 5" at the end of a sentence
_ASSIGNMENTS_RE = re.compile(
    r"(?:^|\s)(\$?[A-Za-z]\s?=\s?[^=,;:]{1,30}?(?:\$?(?:,?\s+and\s+|,\s*)\$?[A-Za-z]\s?=\s?"
    r"[^=,;:]{1,30}?){1,5})[\s.$*]{0,4}$"
)
_ONE_LETTER_QUESTION_RE = re.compile(
    r"(?i)\b(?:what is|find|compute|value of|solve for)\s(?:the value of\s)?"
    r"\$?[a-z]\b(?!\s?(?:,|and\b))"
)
_CLAUSE_RE = re.compile(r"\b(?:has|have|is|are|left|remains?|gets?|needs?)\b")
# "leaves only B", "only B remains"
_ONLY_LETTER_RE = re.compile(
    r"\b(?:leaves|leaving|left with)(?:\s(?:us|me|you|with|only|just)){0,3}\s(?:option\s|choice\s)?"
    r"(\(?[A-J]\)?)[\s.*]{0,4}$|\b[Oo]nly\s(?:option\s|choice\s)?(\(?[A-J]\)?)\s"
    r"(?:remains|is left|fits|works|is possible)[\s.*]{0,4}$"
)
# "is $\\mathrm{H_2SO_4}$" at the end
_CHEMICAL_RE = re.compile(r"\bis\s\$\\(?:mathrm|ce)\{([\w(){}^+-]{1,60})\}\$[\s.]{0,4}$")
# "> ] )" alone on the last line, or after "are:"
_CLOSING_BRACKETS_RE = re.compile(
    r"(?:^|\n|[:`*]\s{0,3}|\b(?:is|are|gives|be)\s)[\s`*]{0,9}((?:[(){}\[\]<>]\s{0,2}){1,60})[\s`*.]{0,9}$"
)
# "the argument is deductively valid"
_PROPERTY_RE = re.compile(
    r"(?i)\b(?:is|are)\s(?:therefore |thus |indeed )?(not\s)?(?:[a-z]+ly\s)?[*'\"]{0,3}"
    r"(valid|invalid|plausible|implausible|possible|impossible|correct|incorrect)[*'\"]{0,3}$"
)
# "-log(10^-3) ", "3 * 4 "
_COMPUTATION_RE = re.compile(r"\s?(?:[-−]\s?\\?(?:log|ln|lg)\b[^=]*|[\d\s.*×÷/+()^−-]+)")
# "not " before "(A)"
_DENIED_RE = re.compile(r"(?i)(?:\bnot|n['’]t|\bthan|\binstead of|\beliminates?|\bexcludes?)\s*$")
# "f'(2) = 3", which is not f(2) = 3
_FUNCTION_VALUE_RE = re.compile(r"[A-Za-z]'{0,3}\(-?\w{1,6}\)\s?=\s?[^=\n]{1,60}")
# "There would be 12 if Bob came", where the question supposes nothing
_COUNTERFACTUAL_RE = re.compile(r"(?i)\b(?:would|could|might) (?:be|have)\b[^.]{1,80}\bif\b")
_SUPPOSES_RE = re.compile(r"(?i)\b(?:if|would|could|had|suppose|assum\w+|wants?|need\w*)\b")
# "would not say " before "yes"
_DENIED_WORD_RE = re.compile(
    r"(?i)(?:\bnot|n['’]t|\bnever|\bhardly)\s(?:\w+\s){0,2}(?:yes|no|true|false)\W{0,3}$"
)
# "C" alone on the last line, "A" and "C" on the last two
_LAST_LETTER_RE = re.compile(r"\n(?:[^\S\n]|\*)*(\(?[A-J]\)?)[.*]{0,3}\s*$")
_LETTER_LINES_RE = re.compile(r"(?:(?:^|\n)[ \t*]{0,9}\(?[A-J]\)?[.*,;]{0,3}[ \t]{0,9}){2,10}\s*$")
# "(B)", "option B"
_CHOICE_RE = re.compile(
    r"(?:(?:^|\s)\([A-Ja-j]\)|\b(?:[Oo]ption|[Cc]hoice)\s+\(?[A-J]\b\)?)"
    r"(?:\s+[\w'-]+){0,4}(?=[\s.]*$)|(?:^|\s)\([A-Ja-j]\)"
)


def unmarked_answer(text: str, question: str = "") -> str | None:
    """Return the answer of a text without a marker; ``question`` tells which of several numbers."""
    brackets_match = _CLOSING_BRACKETS_RE.search(text[-400:])
    if brackets_match and re.search(
        r"(?i)bracket|parenthes|dyck", f"{question[-1000:]} {text[-400:]}"
    ):
        return brackets_match[1].strip()
    if output := printed_output(text, question) or listed_items(text, question):
        return output
    if formula_match := _CHEMICAL_RE.search(text[-200:]):
        return formula_match[1]
    if letter_lines := _LETTER_LINES_RE.search(text[-200:]):
        return ", ".join(re.findall("[A-J]", letter_lines[0]))
    if letter_line := _LAST_LETTER_RE.search(text[-60:]):
        return letter_line[1]
    attained = _ATTAINED_RE.search(text[-300:])
    if attained and not re.search(
        rf"(?i)\b(?:values? of|find|which|solve for|what is) {attained[1]}\b", question
    ):
        text = text[: -len(attained[0])]
    text = without_details(text, question)
    body = strip_opening_phrase(text)
    spans = sentence_spans(text)
    if not reading.has_content(body) or not spans:
        return None
    first_sentence, last_sentence = text[slice(*spans[0])], text[slice(*spans[-1])]
    for sentence in (last_sentence, first_sentence) if len(spans) <= 6 else (last_sentence,):
        if is_refusal(sentence):
            return None
    if denies_formula(last_sentence):
        return None
    if stated := closing_by_question(text, last_sentence, question):
        return stated
    if word := closing_day(last_sentence, question) or spelled_count(last_sentence, question):
        return word
    if subject := closing_subject(last_sentence, question):
        return subject
    if states_unknowns_only(last_sentence, question):
        return None
    if word := opening_yes_or_no(text, question) or repeated_verb(last_sentence, question):
        return word
    if behaviour := closing_behaviour(last_sentence, question):
        return behaviour
    if (
        qualified_number(body, question)
        or is_range(body)
        or is_remainder(body)
        or _FUNCTION_VALUE_RE.fullmatch(body)
    ):
        return body
    if re.fullmatch(r"\d{1,6} out of (?:a total of |every )?\d{1,6}", body):
        return body
    if len(body) <= MAX_FORMULA_CHARACTERS:
        plain_body = reading.to_plain_text(body)
        if is_one_expression(plain_body) or is_named_equation(plain_body):
            return body
    is_short = len(body) <= 80 or (body[0] in "([{\\" and len(body) <= MAX_FORMULA_CHARACTERS)
    parsed_answer = reading.read_answer(reading.to_plain_text(body)) if is_short else None
    is_count_in_list = (
        isinstance(parsed_answer, reading.CompoundAnswer)
        and parsed_answer.kind in ("", "and")
        and (
            read_expected(question).nouns
            or ("=" in body and (len(spans) > 1 or _CLAUSE_RE.search(body)))
        )
    )
    if (isinstance(parsed_answer, reading.CompoundAnswer) and not is_count_in_list) or not (
        parsed_answer is None or is_count_in_list or isinstance(parsed_answer, bool) or "=" in body
    ):
        return body
    if statement := closing_statement(text, last_sentence, question):
        if "=" in statement:
            return _end_of_chain(text) or _computed_value(statement) or statement
        return statement
    if maths := closing_mathematics(text):
        if is_one_expression(reading.to_plain_text(maths)) or "\\begin{" in maths:
            return maths
        if _EVENT_RE.match(maths):
            return maths
        value = reading.tidy_answer(reading.named_value(maths))
        plain_value = reading.to_plain_text(value)
        if reading.read_answer(plain_value) is not None or read_formula(plain_value):
            return value
    mentions_equation = "equation" in f"{question[-200:]} {last_sentence}".lower()
    if mentions_equation and (equation := closing_equation(last_sentence)):
        return equation
    assignments = _ASSIGNMENTS_RE.search(last_sentence[-300:])
    if assignments and not _ONE_LETTER_QUESTION_RE.search(question):
        return reading.tidy_answer(assignments[1].replace("$", ""))
    empty_match = _EMPTY_RE.search(plain_last := last_sentence.replace("**", ""))
    if empty_match and not _DENIED_EMPTY_RE.search(
        after_conclusion(plain_last[: empty_match.start()])
    ):
        return empty_match[1] or "empty set"
    if bound_match := WORDED_BOUND_RE.search(last_sentence.rstrip(" .*$")):
        return reading.tidy_answer(bound_match[0])
    label = re.escape(read_expected(question).label)
    if label and (
        label_match := re.search(
            rf"(?i)\b{label}\s(?:is\s)?\$?[a-z]\s?=\s?(-?\d[\d./]{{0,20}})(?![\d./]*\s?[-+*^(])",
            last_sentence[-300:],
        )
    ):
        return reading.tidy_answer(label_match[1])
    if denies_existence(last_sentence) and len(spans) == 1:
        return body if len(body.split()) <= 6 and "=" not in body else None
    equals_match = _FINAL_EQUALS_RE.search(text.rstrip()[-200:])
    if (
        equals_match
        and not _BECAUSE_RE.search(last_sentence)
        and (
            read_quantity(plain := reading.to_plain_text(reading.tidy_answer(equals_match[1])))
            or (read_formula(plain) and not plain.isalpha())
        )
    ):
        return reading.tidy_answer(_DELIMITER_RE.sub("", equals_match[1]))
    if formula := closing_formula(last_sentence):
        return None if states_two_values(last_sentence) else formula
    if maths_with_unit := formula_with_unit(last_sentence):
        return maths_with_unit
    if choice := _undenied_choice(last_sentence[-200:].replace("**", "")):
        return choice
    if (
        yes_no_match := reading.YES_NO_RE.match(first_sentence)
        or reading.YES_NO_RE.match(last_sentence)
        or (
            None
            if _DENIED_WORD_RE.search(last_sentence[-60:])
            else re.search(r"(?i)\b(yes|no|true|false)\W{0,3}$", last_sentence)
        )
    ):
        return yes_no_match[1]
    if letter_match := _ONLY_LETTER_RE.search(last_sentence[-200:]):
        return letter_match[1] or letter_match[2]
    if word := yes_or_no(last_sentence, question) or named_alternative(last_sentence, question):
        return word
    word_match = None if question else _PROPERTY_RE.search(last_sentence.rstrip(" .*!"))
    if word_match and not re.search(r"(?i)\b(?:if|whether|or|neither|nor)\b", last_sentence):
        return f"not {word_match[2]}" if word_match[1] else word_match[2]
    if emphasised := bold_text(last_sentence, question):
        return emphasised
    if emphasised := only_bold(text, question) or only_title(text, question):
        return emphasised
    if not is_about_amount(question) and (closing := closing_word(last_sentence, question)):
        return None if is_of_other_degree(last_sentence, question) else closing
    if main_value := value_before_period(last_sentence):
        return reading.tidy_answer(main_value)
    if re.fullmatch(r"(?i)not (?:yes|no|true|false)", body):
        return body
    if (listed := closing_list(last_sentence)) is not None:
        return listed or None
    if value_in_bold := bold_value(last_sentence):
        return value_in_bold
    try:
        span = find_main_value(text, question)
    except LookupError:
        return None
    if span and (
        is_other_value(text[: span[0]], text[span[1] :].partition("\n")[0], question)
        or denies_existence(last_sentence)
        or _NOT_REACHED_RE.search(text[: span[0]])
        or (_COUNTERFACTUAL_RE.search(last_sentence) and not _SUPPOSES_RE.search(question))
    ):
        return None
    if span:
        is_factorial = text[span[1] : span[1] + 1] == "!" and text[span[1] - 1].isdigit()
        return reading.tidy_answer(text[span[0] : span[1] + is_factorial])
    if word_list_match := _WORD_LIST_RE.search(last_sentence[-300:]):
        return reading.tidy_answer(word_list_match[1])
    tokens = last_sentence.split()[-12:]
    endings = (
        reading.tidy_answer(" ".join(tokens[i:]))
        for i, word in enumerate(tokens)
        if word.lower() != "one" or "hundred" in tokens
    )
    if names_decade(last_sentence):
        return body if len(tokens) <= 6 else None
    spelled_number = next((ending for ending in endings if read_quantity(ending)), None)
    return spelled_number or (body if len(body.split()) <= 6 else None)


def _computed_value(statement: str) -> str:
    """Return 3 of "-log(10^-3) = 3", whose left side is computed and names nothing; else ""."""
    left, equals, right = statement.rpartition("=")
    is_value = equals and _COMPUTATION_RE.fullmatch(left) and not re.search("[A-Za-z]", right)
    return reading.tidy_answer(right) if is_value else ""


def _end_of_chain(text: str) -> str:
    """Return the last side of "A = pi r^2 = 25 pi" at the end of a text; "" for other text."""
    maths = closing_mathematics(text)
    value = reading.tidy_answer(reading.named_value(maths)) if maths.count("=") > 1 else "="
    return value if "=" not in value and read_formula(reading.to_plain_text(value)) else ""


def stated_value(sentence: str) -> str | None:
    """Return the value of "The largest n is 34"; None where the sentence says more or less."""
    match = _STATED_RE.fullmatch(reading.tidy_answer(sentence))
    if match is None:
        return None
    value = reading.tidy_answer(match[1])
    plain = reading.to_plain_text(value)
    is_value = reading.read_answer(plain) is not None or is_one_expression(plain)
    return value if is_value and not NEGATION_RE.search(sentence) else None


def _undenied_choice(sentence: str) -> str | None:
    """Return the option that a sentence names first, without those that it denies."""
    matches = [
        match
        for match in _CHOICE_RE.finditer(sentence)
        if not _DENIED_RE.search(sentence[: match.start()])
    ]
    return reading.tidy_answer(matches[0][0]) if matches else None


def is_refusal(text: str) -> bool:
    """Return whether a text refuses to answer and offers no guess."""
    text = text[:MAX_ANSWER_CHARACTERS].replace("’", "'")
    return bool(_REFUSAL_RE.search(text)) and not _GUESS_RE.search(text)


def strip_opening_phrase(text: str) -> str:
    """Tidy an answer and drop opening words such as "So it is"."""
    text = reading.tidy_answer(text)
    while leading_match := _OPENING_PHRASE_RE.match(text):
        text = reading.tidy_answer(
            text[leading_match.end() : leading_match.end() + reading.MAX_PARSED_CHARACTERS]
        )
    return text
