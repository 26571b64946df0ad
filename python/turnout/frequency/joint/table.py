"""The joint answers to several questions, in one report of each person."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from turnout.domain import Domain
from turnout.frequency.joint.tally import JointTally
from turnout.frequency.wrapped import CodesOracle, OfCodes
from turnout.products import ProductDomain

#: What "auto" chooses from: oracles whose estimates have known covariances, which sums of cells
#: need.
_CANDIDATES = (
    "direct_encoding",
    "subset_selection",
    "optimized_unary_encoding",
    "symmetric_unary_encoding",
    "binary_local_hashing",
)


class JointTable(CodesOracle):
    """Report the answers to several questions together, for a joint table.

    Each combination of answers is an answer of its own, to which the whole epsilon goes: what a
    person sends is protected as a whole, however many of the answers change. The estimate has the
    joint shares, those of each question and of any of them together, and the shares of one answer
    among those who gave another, all with the covariances that belong to them.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    columns
        For each question its answers, or their number: at least two questions, with at most 2^20
        combinations. Or a :class:`turnout.frequency.joint.ProductDomain`.
    oracle
        What randomizes the combination: ``"auto"`` (default) for the one of smallest variance whose
        covariances are known, the name of an oracle, or a class such as
        :class:`turnout.DirectEncoding`. Or an oracle of as many codes as there are combinations, or
        its description.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or the oracle is of a larger epsilon or
        another number of answers.

    Notes
    -----
    The variance of a cell hardly depends on how many there are, that of a sum over cells grows with
    their number. So each question by itself is known less well the more the others have answers:
    where joint shares do not matter, :class:`turnout.SampledAttribute` has the smaller error; where
    those of two questions at a time do, of many, :class:`turnout.PairTables`.

    Examples
    --------
    >>> import turnout as tn
    >>> joint = tn.JointTable(2.0, {"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> people = {"sex": ["f"] * 6000 + ["m"] * 4000, "vote": ["no", "yes"] * 5000}
    >>> estimate = joint.collect(people, seed=1).estimate()
    >>> estimate.table.shape
    (2, 2)
    >>> estimate.marginal("sex").frequencies.round(1)
    array([0.6, 0.4])
    >>> shares = estimate.conditional("vote", given="sex")
    >>> shares["f", "yes"].low < 0.5 < shares["f", "yes"].high
    True
    """

    name = "joint_table"
    tally_type = JointTally
    domain_type = ProductDomain

    def __init__(
        self,
        epsilon: float,
        columns: ProductDomain | Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OfCodes = "auto",
    ) -> None:
        domain = columns if isinstance(columns, ProductDomain) else ProductDomain(columns)
        super().__init__(epsilon, domain, oracle, _CANDIDATES)

    @property
    def columns(self) -> Mapping[str, Domain]:
        """For each question its answers."""
        domain: Any = self._domain
        found: Mapping[str, Domain] = domain.columns
        return found

    def __repr__(self) -> str:
        """Show the questions and the oracle."""
        sizes = ", ".join(f"{name}: {each.size}" for name, each in self.columns.items())
        inner = type(self._inner).__name__
        return f"JointTable(epsilon={self._epsilon!r}, {{{sizes}}}, oracle={inner})"
