"""The joint answers to several questions, in one report of each person."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.choice import compared, make_oracle
from turnout.frequency.estimation.models import ScoreMoments
from turnout.frequency.joint.tally import JointTally
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict
from turnout.frequency.wrapped import WrappedOracle
from turnout.products import ProductDomain

__all__ = ["JointTable"]

Array = npt.NDArray[Any]

#: What "auto" chooses from: oracles whose estimates have known covariances, which sums of cells
#: need.
_CANDIDATES = (
    "direct_encoding",
    "subset_selection",
    "optimized_unary_encoding",
    "symmetric_unary_encoding",
    "binary_local_hashing",
)


class JointTable(WrappedOracle):
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
        If an argument is of the wrong type or out of range, or the oracle is of another epsilon or
        another number of answers.

    Notes
    -----
    The variance of a cell hardly depends on how many there are, that of a sum over cells grows with
    their number. So each question by itself is known less well the more the others have answers:
    where joint shares do not matter, :class:`turnout.SampledAttribute` has the smaller error.

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
        oracle: FrequencyOracle
        | dict[str, Any]
        | Callable[[float, Domain], FrequencyOracle]
        | str = "auto",
    ) -> None:
        domain = columns if isinstance(columns, ProductDomain) else ProductDomain(columns)
        super().__init__(epsilon, domain, _made(oracle, epsilon, domain.size))

    @property
    def columns(self) -> Mapping[str, Domain]:
        """For each question its answers."""
        domain: Any = self._domain
        found: Mapping[str, Domain] = domain.columns
        return found

    @property
    def by_blocks(self) -> bool:  # type: ignore[override]
        """Whether the reports of a block of nodes can be drawn by themselves."""
        return self._inner.by_blocks

    @property
    def two_valued(self) -> bool:  # type: ignore[override]
        """Whether a report has two likelihoods: see :class:`turnout.FrequencyOracle`."""
        return self._inner.two_valued

    @property
    def counted_by(self) -> str:  # type: ignore[override]
        """What a database can count of its reports."""
        return self._inner.counted_by

    @property
    def score_moments(self) -> ScoreMoments:
        """What a report says about one combination."""
        return self._inner.score_moments

    @property
    def counts_of_a_report(self) -> int | None:
        """How many of the counts a report adds to; None if that is not the same for all."""
        return self._inner.counts_of_a_report

    @property
    def variation_ratio(self) -> VariationRatio:
        """How much a report hides among other people's."""
        return self._inner.variation_ratio

    @property
    def told_apart(self) -> ToldApart | None:
        """What can be counted among shuffled reports."""
        return self._inner.told_apart

    def shared_variance(self, total: Any, squares: Any) -> Any:
        """Give what hash functions shared by all reports add to the variance of a count."""
        return self._inner.shared_variance(total, squares)

    def refuse_counting(self) -> None:
        """Refuse to be counted by a database, where the inner oracle does."""
        self._inner.refuse_counting()

    def count_by_group(self, reports: Array, groups: npt.NDArray[np.int64], number: int) -> Any:
        """Add up the reports of each group, as the inner oracle does."""
        return self._inner.count_by_group(reports, groups, number)

    def parameters(self) -> dict[str, Any]:
        """Name what the constructor takes beyond epsilon and the domain, in terms of JSON."""
        return {"oracle": self._inner.to_dict()}

    def __repr__(self) -> str:
        """Show the questions and the oracle."""
        sizes = ", ".join(f"{name}: {each.size}" for name, each in self.columns.items())
        inner = type(self._inner).__name__
        return f"JointTable(epsilon={self._epsilon!r}, {{{sizes}}}, oracle={inner})"


def _made(oracle: Any, epsilon: float, size: int) -> FrequencyOracle:
    """Make the oracle of the combinations."""
    codes = Domain.from_integers(size)
    if isinstance(oracle, str) and oracle == "auto":
        return compared(epsilon, codes, oracles=_CANDIDATES).oracle
    if isinstance(oracle, dict):
        oracle = oracle_from_dict(oracle)
    if not isinstance(oracle, FrequencyOracle):
        return make_oracle("oracle", oracle, epsilon, codes)
    if not oracle.fresh or isinstance(oracle, JointTable):
        raise InvalidValueError(
            f"oracle must draw reports of single codes afresh, got {_arguments.shown(oracle)}"
        )
    if (oracle.epsilon, oracle.domain) != (epsilon, codes):
        raise InvalidValueError(
            f"oracle must have epsilon {epsilon!r} and {size:,} codes, one for each combination of "
            f"answers, got {oracle!r}"
        )
    return oracle
