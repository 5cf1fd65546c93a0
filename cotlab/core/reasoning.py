"""The forms in which a model's reasoning stands in the text of its reply: one table of delimiters.

What stands between delimiters is the chain, what follows them is the reply. The forms are those
that the reasoning parsers of vLLM and SGLang take out of replies, and those of published data sets.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

UNREAD_MARKUP = "reasoning in an unknown format"
"""Code at the start of the reason of a score whose reply cannot be divided into chain and answer;
`unread_reason` writes it, `markup_of_reason` reads it."""


class _Form(NamedTuple):
    hint: str
    """What each delimiter of the form holds, or one without which it is not looked for, in lower
    case."""
    opening: str
    """Pattern of what stands before a chain."""
    closing: str
    """Pattern of what stands between a chain and the reply."""
    has_messages: bool = False
    """Whether a chain may be several messages, each with an opening of its own."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of both delimiters with the white space after them; those in code are none."""
        return re.compile(rf"(?i:(?:(?P<opening>{self.opening})|{self.closing})(?!`))\s*", re.ASCII)


_TURN = r"(?:<\|(?:end|call)\|>\s*)?(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*"
_HEADER = r"[ \w.=:-]{0,80}(?:<\|constrain\|>[ \w]{0,40})?<\|message\|>"
_FORMS = (
    *(
        _Form(f"{name}>", f"<{name}>", f"</{name}>")
        for name in (
            *("think", "thinking", "thought", "thoughts", "reasoning", "scratchpad"),
            *("seed:think", "mm:think", "think:opensource"),  # Seed-OSS, MiniMax, Hunyuan
        )
    ),
    _Form("think]", r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    _Form("think▷", "◁think▷", "◁/think▷"),  # Kimi
    _Form(  # OpenThoughts
        *("_of_thought|>", r"<\|begin_of_thought\|>"),
        r"<\|end_of_thought\|>(?:\s*<\|begin_of_solution\|>)?",
    ),
    _Form(  # Command A
        *("_thinking|>", r"<\|START_THINKING\|>"),
        r"<\|END_THINKING\|>(?:\s*<\|START_(?:RESPONSE|TEXT)\|>)?",
    ),
    _Form("<|inner_", r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    _Form("channel", r"<\|channel>(?:thought\b)?", r"<channel\|>"),  # Gemma 4
    _Form(  # Granite
        *("my response:", "Here(?:'s| is) my thought process:", "Here(?:'s| is) my response:")
    ),
    # gpt-oss: "<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>"
    _Form(
        *("<|channel|>", rf"{_TURN}(?:analysis|commentary){_HEADER}", rf"{_TURN}final{_HEADER}"),
        has_messages=True,
    ),
    # the same without its special tokens: "analysisWe add.assistantfinal3"
    _Form(
        "analysis",
        r"\A\s*analysis(?-i:(?=[A-Z])|(?=(?s:.*)assistantfinal))|assistant(?:analysis|commentary)",
        "assistantfinal",
        has_messages=True,
    ),
)
_PATTERNS = tuple(form.pattern for form in _FORMS)
_OPEN_END_RE = re.compile(
    "|".join(rf"(?:{form.opening})\s*\Z" for form in _FORMS if form.hint != "analysis")
)
# "<|im_end|>", "<|eot_id|>", "<|return|>": a model that goes on writes the other side too
_END_OF_TURN_RE = re.compile(
    r"<[|｜](?:im_start|im_end|start|end|return|call|user|assistant|endoftext|eot_id|eom_id"
    r"|end_of_text|end_of_solution|end▁of▁sentence|END_(?:RESPONSE|TEXT|OF_TURN_TOKEN))[|｜]>"
    r"|<end_of_turn>"
)
_BOX_RE = re.compile(r"<\|(?:begin|end)_of_box\|>")
# "<|thinking|>", "<|turn>", "<turn|>"; not the "<|AB|>" of "|CD|<|AB|>|EF|"
_SPECIAL_TOKEN_RE = re.compile(
    r"<(?<!\|<)[|｜][A-Za-z/][\w▁/:. -]{1,40}[\w▁][|｜]?>(?!\|)|<[A-Za-z]\w{2,40}[|｜]>"
)
# "</my_think>", "[/REFLECTION]", "</analysis>"
_THOUGHT_TAG_RE = re.compile(
    r"(?i)[<\[{◁]/[\w:. -]{0,40}(?:think|thought|reason|reflect|ponder|analy[sz]|scratch|deliberat"
    r"|monolog|contemplat)[\w:. -]{0,40}[>\]}▷]"
)
_CODE_RE = re.compile(r"`[^`\n]{0,400}`")  # "`<|im_end|>`"


class Reasoning(NamedTuple):
    """Where a chain stands in the text of a reply."""

    spans: tuple[tuple[int, int], ...] = ()
    """Ranges of the text inside of delimiters, without blank ones."""
    end: int = 0
    """Where the reply's own text starts: after the last delimiter, or at 0 without any."""
    is_open: bool = False
    """Whether the text ends within the chain, and has no text of its own."""
    unread: str = ""
    """Markup by which chain and reply cannot be told apart; "" where they can."""

    def chain(self, text: str) -> str:
        """Return the chain of ``text``; "" where it has none between delimiters."""
        return "\n\n".join(text[start:end].strip() for start, end in self.spans)


@lru_cache(256)  # a reply is read for several scores, one after the other
def read_reasoning(text: str) -> Reasoning:
    """Find the chain in a reply.

    A closing delimiter without its opening ends a chain that starts where the text does, as where
    the server's chat template wrote the opening. Delimiters in code, as `` `<think>` ``, are none.
    """
    reasoning, lowered = Reasoning(), text.lower()
    likely = [i for i, form in enumerate(_FORMS) if form.hint in lowered]
    while likely and not (reasoning.is_open or reasoning.unread):
        firsts = [
            (match.start(), i)
            for i in likely
            if (match := _PATTERNS[i].search(text, reasoning.end))
        ]
        if not firsts:
            break
        # what follows a chain in one form may have a chain in another
        reasoning = _read_form(text, min(firsts)[1], reasoning)
    if not reasoning.unread:
        reasoning = reasoning._replace(unread=_unknown_markup(text[reasoning.end :]))
    return reasoning


def own_text(text: str) -> str:
    """Return what a reply says itself: after its chain, up to the end of its turn."""
    reasoning = read_reasoning(text)
    text = text[reasoning.end :]
    turn = _END_OF_TURN_RE.search(text)
    if turn and text[: turn.start()].strip():
        return text[: turn.start()]
    return text if _END_OF_TURN_RE.sub("", text).strip() else ""


def unread_markup(text: str, *, was_cut: bool = False) -> str:
    """Return the markup by which chain and reply cannot be told apart; "" where they can.

    A reply that was cut off within its chain has no fault.
    """
    reasoning = read_reasoning(text)
    return "" if was_cut and reasoning.is_open else reasoning.unread


def unread_reason(markup: str) -> str:
    """Return the reason of a score whose reply has this markup."""
    return f"{UNREAD_MARKUP}: '{markup}'"


def markup_of_reason(reason: str) -> str:
    """Return the markup that `unread_reason` was given; "" for any other reason."""
    code, _, markup = reason.partition(": ")
    return markup.removeprefix("'").removesuffix("'") if code == UNREAD_MARKUP else ""


def ends_in_reasoning(prompt: str) -> bool:
    """Return whether a rendered prompt leaves the model within its chain."""
    return _OPEN_END_RE.search(prompt[-200:]) is not None


def _read_form(text: str, form_index: int, before: Reasoning) -> Reasoning:
    """Read the chain in one form, after what was read in other forms."""
    spans, end, unread = list(before.spans), before.end, ""
    start: int | None = None
    first_tag = said = ""
    n_closed = 0
    for tag in _PATTERNS[form_index].finditer(text, before.end):
        first_tag = first_tag or tag[0]
        is_opening = tag["opening"] is not None
        if start is not None:
            is_repeated = is_opening and not _FORMS[form_index].has_messages
            if is_repeated and text[start : tag.start()].strip():
                unread = tag[0]
            spans.append((start, tag.start()))
        elif is_opening:
            said = said or (tag[0] if text[end : tag.start()].strip() else "")
        else:
            if n_closed and text[end : tag.start()].strip():
                unread = tag[0]
            elif not n_closed:
                spans.append((before.end, tag.start()))
        start, n_closed = (tag.end(), n_closed) if is_opening else (None, n_closed + 1)
        end = tag.end()
    is_open = start is not None
    if start is not None:
        turn = _END_OF_TURN_RE.search(text, start)
        spans.append((start, turn.start() if turn else len(text)))
        end, unread = len(text), unread or first_tag
    elif said and not text[end:].strip():  # what the reply says stands before its chain
        unread = unread or said
    return Reasoning(
        tuple(span for span in spans if text[slice(*span)].strip()),
        end,
        is_open,
        " ".join(unread.split()),
    )


def _unknown_markup(text: str) -> str:
    """Return the first special token, or closing tag of a thought, that is in no table; or ""."""
    turn = _END_OF_TURN_RE.search(text)
    if turn and text[: turn.start()].strip():
        text = text[: turn.start()]
    text = _CODE_RE.sub("", "".join(text.split("```")[::2]))  # without fenced and inline code
    tokens = (
        token[0]
        for token in _SPECIAL_TOKEN_RE.finditer(text)
        if not (_END_OF_TURN_RE.fullmatch(token[0]) or _BOX_RE.fullmatch(token[0]))
    )
    tag = _THOUGHT_TAG_RE.search(text)
    return next(tokens, tag[0] if tag else "")
