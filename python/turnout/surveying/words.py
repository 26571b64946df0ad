"""The description of a survey in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.left_out import LeftOut
from turnout.frequency.ordered import HierarchicalCollection
from turnout.mean.mechanism import mechanisms_of
from turnout.pipeline import Answers
from turnout.pipeline.sources.files import rows_of_files
from turnout.products import questions_of
from turnout.surveying.local import Question, Scheme, SpreadOf
from turnout.surveying.numbers import NumberEstimate

#: Where counting by aggregators that do not collude has an error so many times smaller, it is said.
_FAR_BETTER: Final = 3.0


def _through(randomizer: Any) -> str:
    if isinstance(randomizer, HierarchicalCollection):
        return f"a histogram of {randomizer.domain.size:,} points"
    return str(randomizer.name.replace("_", " "))


def _times(ratio: Fraction) -> str:
    # Never less than it is.
    return f"{math.ceil(ratio * 1000) / 1000:,.3f}"


def statement(
    asked: str, randomizer: Any, epsilon: float, *, nodes: int, received: int
) -> tuple[str, ...]:
    """Describe the survey of one column, and the meaning of epsilon."""
    return (
        f"{nodes:,} people have an answer in {asked} and {received:,} reported, each through "
        f"{_through(randomizer)} at epsilon {epsilon!r}.",
        "Whatever a person answered, no report is more than "
        f"{_times(randomizer.realized_ratio)} times as likely as under another answer. This "
        "protects against anybody who sees the reports but not the table.",
    )


def statement_of_all(
    names: Sequence[str],
    nodes: int,
    received: Sequence[int],
    scheme: Scheme,
    ratios: Sequence[Fraction],
) -> tuple[str, ...]:
    """Describe how several columns were surveyed, and the meaning of epsilon."""
    asked = ", ".join(map(repr, names))
    ratio = Fraction(1)
    if scheme.sampled:
        people, ratio = sum(received), max(ratios)
        how = (
            f"reported one of them, drawn at random, at epsilon {scheme.epsilon!r}: reports of "
            "all, each with its part of epsilon, would have an error"
        )
    else:
        # The same people report of each column.
        people, ratio = received[0], math.prod(ratios, start=ratio)
        how = (
            f"reported each of them at epsilon {scheme.epsilon!r}, which add up: one report of "
            "each person, with the whole epsilon, would have an error"
        )
    return (
        f"{nodes:,} people have answers in {asked}, and {people:,} {how} {scheme.gain:.3g} "
        "times as large.",
        f"Whatever a person answered to all, what is reported is not more than {_times(ratio)} "
        "times as likely as under other answers. This protects against anybody who sees the "
        "reports but not the table.",
    )


def in_one_process(mechanism: Any) -> str:
    """State what one process saw that ran all roles of a round."""
    return (
        "All parties ran in this process, which saw the answers. Among machines that do not see "
        f"them, {mechanism._among_machines}."
    )


def about_seed(seed: int | None) -> Iterator[str]:
    """Warn that a seed undoes the noise."""
    if seed is not None:
        yield (
            "Made with a seed: use for tests only, because anyone who knows the seed "
            "can remove the noise."
        )


def about_labels(question: Question) -> Iterator[str]:
    """State that labels were taken from the data, and what is odd about them."""
    if question.labels_of_data:
        several = questions_of(question.domain)
        which = f"labels of {', '.join(several)}" if several else f"{question.domain.size:,} labels"
        yield (
            f"The {which} come from the data and are treated as public; labels (--labels) "
            "states them."
        )
    yield from question.cautions


def statement_of_left_out(answers: Answers, nodes: int, left_out: LeftOut) -> Iterator[str]:
    """State the number of rows, how many are left out, and whom the results are about."""
    files = answers.source.file_rows
    there = rows_of_files(files) if files else f"{nodes + left_out.total:,} rows were read"
    if left_out:
        yield f"{there}. Left out: {left_out}. What follows is about the other {nodes:,}."
    elif answers._drops:
        yield f"{there}, and none is left out."
    elif files:
        yield f"{there}."


def about_left_out(left_out: LeftOut) -> Iterator[str]:
    """State that this number is not protected."""
    if left_out.people:
        yield "How many are left out is counted exactly: who left it open is not protected."


def about_histogram(estimate: Any, question: Question, scheme: Scheme) -> Iterator[str]:
    """State that mean and quantiles share all reports, and the gain for the mean alone."""
    if isinstance(estimate, NumberEstimate):
        alone = mechanisms_of(scheme.epsilon, question.domain)[0].worst_variance
        alone = math.sqrt(alone / max(estimate.tally.received, 1))
        yield (
            "Mean and quantiles come from one histogram, which all reports are of: the mean alone "
            f"(no quantiles; --mean) would have an error of at most {alone:.2g} in place of "
            f"{estimate.mean.standard_error:.2g}."
        )
    elif isinstance(question, SpreadOf):
        yield "Mean and quantiles come from one histogram, which all reports are of."


def about_aggregators(estimate: Any, tally: Any, epsilon: float) -> Iterator[str]:
    """State whether an owner of all answers would have a far smaller error in another way."""
    if not tally.nodes or not hasattr(estimate, "frequencies"):
        return
    each: Iterable[Any] = tally.values() if isinstance(tally, GroupedTally) else [tally]
    nodes = np.array([one.nodes for one in each if one.received], float)
    error = math.sqrt(float(np.nanmean(np.asarray(estimate.standard_errors) ** 2)))
    # Discrete Laplace noise for counts of which a person changes two.
    central = 8.0**0.5 / epsilon * math.sqrt(float(np.mean(nodes**-2.0)))
    if error >= _FAR_BETTER * central:
        yield (
            "An owner of all answers, or aggregators that do not collude, would count with an "
            f"error of about {100 * central:.2g} points in place of {100 * error:.2g}: trust "
            "'aggregators' (--trust aggregators) does."
        )
