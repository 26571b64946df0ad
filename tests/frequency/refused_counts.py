"""Calls that tallies, estimates and variances refuse: a table for each."""

from __future__ import annotations

from tests.frequency.calls import (
    Case,
    each,
    refused,
)

from turnout.errors import (
    CorruptDataError,
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    TurnoutError,
)

TALLIES = [
    *refused(
        InvalidTypeError,
        ("ORACLE.tally(None)", "reports must be a Reports.* None"),
        ("ORACLE.tally([0, 1])", r"reports must be a Reports.*\[0, 1\]"),
        ("ORACLE.tally(TALLY)", "reports must be a Reports"),
        ("tn.Tally(None, [1, 1, 1], 3, 3)", "plan must be a Plan, got None"),
        ("tn.Tally(ORACLE, [1, 1, 1], 3, 3)", "plan must be a Plan, got Direct"),
        ("tn.Tally(PLAN, [1, 1, 1], None, 3)", "received must .* None"),
        ("tn.Tally(PLAN, [1, 1, 1], 3.0, 3)", r"received must .* 3\.0"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, None)", "nodes must .* None"),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights='x', design=DesignSums(0, 0))",
            "weights must be a WeightedSums object, got 'x'",
        ),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights=weights(3), design='x')",
            "design must be a DesignSums object, got 'x'",
        ),
        ("TALLY.merge(None)", "other must be a Tally, got None"),
        ("TALLY.merge(REPORTS)", "other must be a Tally, got Reports"),
        ("tn.Tally.from_bytes(None)", "data must be bytes, got NoneType"),
        ("tn.Tally.from_bytes('x')", "data must be bytes, got str"),
        ("tn.Reports.concatenate(None)", "pieces must be .* None"),
        ("tn.Reports.concatenate(REPORTS)", "pieces must be an iterable"),
        ("tn.Reports.concatenate([[0]])", r"pieces\[0\] must be a Reports"),
        ("tn.Reports(None, HALF, [0], 1)", "oracle must be an oracle.* None"),
        ("tn.Reports(ORACLE, None, [0], 1)", "participation must be .* None"),
        ("tn.Reports(ORACLE, HALF, None, 1)", r"codes must be one-dim.* shape \(\)"),
        ("tn.Reports(ORACLE, HALF, [0], None)", "nodes must .* None"),
        ("tn.Plan(None, None)", "oracle must be an oracle, got None"),
        ("tn.Plan.from_json(None)", "text must be the JSON text of a plan.* None"),
    ),
    *refused(
        PlanMismatchError,
        (
            "tn.DirectEncoding(2.0, 3).tally(REPORTS)",
            r"reports was made under another plan: epsilon 1\.0 instead of 2\.0",
        ),
        ("NAMED.tally(REPORTS)", "domain .*from_integers.* instead of"),
        (
            "TALLY.merge(EMPTY)",
            r"other was made .*: participation Everyone\(\) instead of Bernoulli\(0\.5\)",
        ),
        ("TALLY + PERSONAL", "other was made under another plan"),
    ),
    *refused(
        InvalidValueError,
        ("tn.Tally(PLAN, [1, 1, 1], -3, 3)", "received must .* -3"),
        ("tn.Tally(PLAN, [1, 1, 1], 4, 3)", "received must .* to 3, got 4"),
        ("tn.Tally(PLAN, [1, 1, 1], 2, 3)", "support must add up to the 2 .* 3"),
        (
            "tn.Tally(tn.Plan(ORACLE, tn.Everyone()), [1, 1, 1], 3, 4)",
            "received must equal nodes = 4 when everyone takes part, got 3",
        ),
        ("tn.Tally(PLAN, [0, 0, 0], 0, -1)", "nodes must .* -1"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, 2**64)", "nodes must .* 184467440737"),
        ("tn.Tally(PLAN, [1, 1, 1], 3, 10**5000)", "nodes must .* a int"),
        (
            "tn.Tally(PLAN, [1, 1, 1], 3, 3, weights=weights(3))",
            "weights and design must be given if and only if participation is personal",
        ),
        ("tn.Tally(OWN_PLAN, [1, 1, 1], 3, 3)", "weights and design must"),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 0, weights=weights(2), design=DesignSums(0, 0))",
            "weights must have 3 codes as the domain has, got 2",
        ),
        (
            "tn.Tally(OWN_PLAN, [1, 0, 0], 1, 1, weights=weights(3), design=CERTAIN)",
            "weights do not fit support at code 0: 1 reports",
        ),
        (
            "tn.Tally(OWN_PLAN, [0, 0, 0], 0, 1, weights=weights(3), design=DesignSums(2**65, 1))",
            "design must be sums over 1 nodes",
        ),
        ("tn.Reports.concatenate([])", "pieces must hold at least one"),
    ),
    *refused(
        CorruptDataError,
        ("tn.Tally.from_bytes(b'')", "not a tally of turnout"),
        ("tn.Tally.from_bytes(TALLY.to_bytes()[:-1])", "truncated or was altered"),
        ("tn.Plan.from_dict(None)", "not a plan of turnout: its format is not 'turnout-plan'"),
    ),
]

