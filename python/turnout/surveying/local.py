"""Randomize the answers to several questions of the same people, and count them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from turnout._rounding import rounded_down
from turnout._seeds import derived
from turnout._types import Array, Integers
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.plan import Plan
from turnout.frequency.draws import participants, weighted_choices
from turnout.pipeline.in_memory import Columns
from turnout.surveying.questions import Asked, Question


@dataclass(frozen=True)
class Scheme:
    """How several questions share what a person may tell.

    Attributes
    ----------
    sampled
        Whether each person answers one question, drawn at random, with the whole epsilon; else all
        of them, each with its part.
    epsilon
        The epsilon of each answer.
    asked
        Who answers each question.
    gain
        How many times as large the error of the other way is; 1 of one question.
    """

    sampled: bool
    epsilon: float
    asked: Asked
    gain: float


def best_scheme(questions: Sequence[Question], epsilon: float, nodes: int, rate: float) -> Scheme:
    """Choose the way of smaller error.

    The error is the root of the mean over the questions of their mean squared errors, of shares and
    of parts of a range; the epsilons of a person's answers add up to what was asked for.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.surveying.questions import SharesOf
    >>> both = [SharesOf(tn.Domain(["no", "yes"])), SharesOf(tn.Domain(range(50)))]
    >>> best_scheme(both, 1.0, 10_000, 1.0).sampled, best_scheme(both, 12.0, 10_000, 1.0).sampled
    (True, False)
    """
    number = len(questions)
    whole = Asked(rate)
    if number == 1:
        return Scheme(sampled=False, epsilon=epsilon, asked=whole, gain=1.0)
    one = Asked(rate, Fraction(1, number))
    part = part_of(epsilon, number)
    sampled = float(np.mean([each.variance(epsilon, nodes, one) for each in questions]))
    split = float(np.mean([each.variance(part, nodes, whole) for each in questions]))
    if sampled <= split:
        return Scheme(sampled=True, epsilon=epsilon, asked=one, gain=(split / sampled) ** 0.5)
    return Scheme(sampled=False, epsilon=part, asked=whole, gain=(sampled / split) ** 0.5)


def part_of(epsilon: float, number: int) -> float:
    """Give each of several answers its part, so that the parts never add up to more.

    Examples
    --------
    >>> part_of(2.0, 2), 3 * Fraction(part_of(0.1, 3)) <= Fraction(0.1)
    (1.0, True)
    """
    return rounded_down(Fraction(epsilon) / number)


def counted(
    questions: Sequence[Question],
    columns: Columns,
    scheme: Scheme,
    names: tuple[str, ...],
    seed: int | None,
) -> Iterator[tuple[Question, Any, Any]]:
    """Randomize and count question by question.

    Parameters
    ----------
    questions, columns
        What was asked, and the answers.
    scheme
        How the questions share what a person may tell.
    names
        The columns of the groups.
    seed
        For tests and simulations only.

    Yields
    ------
    tuple
        The question, how its answers were randomized, and the tally, or those of all groups.
    """
    # Who takes part is drawn once: the same people report of every question.
    present = participants(scheme.asked.within, columns.groups.size, derived(seed, 3))
    chosen: Array | None = None
    if scheme.sampled:
        chosen = weighted_choices([1] * len(questions), present.size, derived(seed, 0))
    sizes = np.bincount(columns.groups, minlength=len(columns.keys)).tolist()
    for place, (question, answers) in enumerate(zip(questions, columns.codes, strict=True)):
        randomizer = question.randomizer(scheme.epsilon)
        who = present if chosen is None else present[chosen == place]
        codes = question.prepared(answers[who], derived(seed, 1, place))
        tallies = {
            key: question.tally(
                randomizer, codes[part], size, scheme.asked, derived(seed, 2, place, number)
            )
            for number, (key, size, part) in enumerate(
                zip(columns.keys, sizes, _parts(columns.groups[who], len(sizes)), strict=True)
            )
        }
        if names:
            plan = Plan(randomizer, scheme.asked.overall)
            yield question, randomizer, GroupedTally(names, tallies, plan=plan)
        else:
            yield question, randomizer, tallies[()]


def _parts(groups: Integers, number: int) -> list[Array]:
    """List the positions of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups, minlength=number))[:-1])
