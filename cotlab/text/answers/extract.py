"""What a reply gives as its final answer, and whether two answers are the same.

Replies come from models and are hostile until shown otherwise: nothing is run, every pattern and
every computation is bounded, only the last 200 answer markers are looked at, and an answer of more
than 2,000 characters is compared as text only.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.text.answers import reading
from cotlab.text.answers.agreement import answers_agree
from cotlab.text.answers.boxes import box_content, joined_boxes
from cotlab.text.answers.closing_formulas import is_named_equation, is_one_expression
from cotlab.text.answers.cues import (
    ANSWER_BEFORE_CUE_RE,
    ANSWER_CUE_RE,
    ANSWER_HEADER_RE,
    ANSWER_LINE_RE,
    FOREIGN_CUE_RE,
    OPTION_B_LINE_RE,
)
from cotlab.text.answers.facts import opening_fact
from cotlab.text.answers.half_units import with_half_units
from cotlab.text.answers.openings import opening_sentence
from cotlab.text.answers.placeholders import has_only_cue, is_placeholder
from cotlab.text.answers.regional_forms import with_decimal_points, with_iso_dates
from cotlab.text.answers.remarks import (
    ASIDE_RE,
    NEXT_SENTENCE_RE,
    SECOND_FORM_RE,
    UNITS_RE,
    without_remarks,
)
from cotlab.text.answers.rounding import without_exact_forms
from cotlab.text.answers.tags import (
    find_tagged_answers,
    without_brackets,
    without_emphasis,
)
from cotlab.text.answers.unmarked import (
    MAX_ANSWER_CHARACTERS,
    is_refusal,
    stated_value,
    strip_opening_phrase,
    unmarked_answer,
)
from cotlab.text.steps import sentence_spans

# "\\boxed 4"
_BARE_BOX_RE = re.compile(r"\\(?:boxed|fbox)\s+(-?[\w.,/]*\w)")
# "\\(\\boxed{}\\)"
_EMPTY_BOX_RE = re.compile(r"(?:\\\(|\$)?\s?\\boxed\s?\{\s*\}\s?(?:\\\)|\$)?")
_MAX_TAGGED_LENGTH = 6
"""Words between answer tags that are an answer as they are; of more the answer is read."""
_MAX_MARKERS = 200
"""Answer markers that are looked at."""
_NUMBER_RE = re.compile(r"\d[\d,.]*")
_WORD_RE = re.compile(r"(?<!\\)\b[A-Za-z]{2,}")
# "#### " of "#### 18"
_HASH_MARKER_RE = re.compile(r"(?m)(?:^|(?<=\S[ \t]))[ \t]{0,3}####[ \t]{0,3}(?=\S)")
# '"answer": "18 eggs"', '"final_answer": 18'
_JSON_ANSWER_RE = re.compile(
    r"(?i)\"(?:final_?|correct_?)?answer\"\s{0,5}:\s{0,5}"
    r"(\"(?:[^\"\\\n]|\\(?:[\"\\/bfnrt]|u[\da-f]{4})){0,2000}\""
    r"|-?\d[\d.eE+-]{0,80}|true\b|false\b|null\b)"
)
# "yet B" of "A is tempting, yet B is right"
_CLAUSE_LETTER_RE = re.compile(
    r"(?i:\b(?:yet|but|so|while|that|only|then|hence|therefore|thus|whereas|clearly|surely))\s+"
    r"(?i:option\s|choice\s)?(\(?[A-J]\)?)$"
)
# "to " of "to answer", "whether the " of "whether the answer is": no marker follows
_NO_ANSWER_CUE_RE = re.compile(
    r"(?i)\b(?:wrong|incorrect|naive|to|can|could|will|cannot|can't|we|you|let's|that|they"
    r"|(?:if|whether)(?: the)?)\s*$"
)
# "not the case that the " of "It is not the case that the answer is 5", "doubt the "
_DENIED_CUE_RE = re.compile(
    r"(?i)(?:\bnot (?:the case|true|clear|certain|likely)|\bfalse|\bunlikely|\bdoubt(?:ful)?|\bdeny"
    r"|(?:\bnot|n['’]t) (?:think|believe|agree|mean|say)|\bwrong (?:to say|to think))"
    r"(?: that)?(?: the| my| our)?(?: (?:final|correct|right))?\s*$"
)
_WOULD_RE = re.compile(r"(?i)\b(?:would|could|might)\b")
_IF_RE = re.compile(r"(?i)\b(?:if|had|unless)\b")
# "not " of "not 5"
_NEGATION_RE = re.compile(r"(?i)(?:not|never|no longer|neither(?!.{1,80}\bnor))\b\s*")
# "as follows:", "below."
_SEE_BELOW_RE = re.compile(r"(?i)(?:as follows|(?:shown )?below)\W*")
# "correct", "based on the table", "we find": what follows "the answer is" without being an answer
_NON_ANSWER_RE = re.compile(
    r"(?i)(?:correct|incorrect|wrong|clear|simple|easy|straightforward|unique|necessary|needed"
    r"|required|provided|given|unknown yet)$"
    r"|(?:based|obtained|found|let's|we|first,?\s+(?:we|let|note|i|find|compute|calculate|you)|which|what|this|that|here|below)\b"
)
# " because it is late", ", which is even"
_TRAILING_CLAUSE_RE = re.compile(
    r"(?s)(?<!\s)\s+\(?(?:because|since)\b.*"
    r"|,\s+(?:so|which|where|as|given|not|meaning|and (?:therefore|thus|so))\b.*"
    r"|\s(?:y no|und nicht|et non|e non|e não)\s.*"
)
# ", so $x + y = 27$" after "$x = 21$, $y = 6$"
_CONCLUDED_RE = re.compile(
    r"(?<=[\w$)]),\s(?:and\s)?so\s(\$?[^\s,=][^,=]{0,20}[-+*/][^,=]{0,20}=[^,=]{1,40})$"
)
# "\\[ x = 5 \\]" after a marker
_DISPLAY_RE = re.compile(r"(?s)[\s:*]{0,9}(\\\[.{1,400}?\\\]|\$\$[^$]{1,400}\$\$)")
# "$x = 5$. " of "The final answer is $x = 5$. I hope it is correct."
_INLINE_MATHS_RE = re.compile(r"(\$[^$\n]{1,400}\$|\\\(.{1,400}?\\\))\s{0,3}\.?\s{0,3}$")
# ", with minimum value f(0) = -1" after a formula in a box
_BOXED_REMARK_RE = re.compile(r",\s{1,9}(?:with|where|which|valid|attained|since|because)\b")
_HOPE_RE = re.compile(r"(?i)\.?\s{0,3}I hope (?:it|this) is correct\.?\s{0,9}$")


@lru_cache(256)  # the answer of a reply is read for several scores, one after the other
def final_answer(text: str, question: str = "") -> str | None:
    r"""Extract what a reply gives as its final answer.

    Parameters
    ----------
    text : str
        A whole reply: a chain of thought with its answer, or the answer alone.
    question : str, default ""
        The question, which tells which of several numbers is the answer.

    Returns
    -------
    str or None
        The answer as written ("18 eggs", "(B)", "1,080"), without Markdown, quotes and closing
        punctuation. None if there is nothing to extract: an empty reply, punctuation, a refusal,
        "I don't know", a chain alone, a reply whose chain is in a form that is not read.

    Notes
    -----
    The last explicit marker decides: ``\boxed{}``, ``<answer>18</answer>``, ``#### 18``,
    ``{"answer": 18}``, "the answer is 18", "Answer: 18", "A: 18", "18 is the answer", "the correct
    option is B". "The answer is not 5" denies 5. The placeholder of a form ("the answer is
    <answer>") is none, whatever stands before or after it. Boxes with a comma or "and" between them
    are one list. Without a marker, in this order: a first sentence in the words of the question,
    with background after it; what a program is said to print; a reply that is one expression,
    quantity, date, option, list; formulas at the end; "= 18" at the end; an option in the last
    sentence; yes or no at the start or the end, or by the verb of the question; what alone is in
    bold; what "Therefore, she spends $225 over 5 weeks" says before its period; of the numbers of
    the last sentence with some, that which the question counts ("how many boxes") or that the
    sentence states ("is 12", "12 left"), none where several compete and nothing tells; a reply of
    at most six words as it is.

    Examples
    --------
    >>> final_answer("9 * 2 = 18, so the answer is 18 eggs.")
    '18 eggs'
    """
    if read_reasoning(text).unread:
        return None
    text = without_emphasis(_without_markup(text), question)
    text = without_exact_forms(text, question)
    answer, remaining_text = marked_answer(text, question)
    if answer is not None:
        return _first_form(answer)
    text = without_remarks(remaining_text)
    if has_only_cue(text):
        return None
    if fact := opening_fact(text, question):
        return fact
    opening = opening_sentence(text, question)
    if opening:
        return unmarked_answer(opening, question)  # what follows is background
    second = SECOND_FORM_RE.search(text[-200:])
    first = unmarked_answer(text[: -len(second[0])], question) if second else None
    if first and second and _forms_agree(first, second[1] or second[2]):
        return first
    answer = unmarked_answer(text, question)
    if answer is None and UNITS_RE.search(text):
        return unmarked_answer(UNITS_RE.sub("", text), question)
    return answer


def _without_markup(text: str) -> str:
    """Return what a reply says itself, without empty boxes."""
    text = with_iso_dates(with_decimal_points(with_half_units(own_text(text))))
    return _HOPE_RE.sub(".", _EMPTY_BOX_RE.sub(" ", text))


def _first_form(answer: str) -> str:
    """Return the first of two equal forms of an answer ("π/3 radians, i.e. 60°")."""
    match = SECOND_FORM_RE.search(answer) if len(answer) <= 200 else None
    if match is None or not reading.has_content(first := answer[: match.start()]):
        return answer
    return reading.tidy_answer(first) if _forms_agree(first, match[1] or match[2]) else answer


def _forms_agree(first: str, second: str) -> bool:
    return answers_agree(
        reading.to_plain_text(reading.tidy_answer(first)),
        reading.to_plain_text(reading.tidy_answer(second)),
    )


def same_answer(a: str | None, b: str | None) -> bool | None:
    """Return whether two answers are the same.

    Parameters
    ----------
    a, b : str or None
        Answers, as `final_answer` gives them or as a suite states them.

    Returns
    -------
    bool or None
        None if either has no content that can be compared. Symmetric; an answer with content
        equals itself.

    Notes
    -----
    Numbers are compared as fractions, never rounded (3.14 is not 3.14159; numbers with 12 or more
    decimals may differ by 1e-9). A unit that one side leaves out is no difference ("18 eggs",
    "18"), another unit is ("5 km", "5 miles"; "5 km" is 5000 m). A bare number beside a percentage
    may be the percentage or the fraction, as graders of published benchmarks allow: 50% is 50 and
    is 0.5, but 50% is not 0.5%. Dates may lack the year and times am or pm on the same terms;
    03/05/2024 could be two days and equals only itself. An option equals its letter and, where it
    gives it, its text; what options a question has only `is_right_answer` knows. Expressions are
    the same where they have the same values, exactly or to 60 digits: 4! is 24, 30° is pi/6, 2x + 2
    is 2(x + 1). Equations that name different things are different (P(A) = 1/3, P(B) = 1/3), and a
    number with an operation after it is no quantity (15 - y). What has two meanings (1/2x, f(x)) is
    compared as text, and 2x = 18 is not 18. A ratio is not a fraction. In (1, 2) and "1, 2" the
    order matters, in {1, 2} and "1 and 2" it does not. Words are compared whole, without regard to
    case, accents, articles and punctuation: "cat" is not "catalogue", "paper" is not "paper towel".
    """
    text_a, text_b = _comparable_text(a), _comparable_text(b)
    return None if text_a is None or text_b is None else _plain_answers_agree(text_a, text_b)


_plain_answers_agree = lru_cache(8192)(answers_agree)


def rules_are_certain(a: str, b: str) -> bool:
    """Return whether two answers that differ are both a number, date, time, yes or no.

    Of those the rules decide for certain; of words and formulas they say "different" also where
    they cannot tell.
    """
    readings = [
        reading.read_answer(text) if (text := _comparable_text(answer)) else None
        for answer in (a, b)
    ]
    return all(
        value is not None and not isinstance(value, reading.CompoundAnswer) for value in readings
    )


def marked_answer(text: str, question: str = "") -> tuple[str | None, str]:
    """Return the answer of the last marker that has one, and the text without denied answers."""
    tagged_answers, text = find_tagged_answers(text)
    content_by_start = {tagged.start: tagged.content for tagged in tagged_answers}
    markers = [(tagged.start, tagged.end, "tag") for tagged in tagged_answers]
    markers += [(start, end, "box") for start, end in joined_boxes(text)]
    markers += [(m.start(1), m.end(1), "box") for m in _BARE_BOX_RE.finditer(text)]
    markers += [(m.start(1), m.end(1), "json") for m in _JSON_ANSWER_RE.finditer(text)]
    markers += [(m.start(1), m.start(), "back") for m in ANSWER_BEFORE_CUE_RE.finditer(text)]
    markers += [
        (m.end(), m.start(), "deny" if m[1] else "cue") for m in ANSWER_CUE_RE.finditer(text)
    ]
    for cue_re in (ANSWER_HEADER_RE, FOREIGN_CUE_RE):
        markers += [(m.end(), m.start(), "cue") for m in cue_re.finditer(text)]
    markers += [(m.end(), m.end(), "line") for m in _HASH_MARKER_RE.finditer(text)]
    if not OPTION_B_LINE_RE.search(text):  # else "A:" is an option
        markers += [(m.end(), m.end(), "line") for m in ANSWER_LINE_RE.finditer(text)]
    denied_keys: set[str] = set()
    for position, boundary, marker_kind in sorted(markers, reverse=True)[:_MAX_MARKERS]:
        candidate = (
            box_content(text[position : min(boundary, position + MAX_ANSWER_CHARACTERS)])
            if marker_kind in ("box", "json")
            else ""
        )
        if marker_kind == "tag":
            candidate = reading.tidy_answer(content_by_start[position])
            if len(candidate.split()) > _MAX_TAGGED_LENGTH:
                candidate = unmarked_answer(candidate, question) or candidate
        elif marker_kind == "json" and text[position] == '"':
            candidate = reading.tidy_answer(json.loads(text[position:boundary], strict=False))
        elif marker_kind == "back":
            candidate = strip_opening_phrase(text[boundary:position])
            if letter_match := _CLAUSE_LETTER_RE.search(candidate):
                candidate = letter_match[1]
            candidate = (
                candidate
                if reading.read_answer(reading.to_plain_text(candidate)) is not None
                or len(candidate.split()) <= 5
                else ""
            )
        elif not candidate and not (
            marker_kind in ("cue", "deny")
            and _NO_ANSWER_CUE_RE.search(text, max(0, boundary - 16), boundary)
        ):
            candidate = _answer_after_marker(text, position)
            if _WOULD_RE.search(text[boundary:position]) and _IF_RE.search(candidate):
                candidate = ""  # "the answer would be 12 if he had lost none"
            if _DENIED_CUE_RE.search(text, max(0, boundary - 48), boundary):
                marker_kind = "deny"
            negation = _NEGATION_RE.match(candidate)
            if marker_kind == "line" and len(candidate.split()) > 12:
                candidate = ""
            elif marker_kind == "deny" or negation:
                denied_answer, _, alternative = (
                    candidate[negation.end() :] if negation else candidate
                ).partition(" but ")
                denied_keys.add(
                    reading.answer_key(reading.to_plain_text(reading.tidy_answer(denied_answer)))
                )
                sentence_start = 1 + max(text.rfind(stop, 0, boundary) for stop in "\n.,;:")
                end = max(position, text.find(denied_answer, position) + len(denied_answer))
                text = text[:sentence_start] + " " * (end - sentence_start) + text[end:]
                candidate = reading.tidy_answer(re.sub(r"^(?:rather|instead)\s+", "", alternative))
        if is_refusal(candidate):
            return None, ""
        if is_placeholder(candidate, question, is_in_form=marker_kind in ("box", "json", "tag")):
            return None, ""
        candidate = without_brackets(candidate)
        if (
            reading.has_content(candidate, pair=marker_kind != "back")
            and not _NON_ANSWER_RE.match(candidate)
            and reading.answer_key(reading.to_plain_text(candidate)) not in denied_keys
        ):
            return _answer_in_sentence(candidate, marker_kind, question) or candidate, text
    return None, text


def _answer_in_sentence(candidate: str, marker_kind: str, question: str) -> str | None:
    """Return which number of a marked sentence answers the question; None for other answers."""
    if not any(c.isdigit() for c in candidate) or "\\begin{" in candidate:
        return None
    if yes_no := reading.YES_NO_RE.match(candidate):
        return yes_no[1] if len(candidate.split()) > 12 else None
    if marker_kind in ("cue", "line") and (value := stated_value(candidate)):
        return value
    if marker_kind == "box":
        sentence = reading.to_plain_text(candidate)
        head, *tail = _BOXED_REMARK_RE.split(sentence, maxsplit=1)
        if tail and (is_one_expression(head.strip()) or is_named_equation(head.strip())):
            return reading.tidy_answer(head)
        n_words = len(_WORD_RE.findall(sentence))
        is_sentence = n_words > 3 and len(set(re.findall(r"\d+", sentence))) > 1
        if is_sentence or "⟹" in sentence:
            return unmarked_answer(sentence.rpartition("⟹")[2], question)
    else:
        n_words = len(candidate.split())
        plain = reading.to_plain_text(candidate)
        is_sentence = n_words > 3 and len(set(_NUMBER_RE.findall(plain))) > 1
        if is_sentence and _WORD_RE.search(plain) and reading.read_answer(plain) is None:
            return unmarked_answer(candidate, question)
    return unmarked_answer(candidate, question) if n_words > 12 else None


def _answer_after_marker(text: str, position: int) -> str:
    """Return the answer that follows a marker.

    It is the first sentence of the line, or of the next line that has content.
    """
    if display_match := _DISPLAY_RE.match(text, position):
        return reading.tidy_answer(display_match[1])
    line, *next_lines = text[position : position + MAX_ANSWER_CHARACTERS].split("\n")
    line = _HOPE_RE.sub("", line).strip(" \t\r:*_=")
    if not reading.has_content(line, pair=True) or _SEE_BELOW_RE.fullmatch(line):
        line = next((next_line for next_line in next_lines if reading.has_content(next_line)), "")
    if maths_match := _INLINE_MATHS_RE.match(line):
        return reading.tidy_answer(maths_match[1])
    line = ASIDE_RE.sub("", NEXT_SENTENCE_RE.sub("", line))
    spans = sentence_spans(line)
    sentence = strip_opening_phrase(line[slice(*spans[0])]) if spans else ""
    if conclusion := _CONCLUDED_RE.search(sentence):
        return reading.tidy_answer(conclusion[1])
    return reading.tidy_answer(_TRAILING_CLAUSE_RE.sub("", sentence))


def _comparable_text(text: str | None) -> str | None:
    """Return the plain form of an answer or a reply for comparison; None without content."""
    if text is None or not reading.has_content(text, pair=True):
        return None
    text = with_iso_dates(with_decimal_points(text))
    answer, remaining_text = marked_answer(text)
    has_no_answer = answer is None and (
        not remaining_text or (len(text) <= MAX_ANSWER_CHARACTERS and is_refusal(text))
    )
    content = (
        ""
        if has_no_answer
        else reading.tidy_answer(
            reading.to_plain_text(
                without_brackets(reading.tidy_answer(text if answer is None else answer))
            )
        )
    )
    return content if reading.has_content(content, pair=True) else None
