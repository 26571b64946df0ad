"""The guarantee of a collection in plain words, and numbers in readable form."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from turnout._label_texts import number_of
from turnout.bounds import Bounds
from turnout.collecting.left_out import LeftOut
from turnout.collecting.plan import Plan
from turnout.frequency.longitudinal import Memoized

#: How people write the names of the ways to hold many intervals at once.
METHODS = {"bonferroni": "Bonferroni", "sidak": "Šidák"}


def rounded_up(value: Fraction | float, digits: int = 3) -> str:
    """Format a bound with some significant digits, rounded up.

    Of a float the shortest text that reads as it counts, which is what people read and type.

    Examples
    --------
    >>> rounded_up(2.71828), rounded_up(Fraction(3)), rounded_up(123456.7), rounded_up(0.1)
    ('2.72', '3', '124,000', '0.1')
    """
    exact = written(value) if isinstance(value, float) else Fraction(value)
    if exact <= 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(exact))
    step = Fraction(10) ** -places
    bound = math.ceil(exact / step) * step
    if bound.denominator == 1:
        return f"{bound.numerator:,}"
    return f"{float(bound):.{places}f}".rstrip("0")


def number(value: float) -> str:
    """Format a number with exactly the digits that it has.

    Examples
    --------
    >>> number(1.0), number(0.25)
    ('1', '0.25')
    """
    return repr(float(value)).removesuffix(".0")


def percent(share: float, digits: int | None = None) -> str:
    """Format a share as a percentage.

    Examples
    --------
    >>> percent(0.25), percent(-0.00001, 1)
    ('25 %', '0.0 %')
    """
    if digits is None:
        return f"{100 * share:.6g} %"
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(100 * share, digits) + 0.0:.{digits}f} %"


def file_size(amount: float) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> file_size(12), file_size(12_345), file_size(10**15)
    ('12 bytes', '12.3 kB', '1.0 PB')
    >>> file_size(1 / 8)
    '1 byte'
    """
    if amount < 1000:
        return number_of(math.ceil(amount), "byte")
    units = ["kB", "MB", "GB", "TB", "PB", "EB"]
    amount /= 1000
    while amount >= 999.95 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def isolated(label: str) -> str:
    """Keep a label that is written from right to left from reordering the words around it.

    Examples
    --------
    >>> isolated("often"), len(isolated("\u05dc\u05d0"))
    ('often', 4)
    """
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in label):
        return f"\u2068{label}\u2069"
    return label


def digits_for(standard_error: float) -> int:
    """Return the decimals of a percentage that show two significant digits of the error.

    Examples
    --------
    >>> digits_for(0.02), digits_for(0.0002)
    (1, 3)
    """
    if not (math.isfinite(standard_error) and standard_error > 0):
        return 2
    return min(max(1 - math.floor(math.log10(100 * standard_error)), 1), 6)


def participation(plan: Plan) -> str:
    """Describe who takes part."""
    rate = plan.participation.uniform_rate
    if rate is None:
        return "each person with a probability of their own"
    if plan.oracle.silent:
        return "by the answer, which ε counts"
    return "everyone" if rate == 1.0 else f"{percent(rate)} of the people, at random"


def left_out(numbers: LeftOut, *, always: bool = False) -> list[tuple[str, str]]:
    """Return the table row of what is left out; nothing if it is empty, unless ``always``.

    Examples
    --------
    >>> left_out(LeftOut(unanswered=1200)), left_out(LeftOut())
    ([('left out', '1,200 without an answer')], [])
    """
    return [("left out", str(numbers))] if numbers or always else []


def epsilon_of_one(plan: Plan) -> float:
    """Return the epsilon of a single report.

    That is what was asked for; of permanent answers, whose epsilon is that of all reports of an
    unchanged answer, what one report has.

    Examples
    --------
    >>> import turnout as tn
    >>> kept = tn.Memoized(tn.DirectEncoding(2.0, 3), first_epsilon=1.5)
    >>> round(epsilon_of_one(tn.Plan(kept, tn.Everyone())), 4)
    1.5
    """
    epsilon: float = plan.oracle.epsilon if plan.oracle.fresh else plan.oracle.realized_epsilon
    return epsilon


def epsilon_together(plan: Plan, times: int) -> Fraction:
    """Bound the epsilon of all reports of a person who reports this many times.

    Whatever the answers are, and whenever they change.

    Examples
    --------
    >>> import turnout as tn
    >>> float(epsilon_together(tn.Plan(tn.DirectEncoding(0.5, 3), tn.Everyone()), 4))
    2.0
    """
    if isinstance(plan.oracle, Memoized):
        return Fraction(plan.oracle.spent_by_reports(times))
    return times * written(plan.oracle.epsilon)


def kept_answers(plan: Plan, times: int) -> str | None:
    """Return the cost of permanent answers: one report, an unchanged answer, and all.

    Examples
    --------
    >>> import turnout as tn
    >>> kept = tn.Memoized(tn.DirectEncoding(2.0, 3), first_epsilon=1.5)
    >>> kept_answers(tn.Plan(kept, tn.Everyone()), 1)
    'ε = 1.5 for one report, ε = 2 for all reports of an answer that stays the same'
    """
    oracle = plan.oracle
    if not isinstance(oracle, Memoized):
        return None
    parts = [
        f"ε = {rounded_up(epsilon_of_one(plan), 4)} for one report",
        f"ε = {rounded_up(oracle.lifetime_epsilon, 4)} for all reports of an answer that stays the "
        "same",
    ]
    if times > 1:
        together = rounded_up(epsilon_together(plan, times), 4)
        parts.append(f"ε = {together} for {times:,} reports whose answers may change at any time")
    return ", ".join(parts)


