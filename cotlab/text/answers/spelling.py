"""Words that are spelled otherwise in British and in American English."""

from __future__ import annotations

import re

from cotlab.text.written_numbers import word_list

_OUR_STEMS = "col|flav|fav|behavi|neighb|harb|lab|hon|hum|tum|vap|od|rum|sav|arm|vig"
_REWRITTEN = (
    (re.compile(r"(?<=[a-z])aemi(?=[ac]s?\b)"), "emi"),  # hyperkalaemia, anaemic
    (re.compile(r"\bhaem(?=o|at|orrh)"), "hem"),  # haemoglobin
    (re.compile(r"\boe(?=dema|soph|str(?:o|adi))"), "e"),  # oedema, oesophagus, oestrogen
    (re.compile(r"\b(p|orthop|gyn|an)ae(?=d|c|sth)"), r"\1e"),  # paediatric, anaesthetic
    (re.compile(r"rrhoea\b"), "rrhea"),
    (re.compile(r"(?<=[a-z]{3})is(?=ations?\b)"), "iz"),  # crystallisation
    (
        re.compile(r"\b((?:centi|milli|kilo|micro|nano)?(?:met|lit|cent|fib|theat))re(?=s?\b)"),
        r"\1er",
    ),
    (re.compile(rf"\b(?<!-)((?:dis|un|mis)?(?:{_OUR_STEMS}))our(?=[a-z]{{0,8}}\b)"), r"\1or"),
)
_PAIRS = dict(
    pair.split("/")
    for pair in word_list(
        "grey/gray sulphur/sulfur sulphuric/sulfuric sulphate/sulfate sulphide/sulfide"
        " aluminium/aluminum foetus/fetus foetal/fetal caesium/cesium catalogue/catalog"
        " plough/plow defence/defense offence/offense mould/mold jewellery/jewelry"
        " encyclopaedia/encyclopedia aeroplane/airplane"
    )
)


def american_spelling(text: str) -> str:
    """Return a text in lower case in American spelling.

    Examples
    --------
    >>> american_spelling("grey colour, hyperkalaemia")
    'gray color, hyperkalemia'
    """
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return " ".join(_PAIRS.get(word, word) for word in text.split(" "))
