"""Find the names in a text and rename its people."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence


def _split_word_tuple(text: str) -> tuple[str, ...]:
    """Split a string of words."""
    return tuple(text.split())


FEMALE_REPLACEMENT_NAMES = _split_word_tuple("Ann Eva Lily Zoe Mia Ida Nora Ruth")
MALE_REPLACEMENT_NAMES = _split_word_tuple("Bob Max Sam Leo Ben Jack Paul Otto")
"""New names for people."""
_FEMALE_NAMES = frozenset(FEMALE_REPLACEMENT_NAMES) | frozenset(
    _split_word_tuple(
        "Ada Alice Amy Amanda Amelia Andrea Anna Anne Ashley Barbara Bea Bella Berta Beth Betty"
        " Carla Carol Caroline Carmen Clara Claire Cora Cynthia Daisy Dana Debra Denise Diana Donna"
        " Dora Doris Edith Elena Ella Elsa Emily Emma Esther Fatima Fiona Frida Gina Gloria Greta"
        " Hannah Helen Helena Ina Inga Iris Irene Jane Janet Jasmine Jenna Jenny Jessica Jill Joan"
        " Julia Julie Karen Kate Katie Kelly Kim Laura Lea Lena Linda Lisa Lucia Lucy Lydia Maria"
        " Marie Martha Mary Megan Melissa Michelle Mina Molly Monica Nadia Nancy Naomi Natalie Nia"
        " Nina Olga Olivia Pamela Patricia Paula Petra Priya Rachel Rebecca Rita Rosa Sally"
        " Samantha Sandra Sara Sarah Sheila Sofia Sophia Sophie Stella Susan Susie Tanya Tara Tina"
        " Vera Wendy Yara Zara"
    )
)
_MALE_NAMES = frozenset(MALE_REPLACEMENT_NAMES) | frozenset(
    _split_word_tuple(
        "Aaron Abe Adam Ahmed Alan Albert Ali Andrew Anthony Arthur Bill Billy Bo Bobby Boris Brad"
        " Brandon Brian Bruce Carl Carlos Charles Chris Cid Dan Daniel Dave David Dennis Derek Dirk"
        " Doug Dylan Ed Eddie Edgar Eli Elias Emil Eric Ethan Felix Finn Frank Fred Gary George"
        " Greg Hans Harold Harry Hassan Henry Hugo Ian Igor Ivan Jacob Jake James Jason Jay Jeff"
        " Jeremy Jerry Jim Jimmy Joe Joel John Jon Jonas Jonathan Jorge Jose Joseph Josh Joshua"
        " Juan Justin Kai Karl Keith Ken Kevin Kyle Larry Lars Liam Logan Louis Lucas Luis Luke"
        " Marco Marcus Mario Martin Matt Matthew Michael Miguel Mike Mo Nathan Ned Nick Noah Olaf"
        " Oscar Oskar Oliver Omar Owen Patrick Pedro Peter Phil Philip Ralph Ray Rex Richard Rick"
        " Rob Robert Roger Ron Ryan Scott Sean Simon Stan Stephen Steve Steven Ted Theo Thomas Tim"
        " Timothy Toby Todd Tom Tomas Tommy Tony Tyler Ugo Victor Vincent Walter Wayne William Zach"
    )
)
_GIVEN_NAMES = _FEMALE_NAMES | _MALE_NAMES
_NON_NAMES = frozenset(
    _split_word_tuple(
        "I A An The This That These Those He She It We You They His Her Its Our Your Their Him Them"
        " Us My Me One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve So Then Thus"
        " Therefore Hence Now Next First Second Third Finally Lastly Since Because If When While"
        " After Before How What Which Who Whose Where Why Is Are Was Were Do Does Did Has Have Had"
        " Can Could Will Would Should Each Every All Both Some Any No Not And Or But Also In On At"
        " By For From To With Of As Let Step Answer Question Total There Here Clearly Obviously"
        " January February March April May June July August September October November December"
        " Monday Tuesday Wednesday Thursday Friday Saturday Sunday Celsius Fahrenheit"
    )
)
# "Ann", "New York"
_CAPITALISED_PHRASE_RE = re.compile(
    r"(?<![\w'’-])[A-Z][a-zà-öø-ÿ]+(?: [A-Z][a-zà-öø-ÿ]+)*(?![\w-])"
)
# "Ann" and "Ann" of "Ann's"
_CAPITALISED_WORD_RE = re.compile(r"(?<![\w'’-])[A-Z][a-z]+(?![\w-])")
_NAME_BEFORE_RE = re.compile(r"[A-Z][a-z]+ $")  # "James " of "James Cook"
_NAME_AFTER_RE = re.compile(r" [A-Z][a-zA-Z]*\b")  # " Cook" of "James Cook"
# "s " before a word within a sentence
_MID_SENTENCE_RE = re.compile(r"[\w,][ ]$")
_FEMALE_PRONOUN_RE = re.compile(r"\b(?:she|hers?|herself)\b", re.IGNORECASE)  # "she", "her"
_MALE_PRONOUN_RE = re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE)  # "he", "his"


def find_names(*texts: str) -> tuple[str, ...]:
    """Return the names of people and things, each once, in order of appearance.

    A name is a known given name, or capitalised words within a sentence that do not begin with a
    function word, a month or a weekday. A word that also occurs in lower case is no name.
    """
    lower_case_tokens = {match for text in texts for match in re.findall(r"\b[a-zà-öø-ÿ]+\b", text)}
    names: dict[str, None] = {}
    for text in texts:
        for match in _CAPITALISED_PHRASE_RE.finditer(text):
            name_tokens = match.group().split()
            is_mid_sentence = bool(
                _MID_SENTENCE_RE.search(text, max(0, match.start() - 2), match.start())
            )
            while name_tokens and name_tokens[0] in _NON_NAMES:
                name_tokens, is_mid_sentence = name_tokens[1:], True
            if (
                name_tokens
                and (is_mid_sentence or name_tokens[0] in _GIVEN_NAMES)
                and not {part.lower() for part in name_tokens} & lower_case_tokens
            ):
                names[" ".join(name_tokens)] = None
    return tuple(names)


def find_given_names(text: str) -> tuple[str, ...]:
    """Return the given names that stand alone, in order of appearance.

    Not "James" of "James Cook", nor a name that is also a word of the text.
    """
    lower_case_tokens = set(re.findall(r"\b[a-z]+\b", text))
    names: dict[str, None] = {}
    excluded_names: set[str] = set()
    for match in _CAPITALISED_WORD_RE.finditer(text):
        name = match.group()
        if name not in _GIVEN_NAMES or name.lower() in lower_case_tokens:
            continue
        previous_name_match = _NAME_BEFORE_RE.search(
            text, max(0, match.start() - 30), match.start()
        )
        if _NAME_AFTER_RE.match(text, match.end()) or (
            previous_name_match and previous_name_match.group().strip() not in _NON_NAMES
        ):
            excluded_names.add(name)
        names[name] = None
    return tuple(name for name in names if name not in excluded_names)


def choose_new_names(text: str, rng: random.Random) -> Mapping[str, str] | None:
    """Choose for each person of a text another name of the same sex that the text does not contain.

    If the text names one person and has pronouns of one sex only, these decide; else the sex of the
    name.

    Returns
    -------
    mapping of str to str, or None
        One to one. None if the text has no known given name, or more people than there are names.
    """
    person_names = find_given_names(text)
    pronoun_flags = bool(_FEMALE_PRONOUN_RE.search(text)), bool(_MALE_PRONOUN_RE.search(text))
    used_names = set(re.findall(r"\b[A-Z][a-z]+\b", text))
    replacement_by_name: dict[str, str] = {}
    for name in person_names:
        is_female = (
            pronoun_flags[0]
            if len(person_names) == 1 and pronoun_flags[0] != pronoun_flags[1]
            else name in _FEMALE_NAMES
        )
        free_names = [
            candidate
            for candidate in (FEMALE_REPLACEMENT_NAMES if is_female else MALE_REPLACEMENT_NAMES)
            if candidate not in used_names
        ]
        if not free_names:
            return None
        replacement_by_name[name] = rng.choice(free_names)
        used_names.add(replacement_by_name[name])
    return replacement_by_name or None


def replace_names(text: str, replacement_by_name: Mapping[str, str]) -> str:
    """Replace names in a text, possessives too, all at once."""
    if not replacement_by_name:
        return text
    name_pattern = "|".join(sorted(map(re.escape, replacement_by_name), key=len, reverse=True))
    return re.sub(
        rf"(?<![\w'’-])(?:{name_pattern})(?![\w-])",
        lambda name_match: replacement_by_name[name_match.group()],
        text,
    )


def swap_name(text: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Replace one of the names in a text, at every occurrence, by another: a person by a person.

    None if the text has none of them, or there is no other.
    """
    present_names = [
        name for name in names if re.search(rf"(?<![\w'’-]){re.escape(name)}(?![\w-])", text)
    ]
    if not present_names or len(names) < 2:
        return None
    name = rng.choice(present_names)
    other_names = [
        candidate
        for candidate in names
        if candidate != name and not {*candidate.split()} & {*name.split()}
    ]
    same_kind_names = [
        candidate
        for candidate in other_names
        if (candidate in _GIVEN_NAMES) == (name in _GIVEN_NAMES)
    ]
    return replace_names(text, {name: rng.choice(same_kind_names)}) if same_kind_names else None
