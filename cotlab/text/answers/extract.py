"""What a reply gives as its final answer, and whether two answers are the same.

Replies come from models and are hostile until shown otherwise: nothing is evaluated, every pattern
is bounded, only the last 200 answer markers are looked at, and an answer of more than 2,000
characters is compared as text only.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from cotlab.text.answers.dates import (
    Clock,
    Date,
    last_stated,
    only_stated,
    read_clock,
    read_date,
    read_ratio,
    same_moment,
)
from cotlab.text.answers.numbers import Quantity, read_quantity, same_quantity
from cotlab.text.steps import sentence_spans

_MAX_LENGTH, _MARKERS, _REACH = 2000, 200, 600
_BRACES = re.compile(r"(\\(?:boxed|fbox)\s{0,3}\{)|\\[{}]|([{}])")
_HASHES = re.compile(r"(?m)^[ \t]{0,3}####[ \t]{0,3}(?=\S)")
_JSON = re.compile(
    r"(?i)\"(?:final_?|correct_?)?answer\"\s{0,5}:\s{0,5}"
    r"(\"(?:[^\"\\\n]|\\(?:[\"\\/bfnrt]|u[\da-f]{4})){0,2000}\"|-?\d[\d.eE+-]{0,80}|true\b|false\b|null\b)"
)
_IS = (
    r"\b(?:is|was|equals|becomes|(?:should|must|would|will)\s+be|(?:comes?|works) out (?:to|as)(?:"
    r" be)?)\b|[:=→]|\s[-–—]\s"
)
_DENY = r"\b(?:(?:is|was)n['’]t|(?:cannot|can['’]t|could not) be)\b"
_CUE = re.compile(
    rf"(?i)(?:(?<!\")\banswer\b(?!\s+(?:choices|options|key|sheet)\b)[^.\n:=?!\"]{{0,60}}?"
    rf"|\b(?:correct|right|best)\s+(?:option|choice)\s*)(?:({_DENY})|{_IS})"
    r"|\b(?:choose|select|pick|go with|answer"
    r" with)\s+(?:(?:option|answer|choice)\s+)?(?=\(?[A-J]\)?(?:[\s.,:]|$))"
)
_HEADER = re.compile(
    r"(?im)^[ \t>*_#-]{0,12}(?:the\s+)?(?:(?:final|correct)\s+)?answer[*_:. \t]{0,8}$"
)
_LINE = re.compile(r"(?m)^[ \t>*_#-]{0,8}(?:A|Ans)(?:\*\*)?[ \t]?:(?=[* \t]{0,4}\S)")
_LINE_B = re.compile(r"(?m)^[ \t>*_#-]{0,8}B[ \t]?[:.)]")
_BACKWARD = re.compile(
    r"(?i)(?:^|(?<=[.\n,;:]))[^.\n,;:]{0,60}?((?:\bis|\bare)\s+(?:the|our|my)\s+(?:(?:final|correct|right|best)\s+){0,2}"
    r"(?:answer|choice|option)\b|(?:(?<=\b[A-J])|(?<=\b[A-J]\)))\s+is\s+(?:correct|right)\b)"
)
_NO_CUE = re.compile(
    r"(?i)\b(?:to|can|could|will|cannot|can't|we|you|let's|that|they|(?:if|whether)(?: the)?)\s*$"
)
_DENIED, _EMPTY = (
    re.compile(r"(?i)(?:not|never|no longer|neither)\b\s*"),
    re.compile(r"(?i)(?:as follows|(?:shown )?below)\W*"),
)
_HOLLOW = re.compile(
    r"(?i)(?:correct|incorrect|wrong|clear|simple|easy|straightforward|unique)$"
    r"|(?:based|obtained|found|let's|we|first|which|what|this|that|here|below)\b"
)
_TAIL = re.compile(
    r"(?s)\s+\(?(?:because|since)\b.*|,\s+(?:so|which|where|as|given|not|meaning|and"
    r" (?:therefore|thus|so))\b.*"
)
_LEAD = re.compile(
    r"(?i)(?:so|thus|therefore|hence|then|well|okay|ok|sure|i (?:think|believe|guess|say|would"
    r" say)(?: that)?"
    r"|it(?:'s| is| was| would be)|that(?:'s| is)?|this is|there (?:are|is)|the"
    r" (?:result|total|sum|value|number) is"
    r"|probably|likely|clearly|indeed|definitely|simply)\b[,:]?\s+"
)
_REFUSES = re.compile(
    r"(?i)\b(?:i|we)\s(?:really |honestly )?(?:do not|don't|didn't)\s(?:know|have (?:enough|an"
    r" answer|the answer))"
    r"|\b(?:i|we)\s?(?:cannot|can not|can't|couldn't|could not|won't|will not|(?:am |'m )(?:not"
    r" able|unable) to|must decline)"
    r"\s(?:\w+\s){0,2}?(?:to\s)?(?:answer|help|assist|provide|determine|comply|solve|say|tell|do"
    r" that|continue|engage|discuss)"
    r"|\b(?:i'm|i am)\s(?:not (?:really )?sure|unsure)|\bno idea\b|\bas an ai\b|\A\W*(?:n/?a|idk|no"
    r" answer|null)\W*\Z"
)
_GUESS = re.compile(r"(?i)\b(?:but|my)\b.{0,30}\b(?:think|guess|believe|say|probably|likely)\b")
_EQUALS = re.compile(r"[=≈]\s*([^=≈\n]{1,80})$")
_YES_NO = re.compile(
    r"(?i)\W{0,6}(?:(?:so|therefore|thus|hence|in"
    r" conclusion),?\s+)?(yes|no|true|false)(?:[,.!;:*]|\s*$|\s[-–—])"
)
_CHOICE = re.compile(
    r"(?:(?:^|\s)\([A-Ja-j]\)|\b(?:[Oo]ption|[Cc]hoice)\s+\(?[A-J]\b\)?)(?:\s+[\w'-]+){0,4}(?=[\s.]*$)|(?:^|\s)\([A-Ja-j]\)"
)
_OPTION = re.compile(
    r"(?is)(?:(?:option|choice|answer)\s+)?(?:[(\[]([A-Z])[)\]][.:]?|([A-J])(?:[.:)](?=\s|$)|$))\s*(.*)"
)
_WRAP = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname|boxed|fbox|mbox)\s?\{([^{}]{0,400})\}"
)
_MATHS = re.compile(r"(?s)\$\$([^$]+)\$\$|\$((?:[^$\\]|\\.)+)\$|\\\(([^$]+)\\\)|\\\[([^$]+)\\\]")
_FRACTION = re.compile(r"\\[dtc]?frac\s?(?:\{([^{}]{1,200})\}|(\d))\s?(?:\{([^{}]{1,200})\}|(\d))")
_LATEX = {
    "%": "%",
    "#": "#",
    "&": "&",
    "_": "_",
    "{": "{",
    "}": "}",
    ",": " ",
    ";": " ",
    ":": " ",
    " ": " ",
    "!": "",
    "left": "",
    "right": "",
    "displaystyle": "",
    "quad": " ",
    "qquad": " ",
    "cdot": "*",
    "times": "*",
    "div": "/",
    "pi": "pi",
    "infty": "∞",
    "pm": "±",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "degree": "°",
    "circ": "°",
}
_COMMAND = re.compile(r"\\([a-zA-Z]{1,20}|[%#&_{},;: !])")
_FOLD = dict(zip("−–—‐‑’‘“”·×", "-----''\"\"**", strict=True)) | {"π": "pi"}
_BRACKETS = ("()", "[]", "{}", "[)", "(]")


class _CompoundAnswer(NamedTuple):
    """An option, its letter and its text (kind "option"), or a list (kind: its brackets, "" where it has none)."""

    kind: str
    items: tuple[str, ...]


_Reading = _CompoundAnswer | bool | Date | Clock | Quantity | tuple[int, ...] | None


def final_answer(text: str) -> str | None:
    """Extract what a reply gives as its final answer.

    Parameters
    ----------
    text : str
        A whole reply: a chain of thought with its answer, or the answer alone.

    Returns
    -------
    str or None
        The answer as written ("18 eggs", "(B)", "1,080"), without markdown, quotes and closing
        punctuation. None where there is nothing to extract: an empty reply, punctuation, a refusal,
        "I don't know".

    Notes
    -----
    The last explicit marker decides: ``\\boxed{}``, ``#### 18``, ``{"answer": 18}``, "the answer is
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
    """Say whether two answers are the same.

    Parameters
    ----------
    a, b : str or None
        Answers, as `final_answer` gives them or as a suite states them.

    Returns
    -------
    bool or None
        None where either has no content that can be compared. Symmetric; an answer with content
        equals itself.

    Notes
    -----
    Numbers are compared as fractions, never rounded (3.14 is not 3.14159; numbers that show 12 or
    more decimals may differ by 1e-9). A unit that one side leaves out is no difference ("18 eggs",
    "18"), another unit is ("5 km", "5 miles"; "5 km" is 5000 m). A bare number beside a percentage
    may be the percentage or the fraction, as graders of published benchmarks allow: 50% is 50 and
    is 0.5, but 50% is not 0.5%. Dates may lack the year and times am or pm on the same terms;
    03/05/2024 could be two days and equals only itself. An option equals its letter and, where it
    gives it, its text. A ratio is not a fraction. In (1, 2) the order matters, in {1, 2} it does
    not. Words are compared whole, without regard to case, accents, articles and punctuation: "cat"
    is not "catalogue", "paper" is not "paper towel".
    """
    x, y = _content(a), _content(b)
    return None if x is None or y is None else _answers_agree(x, y, 0)


