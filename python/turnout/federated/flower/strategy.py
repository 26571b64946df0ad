"""The server side: a strategy, and a ready ServerApp around it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from logging import ERROR, INFO, WARNING
from typing import Any

from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import Result, Strategy

from turnout import _arguments
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError, MissingPartyError, ProtocolError
from turnout.federated import Optimizer, RandomParticipationSGD, Server
from turnout.federated.flower import records
from turnout.federated.trees import Structure, Tree, flatten

_POLL = 0.2

#: After how many seconds it is said that nodes are waited for, and how often it is said again.
_QUIET, _REPEAT = 1.0, 15.0


class RandomParticipationStrategy(Strategy):
    """Train with random participation: a strategy for the ``ServerApp`` of any Flower project.

    Every round asks all connected nodes, whose number is public; each decides for itself whether it
    takes part. Replies that fail or do not come within the time limit are left out, and the round
    goes on. Nodes need the mod of :func:`participation_mod`, or :func:`client_app`.

    Parameters
    ----------
    plan
        The public parameters, sent to the nodes with every round.
    optimizer
        What makes a step of a gradient, such as ``turnout.federated.SGD(0.1)``.
    ledger
        The ledger of the whole training; one with the plan's target if None, or none if there is no
        target. It pays before a round is sent to anybody.
    checkpoint
        A file that the state is written to. If it is there already, :meth:`start` goes on from it.
    checkpoint_every
        After how many rounds it is written.
    structure
        How the arrays of the model are nested; None if they only have names.
    least_nodes
        How many nodes must be connected before the first round. Later ones go on with whoever is
        still there, at least one.
    patience
        How many seconds to wait for them.
    trial
        ``trial(parameters)`` gives the gradients of a few made-up elements at the model, as the
        nodes give those of real ones: see :class:`turnout.federated.Server`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The results hold no number of updates and no metrics of nodes: who takes part is what the
    accounting counts on being hidden.

    Examples
    --------
    >>> from turnout.federated import SGD, RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.1, 0.1, clip=1.0, epsilon=1.0, delta=1e-5, rounds=100, local_size=100
    ... )
    >>> strategy = RandomParticipationStrategy(plan, SGD(0.1))

    and in the main function of a ServerApp ``strategy.start(grid, arrays, num_rounds=100)``.
    """

    def __init__(
        self,
        plan: RandomParticipationSGD,
        optimizer: Optimizer,
        *,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        structure: Structure | None = None,
        least_nodes: int = 1,
        patience: float = 600.0,
        trial: Callable[[Tree], Any] | None = None,
    ) -> None:
        self._plan = _arguments.instance(
            "plan", plan, RandomParticipationSGD, "a RandomParticipationSGD"
        )
        expected = "an optimizer of turnout.federated, such as SGD(0.1)"
        _arguments.instance("optimizer", optimizer, Optimizer, expected)
        options: Any = {
            "checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "trial": trial
        }  # fmt: skip
        self._begin = partial(Server, plan, optimizer=optimizer, ledger=ledger, **options)
        self._structure = structure
        self._least_nodes = _arguments.integer("least_nodes", least_nodes, least=1)
        self._patience = _arguments.seconds("patience", patience)
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        """The server's half: model, round, ledger.

        Raises
        ------
        ProtocolError
            If the training was not started.
        """
        if self._server is None:
            raise ProtocolError("the training was not started")
        return self._server

    def start(  # noqa: PLR0917 (Flower's signature)
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train.

        Parameters
        ----------
        grid
            Flower's grid.
        initial_arrays
            The model to start from, float32 or float64. Buffers that are not trained, such as
            counters of batches, do not belong in it.
        num_rounds
            How many rounds the whole training has; those of a checkpoint count.
        timeout
            How many seconds to wait for the replies of a round. A node that died is waited for as
            long, until Flower takes it for lost.
        train_config, evaluate_config
            What is sent to the nodes beside the round.
        evaluate_fn
            Called with a round's number, from 1, and the model; 0 stands for the model to start
            from.

        Returns
        -------
        flwr.serverapp.strategy.Result
            The final model and what ``evaluate_fn`` gave.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for a round. No node was asked.
        MissingPartyError
            If too few nodes are connected.
        InvalidTypeError, InvalidValueError, PlanMismatchError, CorruptDataError
            If the model is not of floating-point numbers, a checkpoint does not fit, or the trial
            fails: then no node was asked and nothing was paid.
        """
        self._server = self._begin(parameters=records.unpack(initial_arrays, self._structure))
        if self._server.checkpoint is not None and self._server.resume():
            log(INFO, "turnout: going on from round %s", self._server.round)
        done = self._server.round
        arrays = records.pack(self._server.parameters)
        shifted = None if evaluate_fn is None else lambda at, now: evaluate_fn(done + at, now)
        left = max(0, num_rounds - done)
        result = super().start(grid, arrays, left, timeout, train_config, evaluate_config, shifted)
        if not result.arrays:
            result.arrays = arrays
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Pay for a round, open it, and make the messages to all connected nodes."""
        least = self._least_nodes if server_round == 1 else 1
        nodes = connected_nodes(grid, least, self._patience)
        number = self.server.open(available=len(nodes))
        log(INFO, "turnout: round %s of the plan is paid, %s nodes are asked", number, len(nodes))
        config["server-round"], group = number + 1, str(number + 1)
        content = RecordDict(
            {
                records.ARRAYS: arrays,
                records.ROUND: records.round_record(self._plan, number, self._structure),
                "config": config,
            }
        )
        return [
            Message(content, dst_node_id=node, message_type=MessageType.TRAIN, group_id=group)
            for node in nodes
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Add up the updates that came back and make a step, unless every node failed.

        What a node cannot honestly have sent is left out, as is a step to a model that is not
        finite: a node that sends something else does not end the training.
        """
        server = self.server
        if not records.taken(replies, lambda node, one: server.add(records.update_of(one), node)):
            # A step would be of noise alone.
            self.server._abandon()
            log(WARNING, "turnout: no node answered: the model stays as it is, the round is paid")
            return records.pack(self.server.parameters), None
        try:
            return records.pack(self.server.close()), None
        except InvalidValueError as error:
            log(ERROR, "turnout: the model stays as it is: %s", error)
            return records.pack(self.server.parameters), None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask no node to evaluate: nothing would pay for the answers."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing was asked for."""
        return None

    def summary(self) -> None:
        """Log the plan."""
        log(INFO, "\t├──> Plan: %r", self._plan)
        log(INFO, "\t└──> Ledger: %r", self.server.ledger)


