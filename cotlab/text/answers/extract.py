"""What a reply gives as its final answer, and whether two answers are the same.

Replies come from models and are hostile until shown otherwise: nothing is evaluated, every pattern
is bounded, only the last 200 answer markers are looked at, and an answer of more than 2,000
characters is compared as text only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from cotlab.text.answers.dates import last_stated
from cotlab.text.answers.quantities import read_quantity
from cotlab.text.answers.reading import (
    MAX_LENGTH,
    YES_NO,
    CompoundAnswer,
    answer_key,
    answers_agree,
    has_content,
    read_answer,
    tidy_answer,
    to_plain_text,
)
from cotlab.text.steps import sentence_spans

_MAX_MARKERS, _REACH = 200, 600
"""Answer markers that are looked at, and characters after each that are read."""
# "\boxed{", "\{" and "{"
_BRACES = re.compile(r"(\\(?:boxed|fbox)\s{0,3}\{)|\\[{}]|([{}])")
# "#### " of "#### 18"
_HASHES = re.compile(r"(?m)^[ \t]{0,3}####[ \t]{0,3}(?=\S)")
# '"answer": "18 eggs"', '"final_answer": 18'
_JSON = re.compile(
    r"(?i)\"(?:final_?|correct_?)?answer\"\s{0,5}:\s{0,5}"
    r"(\"(?:[^\"\\\n]|\\(?:[\"\\/bfnrt]|u[\da-f]{4})){0,2000}\""
    r"|-?\d[\d.eE+-]{0,80}|true\b|false\b|null\b)"
)
_IS = (
    r"\b(?:is|was|equals|becomes|(?:should|must|would|will)\s+be"
    r"|(?:comes?|works) out (?:to|as)(?: be)?)\b|[:=→]|\s[-–—]\s"
)
_DENY = r"\b(?:(?:is|was)n['’]t|(?:cannot|can['’]t|could not) be)\b"
# "answer is", "Answer:", "correct option is", "answer isn't", "choose option " before "B"
_CUE = re.compile(
    rf"(?i)(?:(?<!\")\banswer\b(?!\s+(?:choices|options|key|sheet)\b)[^.\n:=?!\"]{{0,60}}?"
    rf"|\b(?:correct|right|best)\s+(?:option|choice)\s*)(?:({_DENY})|{_IS})"
    r"|\b(?:choose|select|pick|go with|answer with)\s+"
    r"(?:(?:option|answer|choice)\s+)?(?=\(?[A-J]\)?(?:[\s.,:]|$))"
)
# "**Final answer**" on a line of its own
_HEADER = re.compile(
    r"(?im)^[ \t>*_#-]{0,12}(?:the\s+)?(?:(?:final|correct)\s+)?answer[*_:. \t]{0,8}$"
)
# "A: " of "A: 18", "**Ans**:" (a reply to "Q:")
_LINE = re.compile(r"(?m)^[ \t>*_#-]{0,8}(?:A|Ans)(?:\*\*)?[ \t]?:(?=[* \t]{0,4}\S)")
# "B:", "B)": the second of a list of options
_LINE_B = re.compile(r"(?m)^[ \t>*_#-]{0,8}B[ \t]?[:.)]")
# "is the answer" of "18 is the answer", "is correct" of "B is correct"
_BACKWARD = re.compile(
    r"(?i)(?:^|(?<=[.\n,;:]))[^.\n,;:]{0,60}?"
    r"((?:\bis|\bare)\s+(?:the|our|my)\s+(?:(?:final|correct|right|best)\s+){0,2}"
    r"(?:answer|choice|option)\b|(?:(?<=\b[A-J])|(?<=\b[A-J]\)))\s+is\s+(?:correct|right)\b)"
)
# "to " of "to answer", "whether the " of "whether the answer is": no marker follows
_NO_CUE = re.compile(
    r"(?i)\b(?:to|can|could|will|cannot|can't|we|you|let's|that|they|(?:if|whether)(?: the)?)\s*$"
)
# "not " of "not 5"
_DENIED = re.compile(r"(?i)(?:not|never|no longer|neither)\b\s*")
# "as follows:", "below."
_POINTS_BELOW = re.compile(r"(?i)(?:as follows|(?:shown )?below)\W*")
# "correct", "based on the table", "we find": what follows "the answer is" without being an answer
_HOLLOW = re.compile(
    r"(?i)(?:correct|incorrect|wrong|clear|simple|easy|straightforward|unique)$"
    r"|(?:based|obtained|found|let's|we|first|which|what|this|that|here|below)\b"
)
# " because it is late", ", which is even"
_TAIL = re.compile(
    r"(?s)\s+\(?(?:because|since)\b.*"
    r"|,\s+(?:so|which|where|as|given|not|meaning|and (?:therefore|thus|so))\b.*"
)
# "So ", "I think that ", "It's ", "the total is "
_LEAD = re.compile(
    r"(?i)(?:so|thus|therefore|hence|then|well|okay|ok|sure"
    r"|i (?:think|believe|guess|say|would say)(?: that)?"
    r"|it(?:'s| is| was| would be)|that(?:'s| is)?|this is|there (?:are|is)"
    r"|the (?:result|total|sum|value|number) is"
    r"|probably|likely|clearly|indeed|definitely|simply)\b[,:]?\s+"
)
# "I don't know", "I'm unable to answer", "we cannot determine", "I'm not sure", "N/A"
_REFUSES = re.compile(
    r"(?i)\b(?:i|we)\s(?:really |honestly )?(?:do not|don't|didn't)\s"
    r"(?:know|have (?:enough|an answer|the answer))"
    r"|\b(?:i|we)\s?(?:cannot|can not|can't|couldn't|could not|won't|will not"
    r"|(?:am |'m )(?:not able|unable) to|must decline)"
    r"\s(?:\w+\s){0,2}?(?:to\s)?(?:answer|help|assist|provide|determine|comply|solve|say|tell"
    r"|do that|continue|engage|discuss)"
    r"|\b(?:i'm|i am)\s(?:not (?:really )?sure|unsure)|\bno idea\b|\bas an ai\b"
    r"|\A\W*(?:n/?a|idk|no answer|null)\W*\Z"
)
# "but I think", "my best guess": an answer follows a refusal after all
_GUESS = re.compile(r"(?i)\b(?:but|my)\b.{0,30}\b(?:think|guess|believe|say|probably|likely)\b")
# "= 18"
_EQUALS = re.compile(r"[=≈]\s*([^=≈\n]{1,80})$")
# "(B)", "option B"
_CHOICE = re.compile(
    r"(?:(?:^|\s)\([A-Ja-j]\)|\b(?:[Oo]ption|[Cc]hoice)\s+\(?[A-J]\b\)?)"
    r"(?:\s+[\w'-]+){0,4}(?=[\s.]*$)|(?:^|\s)\([A-Ja-j]\)"
)


def final_answer(text: str) -> str | None:
    r"""Extract what a reply gives as its final answer.

    Parameters
    ----------
    text : str
        A whole reply: a chain of thought with its answer, or the answer alone.

    Returns
    -------
    str or None
        The answer as written ("18 eggs", "(B)", "1,080"), without Markdown, quotes and closing
        punctuation. None if there is nothing to extract: an empty reply, punctuation, a refusal,
        "I don't know".

    Notes
    -----
    The last explicit marker decides: ``\boxed{}``, ``#### 18``, ``{"answer": 18}``, "the answer is
    18", "Answer: 18", "A: 18", "18 is the answer", "the correct option is B". "The answer is not 5"
    denies 5. Without a marker, in this order: a reply that is one quantity, date, option, list; "=
    18" at the end; an option in the last sentence; yes or no at the start or the end; the last
    number; a reply of at most six words as it is.

    Examples
    --------
    >>> final_answer("9 * 2 = 18, so the answer is 18 eggs.")
    '18 eggs'
    """
    text = text.rpartition("</think>")[2] if text.rpartition("</think>")[2].strip() else text
    answer, rest = _marked_answer(text)
    return answer if answer is not None else _unmarked_answer(rest)


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
    gives it, its text. A ratio is not a fraction. In (1, 2) the order matters, in {1, 2} it does
    not. Words are compared whole, without regard to case, accents, articles and punctuation: "cat"
    is not "catalogue", "paper" is not "paper towel".
    """
    x, y = _content(a), _content(b)
    return None if x is None or y is None else answers_agree(x, y)


