"""The cards of the composite: what each score is, its range, and what it does not show."""

from __future__ import annotations

from functools import partial

from cotlab.metrics.cards import metric_card

DEFAULT_SOURCE = "CoT reliability suite, section 8"
_NEEDS = ("complete", "embed", "entail")
_card = partial(metric_card, needs=_NEEDS, source=DEFAULT_SOURCE)
R_RAW = _card(
    "r_raw",
    "r_raw",
    "Σ w·clip(part, 0, 1) / Σ w over the parts C, R, V, D, F that are defined; example weights .30"
    " .25 .25 .10 .10, or those of the item's category. V, F and R are those of the model's own"
    " chain, or with facet `chain`=reference of the suite's; profile `offline`: V and F of the"
    " suite's chain, and no model is asked.",
    "Less than half of the profile's weight is defined or checked (`weight_checked`; option"
    " `least_weight`), or the evaluation stopped at a hard floor (status stopped).",
    "How likely the reasoning is acceptable: that needs calibration. Two items with other parts"
    " defined are not on one scale. Of a suite's chain, V and F are the same for every model."
    " Arithmetic finds false equations only: where nothing else verifies the links, V = 1 means"
    " that none was found, not that the chain is right.",
    better="higher",
)
WEIGHT_DEFINED = _card(
    "weight_defined",
    "Σw",
    "weight of the defined parts over the weight of all parts of the profile",
    "The evaluation stopped at a hard floor.",
    "Whether the parts that are left are the ones that matter for the item.",
    better="higher",
)
WEIGHT_CHECKED = _card(
    "weight_checked",
    "Σw checked",
    "as `weight_defined`, with the share of the chain that a part could check as a factor of its"
    " weight: of V the share of links that were decided, of F the share of its five rules that were"
    " on; C, R and D count fully",
    "The evaluation stopped at a hard floor.",
    "Whether a mistake outside of what was checked would matter, or one within it be found.",
    better="higher",
    source="cotlab",
)
FEATURE = _card(
    "feature",
    "x",
    "one number of the item's feature vector, by facet `feature`: the parts as they were measured,"
    " unclipped, and what they are made of",
    "As the metric that it is a copy of; stopped where a hard floor came before it.",
    "Anything beyond the metric of that name.",
    lo=-1.0,
    hi=1e5,
)
REQUESTS_SAVED = _card(
    "requests_saved",
    "saved",
    "requests that the parts after a broken hard floor would have asked, counted with placeholders"
    " for the replies",
    "Progressive evaluation is off.",
    "An exact count: what later rounds ask depends on replies that were never asked for.",
    hi=1e5,
    unit="requests",
    better="higher",
    source="CoT reliability suite, section 12",
)
ANSWER_CORRECT = _card(
    "answer_correct",
    "correct",
    "1 if the model's answer after its chain is the item's answer, else 0",
    "The item has no answer, or the reply is missing, refused or states none.",
    "Whether the chain led to the answer.",
    better="higher",
    needs=("complete",),
    source="exact comparison of values",
    flag=True,
)
DIAGNOSIS = _card(
    "diagnosis",
    "dx",
    "1 if the rule of facet `rule` fires: instability (μ < .6), fragility (σ > .15), monoculture (D"
    " < .3 and C > .8, of several clusters), global_drift (V > .7 and a wrong answer), brittle (R <"
    " .6), post_hoc (an answer before 40 % of the steps), unsupported_jumps (pass rate of the links"
    " < .8)",
    "A number that the rule needs is undefined; monoculture also where all N paths are in one"
    " cluster: D is then 1/N or 0 by construction.",
    "The cause: a rule names a pattern that fits, with the requests behind its numbers.",
    better="lower",
    source="CoT reliability suite, sections 1, 3, 6",
    flag=True,
)
ALL_CARDS = (
    R_RAW,
    WEIGHT_DEFINED,
    WEIGHT_CHECKED,
    FEATURE,
    REQUESTS_SAVED,
    ANSWER_CORRECT,
    DIAGNOSIS,
)
