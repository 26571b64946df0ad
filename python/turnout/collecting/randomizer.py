"""The interface of a kind of question: how answers become reports, and reports become sums."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from turnout import _arguments, _core, _kinds
from turnout._core import NoiseStreams
from turnout._types import Array, Floats, Integers, Truths
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.metrics import observe
from turnout.participation import Participation, Personalized

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: A randomizer; what is not said is not checked.
    R_co = TypeVar("R_co", bound="Randomizer", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

_LOGGER = logging.getLogger(__name__)


#: Where noise comes from: fresh from the operating system, a seed, or the streams of a job's key.
Noise = int | NoiseStreams | None


class Drawn(NamedTuple):
    """The reports of the nodes that take part.

    Attributes
    ----------
    reports
        One report for each of these nodes, in their order.
    probabilities
        The probability with which each took part, if every node has its own.
    """

    reports: Array
    probabilities: Floats | None = None


class Counts(NamedTuple):
    """The sums of reports that a tally keeps.

    Attributes
    ----------
    sums
        Exact additive numbers, as the kind's tally takes them.
    received
        The number of reports.
    weights
        The same sums with inverse probabilities, if every node has its own.
    """

    sums: Any
    received: int
    weights: Any = None


def common_rate(participation: Participation) -> float:
    """Return the rate that all nodes share.

    Raises
    ------
    InvalidValueError
        If each node has its own rate.

    Examples
    --------
    >>> import turnout as tn
    >>> common_rate(tn.Bernoulli(0.25))
    0.25
    """
    rate = participation.uniform_rate
    if rate is None:
        raise _without_probabilities(participation)
    return rate


def rates_of(participation: Participation) -> float | Floats:
    """Return the rate that all nodes share, or the probability of each.

    Raises
    ------
    InvalidValueError
        If the probabilities are missing: a plan does not hold them.

    Examples
    --------
    >>> import turnout as tn
    >>> rates_of(tn.Bernoulli(0.25)), rates_of(tn.Personalized([0.5, 1.0]))
    (0.25, array([0.5, 1. ]))
    """
    rate = participation.uniform_rate
    if rate is not None:
        return rate
    if isinstance(participation, Personalized):
        return participation.probabilities
    raise _without_probabilities(participation)


def _without_probabilities(participation: Participation) -> InvalidValueError:
    return InvalidValueError(
        f"participation must contain the probabilities, got {participation!r}, as a plan has it"
    )


class Randomizer(ABC):
    """The interface that a kind of question must implement.

    It defines how an answer becomes a report, which sums of reports a tally keeps, and what they
    estimate. Plans, report files and messages use nothing else of a kind. The verbs that build on
    it are those of :class:`turnout.collecting.kind.Kind`.

    An instance is immutable and holds no randomness. Threads may share it; every call draws from
    separate streams.
    """

    #: The word for this kind in plans.
    name: ClassVar[str]

    #: The class of its tallies.
    tally_type: ClassVar[type[Any]]
    #: The class of what is estimated of the groups of a :class:`turnout.GroupedTally`.
    _grouped_type: ClassVar[type[Any]]

    #: The class of its domains: which answers can be given.
    domain_type: ClassVar[type[Any]]

    #: Whether the reports of a block of nodes can be drawn by themselves, from the block's streams.
    by_blocks: ClassVar[bool] = True

    #: Why all nodes must share one rate of participation; empty where each may have its own.
    _one_rate_because: ClassVar[str] = ""

    #: Whether a node may send nothing by what its answer is, which :attr:`realized_ratio` counts:
    #: then not everyone reports even where everyone takes part.
    silent: bool = False

    #: Who may be asked, where that is not everyone: for those who hand answers over.
    _asked_of: ClassVar[str] = ""

    #: Why no tally can be drawn from counts of answers; empty where one can.
    no_simulation_because: ClassVar[str] = "counts of answers do not say what its tallies are"

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Register the kind for plans."""
        super().__init_subclass__(**arguments)
        if "name" in cls.__dict__:
            _kinds.register(cls)

    _epsilon: float
    _domain: Any

    @property
    def epsilon(self) -> float:
        """The requested privacy parameter, in nats."""
        return self._epsilon

    @property
    def domain(self) -> Any:
        """The possible answers."""
        return self._domain

    @property
    def fresh(self) -> bool:
        """Whether a node's reports in several rounds are independent, so that budgets compose.

        Otherwise the node keeps a permanent answer, whose noise is in all its reports.
        """
        return True

    @property
    @abstractmethod
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two answers."""

    @property
    @abstractmethod
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of a report in bits."""

    @property
    @abstractmethod
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report."""

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one integer, ``(width,)`` for a row of them."""
        return ()

    @abstractmethod
    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize encoded answers.

        Parameters
        ----------
        answers
            The result of the domain's :meth:`encode`: one entry or row for each node.
        participation
            A common rate, or one probability for each node.
        noise
            The source of the noise.

        Returns
        -------
        Drawn
            The reports of the nodes that take part.

        Raises
        ------
        CodeOutsideDomainError, InvalidValueError
            If an answer is outside the domain, whether its node takes part or not, or the numbers
            of probabilities and answers differ.
        """

    def _reporters(self, answers: Array, participation: Participation, noise: Noise) -> Integers:
        """Return the indices of the nodes whose reports :meth:`draw_reports` draws.

        Parameters
        ----------
        answers, participation, noise
            As for :meth:`draw_reports`; the noise must be reproducible.
        """
        return _core.participants(len(answers), rates_of(participation), noise)

    @abstractmethod
    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Add up reports.

        Parameters
        ----------
        reports
            Reports that :meth:`check_reports` has accepted.
        probabilities
            The probability with which the node of each report took part, if every node has its own.

        Returns
        -------
        Counts
            The sums that the kind's tally takes.
        """

    @abstractmethod
    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and add up in one pass: :meth:`draw_reports` and :meth:`count_reports`."""

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw sums with the distribution of :meth:`draw_counts`, from counts of answers alone.

        Parameters
        ----------
        counts
            The number of nodes that hold each answer, uint64.
        rate
            The rate at which all nodes take part.
        seed
            As for :meth:`randomize`.

        Returns
        -------
        Counts
            The sums that the kind's tally takes.
        """
        raise NotImplementedError(self.name)

    def _count_by_group(self, reports: Array, groups: Integers, number: int) -> list[Counts] | None:
        """Add up the reports of several groups in one pass, if that is faster.

        Returns
        -------
        list of Counts or None
            The counts of each group, or None to count each group separately.
        """
        return None

    @abstractmethod
    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the randomizer cannot have made.

        Parameters
        ----------
        reports
            An array of :attr:`report_dtype`, one :attr:`report_shape` for each report.

        Raises
        ------
        InvalidValueError
            If there is one; the error gives its position.
        """

    def improbable(self, reports: Array) -> Truths:
        """Return which reports are valid but improbable from an honest node.

        An example is a report of many bits that are all set. Such reports count like any other,
        since an attacker can send probable reports as well. But several of them show that somebody
        does not follow the plan.

        Parameters
        ----------
        reports
            An array of :attr:`report_dtype`, one :attr:`report_shape` for each report.

        Returns
        -------
        numpy.ndarray
            One truth value for each report: True for reports in a set that an honest node hits with
            probability at most 2^-40, whatever its answer. None if every report is probable under
            some answer.

        Examples
        --------
        >>> import numpy as np
        >>> import turnout as tn
        >>> oracle = tn.OptimizedUnaryEncoding(1.0, 64)
        >>> int(oracle.improbable(oracle.randomize([3] * 1000).codes).sum())
        0
        >>> oracle.improbable(np.array([[2**64 - 1]], np.uint64))
        array([ True])
        """
        return np.zeros(len(reports), np.bool_)

    def _refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that does not fit into :attr:`report_dtype`."""
        limits = np.iinfo(self.report_dtype)
        outside = (reports < limits.min) | (reports > limits.max)
        position = tuple(int(index) for index in np.argwhere(outside)[0])
        raise InvalidValueError(
            f"codes[{', '.join(map(str, position))}] is out of range: expected an integer from "
            f"{limits.min} to {limits.max}"
        )

    def _estimator_variance(
        self, participation: Participation, method: str, true_counts: Any, values: Any
    ) -> Any:
        """Compute :func:`turnout.estimator_variance` for this kind."""
        raise _arguments.mistyped(
            "oracle must have variances that are known before the collection: a "
            "frequency oracle, a mechanism for a mean or a collection of several "
            "attributes",
            self,
        )

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the randomizer.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written to a file.
        """
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "domain": self.domain.to_dict(),
            **self.parameters(),
        }

    @classmethod
    def from_dict(cls, description: Any) -> Any:
        """Rebuild a randomizer of this class or of a subclass from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it does not describe such a randomizer.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> tn.FrequencyOracle.from_dict(oracle.to_dict()) == oracle
        True
        """
        if not hasattr(cls, "name"):  # a base class: the description says which
            found = _kinds.from_dict(description)
            if isinstance(found, cls):
                return found
        match description:
            case {
                "name": str(name),
                "epsilon": float() | int() as epsilon,
                "domain": domain,
                **rest,
            } if name == getattr(cls, "name", None):
                try:
                    parameters = {str(name): value for name, value in rest.items()}
                    made = cls._made_of(epsilon, cls.domain_type.from_dict(domain), parameters)
                except (InvalidValueError, InvalidTypeError, TypeError, KeyError) as error:
                    raise CorruptDataError(f"not the description of an oracle: {error}") from error
                if made.parameters() == rest:
                    return made
        raise CorruptDataError(f"not the description of an oracle: {_arguments.shown(description)}")

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        """Call the constructor with the content of a description."""
        return cls(epsilon, domain, **parameters)  # type: ignore[call-arg]

    def __eq__(self, other: object) -> bool:
        """Compare class, epsilon, domain and other parameters."""
        if not isinstance(other, Randomizer):
            return NotImplemented
        return (
            type(self) is type(other)
            and self.epsilon == other.epsilon
            and self.domain == other.domain
            and self.parameters() == other.parameters()
        )

    def __hash__(self) -> int:
        """Hash the compared values."""
        return hash((type(self), self.epsilon, self.domain))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parameters: the kernel is rebuilt."""
        return self._made_of, (self.epsilon, self.domain, self.parameters())


def tell_improbable(oracle: Randomizer, reports: Array) -> int:
    """Count, log and publish the improbable reports among received ones.

    Parameters
    ----------
    oracle
        The oracle that should have made them.
    reports
        Reports that it can have made.

    Returns
    -------
    int
        The number of improbable reports. If there are any, they are also logged and passed to the
        hooks.
    """
    found = int(oracle.improbable(reports).sum())
    say_improbable(found)
    return found


def say_improbable(found: int) -> None:
    """Log the number of improbable reports and pass it to the hooks; do nothing for zero."""
    if found:
        observe("reports_improbable", reports=found)
        _LOGGER.warning("reports that honest nodes hardly ever send: %d", found)