def _boxes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the contents of closed boxes, in the order of their ends."""
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[1] or brace[2] == "{":
            opened.append(brace.end() if brace[1] else -1)
        elif brace[2] and opened and (start := opened.pop()) >= 0:
            yield start, brace.start()


def _marked_answer(text: str) -> tuple[str | None, str]:
    """Return the answer of the last marker that has one, and the text without denied answers."""
    markers = [(start, end, "box") for start, end in _boxes(text)]
    markers += [(m.start(1), m.end(1), "json") for m in _JSON.finditer(text)]
    markers += [(m.start(1), m.start(), "back") for m in _BACKWARD.finditer(text)]
    markers += [(m.end(), m.start(), "deny" if m[1] else "cue") for m in _CUE.finditer(text)]
    markers += [(m.end(), m.start(), "cue") for m in _HEADER.finditer(text)]
    markers += [(m.end(), m.end(), "line") for m in _HASHES.finditer(text)]
    if not _LINE_B.search(text):  # else "A:" is an option
        markers += [(m.end(), m.end(), "line") for m in _LINE.finditer(text)]
    denied: set[str] = set()
    for at, other, kind in sorted(markers, reverse=True)[:_MAX_MARKERS]:
        candidate = (
            tidy_answer(text[at : min(other, at + _REACH)]) if kind in ("box", "json") else ""
        )
        if kind == "json" and text[at] == '"':
            candidate = tidy_answer(json.loads(text[at:other], strict=False))
        elif kind == "back":
            candidate = _strip_lead(text[other:at])
            candidate = (
                candidate
                if read_answer(to_plain_text(candidate)) is not None or len(candidate.split()) <= 5
                else ""
            )
        elif not candidate and not (
            kind in ("cue", "deny") and _NO_CUE.search(text, max(0, other - 16), other)
        ):
            candidate = _answer_after(text, at)
            no = _DENIED.match(candidate)
            if kind == "line" and len(candidate.split()) > 12:
                candidate = ""
            elif kind == "deny" or no:
                wrong, _, instead = (candidate[no.end() :] if no else candidate).partition(" but ")
                denied.add(answer_key(to_plain_text(tidy_answer(wrong))))
                begin = 1 + max(text.rfind(stop, 0, other) for stop in "\n.,;:")
                end = max(at, text.find(wrong, at) + len(wrong))
                text = text[:begin] + " " * (end - begin) + text[end:]
                candidate = tidy_answer(re.sub(r"^(?:rather|instead)\s+", "", instead))
        if _refuses(candidate):
            return None, ""
        if (
            has_content(candidate)
            and not _HOLLOW.match(candidate)
            and answer_key(to_plain_text(candidate)) not in denied
        ):
            long = len(candidate.split()) > 12 and any(c.isdigit() for c in candidate)
            return (_unmarked_answer(candidate) if long else None) or candidate, text
    return None, text


def _answer_after(text: str, at: int) -> str:
    """Return the answer that follows a marker.

    It is the first sentence of the line, or of the next line that has content.
    """
    line, *more = text[at : at + _REACH].split("\n")
    line = line.strip(" \t\r:*_=")
    if not has_content(line) or _POINTS_BELOW.fullmatch(line):
        line = next((other for other in more if has_content(other)), "")
    spans = sentence_spans(line)
    sentence = _strip_lead(line[slice(*spans[0])]) if spans else ""
    return tidy_answer(_TAIL.sub("", sentence))


def _unmarked_answer(text: str) -> str | None:
    """Return the answer of a text without a marker."""
    body = _strip_lead(text)
    spans = sentence_spans(text)
    if not has_content(body) or not spans:
        return None
    first, last = text[slice(*spans[0])], text[slice(*spans[-1])]
    for sentence in (last, first) if len(spans) <= 6 else (last,):
        if _refuses(sentence):
            return None
    reading = read_answer(to_plain_text(body)) if len(body) <= 80 else None
    if isinstance(reading, CompoundAnswer) or not (
        reading is None or isinstance(reading, bool) or "=" in body
    ):
        return body
    if (equals := _EQUALS.search(text.rstrip()[-200:])) and read_quantity(
        to_plain_text(tidy_answer(equals[1]))
    ):
        return tidy_answer(equals[1])
    if choice := _CHOICE.search(last[-200:]):
        return tidy_answer(choice[0])
    if (
        yes_no := YES_NO.match(first)
        or YES_NO.match(last)
        or re.search(r"(?i)\b(yes|no|true|false)\W{0,3}$", last)
    ):
        return yes_no[1]
    if stated := last_stated(text):
        return tidy_answer(text[slice(*stated)])
    tokens = last.split()[-12:]
    tails = (
        tidy_answer(" ".join(tokens[i:]))
        for i, word in enumerate(tokens)
        if word.lower() != "one" or "hundred" in tokens
    )
    spelled_number = next((tail for tail in tails if read_quantity(tail)), None)
    return spelled_number or (body if len(body.split()) <= 6 else None)


def _refuses(text: str) -> bool:
    """Return whether a text refuses to answer and offers no guess."""
    text = text[:_REACH].replace("’", "'")
    return bool(_REFUSES.search(text)) and not _GUESS.search(text)


def _strip_lead(text: str) -> str:
    """Tidy an answer and drop opening words such as "So it is"."""
    text = tidy_answer(text)
    while lead := _LEAD.match(text):
        text = tidy_answer(text[lead.end() : lead.end() + MAX_LENGTH])
    return text


def _content(text: str | None) -> str | None:
    """Return the plain form of an answer or a reply for comparison; None without content."""
    if text is None or not has_content(text):
        return None
    answer, rest = _marked_answer(text)
    silent = answer is None and (not rest or (len(text) <= _REACH and _refuses(text)))
    content = (
        ""
        if silent
        else tidy_answer(to_plain_text(tidy_answer(text if answer is None else answer)))
    )
    return content if has_content(content) else None