def written(value: float) -> Fraction:
    """Return the shortest decimal that reads as the float: what was typed.

    Examples
    --------
    >>> written(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


def guarantee(plan: Plan, groups: tuple[str, ...] = (), times: int = 1) -> list[str]:
    """Return statements of what the reports protect and what they do not protect.

    Parameters
    ----------
    plan
        The oracle and the participation.
    groups
        The names of the columns of the groups.
    times
        The number of times that the same people may have been asked.
    """
    ratio = plan.oracle.realized_ratio
    odds = rounded_up(ratio, 4)
    wins = rounded_up(100 * ratio / (1 + ratio), 3)
    statements = [
        "Every answer was randomized before it became a report. Whatever a person answered, no "
        f"report is more than {odds} times as likely as under another answer "
        f"(ε = {rounded_up(epsilon_of_one(plan), 4)}).",
        "As a bet: somebody thinks that two possible answers of a person are equally likely. "
        f"Once they see the person's report, their odds are at most {odds} to 1. They won a bet "
        f"on the answer 50 times in 100 before, and now win it at most {wins} times in 100. "
        "This holds for any computing power and whatever else they know about the person.",
    ]
    if plan.oracle.silent:
        statements.append(
            "Whether a person reports depends on the answer, so a report says something, and so "
            f"does silence. Neither is more than {odds} times as likely under one answer as "
            "under another: ε covers both."
        )
    elif plan.participation.uniform_rate != 1.0:
        statements.append(
            "Somebody who sees which people report learns that they took part. Against such an "
            "observer the participation rate adds no protection beyond ε; it saves reports."
        )
    else:
        statements.append(
            "The plan asks everyone to report. If people decide for themselves whether to report, "
            "that choice may say something about them, and ε does not cover it."
        )
    if groups:
        columns = ", ".join(groups)
        statements.append(
            f"The columns of the groups ({columns}) are not randomized: everybody who holds the "
            "report files sees the group of each report. Small groups have wide intervals. Their "
            "answers are protected like all others."
        )
    kept = kept_answers(plan, times)
    if kept is not None:
        statements.append(
            "Each person keeps a permanent answer, and all their reports are made from it. All "
            f"reports of a person together are bounded by {kept}. Enough reports show that an "
            "answer changed, and when."
        )
    elif times > 1:
        together = rounded_up(epsilon_together(plan, times), 4)
        statements.append(
            f"The same people may have been asked at each of the {times:,} times. A person who "
            f"reports every time is protected by ε = {together} in total; a person who reports "
            "less often spends no more than that."
        )
    again = "The guarantee covers one report. A person who answers again, in this collection"
    if kept is not None:
        again = "The guarantee covers this question. A person who answers another one"
    statements.append(
        f"{again} {'or in another, ' if kept is None else ''}is protected by the sum of the ε of "
        f"{'their reports' if kept is None else 'both'}."
    )
    return statements


#: Numbers with more decimals, and larger ones, are written with an exponent.
_MOST_DECIMALS, _LARGEST = 8, 1e15


def span(bounds: Bounds) -> str:
    """Return the range of the possible numbers in words.

    Examples
    --------
    >>> span(Bounds(0, 24)), span(Bounds(-0.5, 10_000.0, dimensions=3))
    ('from 0 to 24', '3 of each person, from -0.5 to 10000')
    """
    several = f"{bounds.dimensions:,} of each person, " if bounds.dimensions > 1 else ""
    return f"{several}from {number(bounds.low)} to {number(bounds.high)}"


def decimals(errors: Iterable[float]) -> int | None:
    """Return the decimals that show two digits of every error; None for exponents.

    Examples
    --------
    >>> decimals([0.031, 2.0]), decimals([250.0]), decimals([math.nan]), decimals([1e-30])
    (3, 0, 2, None)
    """
    least = min((error for error in errors if math.isfinite(error) and error > 0), default=0.1)
    needed = max(0, 1 - math.floor(math.log10(least)))
    return needed if needed <= _MOST_DECIMALS else None


def rounded(value: float, digits: int | None) -> str:
    """Format a number with this many decimals.

    Examples
    --------
    >>> rounded(7.4321, 2), rounded(-0.001, 1), rounded(1e20, 2), rounded(1.5e-20, None)
    ('7.43', '0.0', '1e+20', '1.5e-20')
    """
    if digits is None or abs(value) >= _LARGEST:
        return f"{value:.6g}"
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def limits(low: float | None, high: float | None, digits: int | None) -> str:
    """Format an interval.

    Examples
    --------
    >>> limits(7.31, 7.49, 1), limits(None, None, 1)
    ('7.3 – 7.5', 'none')
    """
    if low is None or high is None:
        return "none"
    return f"{rounded(low, digits)} – {rounded(high, digits)}"
