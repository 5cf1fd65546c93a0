"""The words that announce an answer: "the answer is", "Answer:", "18 is the answer"."""

from __future__ import annotations

import re

_IS_OR_EQUALS_PATTERN = (
    r"\b(?:is|was|equals|are|becomes|(?:should|must|would|will)\s+be"
    r"|(?:comes?|works) out (?:to|as)(?: be)?)\b|[:=→]|\s[-–—]\s"
)
_DENIAL_PATTERN = r"\b(?:(?:is|was)n['’]t|(?:cannot|can['’]t|could not) be)\b"
# "answer is", "Answer:", "correct option is", "answer isn't", "choose option " before "B"
ANSWER_CUE_RE = re.compile(
    rf"(?i)(?:(?<![\"/])\banswers?\b(?!\s+(?:choices|options|key|sheet)\b)[^.\n:=?!\"/+]{{0,60}}?"
    rf"|\b(?:correct|right|best)\s+(?:options?|choices?)\s*)(?:({_DENIAL_PATTERN})|{_IS_OR_EQUALS_PATTERN})"
    r"|\bsorted (?:words|list|order)(?: is| are)?:"
    r"|\b(?:choose|select|pick|go with|answer with)\s+"
    r"(?:(?:option|answer|choice)\s+)?(?=(?-i:\(?[A-J]\)?)(?:[\s.,:]|$)|\([a-j]\)|[a-j](?:[.,)]|$))"
)
# "**Final answer**" on a line of its own
ANSWER_HEADER_RE = re.compile(
    r"(?im)^[ \t>*_#-]{0,12}(?:the\s+)?(?:(?:final|correct)\s+)?answer[*_:. \t]{0,8}$"
)
# "A: " of "A: 18", "**Ans**:" (a reply to "Q:")
ANSWER_LINE_RE = re.compile(r"(?m)^[ \t>*_#-]{0,8}(?:A|Ans)(?:\*\*)?[ \t]?:(?=[* \t]{0,4}\S)")
# "B:", "B)": the second of a list of options
OPTION_B_LINE_RE = re.compile(r"(?m)^[ \t>*_#-]{0,8}B[ \t]?[:.)]")
# "is the answer" of "18 is the answer", "is correct" of "B is correct"
ANSWER_BEFORE_CUE_RE = re.compile(
    r"(?i)(?:^|(?<=[.\n,;:]))[^.\n,;:]{0,60}?"
    r"((?:\bis|\bare)\s+(?:the|our|my)\s+(?:(?:final|correct|right|best)\s+){0,2}"
    r"(?:answer|choice|option|solution)\b|(?:(?<=\b[A-J])|(?<=\b[A-J]\)))\s+is\s+(?:correct|right)\b)"
)
RETRACTION_PATTERN = (
    r"wait|hmm+|actually|hold on|wrong|incorrect|mistaken?|mistakes|error|not (?:right|correct)"
    r"|correction|sorry|oops|oh no|second thought|on reflection|start over|double[- ]check\w*"
    r"|re-?(?:check|calculat|comput|consider|think|do|examin|evaluat)\w*"
)
"""What takes an answer back, or goes on to look for another."""
# "所以答案是 C", "La respuesta es la B", "Die Antwort lautet:", "Ответ:", and no denial after it
FOREIGN_CUE_RE = re.compile(
    r"(?i)(?:答案(?:应该|應該)?\s?(?:是|为|為|选|選|[:：])|(?:答え|正解)は|정답은"
    r"|\brespuesta (?:(?:correcta|final) )?es\b|\brespuesta(?: final)?:"
    r"|\bresposta (?:(?:correta|final) )?é\b|\brisposta (?:(?:corretta|finale) )?è\b"
    r"|\bréponse (?:(?:correcte|finale) )?est\b|\bréponse(?: finale)? ?:"
    r"|\bantwort (?:ist|lautet)\b:?|\bantwort:|\bответ\s?[:—–-])"
    r"(?:\s(?:la|el|le|die|der|das|il)\s(?=\(?[A-J]\b))?"
    r"(?!\s?(?:nicht|kein|no|não|non|pas|не|不是|不)\b)"
)
