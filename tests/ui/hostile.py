"""A store whose every text attacks: ids, questions, chains, answers, categories, replies, tags, names of suite and model."""

from __future__ import annotations

import json
from pathlib import Path

import cotlab
from cotlab.core.types import Item, Step, Suite
from cotlab.store.gate import Store

HOST = "evil.example"
SCRIPT = "<script>window.hacked=1</script>"
IMAGE = f"<img src=x onerror=window.hacked=1><img src=//{HOST}/i.png>"
LINKS = f"[x](https://{HOST}/a) ![x](https://{HOST}/b.png) <https://{HOST}/c> https://{HOST}/d www.{HOST}/e a@{HOST}"
TAGGED = f'<a href="https://{HOST}/f">x</a><b>bold</b><br>'
WORDS = "**bold** :red[no] :material/home: $\\frac{1}{2}$ `code` # h | a | b |"
SQL = "'; DROP TABLE runs; --"
ALL = " ".join((SCRIPT, IMAGE, LINKS, TAGGED, WORDS, SQL, "\u202e"))
RAW = ("<script", "<img", "<a href", "](https:", f"://{HOST}", f"www.{HOST}", f"a@{HOST}", ":material/home:", ":red[")
"""What no Markdown of a page may hold as it is. (Words as_code escapes differ from these in every case.)"""
FORMULAS = ("=HYPERLINK(\"https://evil.example\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1")


def suite() -> Suite:
    """Questions with attacks in every field, each attack in front once so that nothing cut off hides it."""
    fronts = (SCRIPT, IMAGE, LINKS, TAGGED, WORDS, FORMULAS[0])
    items = [
        Item(
            f"{front} i{i}", f"{front} {ALL} What is 1 + {i}?",
            f"{front} {1 + i}",
            (Step(0, f"{front} {ALL} so 1 + {i} = {1 + i}."), Step(1, f"{ALL} The answer is {1 + i}.")),
            f"{front} c{i % 2}", {"x": ALL},
        )
        for i, front in enumerate(fronts)
    ]  # fmt: skip
    return Suite.of(f"{SCRIPT}{LINKS}", items)


def filled(folder: Path, *scorers: str) -> list[str]:
    """Two runs on that suite, whose model and tags attack too, in a store; their ids."""
    store = Store(folder)
    found = []
    for i, chain in enumerate(("reference", "own")):
        done = cotlab.run_suite(
            suite(), store=folder, provider="echo", model="echo", scorer=list(scorers), chain=chain,
            tag={f"{SCRIPT}{i}": ALL},
        )  # fmt: skip
        found.append(done.run_id)
    with store.writing() as connection:
        for run, plan in connection.execute("SELECT id, plan FROM runs").fetchall():
            told = json.loads(plan)
            told["models"]["subject"]["name"] = f"{IMAGE}{LINKS}"
            connection.execute(
                "UPDATE runs SET plan = ?, model = ?, note = ? WHERE id = ?", [json.dumps(told), f"{IMAGE}{LINKS}", ALL, run]
            )
    return found
