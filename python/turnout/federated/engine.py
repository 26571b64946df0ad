"""Run server and clients in one process: for studies, and to try a training before deployment."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._progress import track
from turnout._types import Array, Integers
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError, MissingPartyError
from turnout.federated import draws
from turnout.federated.asking import Asked, ahead, one_by_one, together
from turnout.federated.checking import Check, check_round
from turnout.federated.client import LABEL
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.server import Server
from turnout.federated.sizes import sizes_of
from turnout.federated.sums import (
    Gathering,
    add_gradients,
    clipped_rows,
    first_usable,
    fits,
    structure_of,
    zeros,
)

_LOG = logging.getLogger(__name__)

#: Of how many clients at most the first gradients are tried before anything is spent.
_TRIED = 8


class InProcessEngine:
    """Run all clients and the server of a training in one process.

    The cost of a round is proportional to the clients that take part, not to all clients. With a
    seed the engine draws what :class:`~turnout.federated.Client` draws with the same index. So it
    ends with the same numbers as clients in processes of their own.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
    gradients
        ``gradients(parameters, client, elements)`` returns one gradient for each of these elements
        (int64 indices, at least one) of a client, as for :meth:`turnout.federated.Client.update`.
        Where a client is the unit of the plan, it may return another number of gradients, such as
        the single one of :func:`~turnout.federated.local_steps`.
    sizes
        The number of elements of each client: a list of integers, or one integer for all clients.
    optimizer
        The optimizer, which turns a gradient into a step, such as :class:`~turnout.federated.SGD`.
    clients
        The number of clients. Leave it out if ``sizes`` has one entry for each client.
    ledger, checkpoint, checkpoint_every
        As for :class:`~turnout.federated.Server`.
    batched
        Whether to call ``gradients`` for elements of many clients, with an array of clients as long
        as that of elements. It returns one gradient for each element. A call has so many elements
        that their gradients fit in the cache of a processor. The sum is the same, but gradients
        that depend on the batch may come out in other bits. Then one element changes the gradients
        of all clients, see :func:`~turnout.federated.one_at_a_time`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Before the first round is paid, the engine calls ``gradients`` with the first two elements of up
    to 8 clients, until a gradient is finite. A wrong shape, dtype or number of gradients, or no
    finite one, is an error, and nothing is spent. An error of the engine, or of ``gradients``, may
    depend on the data. It is for the person who runs the engine and has the data. Epsilon does not
    cover it: do not show it to anybody else, and do not tell that it occurred.

    Examples
    --------
    Find the mean of 1,000 numbers of 500 clients:

    >>> import numpy as np
    >>> from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
    >>> data = np.random.default_rng(0).normal(0.3, 0.1, size=(500, 2))
    >>> plan = RandomParticipationSGD(
    ...     0.5, 0.5, clip=1.0, epsilon=1.0, delta=1e-5, rounds=20, local_size=2, seed=1
    ... )
    >>> engine = InProcessEngine(
    ...     plan,
    ...     np.zeros(1),
    ...     lambda mean, client, elements: mean - data[client, elements][:, None],
    ...     sizes=2,
    ...     clients=500,
    ...     optimizer=SGD(0.3),
    ... )
    >>> bool(abs(engine.run(20)[0] - 0.3) < 0.05)
    True
    >>> engine.server.ledger.spent() <= 1.0
    True
    """

    #: The server's half, with the model, the round and the ledger of the whole training.
    server: Final[Server]

    def __init__(
        self,
        plan: RandomParticipationSGD,
        parameters: Any,
        gradients: Callable[..., Any],
        sizes: int | Sequence[int] | Array,
        optimizer: Optimizer,
        *,
        clients: int | None = None,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        batched: bool = False,
    ) -> None:
        _check_function("gradients", gradients)
        self._plan = _arguments.instance(
            "plan", plan, RandomParticipationSGD, "a RandomParticipationSGD"
        )
        self._gradients = gradients
        self._sizes, self._clients = sizes_of(sizes, clients, plan.local_size)
        self._batched = batched
        self.server = Server(
            plan,
            parameters,
            optimizer,
            ledger=ledger,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            trial=self._try,
        )
        self._structure = structure_of(parameters)
        # Rounds in which everybody was (or may have been) available, and each client's beside them.
        self._common = 0
        self._own: Integers | None = None

    def _client_ledger(self, index: int) -> PrivacyLedger:
        """Return the ledger of one client: what it spent in this training.

        A checkpoint does not record which clients were available. Every round before :meth:`resume`
        counts as if this client had been available, so that no client has spent more.

        Parameters
        ----------
        index
            The number of the client, from 0.

        Returns
        -------
        PrivacyLedger
            A ledger with the budget of the server's ledger.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the client does not exist, or the training has no ledger.
        """
        position = _arguments.integer("index", index, least=0, most=self._clients - 1)
        whole = self.server.ledger
        if whole is None or self._plan.mechanism is None:
            raise InvalidValueError("the training has no ledger: give one, or a target")
        own = PrivacyLedger(whole.epsilon, whole.delta, whole.adjacency)
        rounds = self._common + (0 if self._own is None else int(self._own[position]))
        if rounds:
            own.spend(self._plan.mechanism, rounds, LABEL)
        return own

    def resume(self) -> bool:
        """Continue from the checkpoint, if it exists; see :meth:`turnout.federated.Server.resume`.

        Returns
        -------
        bool
            Whether a checkpoint was found.

        Raises
        ------
        ProtocolError, CorruptDataError, UnsupportedVersionError, PlanMismatchError, OSError
            As for :meth:`turnout.federated.Server.resume`.
        """
        found = self.server.resume()
        self._common, self._own = self.server.round, None
        return found

    def run(
        self,
        rounds: int,
        *,
        available: Callable[[int], Any] | None = None,
        callback: Callable[[int, Any], object] | None = None,
        evaluate: Callable[[Any], Any] | None = None,
        evaluate_every: int = 1,
        progress: bool = False,
    ) -> Any:
        """Train until this many rounds are over, including those before :meth:`resume`.

        Parameters
        ----------
        rounds
            The total number of rounds, not the number of further ones. At least as many as are
            over.
        available
            ``available(round)`` returns the indices of the available clients: at least one, each
            once. None if all clients are always available. It must not depend on their data.
        callback
            ``callback(round, parameters)`` is called after every round, with the number of rounds
            that are over and the model.
        evaluate
            ``evaluate(parameters)`` returns numbers by name, such as ``{"loss": 0.3, "accuracy":
            0.9}``, for the history of the server. Measure on public data: no epsilon covers a
            measurement on the data of clients.
        evaluate_every
            The number of rounds from one evaluation to the next. The last round is always
            evaluated.
        progress
            Whether to show a progress bar on standard error after two seconds.

        Returns
        -------
        Tree
            The model, nested as it was given.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for a round. ``server.parameters`` holds the model of the
            rounds before.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or ``gradients`` or ``available``
            return something unexpected. Also if none of the gradients that a round sampled is
            finite, or the model would not be finite. The round is given up, and stays paid: the
            error depends on the data.
        OSError
            If the checkpoint cannot be written.
        """
        total = _arguments.integer("rounds", rounds, least=0)
        if total < self.server.round:
            raise InvalidValueError(
                f"rounds must be the total number of rounds, of which {self.server.round} are "
                f"over, got {total}"
            )
        every = _arguments.integer("evaluate_every", evaluate_every, least=1)
        functions = {"available": available, "callback": callback, "evaluate": evaluate}
        for name, function in functions.items():
            if function is not None:
                _check_function(name, function)
        work = range(self.server.round, total)
        for _ in track(work, "federated training", wanted=progress):
            self._one_round(available)
            number = self.server.round
            if evaluate is not None and (number % every == 0 or number == total):
                self.server.history._measure(evaluate(self.server.parameters))
            if callback is not None:
                callback(self.server.round, self.server.parameters)
        return self.server.parameters

    def check(self) -> Check:
        """Try a round without paying for it and without changing anything.

        Clients and elements are drawn as in a round; in a small training, at least one element of
        up to 8 clients. Their gradients are computed at the model, after a step without noise and
        after one with noise, and along a step at whose ends they differ a lot. This finds gradients
        that have a wrong shape or dtype or are not finite, a clip that fits no gradient, and too
        large a learning rate.

        Returns
        -------
        Check
            The share of gradients that are clipped or not finite, the norm of the noise relative to
            the mean gradient. Also the effect of a step on the loss. ``print`` it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If gradients have a wrong shape or dtype, or none of them is finite, or the learning
            rate is too large. Steps without noise then make the loss larger (the first, and 8
            together), or a step leads to a model or to gradients that are not finite.

        Notes
        -----
        The result and the error depend on the data, and no epsilon covers them. They are for the
        person who runs the engine and has the data. If you choose parameters by them, you choose
        them by the data: do so on public or made-up data.

        Examples
        --------
        >>> import numpy as np
        >>> from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
        >>> data = np.random.default_rng(0).normal(0.3, 0.1, size=(500, 2))
        >>> plan = RandomParticipationSGD(
        ...     0.5, 0.5, clip=1.0, epsilon=1.0, delta=1e-5, rounds=20, local_size=2, seed=1
        ... )
        >>> def engine(learning_rate):
        ...     return InProcessEngine(
        ...         plan,
        ...         np.zeros(1),
        ...         lambda mean, client, elements: mean - data[client, elements][:, None],
        ...         sizes=2,
        ...         clients=500,
        ...         optimizer=SGD(learning_rate),
        ...     )
        >>> print(engine(0.3).check())
        251 gradients were tried, 0 are not finite and count as zero
        0% are clipped; the median norm is 0.285
        the noise of a round is 0.0674 times as long as its mean gradient
        a step changes the loss by about -0.0221 without noise, -0.0216 with it
        >>> engine(3.0).check()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        turnout.errors.InvalidValueError: learning_rate is too large: even without noise the ...
        """
        number = self.server.round
        sampled = self._sampled(draws.participants(self._plan, self._clients, number), number)
        if not any(elements.size for elements in sampled.values()):
            sampled = {client: np.zeros(1, np.int64) for client in self._first_clients()}
        work = [asked for calls in self._work(sampled).values() for asked in calls]
        if not any(elements.size for _, elements, _ in work):
            raise InvalidValueError("sizes must be above 0 for at least one client")
        return check_round(
            self._plan,
            self.server._optimizer,
            self.server.parameters,
            self._structure,
            lambda model: self._asked(model, work),
            round=number,
            available=self._clients,
            filled=self._filled(),
            clip=self.server.clip,
        )

    def _filled(self) -> float:
        """Return the elements, or clients with elements, over the number that scales the sum."""
        sizes = np.asarray(self._sizes)
        if self._plan.unit == "client":
            return float(np.mean(sizes > 0))
        return float(np.mean(sizes)) / (self._plan.nominal_local_size or self._plan.local_size or 1)

    def _one_round(self, available: Callable[[int], Any] | None) -> None:
        number = self.server.round
        present = None if available is None else self._present(available(number))
        self.server.open(self._clients if present is None else present.size)
        try:
            self._pay(present)
            taking_part = draws.participants(self._plan, self._clients, number)
            if present is not None:
                taking_part = np.intersect1d(taking_part, present, assume_unique=True)
            for values in self._updates(number, taking_part, present):
                self.server.put(values)
            self.server.close()
        except BaseException as error:
            over = self.server._open is None
            if not over:
                self.server._abandon()
            if not (over and isinstance(error, MissingPartyError)):
                raise
            _LOG.warning("%s", error)

    def _try(self, parameters: Any) -> Any:
        return first_usable(self._first_gradients(parameters), self._structure)

    def _first_gradients(self, parameters: Any) -> Iterator[tuple[Any, int | None]]:
        counted = self._plan.unit == "element" or self._batched
        for client in self._first_clients():
            # Of two elements: for one, a gradient for all of them looks like one for each.
            size = self._sizes if isinstance(self._sizes, int) else self._sizes[client]
            first = np.arange(min(size, 2))
            who = np.full(first.size, client) if self._batched else client
            yield self._gradients(parameters, who, first), first.size if counted else None

    def _first_clients(self) -> list[int]:
        """Return up to 8 clients that have an element."""
        if isinstance(self._sizes, int):
            return list(range(min(self._clients, _TRIED) if self._sizes else 0))
        return [int(client) for client in np.flatnonzero(self._sizes)[:_TRIED]]

    def _pay(self, present: Integers | None) -> None:
        if present is None:
            self._common += 1
            return
        if self._own is None:
            self._own = np.zeros(self._clients, np.int64)
        self._own[present] += 1

    def _updates(
        self, number: int, taking_part: Integers, present: Integers | None
    ) -> Iterator[Array]:
        """Yield the updates of the clients, or sums of several where clients add no noise."""
        sampled = self._sampled(taking_part, number)
        work = self._work(sampled)
        usable = 0
        if self._plan.mode == "trusted_server" and self._plan.grid is not None:
            sums = self._sums([asked for calls in work.values() for asked in calls])
        else:
            sums = self._sums_of_each(work, self._senders(taking_part, present), number)
        for values, finite in sums:
            usable += finite
            yield values
        asked = sum(elements.size for elements in sampled.values())
        if asked > 0 and usable == 0:
            raise InvalidValueError(
                f"gradients must be finite numbers, got NaN or infinity for all {asked} "
                f"elements that round {number} sampled: its sum would be only noise. The "
                "model is unchanged, and the round remains paid"
            )

    def _sums(self, work: list[Asked]) -> Iterator[tuple[Array, int]]:
        """Add up gradients of clients that send no noise, and count the finite ones."""
        gathering = Gathering(self._plan, self.server.clip, self._structure.total)
        for gradients, counts in ahead(self._asked(self.server.parameters, work)):
            yield from gathering.take(clipped_rows(self._plan, gradients, counts, self._structure))
            del gradients  # its memory is that of the next but one
        yield from gathering.rest()

    def _sums_of_each(
        self, work: dict[int, list[Asked]], senders: Integers, number: int
    ) -> Iterator[tuple[Array, int]]:
        """Do the same for each client alone; in batches the first client has the sum of all."""
        parameters = self.server.parameters
        for client in senders.tolist():
            values, usable, rows = zeros(self._plan, self._structure.total), 0, 0
            for gradients, counts in ahead(self._asked(parameters, work.get(client, []))):
                rows += len(counts) if self._plan.unit == "client" else sum(counts)
                if not fits(self._plan, self.server.clip, rows):
                    raise _arguments.invalid(
                        "the sum of a round must fit 64 bits (take fewer grid_bits): too many "
                        f"elements in round {number}",
                        rows,
                    )
                found, finite = add_gradients(
                    self._plan, gradients, counts, self._structure, self.server.clip
                )
                values, usable = values + found, usable + finite
            yield draws.made_safe(self._plan, values, client, number), usable

    def _asked(self, model: Any, work: list[Asked]) -> Iterator[tuple[Any, list[int]]]:
        """Call the function of gradients wherever there are elements."""
        for who, elements, counts in work:
            if elements.size:
                yield self._gradients(model, who, elements), counts

    def _work(self, sampled: dict[int, Integers]) -> dict[int, list[Asked]]:
        """Return the calls for gradients: those of each client, or all under the first."""
        if not self._batched:
            return one_by_one(sampled)
        return together(sampled, self._structure.total, self._plan.unit == "client")

    def _senders(self, taking_part: Integers, present: Integers | None) -> Integers:
        if self._plan.mode != "always_send":
            return taking_part
        return np.arange(self._clients) if present is None else present

    def _sampled(self, clients: Integers, number: int) -> dict[int, Integers]:
        """Draw the elements of clients that take part."""
        sizes = self._sizes
        each = np.full(clients.size, sizes) if isinstance(sizes, int) else sizes[clients]
        drawn = draws.elements_of_all(self._plan, each, clients, number)
        return dict(zip(clients.tolist(), drawn, strict=True))

    def _present(self, given: Any) -> Integers:
        expected = "the indices of the clients that are available, each once"
        indices = _arguments.vector("available", given, expected, "whole numbers", "iu")
        present = np.unique(indices.astype(np.int64))
        if present.size != indices.size or present.size == 0:
            raise _arguments.invalid(f"available must give {expected}, at least one", given)
        if present[0] < 0 or present[-1] >= self._clients:
            raise _arguments.invalid(
                f"available must give indices from 0 to {self._clients - 1}", given
            )
        return present

    def __repr__(self) -> str:
        """Show how far the training is."""
        return f"InProcessEngine({self._clients} clients, round {self.server.round})"


def _check_function(name: str, value: Any) -> None:
    if not callable(value):
        raise _arguments.mistyped(f"{name} must be a function", value)
