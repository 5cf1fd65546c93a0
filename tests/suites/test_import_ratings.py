"""Published judgements from CSV: what is read, and every defect by its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.core.errors import SuiteErrors
from cotlab.suites.import_ratings import AgreementCounts, StepRating, import_agreement, import_step_ratings

COUNTS = "hint_type,total,both_faithful,our_only_faithful,sonnet_only_faithful,both_unfaithful\n"
RATINGS = "ID,Question,segmented_cot,target_step_idx,dp,flip,dataset,model,rating\n"
GOOD = 'r1,"Is it so?","One, two.||Three.",1,-0.25,TRUE,d,m,Mostly Supportive\n'


def file(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "told.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_counts_of_two_classifiers(tmp_path: Path) -> None:
    found = import_agreement(file(tmp_path, COUNTS + "grader,10,4,3,2,1\n\n<b>x</b>,0,0,0,0,0\n"))
    assert found == (AgreementCounts("grader", 4, 3, 2, 1), AgreementCounts("<b>x</b>", 0, 0, 0, 0))
    assert found[0].table == ((4, 3), (2, 1))
    renamed = import_agreement(
        file(tmp_path, "g,a,b,c,d\nx,1,2,3,4\n"), group="g", both="a", first_only="b", second_only="c", neither="d"
    )
    assert renamed == (AgreementCounts("x", 1, 2, 3, 4),)


def test_ratings_of_steps(tmp_path: Path) -> None:
    (found,) = import_step_ratings(file(tmp_path, RATINGS + GOOD, "utf-8-sig"))
    assert isinstance(found, StepRating) and [s.text for s in found.steps] == ["One, two.", "Three."]
    assert (found.row_id, found.question, found.step, found.drop, found.flip) == ("r1", "Is it so?", 1, -0.25, True)
    assert (found.rating, found.dataset, found.model) == (3, "d", "m")
    (other,) = import_step_ratings(file(tmp_path, RATINGS + GOOD.replace("Mostly Supportive", "high")), scale=("low", "high"))
    assert other.rating == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["told.csv:1: hint_type: no such column"]),
        ("hint_type,both_faithful\n", ["our_only_faithful: no such column", "both_unfaithful: no such column"]),
        (COUNTS, ["told.csv: has no rows"]),
        (COUNTS + "a,9,1,2,-3,x\nb,9,1,2,3,4.5\n", [":2: sonnet_only_faithful: '-3' is no whole number", ":3: both_unf"]),
        (COUNTS + "a,1,1,0,0,0\na,1,1,0,0,0\n", [":3: hint_type: 'a' stands twice"]),
        (COUNTS + "a,1,1\n", [":2: 3 cells under 6 columns"]),
        (COUNTS + 'a,1,"1,0,0,0\n', ["is not CSV"]),
        (COUNTS + "a,1,٣,0,0,0\n", ["is no whole number"]),
        (COUNTS + f"a,1,{'9' * 5000},0,0,0\n", ["…' is no whole number"]),
    ],
)
def test_every_defect_of_counts_is_named(text: str, told: list[str], tmp_path: Path) -> None:
    with pytest.raises(SuiteErrors) as caught:
        import_agreement(file(tmp_path, text))
    assert all(line in str(caught.value) for line in told), str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",1,-0.25", ",2,-0.25", ":2: target_step_idx: step 2 of a chain of 2 steps, counted from 0"),
        ("-0.25", "nan", ":2: dp: 'nan' is no difference of two probabilities"),
        ("-0.25", "1.5", ":2: dp: '1.5' is no difference of two probabilities"),
        ("TRUE", "maybe", ":2: flip: 'maybe' is neither TRUE nor FALSE"),
        ("Mostly Supportive", "\x1b[31mgood", ":2: rating: '\\\\x1b[31mgood' is not on the scale"),
    ],
)
def test_every_defect_of_ratings_is_named(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteErrors) as caught:
        import_step_ratings(file(tmp_path, RATINGS + GOOD.replace(old, new)))
    assert told in str(caught.value)


def test_what_is_no_table(tmp_path: Path) -> None:
    for read in (import_agreement, import_step_ratings):
        with pytest.raises(SuiteErrors, match="UTF-8"):
            read(file(tmp_path, COUNTS + "é,1,1,0,0,0\n", "latin-1"))
        with pytest.raises(SuiteErrors, match="no such file"):
            read(tmp_path / "absent.csv")
