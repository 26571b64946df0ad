"""The server in Flower: a strategy, and a ready ServerApp around it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
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
from turnout.errors import InvalidValueError, MissingPartyError, ProtocolError, TurnoutError
from turnout.federated import Optimizer, RandomParticipationSGD, Server
from turnout.federated.flower import records
from turnout.federated.flower.secure import Aggregation
from turnout.federated.history import measurements
from turnout.federated.sums import zeros
from turnout.federated.trees import Structure, Tree, flatten

_POLL = 0.2

#: After how many seconds it is said that nodes are waited for, and how often it is said again.
_QUIET, _REPEAT = 1.0, 15.0


class RandomParticipationStrategy(Strategy):
    """A strategy for the ``ServerApp`` of any Flower project: train with random participation.

    Every round asks all connected nodes, whose number is public. Each node decides for itself
    whether it takes part. Replies that fail or miss the time limit are left out, and the round goes
    on. Nodes need the mod of :func:`participation_mod`, or :func:`client_app`.

    Parameters
    ----------
    plan
        The public parameters, sent to the nodes with every round.
    optimizer
        The optimizer, which turns a gradient into a step, such as ``turnout.federated.SGD(0.1)``.
    ledger
        The ledger of the whole training. If None, it is a new one with the plan's target as its
        budget, or no ledger if the plan has no target. It pays before a round is sent to any node.
    checkpoint
        The file that the state is written to. If it already exists, :meth:`start` continues from
        it.
    checkpoint_every
        The number of rounds from one checkpoint to the next.
    structure
        The nesting of the arrays of the model; None if they only have names.
    least_nodes
        The number of nodes that must be connected before the first round. Later rounds go on with
        the nodes that are still connected, at least one.
    patience
        The number of seconds to wait for them.
    trial
        ``trial(parameters)`` returns the gradients of a few made-up elements at the model, in the
        form that nodes use for real ones: see :class:`turnout.federated.Server`.
    aggregators
        The public keys of the aggregators, the same that the clients know, if the plan has a
        ``secure_sum``. ``least_nodes`` does not count aggregators.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The results contain neither the number of updates nor metrics of nodes: the accounting relies on
    hiding which nodes take part.

    Examples
    --------
    >>> from turnout.federated import SGD, RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.1, 0.1, clip=1.0, epsilon=1.0, delta=1e-5, rounds=100, local_size=100
    ... )
    >>> strategy = RandomParticipationStrategy(plan, SGD(0.1))

    In the main function of a ServerApp, call ``strategy.start(grid, arrays, num_rounds=100)``.
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
        aggregators: Sequence[str] = (),
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
        self._aggregation: Aggregation | None = None
        self._timeout = 3600.0
        if plan.secure_sum is not None:
            self._aggregation = Aggregation(plan, aggregators)
        elif aggregators:
            raise InvalidValueError("aggregators must be left out with a plan without secure_sum")

    @property
    def server(self) -> Server:
        """The server of the training, with its model, round and ledger.

        Raises
        ------
        ProtocolError
            If the training has not started.
        """
        if self._server is None:
            raise ProtocolError(
                "the training was not started: call start of RandomParticipationStrategy itself. A "
                "strategy around it, such as DifferentialPrivacyServerSideFixedClipping, does not, "
                "and is not needed: the plan has clipping and noise"
            )
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
        """Run the whole training and return its result.

        Parameters
        ----------
        grid
            Flower's grid.
        initial_arrays
            The model to start from, float32 or float64. Buffers that are not trained, such as
            counters of batches, do not belong in it.
        num_rounds
            The number of rounds of the whole training, including those of a checkpoint.
        timeout
            The number of seconds to wait for the replies of a round. The strategy waits as long for
            a node that died, until Flower reports it as lost.
        train_config, evaluate_config
            Configurations that are sent to the nodes beside the round.
        evaluate_fn
            A function to call with the number of a round, from 1, and the model. 0 stands for the
            model to start from. The numbers that it returns are also in the history of the server,
            for each round from 1; lists of numbers are not. Measure on public data.

        Returns
        -------
        flwr.serverapp.strategy.Result
            The final model and the results of ``evaluate_fn``.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for a round. No node is asked.
        MissingPartyError
            If too few nodes are connected.
        InvalidTypeError, InvalidValueError, PlanMismatchError, CorruptDataError
            If the model does not consist of floating-point numbers, a checkpoint does not fit, or
            the trial fails. Then no node is asked and nothing is paid.
        """
        self._timeout = timeout
        self._server = self._begin(parameters=records.unpack(initial_arrays, self._structure))
        if self._server.checkpoint is not None and self._server.resume():
            log(INFO, "turnout: going on from round %s", self._server.round)
        done = self._server.round
        arrays = records.pack(self._server.parameters)
        left = max(0, num_rounds - done)
        evaluated = None if evaluate_fn is None else partial(self._evaluated, evaluate_fn, done)
        result = super().start(
            grid, arrays, left, timeout, train_config, evaluate_config, evaluated
        )
        if not result.arrays:
            result.arrays = arrays
        return result

    def _evaluated(
        self,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None],
        done: int,
        at: int,
        arrays: ArrayRecord,
    ) -> MetricRecord | None:
        """Measure the model for Flower and for the history; ``at`` counts from a checkpoint."""
        found = evaluate_fn(done + at, arrays)
        numbers = {
            name: value for name, value in (found or {}).items() if not isinstance(value, list)
        }
        # Before the first round is paid, at 0, wrong names are found.
        measured = measurements(numbers)
        if at > 0:
            self.server.history._measure(measured)
        return found

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Pay for a round, open it, and return the messages to all connected nodes."""
        least = self._least_nodes if server_round == 1 else 1
        if self._aggregation is None:
            nodes = connected_nodes(grid, least, self._patience)
        else:
            nodes = self._aggregation.clients(grid, least, self._patience)
        number = self.server.open(available=len(nodes))
        log(INFO, "turnout: round %s of the plan is paid, %s nodes are asked", number, len(nodes))
        config["server-round"], group = number + 1, str(number + 1)
        content = RecordDict(
            {
                records.ARRAYS: arrays,
                records.ROUND: records.round_record(
                    self._plan, number, self._structure, self.server.clip
                ),
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
        """Add up the updates of the nodes and make a step, unless every node failed.

        A reply that no honest node can have sent is left out, and so is a step to a model that is
        not finite. So a node that sends such a reply does not end the training.
        """
        if self._aggregation is not None:
            return self._aggregate_sum(self._aggregation, replies), None
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

    def _aggregate_sum(self, aggregation: Aggregation, replies: Iterable[Message]) -> ArrayRecord:
        """Make a step with the sum that the aggregators find, or give the round up."""
        server = self.server
        length = zeros(self._plan, server._structure.total).size
        try:
            try:
                found = aggregation.sum(server.round, length, replies, self._timeout)
            except TurnoutError:
                server._abandon()
                raise
            server.put(*found)
            server.close()
        except TurnoutError as error:
            text = "turnout: the model stays as it is, the round is paid: %s"
            log(WARNING, text, error)
        return records.pack(server.parameters)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask no node to evaluate: nothing would pay for the answers."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Return None, since no node was asked to evaluate."""
        return None

    def summary(self) -> None:
        """Log the plan and the ledger."""
        log(INFO, "\t├──> Plan: %r", self._plan)
        log(INFO, "\t└──> Ledger: %r", self.server.ledger)