ESTIMATES = [
    *refused(
        EstimatorError,
        ("EMPTY.estimate()", "tally has no nodes"),
        (
            "tn.Tally(PLAN, [0, 0, 0], 0, 5).estimate()",
            "nothing can be estimated: no reports were received",
        ),
        ("PERSONAL.estimate('g')", "'g' needs one participation rate"),
        ("PERSONAL.estimate('c_hat')", "'c_hat' needs one partic"),
        ("TALLY.estimate('c').interval()", "no interval around 'c' covers"),
        (
            "PERSONAL.estimate().interval(method='score')",
            "'hajek' with personal probabilities has no score interval",
        ),
    ),
    *refused(
        InvalidValueError,
        *each(
            "TALLY.estimate(_)",
            *("None", "'Hajek'", "''", "1", "['hajek']", "{}", "np.array([1, 2])", "tn.Tally"),
            pattern="method must be one of 'hajek', 'horvitz_thompson', .*, got",
        ),
        *each(
            "ESTIMATE.interval(_)",
            *("0", "1", "-0.5", "1.5", "95", "NAN", "INF"),
            pattern="level must be a level between 0 and 1, got",
        ),
        ("ESTIMATE.interval(method='wald')", "method must be one of 'auto'"),
        ("ESTIMATE.interval(method=None)", "method must be .* got None"),
        (
            "ESTIMATE.interval(simultaneous='both')",
            "simultaneous must be one of None, 'bonferroni', 'sidak', got 'both'",
        ),
        ("ESTIMATE.interval(simultaneous=True)", "simultaneous .* True"),
        ("INTERVAL.contains([0.5, 0.5])", r"truth must .*\(2,\)"),
        ("ESTIMATE.project(None)", "method must be one of 'none', .* None"),
        ("ESTIMATE.project('clip')", "'clip_normalize', got 'clip'"),
        ("ESTIMATE.project(np.array([1, 2]))", r"got array\(\[1, 2\]\)"),
        ("ESTIMATE.distance([0.5, 0.5])", r"reference must .*\(2,\)"),
        ("ESTIMATE.distance([0.5, NAN, 0])", r"reference\[1\] must be finite"),
        (
            "ESTIMATE.distance(NAMED.collect(['a', 'b'], seed=1).estimate())",
            r"reference must be of the same domain Domain\.from_integers\(3\), got Domain\(\['a'",
        ),
        ("ESTIMATE.distance([1, 0, 0], 'tv')", "metric must be one of 'total"),
        ("ESTIMATE.distance([1, 0, 0], None)", "metric must .* None"),
        ("ESTIMATE.distance([1, 1, -1], 'kl')", "'kl' is defined for dist"),
        ("ESTIMATE.to_records(2)", "level must be a level .* 2"),
        ("TALLY.estimate('c').to_records(2)", "level must be"),
        ("ESTIMATE.plot([0.5, 0.5])", r"truth must have one number .*\(2,\)"),
        ("ESTIMATE.plot([0.5, NAN, 0.5])", r"truth\[1\] must be finite"),
        ("ESTIMATE.plot(level=95)", r"level must be a level .* 95\.0"),
        ("TALLY.estimate('c').plot(level=95)", "level must be"),
    ),
    *refused(
        InvalidTypeError,
        *each(
            "ESTIMATE.interval(_)",
            *("None", "'0.95'", "True", "[0.95]"),
            pattern="level must be a real number, got",
        ),
        ("INTERVAL.contains('x')", "truth must be .*one number .* 'x'"),
        ("INTERVAL.contains([[1], [2, 3]])", "truth must be .* a sequence of 3"),
        ("ESTIMATE.distance(['1', '0', '0'])", "reference must hold real"),
        ("ESTIMATE.distance([1j, 0, 0])", "reference .*complex128"),
        ("ESTIMATE.plot(ax='axes')", "ax must be matplotlib axes, got 'axes'"),
    ),
]

