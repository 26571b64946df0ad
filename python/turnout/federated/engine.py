"""Server and clients in one process: for studies, and to try a training before it is deployed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._progress import track
from turnout._types import Array, Integers
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError
from turnout.federated import draws
from turnout.federated.client import LABEL
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.server import Server
from turnout.federated.sums import add_gradients, check_trial, structure_of

#: Of how many clients at most the first gradients are tried before anything is spent.
_TRIED = 8

_BOUND = " = local_size, on which the accounting rests"


class InProcessEngine:
    """All clients and the server in one process.

    A round costs in proportion to the clients that take part, not to those there are. With a seed
    it draws what :class:`~turnout.federated.Client` draws with the same index, so that it ends with
    the same numbers as clients in processes of their own.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
    gradients
        ``gradients(parameters, client, elements)`` gives one gradient for each of these elements
        (int64 indices, at least one) of a client, as for
        :meth:`turnout.federated.Client.update`. Where a client is the unit of the plan, it may give
        another number of them, such as the one of :func:`~turnout.federated.local_steps`.
    sizes
        How many elements each client has: integers, or one integer for each.
    optimizer
        What makes a step of a gradient, such as :class:`~turnout.federated.SGD`.
    clients
        How many clients there are; left out if ``sizes`` has one entry for each.
    ledger, checkpoint, checkpoint_every
        As for :class:`~turnout.federated.Server`.
    batched
        Call ``gradients`` once a round, with an array of clients as long as the one of elements. It
        gives one gradient for each.
        The sum is the same (the gradients may be other bits, if they depend on the batch: then one
        element changes those of all clients, see :func:`~turnout.federated.one_at_a_time`).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Before the first round is paid, ``gradients`` is called with the first element of a client, of
    up to 8 clients until a gradient is finite: another shape or dtype, or no finite gradient, is
    an error and nothing is spent. An error of the engine may depend on the data, and so may one of
    ``gradients``: it is for whoever runs the engine and has the data. Epsilon does not cover it:
    show it, and that there was one, to nobody else.

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
        self._sizes, self._clients = _sizes(sizes, clients, plan.local_size)
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
        """Give the ledger of one client: what it spent in this training.

        A checkpoint does not hold who was available: what came before :meth:`resume` counts as if
        the client had been, in every round, so that no client has spent more.

        Parameters
        ----------
        index
            Its number, from 0.

        Returns
        -------
        PrivacyLedger
            With the budget of the server's ledger.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is no such client, or the training has no ledger.
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
        """Go on from the checkpoint, if there is one; see :meth:`turnout.federated.Server.resume`.

        Returns
        -------
        bool
            Whether anything was found.

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
        progress: bool = False,
    ) -> Any:
        """Train until so many rounds are over, those before :meth:`resume` included.

        Parameters
        ----------
        rounds
            The total number of rounds, not how many more: at least as many as are over.
        available
            ``available(round)`` gives the indices of the clients that are available, at least one,
            each once; None if all always are. It must not depend on their data.
        callback
            ``callback(round, parameters)`` is called after every round with the number of rounds
            that are over and the model.
        progress
            Whether to show a progress bar on standard error after two seconds.

        Returns
        -------
        Tree
            The model, nested as it was given.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for a round. The model is that of the rounds before, in
            ``server.parameters``.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or ``gradients`` or ``available``
            give something else than is expected, or none of the gradients that a round sampled is
            finite, or the model would not be finite. The round is abandoned, and stays paid: the
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
        for name, function in (("available", available), ("callback", callback)):
            if function is not None:
                _check_function(name, function)
        work = range(self.server.round, total)
        for _ in track(work, "federated training", wanted=progress):
            self._one_round(available)
            if callback is not None:
                callback(self.server.round, self.server.parameters)
        return self.server.parameters

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
        except BaseException:
            self.server._abandon()
            raise
        self.server.close()

    def _try(self, parameters: Any) -> Any:
        """Compute a gradient, of the first client that has a finite one; checked by the server."""
        if isinstance(self._sizes, int):
            clients = np.arange(min(self._clients, _TRIED) if self._sizes else 0)
        else:
            clients = np.flatnonzero(self._sizes)[:_TRIED]
        first = np.zeros(1, np.int64)
        found: Any = np.zeros((1, self._structure.total))
        for client in clients:
            who = np.array([client]) if self._batched else int(client)
            found = self._gradients(parameters, who, first)
            with contextlib.suppress(InvalidValueError):
                given = 1 if self._plan.unit == "element" or self._batched else None
                check_trial(found, given, self._structure)
                break
        return found

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
        """Give what each client sends; in batches the first has the sum of all."""
        parameters = self.server.parameters
        sampled = {int(client): self._elements(int(client), number) for client in taking_part}
        if self._batched and sampled:
            clients = np.repeat(taking_part, [part.size for part in sampled.values()])
            elements = np.concatenate(list(sampled.values()))
            first = int(taking_part[0])
            counts = [part.size for part in sampled.values()]
            work: dict[int, tuple[Any, Integers, list[int]]] = {first: (clients, elements, counts)}
        else:
            work = {client: (client, each, [each.size]) for client, each in sampled.items()}
        asked = usable = 0
        for client in self._senders(taking_part, present):
            who, elements, counts = work.get(int(client), (client, np.empty(0, np.int64), []))
            gradients = self._gradients(parameters, who, elements) if elements.size else None
            values, finite = add_gradients(self._plan, gradients, counts, self._structure)
            asked, usable = asked + elements.size, usable + finite
            yield draws.made_safe(self._plan, values, int(client), number)
        if asked > 0 and usable == 0:
            raise InvalidValueError(
                f"gradients must be finite numbers, got NaN or infinity for all {asked} elements "
                f"that round {number} sampled: its sum would be noise alone. The model is that of "
                "the round before, and the round stays paid"
            )

    def _senders(self, taking_part: Integers, present: Integers | None) -> Integers:
        if self._plan.mode != "always_send":
            return taking_part
        return np.arange(self._clients) if present is None else present

    def _elements(self, client: int, number: int) -> Integers:
        size = self._sizes if isinstance(self._sizes, int) else int(self._sizes[client])
        return draws.elements(self._plan, size, client, number)

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
        """Show how far it is."""
        return f"InProcessEngine({self._clients} clients, round {self.server.round})"


def _check_function(name: str, value: Any) -> None:
    if not callable(value):
        raise _arguments.mistyped(f"{name} must be a function", value)


def _sizes(sizes: Any, clients: int | None, bound: int | None) -> tuple[int | Integers, int]:
    most = 10**10 if bound is None else bound
    if isinstance(sizes, (int, np.integer)):
        if clients is None:
            raise InvalidValueError("clients must be given where sizes is one number for all")
        count = _arguments.integer("clients", clients, least=1, most=2**40)
        if bound is not None and sizes > bound:
            raise _arguments.invalid(f"sizes must be at most {bound}{_BOUND}", sizes)
        return _arguments.integer("sizes", sizes, least=0, most=most), count
    expected = "a number of elements for each client"
    array = _arguments.vector("sizes", sizes, expected, "whole numbers", "iu")
    if array.size == 0:
        raise InvalidValueError(f"sizes must hold {expected}, got none")
    if clients is not None and clients != array.size:
        raise _arguments.invalid(
            f"clients must be {array.size}, the number of entries of sizes, or left out", clients
        )
    expected = f"from 0 to {most}{'' if bound is None else _BOUND}"
    _arguments.refuse_entries("sizes", array, (array < 0) | (array > most), expected)
    return array.astype(np.int64), int(array.size)
