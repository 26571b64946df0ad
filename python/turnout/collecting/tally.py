"""Tallies: the sufficient statistics of the estimators, for every kind of question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._types import Array
from turnout._values import settle
from turnout.collecting import tally_encoding
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import Origin
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Counts
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import CorruptDataError, EstimatorError, InvalidValueError, MemoryLimitError
from turnout.participation import Participation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: The tally of a kind; what is not said is not checked.
    T = TypeVar("T", bound="BaseTally", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class BaseTally(ABC):
    """Exact sums over the reports of a plan, and the number of nodes.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.
    Each kind has its own sums: its class checks them, adds them, and estimates from them.

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
    left_out
        The rows or messages that do not count, and are in none of these numbers.
    origin
        The collections that are counted here, so that none counts twice; a new one by default. It
        says nothing about the reports, and equal tallies can have different origins: see
        :mod:`turnout.collecting.origin`.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.
    """

    #: What :meth:`estimate` takes by itself.
    _default_method: ClassVar[str] = "hajek"

    #: How what it estimates is told on pages, terminals and in JSON: "shares", "combinations",
    #: "ordered", "questions", "means" or "distributions"; empty where nothing tells it.
    told: ClassVar[str] = ""

    plan: Plan
    sums: Any
    received: int
    nodes: int
    weights: Any = field(default=None, kw_only=True)
    design: DesignSums | None = field(default=None, kw_only=True)
    left_out: LeftOut = field(default=NOTHING, kw_only=True)
    origin: Any = field(default=None, kw_only=True)

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the tallies of each kind frozen, as this class is."""
        super().__init_subclass__(**arguments)
        dataclass(frozen=True, eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        """Check the fields, and store immutable values."""
        plan = _arguments.instance("plan", self.plan, Plan, "a Plan")
        self._check_kind(plan)
        nodes = _arguments.integer("nodes", self.nodes, least=0, most=2**64 - 1)
        settle(
            self,
            sums=self._taken_sums(self.sums),
            received=_arguments.integer("received", self.received, least=0, most=nodes),
            nodes=nodes,
            origin=Origin.settled(self.origin, nodes, fresh=plan.oracle.fresh),
        )
        self._check_sums()
        if plan._everyone_reports and self.received != nodes:
            raise InvalidValueError(
                f"received must equal nodes = {nodes} when everyone takes part, got {self.received}"
            )
        _arguments.instance("left_out", self.left_out, LeftOut, "a LeftOut object")
        if self.design is not None:
            _arguments.instance("design", self.design, DesignSums, "a DesignSums object")
        if self.weights is not None:
            settle(self, weights=self._taken_weights(self.weights))
        personal = plan.participation.uniform_rate is None
        if (self.weights is not None) != personal or (self.design is not None) != personal:
            raise InvalidValueError(
                "weights and design must be given if and only if participation is personal"
            )
        if self.design is not None:
            self._check_weights()
            self.design.check_nodes(nodes)

    def _estimate_answered(self, method: str) -> Any:
        """Estimate what a page shows: of several questions, those with reports."""
        return self.estimate(method)

    @property
    def _lacks_answers(self) -> bool:
        """Whether the question, or a part of it, has no answers."""
        return not self.received

    @abstractmethod
    def _taken_sums(self, sums: Any) -> Any:
        """Return immutable sums; refuse sums that do not fit the plan."""

    @abstractmethod
    def _check_sums(self) -> None:
        """Refuse sums that the number of reports cannot have."""

    @abstractmethod
    def _taken_weights(self, weights: Any) -> Any:
        """Return weighted sums; refuse sums that do not fit the plan."""

    @abstractmethod
    def _check_weights(self) -> None:
        """Refuse weighted sums that the sums contradict."""

    @abstractmethod
    def _added(self, other: Any) -> tuple[Any, Any]:
        """Add the sums and weights of a tally of the same plan."""

    @abstractmethod
    def _exact(self) -> tuple[Any, ...]:
        """Return sums and weights in a form that compares and hashes exactly."""

    @classmethod
    @abstractmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        """Return the sums and weights of no reports."""

    @classmethod
    @abstractmethod
    def _bytes_of_sums(cls, plan: Plan) -> int:
        """Return the number of bytes of a tally's sums and weights."""

    @abstractmethod
    def _sums_to_bytes(self) -> bytes:
        """Write sums and weights, in :meth:`_bytes_of_sums` bytes."""

    @classmethod
    @abstractmethod
    def _sums_of_bytes(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        """Read what :meth:`_sums_to_bytes` wrote."""

    @abstractmethod
    def estimate(self, method: str = "hajek") -> Any:
        """Estimate the answer to the question."""

    @classmethod
    def _check_kind(cls, plan: Plan) -> None:
        if plan.oracle.tally_type is not cls:
            raise InvalidValueError(
                f"plan must be one whose reports are counted in a {cls.__name__}, got a "
                f"plan of {plan.oracle!r}, whose reports are counted in a "
                f"{plan.oracle.tally_type.__name__}"
            )

    @classmethod
    def of(
        cls: type[T],
        plan: Plan,
        counts: Counts,
        nodes: int,
        design: DesignSums | None = None,
        *,
        left_out: LeftOut = NOTHING,
        origin: Origin | None = None,
    ) -> T:
        """Build a tally from the counts of a kernel."""
        more = {"weights": counts.weights, "design": design, "left_out": left_out}
        more["origin"] = origin
        return cls(plan, counts.sums, counts.received, nodes, **more)

    @classmethod
    def empty(cls: type[T], plan: Plan) -> T:
        """Create the tally of no nodes.

        Raises
        ------
        MemoryLimitError
            If there is not enough memory for one number for each possible answer.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.Tally.empty(tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())).nodes
        0
        """
        try:
            sums, weights = cls._none(plan)
        except MemoryError as error:
            raise MemoryLimitError(
                f"there is not enough memory for the sums of {plan.domain!r}: a tally "
                "needs a number for each possible answer. Use HeavyHitters, or fewer "
                "answers"
            ) from error
        design = None if weights is None else DesignSums(0, 0)
        return cls(plan, sums, 0, 0, weights=weights, design=design)

    @property
    def oracle(self) -> Any:
        """The randomizer."""
        return self.plan.oracle

    @property
    def domain(self) -> Any:
        """What can be answered."""
        return self.plan.domain

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self.plan.participation

    def _of_new_origin(self: T) -> T:
        """Return the same counts as one new collection, after its pieces were added up."""
        return replace(self, origin=Origin.new())

    def merge(self: T, other: T, *, same_people: bool = True) -> T:
        """Add the tally of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A tally under the same plan, of other reports.
        same_people
            Whether people in one tally may also be in the other, with the permanent answers that
            they keep (:class:`turnout.Memoized`), for example if each tally is of one day. Errors
            and intervals then include the shared noise, and hold whoever is in both. False means
            that nobody is in both. It makes no difference if every report is drawn afresh.

        Returns
        -------
        BaseTally
            The tally of the nodes of both, of the same class.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If both share a collection, which would count twice, or there are 2^64 nodes or more.
        InvalidTypeError
            If ``other`` is not a tally of this kind.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.collect([0, 1]).merge(oracle.collect([2])).nodes
        3
        >>> kept = tn.Memoized(tn.DirectEncoding(3.0, 3), first_epsilon=2.0)
        >>> one, other = kept.simulate([500] * 3, seed=1), kept.simulate([500] * 3, seed=2)
        >>> days, regions = one.merge(other), one.merge(other, same_people=False)
        >>> bool((days.estimate().standard_errors > regions.estimate().standard_errors).all())
        True
        """
        _arguments.instance("other", other, type(self), f"a {type(self).__name__}")
        _arguments.instance("same_people", same_people, bool, "True or False")
        self.plan._check_same(other.plan, "other")
        self.origin.refuse_shared(other.origin)
        nodes = self.nodes + other.nodes
        if nodes >= 2**64:
            raise InvalidValueError(f"the nodes of both must be fewer than 2^64, got {nodes}")
        sums, weights = self._added(other)
        design = self.design
        if design is not None and other.design is not None:
            design = design + other.design
        more = {"weights": weights, "design": design, "left_out": self.left_out + other.left_out}
        origins = [self.origin, other.origin]
        if not same_people:
            origins = Origin.of_different_people(origins)
        more["origin"] = Origin.of_all(origins)
        return type(self)(self.plan, sums, self.received + other.received, nodes, **more)

    def __add__(self: T, other: object) -> T:
        """Merge two tallies."""
        return self.merge(other) if isinstance(other, type(self)) else NotImplemented

    def __radd__(self: T, other: object) -> T:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare plans and all numbers exactly, but not the origins."""
        if not isinstance(other, BaseTally) or type(self) is not type(other):
            return NotImplemented
        return (
            self.plan == other.plan
            and (self.received, self.nodes) == (other.received, other.nodes)
            and self.left_out == other.left_out
            and self.design == other.design
            and self._exact() == other._exact()
        )

    def __hash__(self) -> int:
        """Hash of the plan and the sums."""
        return hash((self.plan, self.received, self.nodes, self._exact()[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the constructor takes; the copy is read-only too."""
        more = {"weights": self.weights, "design": self.design, "left_out": self.left_out}
        more["origin"] = self.origin
        return partial(type(self), **more), (self.plan, self.sums, self.received, self.nodes)

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        without = f", left out: {self.left_out}" if self.left_out else ""
        return (
            f"{type(self).__name__}({self.received} reports of {self.nodes} nodes{without}, "
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
        return tally_encoding.encode(self)

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
            If this release does not read their version.
        CorruptDataError
            If they are truncated, altered, not a tally, or the tally of another kind of question.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        tally = read_tally(data)
        if not isinstance(tally, cls):
            raise CorruptDataError(
                f"the bytes hold a {type(tally).__name__}, expected a {cls.__name__}"
            )
        return tally


def nothing_received(about: str = "") -> EstimatorError:
    """Build the error of an estimate without reports, or without reports about a part.

    Examples
    --------
    >>> nothing_received(" about coordinate 2")
    EstimatorError('nothing can be estimated: no reports were received about coordinate 2')
    """
    return EstimatorError(f"nothing can be estimated: no reports were received{about}")


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
    return tally_encoding.decode(data)


class CountedTally(BaseTally):
    """Counts of reports, and their sums of inverse probabilities if every node has its own."""

    #: What is counted, for messages.
    _entries_name: ClassVar[str] = "codes as the domain has"

    @classmethod
    @abstractmethod
    def _entries(cls, plan: Plan) -> int:
        """Return the number of counts under a plan."""

    @classmethod
    def _entry_type(cls, plan: Plan) -> np.dtype[Any]:
        """Return the type of the counts: 64 bits, signed if reports hold scores."""
        return np.dtype(np.uint64)

    def _taken_sums(self, sums: Any) -> Array:
        signed = self._entry_type(self.plan).kind == "i"
        taken = _arguments.scores if signed else _arguments.counts
        counts: Array = taken("sums", sums, self._entries(self.plan))
        counts.flags.writeable = False
        return counts

    def _taken_weights(self, weights: Any) -> WeightedSums:
        kept: WeightedSums = _arguments.instance(
            "weights", weights, WeightedSums, "a WeightedSums object"
        )
        size = self._entries(self.plan)
        if kept.size != size:
            raise _arguments.invalid(f"weights must have {size} {self._entries_name}", kept.size)
        return kept

    def _check_weights(self) -> None:
        self.weights._check_support(self.sums, self.received)

    def _added(self, other: Any) -> tuple[Any, Any]:
        weights = None if self.weights is None else self.weights + other.weights
        return self.sums + other.sums, weights

    def _exact(self) -> tuple[Any, ...]:
        return self.sums.tobytes(), self.weights

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        size = cls._entries(plan)
        counts = np.zeros(size, cls._entry_type(plan))
        if plan.participation.uniform_rate is not None:
            return counts, None
        zeros = np.zeros((size + 1, 2), np.uint64)
        return counts, WeightedSums(zeros, zeros)

    @classmethod
    def _bytes_of_sums(cls, plan: Plan) -> int:
        """Return the number of bytes of a tally's counts."""
        size = cls._entries(plan)
        return 8 * size + (32 * (size + 1) if plan.participation.uniform_rate is None else 0)

    def _sums_to_bytes(self) -> bytes:
        """Write counts and weights: see :mod:`turnout.collecting.tally_encoding`."""
        counts: bytes = self.sums.astype(self.sums.dtype.newbyteorder("<")).tobytes()
        return counts if self.weights is None else counts + self.weights.to_bytes()

    @classmethod
    def _sums_of_bytes(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        """Read counts and weights."""
        size, kind = cls._entries(plan), cls._entry_type(plan)
        counts = np.frombuffer(data, kind.newbyteorder("<"), size).astype(kind)
        if plan.participation.uniform_rate is not None:
            return counts, None
        return counts, WeightedSums.from_bytes(data[8 * size :], size)
