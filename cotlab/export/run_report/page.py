"""The report of a run as one self-contained page of HTML: no script, nothing that is loaded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from cotlab.analysis.report import provider_version
from cotlab.analysis.verdict.lamps import Lamp
from cotlab.analysis.verdict.stored import judge_run_once
from cotlab.analysis.verdict.verdicts import NOTHING_RULE, Mark, next_step_text
from cotlab.analysis.verdict.wording import Passage, noun_count, percent_number
from cotlab.analysis.view import RunView, run_view
from cotlab.core.text_safety import printable_line
from cotlab.export.html import html_page
from cotlab.export.run_report.figures import ReportFigure, position_table, report_figures
from cotlab.export.run_report.methods import join_sentences, limit_sentences, method_sentences
from cotlab.store.database import Store
from cotlab.store.run_names import MAX_RUN_NOTE_CHARACTERS

MAX_NAME_CHARS, MAX_SENTENCE_CHARS, MAX_READING_CHARS, MAX_METHOD_CHARS = 48, 420, 640, 1300
"""Longest name, sentence, text below the table, and description of the method; what is longer ends
with "…"."""
QUESTIONS = (
    "Does it read its chain?",
    "Does it say what moved it?",
    "Are its steps sound?",
)
"""The questions of the three lamps."""
_GREY = "#595959"
_MARK_COLOURS = {
    "yes": "#0072b2",
    "part": "#4d4d4d",
    "no": "#b04c00",
    "unknown": _GREY,
    "neutral": _GREY,
}
_MARK_NAMES = {
    "yes": "yes",
    "part": "in part",
    "no": "no",
    "unknown": "cannot say",
    "neutral": "no evidence for the chain",
}
_MARK_SHAPES = {
    "yes": '<circle cx="12" cy="12" r="9.5" fill="none" stroke="{c}" stroke-width="2.2"/>'
    '<path d="M7.4 12.4l3.2 3.2 6-6.6" fill="none" stroke="{c}" stroke-width="2.2"/>',
    "part": '<circle cx="12" cy="12" r="9.5" fill="none" stroke="{c}" stroke-width="2.2"/>'
    '<path d="M12 2.5a9.5 9.5 0 0 0 0 19z" fill="{c}"/>',
    "no": '<path d="M12 2.6L22.6 21H1.4z" fill="none" stroke="{c}" stroke-width="2.2"'
    ' stroke-linejoin="round"/><path d="M12 9v6M12 17v2" stroke="{c}" stroke-width="2.2"/>',
    "unknown": '<circle cx="12" cy="12" r="9.5" fill="none" stroke="{c}" stroke-width="2.2"/>'
    '<path d="M9 9.6a3 3 0 1 1 4.3 2.7c-.9.5-1.3 1-1.3 2M12 16.2v2" fill="none" stroke="{c}"'
    ' stroke-width="2.2"/>',
    "neutral": '<circle cx="12" cy="12" r="9.5" fill="none" stroke="{c}" stroke-width="2.2"/>'
    '<path d="M7.5 12h9" fill="none" stroke="{c}" stroke-width="2.2"/>',
}
_CSS = """
:root{color-scheme:light}*{box-sizing:border-box}
body{background:#e9e9e6;font-variant-numeric:tabular-nums;-webkit-print-color-adjust:exact;print-color-adjust:exact;
overflow-wrap:anywhere}
h1,h2,h3,p,figure{margin:0}svg{display:block}
.sheet{background:#fff;width:794px;min-height:1123px;margin:24px auto;padding:32px 44px 22px;
display:flex;flex-direction:column;box-shadow:0 1px 6px rgba(0,0,0,.18)}
header{display:flex;justify-content:space-between;gap:24px;color:#4d4d4d;padding-bottom:7px;
border-bottom:1px solid #1a1a1a}header b,.partial b{color:#1a1a1a}
footer span:last-child{text-align:right}
.partial{margin-top:8px;padding-left:8px;border-left:3px solid #b04c00}
.verdict{display:grid;grid-template-columns:34px 1fr;gap:12px;margin:14px 0 8px}
.verdict svg{margin-top:1px}h1{font-size:23px;line-height:1.25;margin-bottom:4px}
.verdict p{font-size:14px;line-height:1.45}
table{border-collapse:collapse;width:100%;font-size:12px;overflow-wrap:normal}
th:nth-child(2){min-width:124px}
th{font-weight:400;color:#4d4d4d;text-align:left;padding:4px 10px 4px 0;white-space:nowrap;
border-bottom:1px solid #d9d9d6}
td{padding:4px 10px 4px 0;vertical-align:top;border-bottom:1px solid #e8e8e5}
th[scope=row]{color:#1a1a1a;vertical-align:top;padding:4px 10px 4px 0;border-color:#e8e8e5}
.finding{display:flex;gap:5px}.finding svg{flex:none;margin-top:1px}
.num{text-align:right;white-space:nowrap}td.soft,.soft{color:#4d4d4d;font-size:11px}
td:last-child,th:last-child{padding-right:0}table+p{margin:5px 0 11px;font-size:11px}
.figures{display:grid;grid-template-columns:1fr 1fr;gap:10px 24px;margin-bottom:10px}
figcaption{min-height:46px;margin-bottom:4px}.missing{margin-top:4px}h3{font-size:12px;line-height:1.35}
.bare{min-height:0}
.shares{font-size:10.5px}.shares th,.shares td{padding:0 6px 0 0;border:0;line-height:14px;
vertical-align:middle;white-space:nowrap}.shares th{white-space:normal;min-width:0}
.legend{font-size:10.5px;margin-top:4px}.legend span{margin-right:10px}.legend svg{display:inline}
figcaption p{font-size:10.5px;line-height:1.3;color:#4d4d4d}
.missing{color:#4d4d4d;border-left:3px solid #d9d9d6;padding:4px 0 4px 9px;font-size:12px}
.texts{display:grid;grid-template-columns:1fr 1fr;gap:24px;font-size:11px;line-height:1.38}
h2{font-size:13px;margin-bottom:3px}ul{margin:0;padding-left:15px}
footer{margin-top:auto;padding-top:8px;font-size:10.5px;color:#4d4d4d;display:flex;
justify-content:space-between;gap:16px}.texts{padding-bottom:8px;
border-bottom:1px solid #d9d9d6;margin-bottom:0;flex:1 0 auto}
@media screen and (max-width:860px){.sheet{width:100%;margin:0;padding:26px 28px}}
@media screen and (max-width:560px){.figures,.texts{grid-template-columns:1fr}
table{display:block;overflow-x:auto}}
@page{size:A4;margin:0}
@media print{body{background:#fff}.sheet{width:auto;min-height:1116px;margin:0;box-shadow:none}
figure,tr,section{break-inside:avoid}}
"""


def report_html(store: Store, run_id: str) -> str:
    """Return the report of a stored run as a page that needs nothing beside it.

    Every text in it is escaped here.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    view = run_view(store, run_id)
    result = judge_run_once(view)
    evidence, verdict, note = result.evidence, result.verdict, view.partial_note
    positions = position_table(view, evidence)
    table = None if isinstance(positions, str) else positions
    is_unmeasured = verdict.rule == NOTHING_RULE
    methods = join_sentences(method_sentences(view, table, is_unmeasured=is_unmeasured))
    next_step, day = next_step_text(verdict, evidence), view.planned_at
    model, suite = (_escape(name, MAX_NAME_CHARS) for name in (evidence.model, view.suite_name))
    heading, date_text = f"{model} · {suite}", f"{day.day} {day:%B} {day.year}"
    elements = [
        f'<main class="sheet"><header><div><b>cotlab</b> report</div><div>{heading} ·'
        f" {noun_count(view.n_items, 'item')} · {_escape(date_text)}</div></header>",
        f'<p class="partial"><b>{_escape(note)}</b></p>' if note else "",
        '<section class="verdict">',
        _mark_svg(verdict.mark, 34),
        f"<div><h1>{_escape(verdict.headline, MAX_SENTENCE_CHARS)}</h1>",
        f"<p>{' '.join(''.join(map(_passage_html, text)) for text in verdict.sentences)}</p>",
        f"<p>Next: {_escape(next_step, MAX_SENTENCE_CHARS)}</p>" if next_step else "",
        "</div>",
        "</section>",
        *_table_elements(result.lamps),
        '<div class="figures">',
        *(
            _figure_html(number, figure, note)
            for number, figure in enumerate(report_figures(view, evidence, positions), start=1)
        ),
        '</div><div class="texts"><section><h2>How it was measured</h2>',
        f"<p>{_escape(methods, MAX_METHOD_CHARS)}</p></section>",
        "<section><h2>What it does not show</h2><ul>",
        *(
            f"<li>{_escape(limit, MAX_SENTENCE_CHARS)}</li>"
            for limit in limit_sentences(view, result, table)
        ),
        "</ul></section></div>",
        f'<p class="soft">Name: {_escape(view.name)}</p>' if view.name else "",
        f'<p class="soft">Note: {_escape(view.user_note, MAX_RUN_NOTE_CHARACTERS)}</p>'
        if view.user_note
        else "",
        f"<footer><span>{' · '.join(_escape(text, 40) for text in _versions(view))}</span>",
        "<span>every number leads to its requests: <code>cotlab app</code>,"
        f" {_escape(f'/run?run={quote(run_id)}', 80)}</span></footer></main>",
    ]
    body = "\n".join(element for element in elements if element)
    return html_page(f"{html.unescape(heading)} · cotlab report", body, _CSS)


def _versions(view: RunView) -> list[str]:
    """Return versions and digests."""
    digests = {
        "model": view.plan.subject.revision,
        "suite": view.suite,
        "plan": view.plan_digest,
    }
    return [
        f"cotlab {view.code_version}",
        provider_version(view.plan),
        *(f"{name} {(digest or 'n/a')[:12]}" for name, digest in digests.items()),
    ]


def _escape(text: str, max_chars: int = 200) -> str:
    line = printable_line(text)
    return html.escape(line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…")


def _mark_svg(mark: Mark, size: int) -> str:
    shape = _MARK_SHAPES[mark].format(c=_MARK_COLOURS[mark])
    return (
        f'<svg viewBox="0 0 24 24" width="{size}" height="{size}" role="img"'
        f' aria-label="{_MARK_NAMES[mark]}">{shape}</svg>'
    )


def _passage_html(passage: Passage) -> str:
    # blanks at the ends of a passage divide it from its neighbours
    text = _escape(passage.text, MAX_SENTENCE_CHARS)
    start, end = (" " if passage.text[i : i + 1 or None].isspace() else "" for i in (0, -1))
    return f"{start}<b>{text}</b>{end}" if passage.is_strong else f"{start}{text}{end}"


def _table_elements(lamps: Iterable[Lamp]) -> Iterator[str]:
    yield (
        '<table><thead><tr><th scope="col">Question</th><th scope="col">Finding</th>'
        '<th scope="col" class="num">%</th><th scope="col" class="num">95 % interval</th>'
        '<th scope="col" class="num">n items</th>'
        '<th scope="col">How well this is known to work</th></tr></thead><tbody>'
    )
    readings = []
    for question, lamp in zip(QUESTIONS, lamps, strict=True):
        point = interval = n = "n/a"
        if lamp.share is not None:
            share = lamp.share
            point, n = percent_number(share.point), f"{share.n:,}"
            interval = f"[{percent_number(share.lo)}, {percent_number(share.hi)}]"
            readings.append(f"{point} % {lamp.what}")
        yield (
            f'<tr><th scope="row">{question}</th><td><span class="finding">'
            f"{_mark_svg(lamp.mark, 14)}<span>{_escape(lamp.answer)}</span></span></td>"
            f'<td class="num">{point}</td><td class="num">{interval}</td>'
            f'<td class="num">{n}</td><td class="soft">{_escape(lamp.validation)}</td></tr>'
        )
    reading = f"{'. '.join(readings)}." if readings else "No share could be measured."
    yield f'</tbody></table><p class="soft">{_escape(reading, MAX_READING_CHARS)}</p>'


def _figure_html(number: int, figure: ReportFigure, partial_note: str) -> str:
    notes = "".join(
        f"<p>{_escape(note).replace('n = ', 'n&nbsp;=&nbsp;')}</p>"
        for note in (*figure.notes, *([partial_note] if partial_note and figure.drawing else []))
    )
    bare = "" if figure.drawing else ' class="bare"'
    caption = f"<figcaption{bare}><h3>{number} {_escape(figure.title)}</h3>{notes}</figcaption>"
    body = figure.drawing or (
        f'<p class="missing">Not measured: {_escape(figure.missing_reason)}.</p>'
    )
    return f"<figure>{caption}{body}</figure>"