def _boxes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the contents of closed boxes, in the order of their ends."""
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[1] or brace[2] == "{":
            opened.append(brace.end() if brace[1] else -1)
        elif brace[2] and opened and (start := opened.pop()) >= 0:
            yield start, brace.start()


def _marked_answer(text: str) -> tuple[str | None, str]:
    """Return what the last marker that says something says, and the text without what markers deny."""
    markers = [(start, end, "box") for start, end in _boxes(text)]
    markers += [(m.start(1), m.end(1), "json") for m in _JSON.finditer(text)]
    markers += [(m.start(1), m.start(), "back") for m in _BACKWARD.finditer(text)]
    markers += [(m.end(), m.start(), "deny" if m[1] else "cue") for m in _CUE.finditer(text)]
    markers += [(m.end(), m.start(), "cue") for m in _HEADER.finditer(text)]
    markers += [(m.end(), m.end(), "line") for m in _HASHES.finditer(text)]
    if not _LINE_B.search(text):  # else "A:" is an option
        markers += [(m.end(), m.end(), "line") for m in _LINE.finditer(text)]
    denied: set[str] = set()
    for at, other, kind in sorted(markers, reverse=True)[:_MARKERS]:
        candidate = _tidy(text[at : min(other, at + _REACH)]) if kind in ("box", "json") else ""
        if kind == "json" and text[at] == '"':
            candidate = _tidy(json.loads(text[at:other], strict=False))
        elif kind == "back":
            candidate = _strip_lead(text[other:at])
            candidate = (
                candidate
                if _read(to_plain_text(candidate)) is not None or len(candidate.split()) <= 5
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
                denied.add(_key(to_plain_text(_tidy(wrong))))
                begin = 1 + max(text.rfind(stop, 0, other) for stop in "\n.,;:")
                end = max(at, text.find(wrong, at) + len(wrong))
                text = text[:begin] + " " * (end - begin) + text[end:]
                candidate = _tidy(re.sub(r"^(?:rather|instead)\s+", "", instead))
        if _refuses(candidate):
            return None, ""
        if (
            _has_content(candidate)
            and not _HOLLOW.match(candidate)
            and _key(to_plain_text(candidate)) not in denied
        ):
            long = len(candidate.split()) > 12 and any(c.isdigit() for c in candidate)
            return (_unmarked_answer(candidate) if long else None) or candidate, text
    return None, text


def _answer_after(text: str, at: int) -> str:
    """Return the answer that follows a marker: the first sentence of the line, or of the next line that says something."""
    line, *more = text[at : at + _REACH].split("\n")
    line = line.strip(" \t\r:*_=")
    if not _has_content(line) or _EMPTY.fullmatch(line):
        line = next((other for other in more if _has_content(other)), "")
    spans = sentence_spans(line)
    sentence = _strip_lead(line[slice(*spans[0])]) if spans else ""
    return _tidy(_TAIL.sub("", sentence))


def _unmarked_answer(text: str) -> str | None:
    """Return what a text without a marker gives as its answer."""
    body = _strip_lead(text)
    spans = sentence_spans(text)
    if not _has_content(body) or not spans:
        return None
    first, last = text[slice(*spans[0])], text[slice(*spans[-1])]
    for sentence in (last, first) if len(spans) <= 6 else (last,):
        if _refuses(sentence):
            return None
    reading = _read(to_plain_text(body)) if len(body) <= 80 else None
    if isinstance(reading, _CompoundAnswer) or not (
        reading is None or isinstance(reading, bool) or "=" in body
    ):
        return body
    if (equals := _EQUALS.search(text.rstrip()[-200:])) and read_quantity(
        to_plain_text(_tidy(equals[1]))
    ):
        return _tidy(equals[1])
    if choice := _CHOICE.search(last[-200:]):
        return _tidy(choice[0])
    if (
        yes_no := _YES_NO.match(first)
        or _YES_NO.match(last)
        or re.search(r"(?i)\b(yes|no|true|false)\W{0,3}$", last)
    ):
        return yes_no[1]
    if stated := last_stated(text):
        return _tidy(text[slice(*stated)])
    tokens = last.split()[-12:]
    tails = (
        _tidy(" ".join(tokens[i:]))
        for i, word in enumerate(tokens)
        if word.lower() != "one" or "hundred" in tokens
    )
    spelled_number = next((tail for tail in tails if read_quantity(tail)), None)
    return spelled_number or (body if len(body.split()) <= 6 else None)


def _refuses(text: str) -> bool:
    text = text[:_REACH].replace("’", "'")
    return bool(_REFUSES.search(text)) and not _GUESS.search(text)


def _has_content(text: str) -> bool:
    """Say whether a text has content: a letter, a digit, a bracket or a sign of mathematics, but not an empty pair."""
    return any(c.isalnum() or c in "()[]{}<>+=∞√" for c in text) and "".join(text.split()) not in (
        "()",
        "[]",
        "{}",
        "<>",
    )


def _strip_lead(text: str) -> str:
    """Tidy, without opening words such as "So it is"."""
    text = _tidy(text)
    while lead := _LEAD.match(text):
        text = _tidy(text[lead.end() : lead.end() + _MAX_LENGTH])
    return text


def _tidy(text: str) -> str:
    """Strip markdown, quotes, delimiters of mathematics, ``\\text{}`` around the whole, and closing punctuation."""
    for _ in range(6):
        before, text = text, text.strip().strip('*_`"“”«»').strip()
        text = re.sub(r"^(?:#{1,6}\s+|>\s+(?=\w)|[-•]\s+(?=\D)|[:=]\s*)", "", text).rstrip(
            ".,;:!?…。 "
        )
        if len(text) > 1 and text[0] in "'‘" and text[-1] in "'’":
            text = text[1:-1]
        if wrapped := _WRAP.fullmatch(text) or _MATHS.fullmatch(text):
            text = wrapped[wrapped.lastindex or 0]
        if (
            re.search(r"\w\)$", text)
            and text.count(")") > text.count("(")
            and not re.fullmatch(r"\W?[A-Za-z0-9]\)", text)
        ):
            text = text[:-1]
        if text == before:
            break
    return text.replace("\\$", "$").replace("\\%", "%")


def to_plain_text(text: str) -> str:
    """Write LaTeX, full-width and typographic characters plainly: ``\\frac{1}{2}`` and ½ as 1/2, − as -, m² as m^2."""
    if not text.isascii() and len(text) <= _MAX_LENGTH:
        text = "".join(
            (
                f"^{unicodedata.digit(c)}"
                if c in "⁰¹²³⁴⁵⁶⁷⁸⁹"
                else (
                    f" {unicodedata.normalize('NFKC', c).replace('⁄', '/')}"
                    if unicodedata.decomposition(c).startswith("<fraction>")
                    else _FOLD.get(c) or unicodedata.normalize("NFKC", c)
                )
            )
            for c in text
        )
        text = re.sub(r"√\s?(\w{1,40})", r"sqrt(\1)", text)
    if len(text) > _MAX_LENGTH or not ("\\" in text or "{" in text or "$" in text):
        return text
    text = text.replace("\\$", "\0").replace("{,}", ",")
    for _ in range(3):
        text = _FRACTION.sub(_divided, _WRAP.sub(r"\1", text))
    text = re.sub(r"\\sqrt\s?(?:\{([^{}]{1,200})\}|(\w))", lambda m: f"sqrt({m[1] or m[2]})", text)
    text = _COMMAND.sub(lambda m: _LATEX.get(m[1], m[0]), re.sub(r"\^\{?\\circ\}?", "°", text))
    text = re.sub(
        r"\$(?=\S)([^$]{1,200}?)(?<=\S)\$(?!\d)", r"\1", re.sub(r"\^\{(-?\w{1,9})\}", r"^\1", text)
    )
    return text.replace("\0", "$")


def _divided(match: re.Match[str]) -> str:
    above, below = match[1] or match[2], match[3] or match[4]
    space = " " if match.string[: match.start()][-1:].isdigit() else ""
    return (
        f"{space}{above}/{below}"
        if re.fullmatch(r"-?[\d.]+/[\d.]+", f"{above}/{below}")
        else f"({above})/({below})"
    )


def _key(text: str) -> str:
    """Return what must be equal for two texts to be the same words, or, with digits or operators, the same formula."""
    folded = text.casefold()
    if len(text) <= _MAX_LENGTH:  # the time to order accents is quadratic
        folded = "".join(
            c for c in unicodedata.normalize("NFKD", folded) if unicodedata.combining(c) < 200
        )
    folded = re.sub(r"(?<=[^\W\d_]{2})-(?=\w)", " ", folded)
    folded = re.sub(r"\b(?:[^\W\d_]\.){1,9}[^\W\d_]\b\.?", lambda m: m[0].replace(".", ""), folded)
    short = "-" in folded and not re.search(r"[^\W\d_]{3}", folded)
    if short or re.search(r"[\d=+^<>*/\\√≤≥≠±|]", folded) or not re.search(r"\w", folded):
        squeezed = (
            re.sub(r"\s?([^\w\s])\s?", r"\1", " ".join(folded.split()))
            .strip(".,;:!?")
            .replace('"', "")
        )
        return re.sub(r"\b(?:an?|the)\s(?=\w)", "", squeezed)
    tokens = [
        word.replace("'", "")
        for word in re.findall(r"[^\W_]+(?:'[^\W_]+)*", folded.replace("&", " and "))
    ]
    return " ".join([word for word in tokens if word not in ("a", "an", "the")] or tokens)


def _content(text: str | None) -> str | None:
    if text is None or not _has_content(text):
        return None
    answer, rest = _marked_answer(text)
    silent = answer is None and (not rest or (len(text) <= _REACH and _refuses(text)))
    content = "" if silent else _tidy(to_plain_text(_tidy(text if answer is None else answer)))
    return content if _has_content(content) else None


def _items(text: str) -> tuple[str, ...]:
    """Divide at commas outside brackets; nothing where the brackets do not match."""
    items, depth = [""], 0
    for c in re.sub(r",?\s+and\s+", ", ", text):
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            return ()
        if c in ",;" and depth == 0:
            items.append("")
        else:
            items[-1] += c
    return tuple(item.strip() for item in items) if len(items) <= 50 else ()


def _read(text: str, depth: int = 0) -> _Reading:
    """Read a plain answer as what it states; None where it is only words."""
    if len(text) > _MAX_LENGTH or depth > 3 or not text:
        return None
    if (
        word := _YES_NO.fullmatch(text) or re.match(r"(?i)(yes|no|true|false)(?=[,.;:!])", text)
    ) is not None:
        return word[1].lower() in ("yes", "true")
    ends = text[0] + text[-1]
    if ends in _BRACKETS and not (ends == "()" and read_quantity(text[1:-1])):
        items = _items(text[1:-1])
        if len(items) > 1 or (items and ends == "{}"):
            return _CompoundAnswer(ends, items)
    if option := _OPTION.fullmatch(text):
        return _CompoundAnswer("option", ((option[1] or option[2]).lower(), _tidy(option[3])))
    if trailing := re.fullmatch(r"(?i)([^()\n]{1,60}?)\s\(([A-J])\)", text):
        return _CompoundAnswer("option", (trailing[2].lower(), _tidy(trailing[1])))
    if ends == "()":
        return _read(text[1:-1].strip(), depth + 1)
    read = read_date(text) or read_clock(text) or read_ratio(text) or read_quantity(text)
    if read is None and (
        equation := re.fullmatch(r"[^=<>!≤≥≠]{1,80}(?:=[^=<>!≤≥≠]{1,80}){1,9}", text)
    ):
        return _read(equation[0].rpartition("=")[2].strip(), depth + 1)
    if (
        read is None
        and len(items := _items(text)) > 1
        and all(_read(item, depth + 1) is not None for item in items)
    ):
        return _CompoundAnswer("", items)
    return read


def _read_within(text: str) -> _Reading:
    spans = only_stated(text)
    return _read(text[spans[0] :]) or _read(text[slice(*spans)]) if spans else None


def _answers_agree(x: str, y: str, depth: int) -> bool:
    if _key(x) == _key(y):
        return True
    if max(len(x), len(y)) > _MAX_LENGTH or depth > 3:
        return False
    names = [
        name[1].lower() for text in (x, y) if (name := re.match(r"([A-Za-z]\w{0,3})\s?=", text))
    ]
    if len(names) == 2 and names[0] != names[1]:
        return False
    p, q = _read(x), _read(y)
    if isinstance(p, _CompoundAnswer) and isinstance(q, _CompoundAnswer):
        return _compounds_agree(p, q, depth)
    for compound, other in ((p, y), (q, x)):
        if isinstance(compound, _CompoundAnswer):
            return (
                compound.kind == "option"
                and bool(compound.items[1])
                and _answers_agree(compound.items[1], other, depth + 1)
            )
    if (
        (ratio := read_ratio(x))
        and (other_ratio := read_ratio(y))
        and not (isinstance(p, Clock) and isinstance(q, Clock))
    ):
        return ratio == other_ratio
    if (p is None) != (q is None):  # "she makes $18 every day" beside "18"
        p, q = _read_within(x) if p is None else p, _read_within(y) if q is None else q
    for clock, hour in ((p, q), (q, p)):
        if isinstance(clock, Clock) and isinstance(hour, Quantity):
            return (
                not (hour.units or hour.nouns)
                and hour.value == clock.hour_written
                and clock.second % 3600 == 0
            )
    if isinstance(p, Date | Clock) and isinstance(q, Date | Clock):
        return same_moment(p, q)
    if isinstance(p, Quantity) and isinstance(q, Quantity):
        return same_quantity(p, q)
    return isinstance(p, bool) and p is q


def _compounds_agree(p: _CompoundAnswer, q: _CompoundAnswer, depth: int) -> bool:
    pairs = tuple(zip(p.items, q.items, strict=False))
    if p.kind == q.kind == "option":
        return p.items[0] == q.items[0] and ("" in pairs[1] or _answers_agree(*pairs[1], depth + 1))
    if p.kind != q.kind and (p.kind and q.kind or "option" in (p.kind, q.kind)):
        return False
    if (
        "{}" in (p.kind, q.kind) and len(p.items) * len(q.items) <= 900 // 25**depth
    ):  # sets within sets multiply
        table = [[_answers_agree(x, y, depth + 1) for y in q.items] for x in p.items]
        return all(map(any, table)) and all(map(any, zip(*table, strict=True)))
    return (
        "{}" not in (p.kind, q.kind)
        and len(p.items) == len(q.items)
        and all(_answers_agree(x, y, depth + 1) for x, y in pairs)
    )
