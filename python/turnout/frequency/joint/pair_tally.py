"""Tallies and estimates of the tables of every two of several questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from turnout import _arguments
from turnout.domain import Domain
from turnout.frequency.attributes.estimate import AttributeEstimate
from turnout.frequency.attributes.tally import AttributeTally
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.joint.conditional import ConditionalShares
from turnout.frequency.joint.estimate import JointEstimate, JointMarginal


class PairTally(AttributeTally):
    """How many reports support each cell of the table of every two questions.

    A mapping from names of tables, such as ``"sex × vote"``, to their :class:`JointTally`.
    """

    __slots__ = ()

    def estimate(self, method: str = "hajek") -> PairEstimate:
        """Estimate the shares in each table: see :meth:`turnout.Tally.estimate`.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If the method does not apply, or a table has no report.
        """
        each: dict[str, FrequencyEstimate] = {
            name: tally.estimate(method) for name, tally in self.items()
        }
        return PairEstimate(self.plan, method, self.nodes, self.received, each)


@dataclass(frozen=True, eq=False, repr=False)
class PairEstimate(AttributeEstimate):
    """The shares in the tables of every two questions, each from people of its own.

    Made by :meth:`PairTally.estimate`. Tables that have a question in common differ in its shares
    by their noise: :meth:`consistent` makes them agree, :meth:`marginal` has its best estimate.

    Examples
    --------
    >>> import turnout as tn
    >>> pairs = tn.PairTables(3.0, {"sex": ["f", "m"], "vote": ["no", "yes"], "age": 3})
    >>> people = {"sex": ["f", "m"] * 6000, "vote": ["no", "yes"] * 6000, "age": [0, 1] * 6000}
    >>> estimate = pairs.collect(people, seed=3).estimate()
    >>> shares = estimate.conditional("vote", given="sex")
    >>> shares["f", "no"].low < 1.0 < shares["f", "no"].high
    True
    """

    def __getitem__(self, name: str | tuple[str, str]) -> JointEstimate:
        """Return one table: by its name, or by its two questions in either order."""
        if isinstance(name, tuple):
            found = [key for key, pair in self._pairs.items() if set(pair) == set(name)]
            if len(name) != 2 or not found:
                raise KeyError(name)
            name = found[0]
        table: Any = self.estimates[name]
        made: JointEstimate = table
        return made

    @property
    def _pairs(self) -> Mapping[str, tuple[str, str]]:
        pairs: Mapping[str, tuple[str, str]] = self.plan.oracle.pairs
        return pairs

    def conditional(self, of: str, *, given: str) -> ConditionalShares:
        """Estimate how those who gave one answer answered another question.

        Parameters
        ----------
        of, given
            The question whose shares are wanted, and the one that says among whom.

        Returns
        -------
        ConditionalShares
            As :meth:`JointEstimate.conditional` of the table of both.

        Raises
        ------
        InvalidValueError
            If there is no such question, or both are the same.
        """
        for argument, name in (("of", of), ("given", given)):
            _arguments.choice(argument, name, tuple(self.domain.columns))
        if of == given:
            raise _arguments.invalid("of must be a question that is not in given", of)
        return self[of, given].conditional(of, given=given)

    def marginal(self, name: str) -> FrequencyEstimate:
        """Estimate the shares of the answers to one question, from all tables that have it.

        Each table is weighted by the inverse of its mean variance. A person is in one table, so
        that the errors of two have the covariance ``-f (1 - f) / n`` of disjoint samples.

        Raises
        ------
        InvalidValueError
            If there is no such question.
        EstimatorError
            If covariances are not known: see :attr:`JointEstimate.covariance`.
        """
        _arguments.choice("name", name, tuple(self.domain.columns))
        tables = [self[key] for key, pair in self._pairs.items() if name in pair]
        found = [table.marginal(name).estimation for table in tables]
        weights = 1.0 / np.array([each.variances.mean() for each in found])
        weights /= weights.sum()
        shares = weights @ np.array([each.frequencies for each in found])
        held = np.clip(shares, 0.0, 1.0)
        apart = held * (1.0 - held) / self.nodes * (1.0 - float(weights @ weights))
        variances = weights**2 @ np.array([each.variances for each in found])
        domain: Domain = self.domain.columns[name]
        return FrequencyEstimate.from_estimation(
            JointMarginal(self.plan, (name,), domain),
            self.method,
            self.nodes,
            self.received,
            Estimation(shares, np.maximum(variances - apart, 0.25 * variances)),
        )

    def consistent(self) -> PairEstimate:
        """Make the tables agree on the questions that they have in common.

        The shares of each question become those of :meth:`marginal`, by the smallest change of the
        cells. Intervals stay those of the tables before.

        Returns
        -------
        PairEstimate
            The same estimate, with ``postprocessing`` ``"consistent"``.

        Raises
        ------
        EstimatorError
            If covariances are not known: see :attr:`JointEstimate.covariance`.

        Examples
        --------
        >>> import turnout as tn
        >>> pairs = tn.PairTables(1.0, {"a": 2, "b": 3, "c": 4})
        >>> people = {"a": [0, 1] * 600, "b": [0, 1, 2] * 400, "c": [0, 1, 2, 3] * 300}
        >>> estimate = pairs.collect(people, seed=1).estimate().consistent()
        >>> rows = [estimate["a", other].table.sum(axis=1) for other in "bc"]
        >>> bool(abs(rows[0] - rows[1]).max() < 1e-12)
        True
        """
        shares = {}
        for name in self.domain.columns:
            found = self.marginal(name).frequencies
            shares[name] = found + (1.0 - found.sum()) / found.size
        made: dict[str, FrequencyEstimate] = {}
        for key, (first, second) in self._pairs.items():
            table = self[key].unprojected
            cells = table.frequencies.reshape(shares[first].size, -1)
            cells = cells + (1.0 - cells.sum()) / cells.size
            cells = cells + ((shares[first] - cells.sum(axis=1)) / cells.shape[1])[:, None]
            cells = cells + (shares[second] - cells.sum(axis=0)) / cells.shape[0]
            flat = cells.ravel()
            flat.flags.writeable = False
            made[key] = replace(table, frequencies=flat, postprocessing="consistent")
        return replace(self, estimates=made)
