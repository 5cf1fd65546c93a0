"""Notes, asides, conditions and second forms that follow an answer."""

from __future__ import annotations

import re

# " (As a check: 27 × 3 = 81.)" after a sentence, " (9 * 3 = 27)" after an answer
ASIDE_RE = re.compile(
    r"(?<=[.!?*])\s+[*_]?\((?![^()\n]*\b[Aa]nswer\b)[A-Z][^()\n]{2,300}\)?[\s.*]{0,4}$"
    r"|(?<=\w)\s+\((?:(?:since|because|as|check|note|for|from)\b)?[^()\n]{1,200}=[^()\n]{1,200}\)?"
    r"[\s.*]{0,4}$"
    r"|(?<=[\w*])\s\(and the (?:other|remaining|faster|slower|second|rest)\b[^()\n]{1,200}\)"
    r"[\s.*]{0,4}$"
    r"|(?<=[\w$)}*])(?:,\s+not\s+[^(),]{1,60}|\s+\((?:not|rather than)\s[^()\n]{1,60}\)?)"
    r"[\s.*]{0,4}$"
)
# " (before fees and taxes)" after an answer, ", valid for $n \\ne 1$" after a formula
_CONDITION_RE = re.compile(
    r"(?<=[\w*%$])\s+\((?:before|after|excluding|including|ignoring|assuming|without|not counting)"
    r"\b[^()\n]{1,200}\)[\s.*]{0,4}$"
    r"|,?(?<!\s)\s+(?:valid\s+)?(?:for|where|when|provided)\s+\$?[^\s$.]{1,20}\s?(?:≠|\\neq?\b)"
    r"[^$.\n]{1,40}\$?[\s.]{0,4}$"
)
# " (the determinant is 1)" after a formula, where it adds no other value and no doubt
_ASIDE_AFTER_FORMULA_RE = re.compile(
    r"(?<=[$\]])\s{1,9}\((?!(?:or|and|also|but|mod|unless|except|only|both|if|when|for|where"
    r"|that is|i\.e|which|equivalently|approx\w*|about|roughly|times|per|in)\b)"
    r"(?![^()\n]{0,200}\b(?:wrong|incorrect|false|not|or|mistake|error|thousand|million|billion|dozen"
    r"|hundred|percent|instead)\b)[a-z][^()\n=%]{2,200}\)[\s.*]{0,4}$"
)
# "Note that this is smaller" after a formula
_REMARK_RE = re.compile(r"(?<=[$)\].])\s+Note that\s[^\d$\\=\n]{1,200}$")
# ", which is upper triangular" after a matrix
_ABOUT_MATRIX_RE = re.compile(
    r"(matrix\}\s?(?:\\\]|\$\$?|\\\)))[,.]?\s{1,9}(?:which|this matrix) is (?!not\b)"
    r"[^\d$\\=\n]{1,100}$"
)
# "units" after a formula
UNITS_RE = re.compile(r"(?<=[$)\]])\s+units?[\s.]{0,4}$")
# "Check: 2(3) + (-2) = 4", "Note: in 12 instalments" as a last paragraph
_NOTE_PARAGRAPH_RE = re.compile(
    r"\n\s{0,9}\n[>*_ ]{0,4}(?:Note|Check|Verification|Remark|Caveat)\b[*_]{0,3}:"
    r"[^\n]{1,400}\s{0,9}$"
)
# "Let me verify: 2(4) = 8 ✓" as a last paragraph, where it finds no fault
_CHECK_PARAGRAPH_RE = re.compile(
    r"\n\s{0,9}\n[>*_ ]{0,4}(?:Let me|Let['’]s|Let us|We can|I['’]ll|To)\s(?:also |now |quickly )?"
    r"(?:verify|check|double-check|confirm)\b(?![^\n]{0,400}(?i:\b(?:not|so|therefore|thus|answer"
    r"|mistake|wrong|should|actually|wait|instead|hence)\b|[≠✗]))[^\n]{1,400}\s{0,9}$"
)
# "Let me know if you'd like another example with 4 workers!" as a last paragraph
_OFFER_RE = re.compile(
    r"\n\s{0,9}[>*_ ]{0,4}(?:Let me know|Would you like|Feel free|Do you want|Is there anything"
    r"|If you(?=[^\n]{0,300}\b(?:let me know|feel free|happy to|ask)\b)"
    r"|(?:I )?[Hh]ope (?:this|that) helps)\b[^\n]{1,300}\s{0,9}$"
)
# "With annual compounding, you'd have $1,276 instead." as a last paragraph
_OTHERWISE_RE = re.compile(
    r"\n\s{0,9}(?:With|Under|Using|For comparison|By contrast)\b[^\n]{0,200}(?:\bwould\b|['’]d\b)"
    r"[^\n]{0,200}\binstead[\s.*]{0,4}$"
)
# ": two hydrogen atoms and four oxygen atoms" after a formula
_SPELLED_OUT_RE = re.compile(r"(?<=\$):\s[a-z][^$=\d\n]{3,200}$")
# ", approximately 10^3" after a value
_APPROXIMATELY_RE = re.compile(
    r"(?<=[\w)}$])(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bbe)(?<!quals)(?<!\bof)(?<!\bto)(?<!\bhas)(?<!\bin)"
    r",?\s(?:(?:or|which is)\s)?(?:approximately|approx\.|roughly)\s[^\s,;]{1,40}"
    r"[\s.*]{0,4}$"
)
# " You can confirm it directly: 1024 = 7 · 146 + 2." after "The remainder is 2."
_CONFIRMED_RE = re.compile(
    r"(?<=[.!?*]\s)(?:You|We) can (?:also )?(?:confirm|verify|check) (?:it|this|that)\b"
    r"(?![^\n]*\b(?i:so|thus|therefore|hence|answer|mistake|not)\b)[^\n]{1,200}$"
    r"|(?<=[.!?*]\s)(?:Some|Others|A few)\s(?![^.\n]*\b(?i:so|thus|therefore|answer|of them|left"
    r"|remain\w*)\b)[^.\n]{1,120}\bor even more\.?$"
)
_REMARK_PATTERNS = (
    _CONFIRMED_RE,
    _OFFER_RE,
    _OTHERWISE_RE,
    _CHECK_PARAGRAPH_RE,
    _NOTE_PARAGRAPH_RE,
    _SPELLED_OUT_RE,
    ASIDE_RE,
    _ASIDE_AFTER_FORMULA_RE,
    _CONDITION_RE,
    _REMARK_RE,
    _APPROXIMATELY_RE,
)
_MAX_REMARK_CHARACTERS = 1_000
"""Characters at a text's end in which remarks are looked for; the longest has fewer."""
# ". To verify, 27 × 3 = 81" after a marked answer
NEXT_SENTENCE_RE = re.compile(
    r"(?<=[\w$])\s\((?:approximately|approx\.?|about|roughly|[≈~])\s?[^()]{1,60}\)?$"
    r"|(?<=[a-z])\s\(\d[^()=]{1,60}\sand\s\d[^()=]{1,60}\)?[\s.]{0,3}$"
    r"|(?<=\d)\.\s+(?:To|Check(?:ing)?|Verif\w+|Note|This|That|Since|Because|So|Indeed|We|It|As|If"
    r"|But|Also|For)\b:?\s.{1,300}$"
)
# ", i.e. 60°", " (or equivalently 0.5)" at the end of an answer
SECOND_FORM_RE = re.compile(
    r"(?:\s?[,;]|\s\(|\s)\s?(?:i\.e\.|that is|or equivalently|equivalently|or|which is"
    r"(?: the same as| equal to)?),?\s([^;()]{1,60}?)\)?[\s.]{0,3}$"
    r"|\s\(([^;()=]{1,60})\)[\s.]{0,3}$"
)


def without_remarks(text: str) -> str:
    """Return a text without notes, asides and conditions after its answer."""
    text = _ABOUT_MATRIX_RE.sub(r"\1", text)
    for pattern in _REMARK_PATTERNS:
        text = text[:-_MAX_REMARK_CHARACTERS] + pattern.sub("", text[-_MAX_REMARK_CHARACTERS:])
    return text
