"""The rules that are on rest on the verdicts that are listed."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from cotlab.text.flag_evidence import READINGS, SpanReading, chain_domain, off_reason
from cotlab.text.red_flags import RULES

VERDICTS = Path(__file__).parents[2] / "benchmarks" / "flag_verdicts.tsv"


def test_the_table_counts_the_verdicts() -> None:
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    read = Counter((row["rule"], row["domain"]) for row in rows)
    right = Counter((row["rule"], row["domain"]) for row in rows if row["right"] == "1")
    assert {key: SpanReading(read[key], right[key]) for key in read} == READINGS
    assert READINGS.keys() == {(rule, domain) for rule in RULES for domain in ("latex", "plain")}


def test_a_rule_needs_eight_of_ten_right_and_ten_spans() -> None:
    on = [key for key in READINGS if off_reason(*key) is None]
    assert on == [("premature_answer", "plain"), ("unit_inconsistency", "plain")]
    assert off_reason("premature_answer", "latex") == (
        "the rule is off for every latex chain, whatever it says: 5 of 5 spans read in latex text"
        " were right, and 10 are needed"
    )


def test_the_domain_is_declared_or_latex_by_a_command_or_dollar_signs() -> None:
    assert chain_domain("She pays $16 - $3 = $13.", ["That is $13."]) == "plain"
    assert chain_domain("How many?", ["7 + 5 = 12", r"\boxed{12}"]) == "latex"
    assert chain_domain("Solve $x^2 = 4$.", ["x = 2"]) == "latex"
    assert chain_domain(r"Solve \(x\).", [], "clinical") == "clinical"
