"""``cotlab search``: find a text in questions, chains and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import typer

from cotlab.cli.options import JsonOption


def search_command(
    text: Annotated[str, typer.Argument(help="The text; upper and lower case are the same.")],
    run: Annotated[
        Optional[str],
        typer.Option(help="Only in this run (default: all that are not archived)."),
    ] = None,
    answer: Annotated[
        Optional[Literal["right", "wrong"]],
        typer.Option(help="Only items whose answer to the unchanged chain is so."),
    ] = None,
    flipped: Annotated[
        Optional[Literal["yes", "no"]],
        typer.Option(help="Only items whose answer a changed step changed, or none."),
    ] = None,
    category: Annotated[Optional[str], typer.Option(help="Only items of this category.")] = None,
    full_word: Annotated[
        bool, typer.Option("--full-word", help="Whole words only, not parts of longer ones.")
    ] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Search archived runs too.")] = False,
    page: Annotated[int, typer.Option(min=1, help="Which page of 50 hits.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Find a text in the questions, the chains and the stored replies of runs."""
    import json

    from cotlab.core.text_safety import printable_line
    from cotlab.store import read
    from cotlab.store.database import Store
    from cotlab.store.search import HITS_PER_PAGE, SearchQuery, hit_passage, search_texts

    store = Store()
    if run is not None:
        read.get_run(store, run)
    choices: dict[str, Any] = {"run": run, "answer": answer, "flipped": flipped}
    query = SearchQuery(text, **choices, category=category, full_word=full_word, archived=archived)
    result = search_texts(store, query, offset=(page - 1) * HITS_PER_PAGE)
    if as_json:
        document = {
            "query": query._asdict(),
            "n_hits": result.n_hits,
            "page": page,
            "hits": [hit._asdict() for hit in result.hits],
        }
        print(json.dumps(document, indent=1, ensure_ascii=False))
        return
    for hit in result.hits:
        part_text = hit.part if hit.step is None else f"{hit.part}, step {hit.step + 1}"
        before, match, after = hit_passage(hit, query, 60)
        print(f"{printable_line(f'{hit.run} · {hit.item_id} · {part_text}')}")
        print(f"    {before}[{match}]{after}")
    n_pages = -(-result.n_hits // HITS_PER_PAGE)
    pages_text = f", page {page} of {n_pages}" if n_pages > 1 else ""
    print(f"{result.n_hits:,} hit{'' if result.n_hits == 1 else 's'}{pages_text}")