def connected_nodes(grid: Grid, least: int, patience: float) -> list[int]:
    """Wait until so many nodes are connected, and return all connected nodes.

    Raises
    ------
    MissingPartyError
        If fewer are connected when ``patience``, in seconds, is over.
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
    """Return a ServerApp that trains with random participation.

    Parameters
    ----------
    plan, optimizer
        As for :class:`RandomParticipationStrategy`.
    parameters
        The model to start from: nested lists, tuples and dictionaries of float32 or float64 arrays.
        The nodes get it nested in the same way.
    rounds
        The number of rounds of the whole training.
    evaluate
        A function that the server calls after every round with its number, from 1, and the model.
        It may return numbers by name, such as ``{"loss": 0.3, "accuracy": 0.9}``, which Flower logs
        and the history of the server holds. 0 stands for the model to start from. Measure on public
        data: no epsilon covers what you measure on the data of nodes.
    on_end
        A function to call with the final model, the :class:`~turnout.federated.Server`, which has
        the history, and Flower's context.
    timeout
        The number of seconds to wait for the replies of a round.
    **options
        ``ledger``, ``checkpoint``, ``checkpoint_every``, ``least_nodes``, ``patience``, ``trial``
        and ``aggregators`` of :class:`RandomParticipationStrategy`.

    Returns
    -------
    flwr.serverapp.ServerApp
        An app to name in ``pyproject.toml``.

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
            measured: dict[str, Any] = {**measurements(numbers)}
            return MetricRecord(measured) if measured else None

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
