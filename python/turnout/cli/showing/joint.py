"""Shows some of several questions: one alone, or one among those who answered others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from turnout import GroupedTally
from turnout.cli.showing.estimates import Shown, Wish, rows_of, show_estimate
from turnout.collecting.groups.apart import EstimatesOfGroups
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import ACROSS
from turnout.frequency.joint.chosen import conditional_of, marginal_of, question_of
from turnout.products import questions_of
from turnout.reporting.frequencies import SharesGivenOthers, telling_shares


class _Chosen(EstimatesOfGroups[Any]):
    """What is chosen of the estimates of groups.

    Parameters
    ----------
    estimate
        The estimates.
    choose
        Takes what is shown from the estimate of a group.
    domain
        The answers whose shares are shown.
    unknown
        The rows of a group without an estimate.
    given
        The questions whose answers are groups within each.
    """

    def __init__(
        self,
        estimate: Any,
        choose: Callable[[Any], Any],
        domain: Any,
        unknown: Sequence[Mapping[str, Any]],
        given: Sequence[str] = (),
    ) -> None:
        # A question can have the name of a column of the groups.
        within = [f"given.{name}" if name in estimate.names else name for name in given]
        known = [key for key in estimate if key not in estimate.reasons]
        chosen = {key: choose(estimate[key]) for key in known}
        super().__init__(
            estimate.names, estimate.tally, chosen, unknown, reasons=estimate.reasons, within=within
        )
        self.domain = domain

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    @property
    def postprocessing(self) -> str:
        """What was done to the shares."""
        return next((getattr(one, "postprocessing", "none") for one in self.values()), "none")

    def plot(self, **options: Any) -> NoReturn:
        """Refuse: a picture shows one group.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "--plot draws one group when some of several questions are shown: tally "
            "that group alone"
        )

    series = plot


def show_conditional(tally: Any, wish: Wish) -> Shown:
    """Show the shares of the answers to one question among those who gave each of others.

    Raises
    ------
    InvalidTypeError
        If the tally is not one of questions that were asked together.
    InvalidValueError
        If it is not clear which question is meant, or one is not in the table.
    """
    given = tuple(wish.given)
    wanted, estimate = question_of(tally.plan.oracle, given, wish.of), tally.estimate(wish.method)
    domains = tally.plan.oracle.columns
    kind = SharesGivenOthers(given, wanted, domains[wanted])

    def choose(found: Any) -> Any:
        return wish.cut(conditional_of(found, given, wanted))

    head = rows_of(tally, str(wish.method))
    if not isinstance(tally, GroupedTally):
        return show_estimate(choose(estimate), wish, kind, head, counted=tally)
    unknown = {**dict.fromkeys(("share", "standard_error"), math.nan), "low": None, "high": None}
    answers = itertools.product(*(domains[name].labels for name in (*given, wanted)))
    nothing = [
        {"group": dict(zip(given, cell[:-1], strict=True)), "label": cell[-1], **unknown}
        for cell in answers
    ]
    chosen = _Chosen(estimate, choose, domains[wanted], nothing, given)
    return show_estimate(chosen, wish, kind, head, counted=tally)


def show_marginal(tally: Any, wish: Wish) -> Shown:
    """Show the shares of some questions, whatever is answered to the others.

    Raises
    ------
    InvalidTypeError
        If the tally is of one question.
    InvalidValueError
        If a question is not in it, is named twice, or too many are named.
    """
    if wish.postprocessing == ACROSS:
        raise InvalidValueError("--across does not apply to some of several questions")

    def choose(found: Any) -> Any:
        if wish.consistent:
            # Tables that agree are projected and shrunk together.
            return marginal_of(wish.made(found), wish.marginal)
        return wish.made(marginal_of(found, wish.marginal))

    whole = tally.total if isinstance(tally, GroupedTally) else tally
    found = choose(whole.estimate(wish.method))
    # A table of two has an order of its own.
    names = list(questions_of(found.domain)) or list(wish.marginal)
    row = ("shares", f"of {', '.join(names)}, whatever the other answers are")
    head = [*rows_of(tally, str(wish.method)), row]
    kind = telling_shares(found.domain)
    if isinstance(tally, GroupedTally):
        unknown = {
            **dict.fromkeys(("count", "frequency", "standard_error"), math.nan),
            **dict.fromkeys(("low", "high")),
        }
        nothing = [{"label": label, **unknown} for label in found.domain.labels]
        chosen = _Chosen(tally.estimate(wish.method), choose, found.domain, nothing)
        shown = show_estimate(chosen, wish, kind, head, counted=tally)
    else:
        shown = show_estimate(found, wish, kind, head)
    return replace(shown, make_record=lambda: {**shown.make_record(), "marginal": names})
