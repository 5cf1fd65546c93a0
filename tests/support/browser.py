"""The label page in a real browser: the app on its own port, and raters who press keys."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
LISTEN = """
window.presses = [];
window.shown = () => document.querySelector('.desk-text > div')?.textContent ?? '';
// the label's id, once its item is painted
window.ready = () => document.querySelector('.desk')?.dataset.ready ?? '';
const note = (e) => window.presses.push(
  [e.key, Date.now() / 1000, window.shown(), window.ready() !== '']);
document.addEventListener('keydown', note, true);
"""
"""Records each key press with the question on the screen, and whether it was painted."""

DRAWN = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  if (app?.dataset.testScriptState !== 'notRunning') return false;
  // parts whose code is still being fetched, of a script that ran before, or that fade in or out
  const missing = '[data-testid=stSkeleton], [data-testid=stAppSkeleton], [data-stale=true]';
  if (document.querySelector(missing)) return false;
  return document.getAnimations().every((animation) => animation.playState !== 'running' ||
    animation.effect?.getComputedTiming().iterations === Infinity);
}"""
"""Whether the script has ended, every part of the page has come, and nothing fades."""
IDLE = """() => new Promise((done) =>
  requestIdleCallback(() => setTimeout(done, 300), {timeout: 5000}))"""
"""Ends once the browser has had time for what it was given; where something moves without end on a
busy machine it never has any, so after 5 s at the latest."""
STATE = """() => {
  const DRAWN = '.js-plotly-plot, [data-testid=stDataFrame]';  // as wide as there is room
  const texts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.textContent.trim());
    if (node.hidden || node.tagName === 'STYLE' || node.matches?.(DRAWN)) return;
    if (node.shadowRoot) walk(node.shadowRoot);
    for (const child of node.childNodes) walk(child);
  };
  const main = document.querySelector('[data-testid=stMain]');
  walk(main);
  const all = (selector) => [...main.querySelectorAll(selector)];
  return [
    ...all('[data-testid=stSelectbox] input, input[type=text]').map((e) => e.value),
    ...all('[role=slider]').map((e) => e.ariaValueNow),
    ...all('[role=tab][aria-selected=true]').map((e) => e.innerText),
    ...all('details[open] > summary').map((e) => e.innerText),
    ...texts.filter((text) => text),
  ];
}"""
"""What a reader sees of a page, text in components included."""


class Press(NamedTuple):
    """A key press as the browser recorded it."""

    key: str
    """The key."""
    at: float
    """Time of the press, in seconds."""
    shown: str
    """The question on the screen at that time."""
    painted: bool
    """Whether the question was painted already."""


@contextmanager
def serving(store: Path, log: Path, port: int | None = None) -> Iterator[str]:
    """Serve the app over ``store``, on this port or a free one, and kill it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = port or free.getsockname()[1]
    env = {**os.environ, "COTLAB_STORE": str(store)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
            cwd=ROOT,
            env=env,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{base}/_stcore/health", timeout=1).read()
                break
            except OSError:
                time.sleep(0.5)
        yield base
    finally:
        process.kill()
        process.wait(20)


def settle(page: Any) -> None:
    """Wait until the page's script has ended, all of it is drawn, and what is seen stays so."""
    page.wait_for_load_state("networkidle")  # the parts of the page that are loaded as needed
    seen = None
    for _ in range(100):
        page.evaluate(IDLE)
        page.wait_for_function(DRAWN, timeout=180_000)
        page.evaluate(IDLE)
        state = page.evaluate(STATE) if page.evaluate(DRAWN) else None
        if state is not None and state == seen:
            return
        seen = state
    raise AssertionError(f"{page.url} is drawn again and again")


class Rater:
    """One rater with their own browser."""

    def __init__(self, browser: Any, base: str, name: str, queue: str) -> None:
        self.page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        self.page.set_default_timeout(180_000)
        self.keys = ""
        self.page.add_init_script(LISTEN)
        self.page.goto(f"{base}/label?queue={queue}")
        self.enter(name)

    def enter(self, name: str) -> None:
        """Type the rater's name, where the page asks for it."""
        self.page.get_by_label("Your name", exact=True).fill(name)
        self.page.get_by_role("button", name="Begin").click()
        ready, same = (
            self.page.get_by_role("button", name=re.compile(f"^{word}"))
            for word in ("Acceptable", "I am ")
        )
        ready.or_(same).first.wait_for()
        if (
            same.count()
        ):  # who comes back within two minutes is asked whether they are who they were
            same.click()
        ready.wait_for()
        self.wait_for_another("")

    def shown(self) -> str:
        """Return the question on the screen."""
        return str(self.page.evaluate("shown()"))

    def wait_for_another(self, before: str) -> str:
        """Wait until the screen shows another question than ``before``, with its own keys."""
        self.page.wait_for_function(
            "before => shown() !== '' && shown() !== before", arg=before, polling=20
        )
        self.page.wait_for_function(
            "keys => ready() !== '' && ready() !== keys", arg=self.keys, polling=20
        )
        self.keys = str(self.page.evaluate("ready()"))
        return self.shown()

    def settle(self) -> None:
        """Wait until the server has confirmed all actions."""
        self.page.wait_for_function(
            "() => ['', 'Saved'].includes(document.querySelector('.desk-state').textContent)"
        )

    def press(self, key: str) -> None:
        """Press a key that brings another item, and wait for it."""
        before = self.shown()
        self.page.keyboard.press(key)
        self.wait_for_another(before)

    def give_last(self, key: str) -> None:
        """Press the key of the last item's verdict."""
        self.page.keyboard.press(key)
        self.page.wait_for_function("() => ready() === ''")
        self.settle()
        self.keys = ""

    def timed(self, key: str) -> float:
        """Press a key that brings another item, and return how many seconds that took."""
        began = time.monotonic()
        self.press(key)
        return time.monotonic() - began

    def close(self) -> None:
        """Close the rater's browser context."""
        self.page.context.close()

    def press_all(self, keys: Sequence[str], pauses_s: Sequence[float]) -> list[Press]:
        """Press keys without looking, each at its time, and return what the browser recorded."""
        self.page.evaluate("presses.length = 0")
        due = time.monotonic()
        for key, pause in zip(keys, pauses_s, strict=True):
            self.page.keyboard.press(key)
            due += pause
            time.sleep(max(0.0, due - time.monotonic()))
        return [Press(*noted) for noted in self.page.evaluate("presses")]


def keys_of(seed: int, n: int) -> list[str]:
    """Return random keys of verdicts."""
    draw = random.Random(seed)
    return [draw.choice("123") for _ in range(n)]
