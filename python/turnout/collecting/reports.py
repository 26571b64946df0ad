"""Reports of the nodes that took part."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array
from turnout._values import settle
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import Origin, refuse_repeats
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Drawn, R_co, Randomizer
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, stated_participation


@dataclass(frozen=True, eq=False, repr=False)
class Reports(Generic[R_co]):
    """The reports of the nodes that took part, with their plan.

    ``oracle.randomize`` returns it. Construct it yourself for reports that arrived another way.

    Parameters
    ----------
    oracle
        The randomizer that made them.
    participation
        How the nodes took part.
    codes
        The reports: for direct encoding one code for each report. In general an integer array with
        one :attr:`FrequencyOracle.report_shape` for each report, of the type
        :attr:`FrequencyOracle.report_dtype` or one that fits into it.
    nodes
        The number of nodes, reporting or not.
    probabilities
        The participation probability of each reporting node, if every node has its own.
    design
        The sums of the probabilities over all nodes, if every node has its own.
    left_out
        The rows or messages that do not count, and are in none of these numbers.
    origin
        The collections of the reports, so that none counts twice; a new one by default. See
        :mod:`turnout.collecting.origin`.

    Raises
    ------
    CodeOutsideDomainError
        If a code is not below the size of the domain.
    InvalidValueError
        If the oracle cannot have made a report. If there are more reports than nodes, or fewer
        under ``Everyone()``. If there is not one personal probability for each report.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> reports = tn.Reports(oracle, tn.Bernoulli(0.5), [0, 1, 1], nodes=7)
    >>> len(reports), oracle.tally(reports).support
    (3, array([1, 2], dtype=uint64))
    """

    oracle: R_co
    participation: Participation
    codes: Any
    nodes: int
    probabilities: Any = field(default=None, kw_only=True)
    design: DesignSums | None = field(default=None, kw_only=True)
    left_out: LeftOut = field(default=NOTHING, kw_only=True)
    origin: Any = field(default=None, kw_only=True)
    plan: Plan[R_co] = field(init=False)
    #: 128 random bits in hexadecimal, drawn when the reports are made, and kept by their copies and
    #: files: what has them twice would count its people twice.
    _identity: str = field(init=False)

    def __post_init__(self) -> None:
        """Check the fields, and make the arrays read-only."""
        participation = stated_participation(self.participation)
        plan = Plan(self.oracle, participation)
        codes = _checked(self.oracle, self.codes)
        nodes = _arguments.integer("nodes", self.nodes, least=0, most=2**64 - 1)
        _check_number(plan, len(codes), nodes)
        _arguments.instance("left_out", self.left_out, LeftOut, "a LeftOut object")
        identity = secrets.token_hex(16)
        named = Origin.named(identity) if self.origin is None else self.origin
        origin = Origin.settled(named, nodes, fresh=plan.oracle.fresh)
        taken = {"participation": plan.participation, "codes": codes, "nodes": nodes}
        settle(self, plan=plan, _identity=identity, origin=origin, **taken)
        if participation.uniform_rate is None:
            if self.probabilities is None or self.design is None:
                raise InvalidValueError(
                    "probabilities and design are needed with personal participation: "
                    "nothing can be estimated without the probability of each report"
                )
            probabilities = Personalized(self.probabilities).probabilities
            settle(self, probabilities=probabilities)
            _arguments.instance("design", self.design, DesignSums, "a DesignSums object")
            self.design.check_nodes(nodes)
            if probabilities.size != len(codes):
                raise InvalidValueError(
                    f"probabilities must have one entry for each of the {len(codes)} "
                    f"reports, got {probabilities.size}"
                )
        elif self.probabilities is not None or self.design is not None:
            raise InvalidValueError(
                f"probabilities and design belong to Personalized(...), not to {participation!r}"
            )

    @classmethod
    def _of_nobody(cls, plan: Plan) -> Reports:
        """Return the reports of no nodes."""
        oracle, personal = plan.oracle, plan.participation.uniform_rate is None
        codes = np.empty((0, *oracle.report_shape), oracle.report_dtype)
        none = Drawn(codes, np.empty(0)) if personal else Drawn(codes)
        return cls._made(
            oracle, plan.participation, none, 0, DesignSums(0, 0) if personal else None
        )

    @classmethod
    def _made(
        cls,
        oracle: Any,
        participation: Participation,
        drawn: Drawn,
        nodes: int,
        design: DesignSums | None = None,
        *,
        left_out: LeftOut = NOTHING,
    ) -> Reports:
        """Build reports without a check, from a kernel or a checked file."""
        plan, made = Plan(oracle, participation), cls.__new__(cls)
        for array in drawn:
            if array is not None:
                array.flags.writeable = False
        identity = secrets.token_hex(16)
        settle(
            made,
            _identity=identity,
            oracle=oracle,
            participation=plan.participation,
            codes=drawn.reports,
            nodes=nodes,
            probabilities=drawn.probabilities,
            design=design,
            left_out=left_out,
            origin=Origin.settled(Origin.named(identity), nodes, fresh=oracle.fresh),
            plan=plan,
        )
        return made

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        """Compare plans, codes, probabilities and all numbers, but not the origins."""
        if not isinstance(other, Reports):
            return NotImplemented
        return (
            self.plan == other.plan
            and self.nodes == other.nodes
            and self.design == other.design
            and self.left_out == other.left_out
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.probabilities, other.probabilities)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the constructor takes; the copy is read-only too."""
        more = {"probabilities": self.probabilities, "design": self.design}
        made = partial(Reports, **more, left_out=self.left_out, origin=self.origin)
        given = (self.oracle, self.participation, self.codes, self.nodes)
        return made, given, {"_identity": self._identity}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        without = f", left out: {self.left_out}" if self.left_out else ""
        return (
            f"Reports({len(self)} of {self.nodes} nodes{without}, {self.oracle!r}, "
            f"{self.participation!r})"
        )

    @classmethod
    def concatenate(cls, pieces: Iterable[Reports], *, same_people: bool = True) -> Reports:
        """Concatenate the reports of different nodes.

        Parameters
        ----------
        pieces
            At least one set of reports, all under the same plan and of different nodes.
        same_people
            Whether people of one may also be in another, with the permanent answers that they keep,
            as for :meth:`turnout.Tally.merge`.

        Returns
        -------
        Reports
            All reports, in the given order.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If there are no pieces, or two of them share reports, which would count twice.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> parts = [oracle.randomize([0, 1]), oracle.randomize([2])]
        >>> tn.Reports.concatenate(parts).nodes
        3
        """
        kept = _arguments.items("pieces", pieces, "an iterable of Reports objects")
        if not kept:
            raise InvalidValueError("pieces must hold at least one set of reports, got none")
        for position, piece in enumerate(kept):
            _arguments.instance(f"pieces[{position}]", piece, Reports, "a Reports object")
            kept[0].plan._check_same(piece.plan, f"pieces[{position}]")
        _arguments.instance("same_people", same_people, bool, "True or False")
        refuse_repeats((f"pieces[{place}]", piece) for place, piece in enumerate(kept))
        first = kept[0]
        codes = np.concatenate([piece.codes for piece in kept])
        nodes = sum(piece.nodes for piece in kept)
        origins = [piece.origin for piece in kept]
        more: dict[str, Any] = {
            "left_out": sum((piece.left_out for piece in kept), NOTHING),
            "origin": Origin.of_all(
                origins if same_people else Origin.of_different_people(origins)
            ),
        }
        if first.participation.uniform_rate is not None:
            return cls(first.oracle, first.participation, codes, nodes, **more)
        known = [piece.probabilities for piece in kept if piece.probabilities is not None]
        design = sum((piece.design for piece in kept if piece.design), DesignSums(0, 0))
        return cls(
            first.oracle,
            first.participation,
            codes,
            nodes,
            probabilities=np.concatenate(known),
            design=design,
            **more,
        )


