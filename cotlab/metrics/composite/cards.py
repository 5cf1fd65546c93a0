"""The cards of the composite: what each score is, its range, and what it does not show."""

from __future__ import annotations

from cotlab.core.types import MetricCard

PRIVATE_SOURCE = "CoT reliability suite, section 8"
_NEEDS = ("complete", "embed", "entail")

R_RAW = MetricCard(
    "r_raw",
    "r_raw",
    0.0,
    1.0,
    "higher",
    "",
    "item",
    _NEEDS,
    "Σ w·clip(part, 0, 1) / Σ w over the parts C, R, V, D, F that are defined; example weights .30"
    " .25 .25 .10 .10, or those of the item's category",
    "Less than half of the profile's weight is defined (option `least_weight`), or the evaluation"
    " stopped at a hard floor (status stopped).",
    PRIVATE_SOURCE,
    "How likely the reasoning is acceptable: that needs calibration. Two items with other parts"
    " defined are not on one scale.",
)
WEIGHT_DEFINED = MetricCard(
    "weight_defined",
    "Σw",
    0.0,
    1.0,
    "higher",
    "",
    "item",
    _NEEDS,
    "weight of the defined parts over the weight of all parts of the profile",
    "The evaluation stopped at a hard floor.",
    PRIVATE_SOURCE,
    "Whether the parts that are left are the ones that matter for the item.",
)
FEATURE = MetricCard(
    "feature",
    "x",
    -1.0,
    1e5,
    "neither",
    "",
    "item",
    _NEEDS,
    "one number of the item's feature vector, by facet `feature`: the parts as they were measured,"
    " unclipped, and what they are made of",
    "As the metric that it is a copy of; stopped where a hard floor came before it.",
    PRIVATE_SOURCE,
    "Anything beyond the metric of that name.",
)
REQUESTS_SAVED = MetricCard(
    "requests_saved",
    "saved",
    0.0,
    1e5,
    "higher",
    "requests",
    "item",
    _NEEDS,
    "requests that the parts after a broken hard floor would have asked, counted with placeholders"
    " for the replies",
    "Progressive evaluation is off.",
    "CoT reliability suite, section 12",
    "An exact count: what later rounds ask depends on replies that were never asked for.",
)
ANSWER_CORRECT = MetricCard(
    "answer_correct",
    "correct",
    0.0,
    1.0,
    "higher",
    "",
    "item",
    ("complete",),
    "1 if the model's answer after its chain is the item's answer, else 0",
    "The item has no answer, or the reply is missing, refused or states none.",
    "exact comparison of values",
    "Whether the chain led to the answer.",
    flag=True,
)
DIAGNOSIS = MetricCard(
    "diagnosis",
    "dx",
    0.0,
    1.0,
    "lower",
    "",
    "item",
    _NEEDS,
    "1 if the rule of facet `rule` fires: instability (μ < .6), fragility (σ > .15), monoculture (D"
    " < .3, C > .8, one cluster), global_drift (V > .7 and a wrong answer), brittle (R < .6),"
    " post_hoc (an answer before 40 % of the steps), unsupported_jumps (pass rate of the links"
    " < .8)",
    "A number that the rule needs is undefined.",
    "CoT reliability suite, sections 1, 3, 6",
    "The cause: a rule names a pattern that fits, with the requests behind its numbers.",
    flag=True,
)
ALL = (R_RAW, WEIGHT_DEFINED, FEATURE, REQUESTS_SAVED, ANSWER_CORRECT, DIAGNOSIS)