VARIANCES = [
    *refused(
        InvalidTypeError,
        ("variance(oracle=None)", "oracle must be a randomizer, got None"),
        ("variance(participation='half')", r"participation .* 'half'"),
    ),
    *refused(
        InvalidValueError,
        ("variance(method=None)", "method must be one of .* None"),
        ("variance(true_counts=None)", "exactly one of true_counts"),
        ("variance(values=[0])", "exactly one of true_counts and values"),
        ("variance(true_counts=[0, 0, 0])", "at least one node"),
        (
            "variance(participation=tn.Personalized([0.5]))",
            "values and the probabilities of all nodes are needed",
        ),
        (
            "variance(participation=tn.Personalized([0.5]), true_counts=None, values=[0, 1])",
            "participation must have one probability for each of the 2 values, got 1",
        ),
        (
            "variance(participation=ONE, true_counts=None, values=[0], method='g')",
            "method must be one that takes personal probabilities .* got 'g'",
        ),
    ),
]

COUNTS: list[tuple[str, type[TurnoutError], str]] = [
    ("None", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("5", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("'abc'", InvalidTypeError, r"one count for each of the 3 .*\(\)"),
    ("[1, 2]", InvalidValueError, r"one count for each of the 3 .*\(2,\)"),
    ("[1, 2, 3, 4]", InvalidValueError, r"one count for each of the 3 .*\(4,\)"),
    ("[[1, 2, 3]]", InvalidTypeError, r"one count for each of the 3 .*\(1, 3\)"),
    ("[[1], [2, 3], 4]", InvalidTypeError, r"sequence of 3 counts, got \[\[1\], \["),
    ("[1, -2, 3]", InvalidValueError, r"\[1\] must be a non-negative whole .* -2"),
    ("[1, 0.5, 3]", InvalidValueError, r"\[1\] must be a non-negative whole .* 0\.5"),
    ("[1, 2, NAN]", InvalidValueError, r"\[2\] must be a non-negative whole .* nan"),
    ("[INF, 2, 3]", InvalidValueError, r"\[0\] must be a non-negative whole .* inf"),
    ("[1, 2**64, 3]", InvalidValueError, rf"\[1\] must be .* got {2**64}"),
    ("[1, 2**70, 3]", InvalidValueError, rf"\[1\] must be .* got {2**70}"),
    ("np.array([1, INF, 3], np.float16)", InvalidValueError, r"\[1\] must be .* inf"),
    ("['1', '2', '3']", InvalidTypeError, "must hold whole numbers, got dtype <U1"),
    ("[True, False, True]", InvalidTypeError, "must hold whole numbers, got dtype bool"),
    ("[1, None, 3]", InvalidTypeError, r"\[1\] must be .* got None"),
    ("[1j, 2, 3]", InvalidTypeError, "must hold whole numbers, got dtype complex128"),
]


def of_all_counts() -> list[Case]:
    """The same of every call that takes a count for each code."""
    calls = {
        "ORACLE.simulate(_)": "true_counts",
        "variance(true_counts=_)": "true_counts",
        "tn.Tally(PLAN, _, 6, 6)": "sums",
    }
    return [
        (call.replace("_)", f"{counts})").replace("_,", f"{counts},"), error, f"^{name}.*{pattern}")
        for call, name in calls.items()
        for counts, error, pattern in COUNTS
        if (call, counts) != ("variance(true_counts=_)", "None")
    ]