def _checked(oracle: Randomizer, codes: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
    """Check reports, and return them as a read-only array of the oracle's type."""
    shape, dtype = oracle.report_shape, oracle.report_dtype
    array: Array
    if shape:
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1:] != shape or array.dtype.kind not in "iu":
            raise InvalidTypeError(
                f"codes must be an array of integers with rows of {shape[0]}, got "
                f"{_arguments.Private(array)!r}"
            )
    else:
        array = _arguments.vector(
            "codes", codes, "an array of integers", "integers", "iu", private=True
        )
    if array.size and not np.can_cast(array.dtype, dtype):
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            # A kernel only takes its own type: what does not fit is refused in the type given.
            oracle._refuse_range(array)
    kept = _frozen(array, dtype)
    oracle.check_reports(kept)
    return kept


def _frozen(array: Array, dtype: np.dtype[Any]) -> npt.NDArray[np.integer[Any]]:
    """Return a contiguous read-only array of the right type; copy any other array.

    A caller could change a writable array after the checks.
    """
    if array.flags.writeable:
        array = array.copy()
    result = np.require(array, dtype, ["C", "A"])
    view = result.view()
    view.flags.writeable = False
    return view


def _check_number(plan: Plan, received: int, nodes: int) -> None:
    if received > nodes:
        raise InvalidValueError(
            f"nodes must be at least the number of reports {received}, got {nodes}"
        )
    if plan._everyone_reports and received != nodes:
        raise InvalidValueError(
            f"nodes must equal the number of reports {received} when everyone takes part, "
            f"got {nodes}"
        )
