"""Draw spans that the textual rules of F flag in published chains, and count the verdicts on them.

``flag_verdicts.tsv`` beside this file has a line for each span read by hand: whether the rule
is right. ``python benchmarks/flag_spans.py DATA`` prints rule, domain, spans, spans read and right;
with ``--spans RULE DOMAIN`` it prints the spans, drawn by a seed, to be read.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from cotlab.text.flag_evidence import DOMAINS, chain_domain
from cotlab.text.red_flags import RULES, find_flags
from cotlab.text.steps import split_steps

SEED = 49
MAX_READ = 50
VERDICTS = Path(__file__).with_name("flag_verdicts.tsv")
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


class Span(NamedTuple):
    """A flagged span of a published chain."""

    source: str
    """Data set and item."""
    step_index: int
    """Index of the step."""
    start: int
    """First character in the step."""
    end: int
    """Character after the last."""
    text: str
    """The span between what stands before and after it."""


def published_chains(data: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield source, question and steps of the published chains."""
    for path in sorted((data / "processbench").glob("*.json")):
        for row in json.loads(path.read_text("utf-8")):
            yield row["id"], row["problem"], tuple(row["steps"])
    lines = (data / "gsm8k" / "example_model_solutions.jsonl").read_text("utf-8").splitlines()
    for i, line in enumerate(lines):
        row = json.loads(line)
        for model in MODELS:
            solution = re.sub(r"<<[^<>]*>>", "", row[model]["solution"])
            yield f"gsm8k-{model}-{i}", row["question"], split_steps(solution)
    for path in sorted((data / "big_bench_mistake").glob("*.jsonl")):
        for i, line in enumerate(path.read_text("utf-8").splitlines()):
            row = json.loads(line)
            yield f"{path.stem}-{i}", row["input"], tuple(row["steps"])
    for path in sorted((data / "unfaithful_sdf").glob("comparison_*.json")):
        results = json.loads(path.read_text("utf-8"))["results"]
        for kind in ("base_responses", "finetuned_responses"):
            for i, reply in enumerate(results[kind]):
                name = f"sdf-{path.stem.rpartition('_')[2]}-{kind.partition('_')[0]}-{i}"
                yield name, results["prompts"][i], split_steps(reply)


def draw_spans(data: Path) -> Mapping[tuple[str, str], list[Span]]:
    """Return the distinct spans of each rule and domain, in the order in which they are read."""
    spans: dict[tuple[str, str], dict[str, Span]] = {
        (rule, domain): {} for rule in RULES for domain in DOMAINS
    }
    for source, question, steps in published_chains(data):
        domain = chain_domain(question, steps)
        for flag in find_flags(question, steps):
            step = steps[flag.step_index]
            before, after = step[max(0, flag.start - 140) : flag.start], step[flag.end :][:80]
            text = f"{before}>>{step[flag.start : flag.end]}<<{after} | {flag.reason}"
            span = Span(source, flag.step_index, flag.start, flag.end, text)
            spans[flag.rule, domain].setdefault(text, span)
    drawn = {}
    for key, span_by_text in spans.items():
        drawn[key] = list(span_by_text.values())
        random.Random(f"{SEED} {key}").shuffle(drawn[key])
    return drawn


def read_verdicts() -> dict[tuple[str, str, str, int, int, int], bool]:
    """Return the verdict on each span that was read."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return {
            (
                row["rule"],
                row["domain"],
                row["source"],
                int(row["step"]),
                int(row["start"]),
                int(row["end"]),
            ): row["right"] == "1"
            for row in csv.DictReader(file, delimiter="\t")
        }


def main() -> None:
    """Print the counts, or the spans of one rule and domain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--spans", nargs=2, metavar=("RULE", "DOMAIN"))
    arguments = parser.parse_args()
    drawn = draw_spans(arguments.data)
    if arguments.spans:
        for span in drawn[tuple(arguments.spans)][:MAX_READ]:
            print(*span[:4], " ".join(span.text.split()), sep="\t")
        return
    verdicts = read_verdicts()
    for (rule, domain), spans in drawn.items():
        sample = [(rule, domain, *span[:4]) for span in spans[:MAX_READ]]
        counts = Counter(verdicts.get(key) for key in sample)
        print(rule, domain, len(spans), counts[True] + counts[False], counts[True], sep="\t")


if __name__ == "__main__":
    main()
