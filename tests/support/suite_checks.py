"""Checks of shipped suites: an evaluator, equations in running text, likeness of prompts."""

from __future__ import annotations

import ast
import math
import re
from fractions import Fraction

# A small evaluator for the "check" expressions

MAX_EXPONENT = 1000


def _power(base, exponent):
    if abs(exponent) > MAX_EXPONENT:
        raise ValueError("exponent too large")
    return base**exponent


def _sqrt(value):
    if value == int(value) and math.isqrt(int(value)) ** 2 == value:
        return math.isqrt(int(value))
    return math.sqrt(value)


OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
}
FUNCTIONS = {
    "comb": math.comb,
    "factorial": math.factorial,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "isqrt": math.isqrt,
    "sum": sum,
    "min": min,
    "max": max,
    "Fraction": Fraction,
    "sqrt": _sqrt,
    "round": round,
    "len": len,
    "sorted": sorted,
}


def evaluate(expression: str):
    """The value of an arithmetic expression; anything outside the allow-list is refused."""

    def index(node: ast.expr | None):
        if node is None:
            return None
        value = visit(node)
        if not isinstance(value, int):
            raise TypeError("index must be a whole number")
        return value

    def visit(node: ast.AST):
        match node:
            case ast.Expression(body=body):
                return visit(body)
            case ast.Constant(value=bool() | None):
                raise ValueError("only numbers and strings are constants")
            case ast.Constant(value=int() | str() as value):
                return value
            case ast.Constant(value=float() as value):
                return Fraction(str(value))
            case ast.List(elts=elements):
                return [visit(element) for element in elements]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -visit(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                a, b = visit(left), visit(right)
                if not all(isinstance(value, (int, float, Fraction)) for value in (a, b)):
                    raise ValueError("operators take numbers only")
                return OPERATORS[type(op)](a, b)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*[visit(arg) for arg in args])
            case ast.Subscript(value=value, slice=ast.Slice(lower=lo, upper=hi, step=step)):
                return visit(value)[index(lo) : index(hi) : index(step)]
            case ast.Subscript(value=value, slice=position):
                return visit(value)[index(position)]
        raise ValueError(f"not allowed in a check: {ast.dump(node)}")

    return visit(ast.parse(expression, mode="eval"))


def agrees(value, ground_truth: str) -> bool:
    if isinstance(value, str):
        return value == ground_truth
    try:
        expected = Fraction(ground_truth)
    except ValueError:
        return False
    if isinstance(value, float):
        return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)
    return value == expected


# Equations stated in running text

SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "^": "@"})
RUN = re.compile(r"[0-9.+\-*/@()= ]+")


def equations(text: str) -> list[list[str]]:
    """Chains like ["3*12", "36"] stated in a text; sides broken by letters are left out."""
    found = []
    for sentence in re.split(r"[.,;:?!]+(?=\s|$)", text):
        plain = sentence.translate(SIGNS)
        for run in RUN.finditer(plain):
            if "=" not in run.group():
                continue
            sides = [side.strip() for side in run.group().split("=")]
            before, after = plain[: run.start()], plain[run.end() :]
            if before and sides[0] and (sides[0][0] in "+-*/@)" or not run.group().startswith(" ")):
                sides = sides[1:]  # the tail of something like "2x + 3"
            if after and sides[-1] and (sides[-1][-1] in "+-*/@(" or not run.group().endswith(" ")):
                sides = sides[:-1]  # the head of something like "3x"
            sides = [side.replace("@", "**") for side in sides if side]
            if len(sides) > 1 and any(re.search(r"\d\s*[-+*/]", side) for side in sides):
                found.append(sides)
    return found


def holds(sides: list[str]) -> bool:
    return len({Fraction(evaluate(side)) for side in sides}) == 1


# Likeness of prompts


def trigrams(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    if len(words) < 3:
        return frozenset([tuple(words)])
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def template(text: str) -> str:
    """The prompt with its numbers and its names (capitals inside a sentence) blanked."""
    text = re.sub(r"\d+(?:[.:/]\d+)*", "#", text)
    text = re.sub(r"(?<=[a-z,;] )[A-Z]\w*(?: [A-Z]\w*)*", "@", text)
    return " ".join(text.lower().split())
