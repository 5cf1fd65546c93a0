"""Where the texts and marks of a drawn SVG lie, as a browser lays them out."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

Point = tuple[float, float]

MEASURE = """
() => {
  const svg = document.querySelector('svg')
  const page = svg.getBoundingClientRect()
  const seen = node => {
    for (let n = node; n && n !== svg.parentNode; n = n.parentNode) {
      const style = getComputedStyle(n)
      if (style.display === 'none' || style.visibility === 'hidden' || style.opacity === '0')
        return false
    }
    return !node.closest('defs, clipPath, pattern')
  }
  const corners = node => {
    const b = node.getBBox(), m = node.getScreenCTM()
    const trim = 0.14 * Math.min(b.height, 40)
    return [[b.x, b.y + trim], [b.x + b.width, b.y + trim],
            [b.x + b.width, b.y + b.height - trim], [b.x, b.y + b.height - trim]]
      .map(([x, y]) => [m.a * x + m.c * y + m.e - page.x, m.b * x + m.d * y + m.f - page.y])
  }
  const inked = node => {
    const style = getComputedStyle(node)
    const filled = style.fill !== 'none' && Number(style.fillOpacity) > 0
    const stroked = style.stroke !== 'none' && Number(style.strokeOpacity) > 0
      && parseFloat(style.strokeWidth) > 0
    return filled || stroked
  }
  const texts = [...svg.querySelectorAll('text')]
    .filter(n => n.textContent.trim() && seen(n) && inked(n) && n.getBBox().width > 0)
    .map(n => ({text: n.textContent, corners: corners(n), family: getComputedStyle(n).fontFamily,
                size: parseFloat(getComputedStyle(n).fontSize)}))
  const marks = [...svg.querySelectorAll('path, line, rect, circle')]
    .filter(n => seen(n) && inked(n) && !n.closest('[clip-path]'))
    .map(n => n.getBoundingClientRect())
    .filter(b => b.width + b.height > 0)
    .map(b => [b.left - page.x, b.top - page.y, b.right - page.x, b.bottom - page.y])
  return {width: page.width, height: page.height, texts, marks}
}
"""
"""Texts with the corners of their boxes, turned as they are, and boxes of marks outside clips."""


class DrawnText(NamedTuple):
    """One text of a drawing."""

    text: str
    """The text."""
    corners: tuple[Point, ...]
    """Corners of its box, in order; the box is trimmed to letters without their leading."""


class DrawnInk(NamedTuple):
    """What a drawing shows."""

    width: float
    """Width of the page."""
    height: float
    """Height of the page."""
    texts: list[DrawnText]
    """Its texts."""
    marks: list[tuple[float, float, float, float]]
    """Left, top, right, bottom of the marks that no clip ends."""


def measure_ink(page: Any, svg: str) -> DrawnInk:
    """Return where the ink of an SVG lies on a page of playwright."""
    page.set_content(f'<body style="margin:0">{svg}</body>')
    found = page.evaluate(MEASURE)
    texts = [
        DrawnText(one["text"], tuple((x, y) for x, y in one["corners"])) for one in found["texts"]
    ]
    return DrawnInk(found["width"], found["height"], texts, [tuple(one) for one in found["marks"]])


def crossing_texts(ink: DrawnInk, slack: float = 0.75) -> list[tuple[str, str]]:
    """Return the pairs of texts that lie on each other by more than ``slack`` px."""
    return [
        (one.text, other.text)
        for one, other in combinations(ink.texts, 2)
        if _overlap(one.corners, other.corners) > slack
    ]


def ink_outside(ink: DrawnInk, slack: float = 0.75) -> list[str]:
    """Return the texts and marks that reach over the edge of the page."""
    found = []
    for text in ink.texts:
        xs, ys = [x for x, _ in text.corners], [y for _, y in text.corners]
        if not _within((min(xs), min(ys), max(xs), max(ys)), ink, slack):
            found.append(text.text)
    return [*found, *(f"mark at {box}" for box in ink.marks if not _within(box, ink, slack))]


def _within(box: tuple[float, float, float, float], ink: DrawnInk, slack: float) -> bool:
    left, top, right, bottom = box
    return (
        left >= -slack
        and top >= -slack
        and right <= ink.width + slack
        and bottom <= ink.height + slack
    )


def _overlap(one: tuple[Point, ...], other: tuple[Point, ...]) -> float:
    """Return the least depth by which two convex shapes lie on each other; 0 where they do not."""
    depths = []
    for shape in (one, other):
        for (x1, y1), (x2, y2) in zip(shape, (*shape[1:], shape[0]), strict=True):
            length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
            if not length:
                continue
            normal = ((y1 - y2) / length, (x2 - x1) / length)
            spans = []
            for corners in (one, other):
                along = [x * normal[0] + y * normal[1] for x, y in corners]
                spans.append((min(along), max(along)))
            depths.append(min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0]))
    return max(0.0, min(depths))
