"""Find the names in a text and rename its people."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence


def _word_tuple(listed: str) -> tuple[str, ...]:
    """Split a string of words."""
    return tuple(listed.split())


SHE = _word_tuple("Ann Eva Lily Zoe Mia Ida Nora Ruth")
HE = _word_tuple("Bob Max Sam Leo Ben Jack Paul Otto")
"""New names for people."""
_WOMEN = frozenset(SHE) | frozenset(
    _word_tuple(
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
_MEN = frozenset(HE) | frozenset(
    _word_tuple(
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
_PEOPLE = _WOMEN | _MEN
_NOT_NAMES = frozenset(
    _word_tuple(
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
_CAPITAL = re.compile(r"(?<![\w'’-])[A-Z][a-zà-öø-ÿ]+(?: [A-Z][a-zà-öø-ÿ]+)*(?![\w-])")
# "Ann" and "Ann" of "Ann's"
_PERSON = re.compile(r"(?<![\w'’-])[A-Z][a-z]+(?![\w-])")
_NAME_BEFORE = re.compile(r"[A-Z][a-z]+ $")  # "James " of "James Cook"
_NAME_AFTER = re.compile(r" [A-Z][a-zA-Z]*\b")  # " Cook" of "James Cook"
# "s " before a word within a sentence
_MID = re.compile(r"[\w,][ ]$")
_FEMALE = re.compile(r"\b(?:she|hers?|herself)\b", re.IGNORECASE)  # "she", "her"
_MALE = re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE)  # "he", "his"


def names_in(*texts: str) -> tuple[str, ...]:
    """Return the names of people and things, each once, in order of appearance.

    A name is a known given name, or capitalised words within a sentence that do not begin with a
    function word, a month or a weekday. A word that also occurs in lower case is no name.
    """
    plain = {word for text in texts for word in re.findall(r"\b[a-zà-öø-ÿ]+\b", text)}
    names: dict[str, None] = {}
    for text in texts:
        for word in _CAPITAL.finditer(text):
            components, inside = (
                word.group().split(),
                bool(_MID.search(text, max(0, word.start() - 2), word.start())),
            )
            while components and components[0] in _NOT_NAMES:
                components, inside = components[1:], True
            if (
                components
                and (inside or components[0] in _PEOPLE)
                and not {part.lower() for part in components} & plain
            ):
                names[" ".join(components)] = None
    return tuple(names)


def people_in(text: str) -> tuple[str, ...]:
    """Return the given names that stand alone, in order of appearance.

    Not "James" of "James Cook", nor a name that is also a word of the text.
    """
    plain = set(re.findall(r"\b[a-z]+\b", text))
    names: dict[str, None] = {}
    barred: set[str] = set()
    for word in _PERSON.finditer(text):
        name = word.group()
        if name not in _PEOPLE or name.lower() in plain:
            continue
        before = _NAME_BEFORE.search(text, max(0, word.start() - 30), word.start())
        if _NAME_AFTER.match(text, word.end()) or (
            before and before.group().strip() not in _NOT_NAMES
        ):
            barred.add(name)
        names[name] = None
    return tuple(name for name in names if name not in barred)


def new_names(text: str, rng: random.Random) -> Mapping[str, str] | None:
    """Choose for each person of a text another name of the same sex that the text does not contain.

    If the text names one person and has pronouns of one sex only, these decide; else the sex of the
    name.

    Returns
    -------
    mapping of str to str, or None
        One to one. None if the text has no known given name, or more people than there are names.
    """
    people = people_in(text)
    pronouns = bool(_FEMALE.search(text)), bool(_MALE.search(text))
    used = set(re.findall(r"\b[A-Z][a-z]+\b", text))
    replacements: dict[str, str] = {}
    for name in people:
        female = pronouns[0] if len(people) == 1 and pronouns[0] != pronouns[1] else name in _WOMEN
        free = [other for other in (SHE if female else HE) if other not in used]
        if not free:
            return None
        replacements[name] = rng.choice(free)
        used.add(replacements[name])
    return replacements or None


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Replace names in a text, possessives too, all at once."""
    if not names:
        return text
    listed = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w'’-])(?:{listed})(?![\w-])", lambda word: names[word.group()], text)


def swapped_name(text: str, names: Sequence[str], rng: random.Random) -> str | None:
    """Replace one of the names in a text, at every occurrence, by another: a person by a person.

    None if the text has none of them, or there is no other.
    """
    present = [
        name for name in names if re.search(rf"(?<![\w'’-]){re.escape(name)}(?![\w-])", text)
    ]
    if not present or len(names) < 2:
        return None
    name = rng.choice(present)
    others = [
        candidate
        for candidate in names
        if candidate != name and not {*candidate.split()} & {*name.split()}
    ]
    alike = [candidate for candidate in others if (candidate in _PEOPLE) == (name in _PEOPLE)]
    return renamed(text, {name: rng.choice(alike)}) if alike else None