def connected_nodes(grid: Grid, least: int, patience: float) -> list[int]:
    """Wait until so many nodes are connected and give all that are.

    Raises
    ------
    MissingPartyError
        If there are fewer when the patience, in seconds, is over.
    """
    begin = last = time.monotonic()
    shown: int | None = None
    while len(nodes := list(grid.get_node_ids())) < least:
        now = time.monotonic()
        if now - begin > patience:
            raise MissingPartyError(
                f"{len(nodes)} of at least {least} nodes are connected after {patience:g} seconds"
            )
        if now - begin >= _QUIET and (len(nodes) != shown or now - last >= _REPEAT):
            last, shown = now, len(nodes)
            left = patience - (now - begin)
            text = "turnout: %s of at least %s nodes are connected, waiting %.0f s more at most"
            log(INFO, text, shown, least, left)
        time.sleep(_POLL)
    return nodes


def server_app(
    plan: RandomParticipationSGD,
    parameters: Tree,
    optimizer: Optimizer,
    *,
    rounds: int,
    evaluate: Callable[[int, Tree], dict[str, float] | None] | None = None,
    on_end: Callable[[Tree, Server, Context], None] | None = None,
    timeout: float = 3600.0,
    **options: Any,
) -> ServerApp:
    """Make a ServerApp that trains with random participation.

    Parameters
    ----------
    plan, optimizer
        As for :class:`RandomParticipationStrategy`.
    parameters
        The model to start from: nested lists, tuples and dictionaries of float32 or float64 arrays.
        The nodes get it nested in the same way.
    rounds
        How many rounds the whole training has.
    evaluate
        Called after every round with its number, from 1, and the model, on the server; it may give
        numbers, which Flower logs. 0 stands for the model to start from.
    on_end
        Called with the final model, the server's half and Flower's context.
    timeout
        How many seconds to wait for the replies of a round.
    **options
        ``ledger``, ``checkpoint``, ``checkpoint_every``, ``least_nodes``, ``patience`` and
        ``trial`` of :class:`RandomParticipationStrategy`.

    Returns
    -------
    flwr.serverapp.ServerApp
        Ready to be named in ``pyproject.toml``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import SGD, RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.1, 0.1, clip=1.0, epsilon=1.0, delta=1e-5, rounds=100, local_size=100
    ... )
    >>> app = server_app(plan, {"weights": np.zeros(10)}, SGD(0.1), rounds=100)
    """
    _leaves, structure = flatten(parameters)
    count = _arguments.integer("rounds", rounds, least=1)
    limit = _arguments.seconds("timeout", timeout)
    for name, function in (("evaluate", evaluate), ("on_end", on_end)):
        if not (function is None or callable(function)):
            raise _arguments.mistyped(f"{name} must be a function or None", function)
    RandomParticipationStrategy(plan, optimizer, structure=structure, **options)
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = RandomParticipationStrategy(plan, optimizer, structure=structure, **options)

        def evaluated(number: int, arrays: ArrayRecord) -> MetricRecord | None:
            assert evaluate is not None
            numbers = evaluate(number, records.unpack(arrays, structure))
            return None if numbers is None else MetricRecord(dict(numbers))

        strategy.start(
            grid,
            records.pack(parameters),
            count,
            limit,
            evaluate_fn=None if evaluate is None else evaluated,
        )
        if on_end is not None:
            on_end(strategy.server.parameters, strategy.server, context)

    return app
