"""What a reply that was cut off states as its answer: nothing, unless it says so in full."""

from __future__ import annotations

import re

from cotlab.core.reasoning import own_text, read_reasoning
from cotlab.text.answers.boxes import box_spans
from cotlab.text.answers.cues import RETRACTION_PATTERN
from cotlab.text.answers.extract import final_answer, marked_answer, same_answer
from cotlab.text.steps import sentence_spans

_MAX_STATEMENTS = 200
# "answer is", "Answer:", "answer to the question is", "\boxed{", "#### ", "A: "
_STATEMENT_RE = re.compile(
    r"(?i)(\banswers?\"?[*_]{0,2}(?:\s+to\s+(?:the|this)\s+(?:question|problem))?\s*"
    r"(?:\bis\b|\bare\b|[:=]|(?:[*_]{1,2}\s*)?$))"
    r"|\b(?:is|are)\s+(?:the|my)\s+(?:(?:final|correct|right)\s+)?answer\b"
    r"|\b(?:correct|right|best)\s+(?:option|choice)\s+is\b"
    r"|\\(?:boxed|fbox)\s{0,3}\{|(?m:^)\s{0,3}####\s"
    r"|(?m:^)[ \t>*_#-]{0,8}(?:A|Ans)(?:\*\*)?[ \t]?:",
    re.MULTILINE,
)
# "Thus, the final " of "Thus, the final answer is"; not "if the ", "to find the ", "Step 1 "
_OPENING_RE = re.compile(
    r"(?i)(?:^|[.\n:;!?>*_({\[\"“–—-]|\b(?:so|thus|therefore|hence|and|then|conclusion|finally|means)\b,?"
    r"|[⟹→])[\s*_]{0,40}(?:(?:the|my|our)\s+)?(?:(?:final|correct|right)\s+)*$"
)
_MIN_TERMS = 6
"""Fewer words are an answer as they are, however they end."""
# "=", "×", "the", "Together, their rate is", "let me check with", "**Final Answer:**"
_OPEN_END_RE = re.compile(
    r"(?i)(?:[=+×≈(,]|\d\s[-*/<>]|(?<![\w'])(?:is|are|was|were|the|an|of|and|with|then|for|equals"
    r"|because|than|which|but|between|its|their|our|approximately|we)"
    r"|\banswer[*_]{0,2}:[*_ ]{0,3})$"
)
_TABLE_RULE_RE = re.compile(r"(?m)^\s{0,8}\|[\s:|-]{3,200}\|\s{0,8}$")
_OPEN_BOX_RE = re.compile(r"\\boxed\{[^{}]*$")
_FENCE_RE = re.compile(r"(?m)^\s{0,8}```")
# "- **B) Bolivia**" after "- **A) Peru** has a coast"
_BARE_ITEM_RE = re.compile(r"\s{0,8}[-*•]\s{1,4}\*\*[^*]{1,80}\*\*[ :]{0,3}")
_DESCRIBED_ITEM_RE = re.compile(r"\s{0,8}[-*•]\s{1,4}\*\*[^*]{1,80}\*\*[ :]{0,3}\s?\S")
_RETRACTION_RE = re.compile(rf"(?i)\b(?:however|but|{RETRACTION_PATTERN})\b")
# the end of a sentence that no further token can change: "18 eggs.", not "18."
_SENTENCE_END_RE = re.compile(r"(?:[^\d\s.][.!?]|[!?])[\s*_\"'”’)]*$")


def ends_visibly_early(text: str) -> bool:
    r"""Return whether a reply stops within a sentence, box, block, table or list, or in thought.

    A reply that its server ended without a word is known by that as well; one that was recorded
    elsewhere only by its text.

    Examples
    --------
    >>> ends_visibly_early("18 kg at $1.50 per kg come to 18 × $1.50 =")
    True
    >>> ends_visibly_early("So he pays $27")
    False
    """
    if read_reasoning(text).is_open:
        return True
    reply = own_text(text).rstrip()
    if len(reply.split()) < _MIN_TERMS:
        return False
    if _OPEN_END_RE.search(reply[-80:]) or _OPEN_BOX_RE.search(reply[-400:]):
        return True
    if len(_FENCE_RE.findall(reply)) % 2:
        return True
    *_, last_line = reply.split("\n")
    rows = [line for line in reply.split("\n")[-60:] if line.lstrip().startswith("|")]
    if last_line.lstrip().startswith("|") and _TABLE_RULE_RE.search(reply):
        return last_line.count("|") < max(row.count("|") for row in rows)
    bare = _BARE_ITEM_RE.fullmatch(last_line)
    return bare is not None and any(
        _DESCRIBED_ITEM_RE.match(line) for line in reply.split("\n")[-12:-1]
    )


def visible_text(text: str) -> str:
    """Return a reply, or, where it ends visibly early, what of it states the answer in full.

    Empty where it states none. A last sentence with a marker is an answer, however it ends: "The
    answer is 12 in".
    """
    if not ends_visibly_early(text):
        return text
    stated, spans = stated_answer_text(text), sentence_spans(text)
    is_marked = bool(spans) and marked_answer(text[slice(*spans[-1])])[0] is not None
    return stated or (text if is_marked and not read_reasoning(text).is_open else "")


def stated_answer_text(text: str) -> str:
    r"""Return a cut-off reply up to the end of the sentence that states its answer.

    Returns
    -------
    str
        Empty where no answer is stated in full: without a marker ("the answer is", a closed
        ``\boxed{}``, "#### 18"), where the cut may be within the answer, where the chain before it
        did not end or is in a form that is not read, where two statements differ, and where a later
        sentence takes the answer back.

    Examples
    --------
    >>> stated_answer_text("3 + 4 = 7. So the answer is 7. Let me")
    '3 + 4 = 7. So the answer is 7.'
    >>> stated_answer_text("To find the answer: 3 + 4 = 7. Then")
    ''
    """
    if read_reasoning(text).unread:
        return ""
    reply = own_text(text)
    starts, ends = [start for start, _ in sentence_spans(reply)], _complete_ends(reply)
    stated, answers = "", list[str | None]()
    for match in list(_STATEMENT_RE.finditer(reply))[-_MAX_STATEMENTS:]:
        if match[1] and not _OPENING_RE.search(reply[max(0, match.start() - 40) : match.start()]):
            continue
        # a header's answer is in the sentence that follows it
        for end in [end for end in ends if end >= match.end()][:2]:
            statement = reply[max(i for i in starts if i <= match.end()) : end]
            if marked_answer(statement)[0] is not None:
                stated = reply[:end]
                answers.append(final_answer(statement))
                break
    differ = any(same_answer(answers[-1], answer) is False for answer in answers)
    return "" if differ or _RETRACTION_RE.search(reply[len(stated) :]) else stated


def _complete_ends(text: str) -> list[int]:
    """Return where sentences and boxes end that the cut cannot have changed, in order."""
    ends = [end for _, end in sentence_spans(text)]
    if ends and text[ends[-1] :].find("\n") < 0 and not _SENTENCE_END_RE.search(text):
        ends.pop()
    return sorted({*ends, *(end + 1 for _, end in box_spans(text))})
