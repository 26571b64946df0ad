"""Questions of a survey, and how their answers are randomized and counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from turnout._rounding import rounded_down
from turnout._seeds import derived
from turnout._types import Array, Integers
from turnout.bounds import Bounds
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import common_rate
from turnout.collecting.reports import Reports
from turnout.collecting.variance import estimator_variance
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.draws import participants, weighted_choices
from turnout.frequency.joint import JointTable
from turnout.mean.mechanism import mechanisms_of
from turnout.participation import Bernoulli, Everyone, Participation
from turnout.pipeline import Answers
from turnout.pipeline.found import FoundAnswers
from turnout.pipeline.in_memory import Columns, read_columns
from turnout.planning.choice import choose_oracle
from turnout.products import ProductDomain
from turnout.surveying.numbers import Grid, NumberEstimate, NumberGroups


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """The question that a column answers (base class).

    Attributes
    ----------
    domain
        What can be answered, as the column is read.
    labels_of_data
        Whether the labels are those of the data: then the result says so.
    cautions
        What a reader should know of these.
    """

    domain: Any
    labels_of_data: bool = False
    cautions: tuple[str, ...] = ()

    @abstractmethod
    def randomizer(self, epsilon: float) -> Any:
        """Choose the way to randomize answers that has the least error."""

    @abstractmethod
    def variance(self, epsilon: float, nodes: int, overall: Participation) -> float:
        """Return the mean squared error of a share, or of the mean relative to the range."""

    def prepared(self, codes: Array, seed: int | None) -> Array:
        """Convert the values that were read to values for randomization."""
        return codes

    def tally(
        self,
        randomizer: Any,
        codes: Array,
        nodes: int,
        overall: Participation,
        seed: int | None,
        *,
        left_out: LeftOut,
    ) -> Any:
        """Randomize and count the answers of participants whom the question concerns."""
        drawn = randomizer.draw_reports(codes, Everyone(), seed)
        return randomizer.tally(
            Reports(randomizer, overall, drawn.reports, nodes, left_out=left_out)
        )

    def estimate(self, tally: Any, method: str) -> Any:
        """Estimate from a tally, or from that of all groups."""
        return tally.estimate(method)

    def columns(self, name: str) -> Mapping[str, Domain | Bounds]:
        """Return the columns to read, with the possible answers in each."""
        return {name: self.domain}

    def asked(self, name: str) -> str:
        """Name the question for people."""
        return repr(name)


@dataclass(frozen=True, kw_only=True)
class SharesOf(Question):
    """A question about the share of each answer."""

    domain: Domain

    def randomizer(self, epsilon: float) -> Any:
        """Choose the oracle of least error."""
        return choose_oracle(epsilon, self.domain).oracle

    def variance(self, epsilon: float, nodes: int, overall: Participation) -> float:
        """Return the mean variance over the answers, if all are equally frequent."""
        counts = np.full(self.domain.size, max(nodes // self.domain.size, 1), np.uint64)
        variances = estimator_variance(self.randomizer(epsilon), overall, true_counts=counts)
        return float(variances.mean()) / int(counts.sum()) ** 2


@dataclass(frozen=True, kw_only=True)
class SharesTogether(SharesOf):
    """A question about the share of each combination of answers to several questions."""

    domain: ProductDomain

    def randomizer(self, epsilon: float) -> Any:
        """Create the joint table, with the oracle of least error."""
        return JointTable(epsilon, self.domain)

    def columns(self, name: str) -> Mapping[str, Domain | Bounds]:
        """Return the columns to read, with the possible answers in each."""
        return self.domain.columns

    def asked(self, name: str) -> str:
        """Name the questions."""
        return f"{', '.join(map(repr, self.domain.columns))} together"


@dataclass(frozen=True, kw_only=True)
class MeanOf(Question):
    """A question about the mean of a number."""

    domain: Bounds

    def randomizer(self, epsilon: float) -> Any:
        """Choose the mechanism with the smaller worst-case variance."""
        return mechanisms_of(epsilon, self.domain)[0]

    def variance(self, epsilon: float, nodes: int, overall: Participation) -> float:
        """Return the worst-case variance of the mean, relative to the range."""
        reports = max(nodes * common_rate(overall), 1.0)
        worst: float = mechanisms_of(epsilon, self.domain)[0].worst_variance
        return worst / (2 * self.domain._half) ** 2 / reports


@dataclass(frozen=True, kw_only=True)
class SpreadOf(MeanOf):
    """A question about the mean and quantiles of a number, from one histogram.

    Attributes
    ----------
    grid
        The points of the histogram.
    probabilities
        The quantiles that are listed.
    """

    grid: Grid
    probabilities: tuple[float, ...]

    def randomizer(self, epsilon: float) -> Any:
        """Create the histogram."""
        return self.grid.collection(epsilon)

    def prepared(self, codes: Array, seed: int | None) -> Array:
        """Move numbers to points."""
        return self.grid.codes(codes, seed)

    def estimate(self, tally: Any, method: str) -> NumberEstimate | NumberGroups:
        """Estimate mean and quantiles."""
        if isinstance(tally, GroupedTally):
            return NumberGroups(tally, self.grid, self.probabilities)
        return NumberEstimate(tally, self.grid, self.probabilities)


def question_of(
    answers: Answers,
    name: str,
    domain: Domain | Bounds,
    quantiles: tuple[float, ...],
    found: FoundAnswers | None,
) -> Question:
    """Return the question of a column: shares, a mean, or a histogram if there are quantiles.

    Where the labels were not stated they are those that were ``found`` in the data.

    Raises
    ------
    InvalidValueError
        If these look like numbers or identifiers.
    """
    if not isinstance(domain, Bounds):
        if found is None:
            return SharesOf(domain=domain)
        found.refuse_odd("bounds (--bounds) asks for their mean and quantiles")
        cautions = tuple(found.notes(answers.missing_values))
        return SharesOf(domain=domain, labels_of_data=True, cautions=cautions)
    if not quantiles:
        return MeanOf(domain=domain)
    grid = Grid.of(domain, integers=answers._holds_integers(name))
    return SpreadOf(domain=domain, grid=grid, probabilities=quantiles)


def together_of(questions: Mapping[str, Question]) -> dict[str, Question]:
    """Return the question about combinations of answers, named after all questions.

    Raises
    ------
    InvalidValueError
        If one is of numbers, there are fewer than two, or too many combinations.
    """
    domains = {}
    for name, question in questions.items():
        if not isinstance(question, SharesOf):
            raise InvalidValueError(
                f"joint applies to columns of answers, but {name!r} contains numbers"
            )
        domains[name] = question.domain
    together = SharesTogether(
        domain=ProductDomain(domains),
        labels_of_data=any(each.labels_of_data for each in questions.values()),
        cautions=tuple(caution for each in questions.values() for caution in each.cautions),
    )
    return {" × ".join(domains): together}


def read(answers: Answers, questions: Mapping[str, Question]) -> Columns:
    """Read the answers of all columns.

    Raises
    ------
    EstimatorError
        If there are no answers.
    """
    domains: dict[str, Domain | Bounds] = {}
    for name, question in questions.items():
        domains |= question.columns(name)
    found = read_columns(answers, domains)
    refuse_no_rows(found.groups.size, found.left_out)
    [first, *_] = questions.values()
    if isinstance(first, SharesTogether):
        found = replace(found, codes=(first.domain._combined(found.codes),))
    return found


def refuse_no_rows(nodes: int, left_out: LeftOut) -> None:
    """Refuse to estimate without any rows.

    Raises
    ------
    EstimatorError
        If there is nobody.
    """
    if not nodes:
        why = f" but those left out: {left_out}" if left_out else ""
        raise EstimatorError(f"cannot estimate: there are no rows{why}")


@dataclass(frozen=True)
class Scheme:
    """A way to divide a person's epsilon among several questions.

    Attributes
    ----------
    sampled
        Whether each person answers one question, drawn at random, with the whole epsilon. Otherwise
        each person answers all questions, each with a part of epsilon.
    epsilon
        The epsilon of each answer.
    within, overall
        The participation of those whom a question concerns, and of all people.
    gain
        The error of the other way divided by that of this one; 1 for one question.
    """

    sampled: bool
    epsilon: float
    within: Participation
    overall: Participation
    gain: float


def best_scheme(questions: Sequence[Question], epsilon: float, nodes: int, rate: float) -> Scheme:
    """Choose the scheme with the smaller error.

    The error is the root of the mean, over the questions, of their mean squared errors (of shares,
    or of parts of a range). The epsilons of a person's answers add up to ``epsilon``.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.surveying.local import SharesOf
    >>> both = [SharesOf(domain=tn.Domain(labels)) for labels in (["no", "yes"], range(50))]
    >>> best_scheme(both, 1.0, 10_000, 1.0).sampled, best_scheme(both, 12.0, 10_000, 1.0).sampled
    (True, False)
    """
    number, all_of = len(questions), _taking_part(rate)
    if number == 1:
        return Scheme(False, epsilon, all_of, all_of, gain=1.0)
    one_of, part = _taking_part(float(Fraction(rate) / number)), part_of(epsilon, number)
    sampled = float(np.mean([each.variance(epsilon, nodes, one_of) for each in questions]))
    split = float(np.mean([each.variance(part, nodes, all_of) for each in questions]))
    if sampled <= split:
        return Scheme(True, epsilon, all_of, one_of, gain=(split / sampled) ** 0.5)
    return Scheme(False, part, all_of, all_of, gain=(sampled / split) ** 0.5)


def _taking_part(rate: float) -> Participation:
    return Everyone() if rate == 1.0 else Bernoulli(rate)


def part_of(epsilon: float, number: int) -> float:
    """Return the part of epsilon for each of several answers; the parts never add up to more.

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
) -> Iterator[tuple[Any, Any]]:
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
        How the answers to a question were randomized, and the tally, or those of all groups.
    """
    # Who takes part is drawn once: the same people report of every question.
    present = participants(scheme.within, columns.groups.size, derived(seed, 3))
    chosen: Array | None = None
    if scheme.sampled:
        chosen = weighted_choices([1] * len(questions), present.size, derived(seed, 0))
    sizes = np.bincount(columns.groups, minlength=len(columns.keys)).tolist()
    of_no_group = replace(columns.left_out, unanswered=0) if names else NOTHING
    without = list(map(LeftOut, columns.unanswered)) if names else [columns.left_out]
    for place, (question, answers) in enumerate(zip(questions, columns.codes, strict=True)):
        randomizer = question.randomizer(scheme.epsilon)
        who = present if chosen is None else present[chosen == place]
        codes = question.prepared(answers[who], derived(seed, 1, place))
        tallies = {
            key: question.tally(
                randomizer,
                codes[part],
                size,
                scheme.overall,
                derived(seed, 2, place, number),
                left_out=without[number],
            )
            for number, (key, size, part) in enumerate(
                zip(columns.keys, sizes, _parts(columns.groups[who], len(sizes)), strict=True)
            )
        }
        if names:
            plan = Plan(randomizer, scheme.overall)
            yield randomizer, GroupedTally(names, tallies, plan=plan, of_no_group=of_no_group)
        else:
            yield randomizer, tallies[()]


def _parts(groups: Integers, number: int) -> list[Array]:
    """List the positions of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups, minlength=number))[:-1])
