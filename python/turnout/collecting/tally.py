"""Tallies: the sufficient statistics of the estimators, for every kind of question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._types import Array
from turnout.collecting import tally_encoding
from turnout.collecting.drawing import Counts
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.participation import Participation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: The tally of a kind; what is not said is not checked.
    T = TypeVar("T", bound="BaseTally", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


class BaseTally(ABC):
    """Exact sums over the reports of a plan, and how many nodes there are.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.
    What the sums are is the kind's: its class checks them, adds them, and makes an estimate.

    Parameters
    ----------
    plan
        The randomizer and the participation.
    sums
        Exact sums over the reports.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        The sums with inverse probabilities, if every node has its own.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.
    """

    __slots__ = ("_design", "_nodes", "_plan", "_received", "_sums", "_weights")

    #: What :meth:`estimate` takes by itself.
    default_method: ClassVar[str] = "hajek"

    def __init__(
        self,
        plan: Plan,
        sums: Any,
        received: int,
        nodes: int,
        *,
        weights: Any = None,
        design: DesignSums | None = None,
    ) -> None:
        self._plan: Plan = _arguments.instance("plan", plan, Plan, "a Plan")
        self._check_kind(plan)
        self._sums: Any = self._taken_sums(sums)
        self._nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
        self._received = _arguments.integer("received", received, least=0, most=self._nodes)
        self._check_sums()
        if plan.everyone_reports and self._received != self._nodes:
            raise InvalidValueError(
                f"received must equal nodes = {self._nodes} when everyone takes part, "
                f"got {self._received}"
            )
        if design is not None:
            _arguments.instance("design", design, DesignSums, "a DesignSums object")
        personal = plan.participation.uniform_rate is None
        self._weights: Any = None if weights is None else self._taken_weights(weights)
        if (weights is not None) != personal or (design is not None) != personal:
            raise InvalidValueError(
                "weights and design must be given for personal participation, and only then"
            )
        if design is not None:
            self._check_weights()
            design.check_nodes(self._nodes)
        self._design = design
        self._completed()

    def _completed(self) -> None:  # noqa: B027, most have nothing to add
        """Make what follows from sums that are checked."""

    @abstractmethod
    def _taken_sums(self, sums: Any) -> Any:
        """Take over sums that are immutable, or refuse what are none of this plan."""

    @abstractmethod
    def _check_sums(self) -> None:
        """Refuse sums that so many reports cannot have."""

    @abstractmethod
    def _taken_weights(self, weights: Any) -> Any:
        """Take over weighted sums, or refuse what are none of this plan."""

    @abstractmethod
    def _check_weights(self) -> None:
        """Refuse weighted sums that the sums contradict."""

    @abstractmethod
    def _added(self, other: Any) -> tuple[Any, Any]:
        """Add sums and weights to those of a tally of the same plan."""

    @abstractmethod
    def _exact(self) -> tuple[Any, ...]:
        """Give the sums and weights as something that is equal, and hashes alike, if they are."""

    @classmethod
    @abstractmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        """Give the sums and weights of no reports."""

    @classmethod
    @abstractmethod
    def bytes_of_sums(cls, plan: Plan) -> int:
        """Tell how many bytes the sums and weights of a tally take up."""

    @abstractmethod
    def sums_to_bytes(self) -> bytes:
        """Write sums and weights, in :meth:`bytes_of_sums` bytes."""

    @classmethod
    @abstractmethod
    def _from_arrays(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        """Read what :meth:`sums_to_bytes` wrote."""

    @abstractmethod
    def estimate(self, method: str = "hajek") -> Any:
        """Estimate what was asked for."""

    @classmethod
    def _check_kind(cls, plan: Plan) -> None:
        if plan.oracle.tally_type is not cls:
            raise InvalidValueError(
                f"plan must be one whose reports are counted in a {cls.__name__}, got one of "
                f"{plan.oracle!r}, whose reports make a {plan.oracle.tally_type.__name__}"
            )

    @classmethod
    def of(
        cls: type[T], plan: Plan, counts: Counts, nodes: int, design: DesignSums | None = None
    ) -> T:
        """Make the tally of what a kernel counted."""
        return cls(plan, counts.sums, counts.received, nodes, weights=counts.weights, design=design)

    @classmethod
    def empty(cls: type[T], plan: Plan) -> T:
        """Make the tally of no nodes.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.Tally.empty(tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())).nodes
        0
        """
        sums, weights = cls._none(plan)
        design = None if weights is None else DesignSums(0, 0)
        return cls(plan, sums, 0, 0, weights=weights, design=design)

    @property
    def plan(self) -> Plan:
        """The randomizer and the participation."""
        return self._plan

    @property
    def oracle(self) -> Any:
        """The randomizer."""
        return self._plan.oracle

    @property
    def domain(self) -> Any:
        """What can be answered."""
        return self._plan.domain

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self._plan.participation

    @property
    def received(self) -> int:
        """The number of reports."""
        return self._received

    @property
    def nodes(self) -> int:
        """The number of nodes, reporting or not."""
        return self._nodes

    @property
    def design(self) -> DesignSums | None:
        """Sums of probabilities over all nodes, or None if all nodes share one rate."""
        return self._design

    @property
    def counts(self) -> Counts:
        """The sums with the number of reports, as a kernel gives them."""
        return Counts(self._sums, self._received, self._weights)

    def merge(self: T, other: T) -> T:
        """Add the tally of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A tally under the same plan.

        Returns
        -------
        BaseTally
            The tally of the nodes of both, of the same class.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If there are 2^64 nodes or more.
        InvalidTypeError
            If ``other`` is not a tally of this kind.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.collect([0, 1]).merge(oracle.collect([2])).nodes
        3
        """
        _arguments.instance("other", other, type(self), f"a {type(self).__name__}")
        self._plan.check_same(other._plan, "other")
        nodes = self._nodes + other._nodes
        if nodes >= 2**64:
            raise InvalidValueError(f"the nodes of both must be fewer than 2^64, got {nodes}")
        sums, weights = self._added(other)
        design = self._design
        if design is not None and other._design is not None:
            design = design + other._design
        received = self._received + other._received
        return type(self)(self._plan, sums, received, nodes, weights=weights, design=design)

    def under(self: T, plan: Plan, *, nodes: int | None = None, design: Any = None) -> T:
        """Give the same sums another plan object, number of nodes, and sums of their design."""
        return type(self)(
            plan,
            self._sums,
            self._received,
            self._nodes if nodes is None else nodes,
            weights=self._weights,
            design=self._design if design is None else design,
        )

    def __add__(self: T, other: object) -> T:
        """Merge two tallies."""
        return self.merge(other) if isinstance(other, type(self)) else NotImplemented

    def __radd__(self: T, other: object) -> T:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare plans and all sums, exactly."""
        if not isinstance(other, BaseTally) or type(self) is not type(other):
            return NotImplemented
        return (
            self._plan == other._plan
            and (self._received, self._nodes) == (other._received, other._nodes)
            and self._design == other._design
            and self._exact() == other._exact()
        )

    def __hash__(self) -> int:
        """Hash of the plan and the sums."""
        return hash((self._plan, self._received, self._nodes, self._exact()[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the constructor takes; the copy is read-only too."""
        made = partial(type(self), weights=self._weights, design=self._design)
        return made, (self._plan, self._sums, self._received, self._nodes)

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        return (
            f"{type(self).__name__}({self._received} reports of {self._nodes} nodes, "
            f"{self.oracle!r}, {self.participation!r})"
        )

    def to_bytes(self) -> bytes:
        """Write the tally: see :mod:`turnout.collecting.tally_encoding` for the layout.

        Returns
        -------
        bytes
            A versioned encoding with a checksum.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written.
        """
        return tally_encoding.encode(self, self.sums_to_bytes())

    @classmethod
    def from_bytes(cls: type[T], data: bytes) -> T:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes of one tally.

        Returns
        -------
        BaseTally
            An equal tally.

        Raises
        ------
        UnsupportedVersionError
            If they are of a version that this release does not read.
        CorruptDataError
            If they are truncated, altered, no tally, or the tally of a question of another kind.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        tally = read_tally(data)
        if not isinstance(tally, cls):
            raise CorruptDataError(
                f"the bytes hold a {type(tally).__name__}, expected a {cls.__name__}"
            )
        return tally


def read_tally(data: object) -> Any:
    """Read a tally of any kind, as :meth:`BaseTally.to_bytes` wrote it.

    Raises
    ------
    UnsupportedVersionError, CorruptDataError, InvalidTypeError
        As :meth:`BaseTally.from_bytes`.

    Examples
    --------
    >>> import turnout as tn
    >>> type(read_tally(tn.mean.Duchi(1.0).collect([0.5]).to_bytes())).__name__
    'MeanTally'
    """
    return tally_encoding.decode(data, tally_of)


def tally_of(
    plan: Plan, arrays: bytes, received: Any, nodes: Any, design: DesignSums | None
) -> Any:
    """Make the tally of a plan from the bytes of its sums.

    Raises
    ------
    CorruptDataError
        If they are not as many as the plan's sums have, or hold none.
    TurnoutError
        If the numbers contradict each other.
    """
    kind = plan.oracle.tally_type
    if len(arrays) != kind.bytes_of_sums(plan):
        raise CorruptDataError(
            f"the sums of the tally do not fit {plan.domain!r}: expected "
            f"{kind.bytes_of_sums(plan)} bytes, got {len(arrays)}"
        )
    sums, weights = kind._from_arrays(plan, arrays)
    return kind(plan, sums, received, nodes, weights=weights, design=design)


class CountedTally(BaseTally):
    """Counts of reports, and their sums of inverse probabilities if every node has its own."""

    __slots__ = ()

    #: What is counted, for messages.
    _entries_name: ClassVar[str] = "codes as the domain has"

    @classmethod
    @abstractmethod
    def _entries(cls, plan: Plan) -> int:
        """Tell how many counts there are under a plan."""

    @classmethod
    def _entry_type(cls, plan: Plan) -> np.dtype[Any]:
        """Tell of which type they are: 64 bits, signed where reports hold scores."""
        return np.dtype(np.uint64)

    def _taken_sums(self, sums: Any) -> Array:
        signed = self._entry_type(self._plan).kind == "i"
        taken = _arguments.scores if signed else _arguments.counts
        counts: Array = taken("sums", sums, self._entries(self._plan))
        counts.flags.writeable = False
        return counts

    def _taken_weights(self, weights: Any) -> WeightedSums:
        kept: WeightedSums = _arguments.instance(
            "weights", weights, WeightedSums, "a WeightedSums object"
        )
        size = self._entries(self._plan)
        if kept.size != size:
            raise _arguments.invalid(f"weights must have {size} {self._entries_name}", kept.size)
        return kept

    def _check_weights(self) -> None:
        self._weights.check_support(self._sums, self._received)

    def _added(self, other: Any) -> tuple[Any, Any]:
        weights = None if self._weights is None else self._weights + other.counts.weights
        return self._sums + other.counts.sums, weights

    def _exact(self) -> tuple[Any, ...]:
        return self._sums.tobytes(), self._weights

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        size = cls._entries(plan)
        counts = np.zeros(size, cls._entry_type(plan))
        if plan.participation.uniform_rate is not None:
            return counts, None
        zeros = np.zeros((size + 1, 2), np.uint64)
        return counts, WeightedSums(zeros, zeros)

    @classmethod
    def bytes_of_sums(cls, plan: Plan) -> int:
        """Tell how many bytes the counts of a tally take up."""
        size = cls._entries(plan)
        return 8 * size + (32 * (size + 1) if plan.participation.uniform_rate is None else 0)

    def sums_to_bytes(self) -> bytes:
        """Write counts and weights: see :mod:`turnout.collecting.tally_encoding`."""
        counts: bytes = self._sums.astype(self._sums.dtype.newbyteorder("<")).tobytes()
        return counts if self._weights is None else counts + self._weights.to_bytes()

    @classmethod
    def _from_arrays(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        size, kind = cls._entries(plan), cls._entry_type(plan)
        counts = np.frombuffer(data, kind.newbyteorder("<"), size).astype(kind)
        if plan.participation.uniform_rate is not None:
            return counts, None
        return counts, WeightedSums.from_bytes(data[8 * size :], size)

    @property
    def weights(self) -> WeightedSums | None:
        """Sums of inverse probabilities over the reports, or None if all nodes share one rate."""
        weights: WeightedSums | None = self._weights
        return weights
