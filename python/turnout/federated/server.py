"""The server of a training."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._types import Array
from turnout.accounting import PrivacyLedger
from turnout.accounting.ledger_entries import parts_of
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
    TurnoutError,
)
from turnout.federated.checkpoint import (
    TrainingState,
    check_budget,
    check_ledger,
    check_new,
    difference,
    journal_of,
    read_checkpoint,
    writable,
    write_checkpoint,
)
from turnout.federated.client import LABEL, Update, accepted_ledger
from turnout.federated.history import History
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.rounds import OpenRound, check_available
from turnout.federated.sums import check_trial, structure_of
from turnout.federated.trees import flatten, vector


class Server:
    """The server of a training: it opens rounds, adds up the updates and makes the steps.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
    optimizer
        The optimizer, which turns a gradient into a step, such as :class:`~turnout.federated.SGD`.
    ledger
        The ledger of the whole training. If None, it is a new one with the plan's target as its
        budget, or no ledger if the plan has no target.
    checkpoint
        The file that the state is written to, see :meth:`resume`.
    checkpoint_every
        The number of rounds from one checkpoint to the next.
    trial
        ``trial(parameters)`` returns the gradients of a few made-up elements at the model, in the
        form that clients use for real ones. It is called once, before the first round is paid: an
        error that concerns every element is found before anything is spent.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a ledger is given and the plan has
        no noise.

    Notes
    -----
    The ledger pays for a round when the round opens, before any client is asked. Its total is that
    of a client that was available in every round, so no client has spent more in this training.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import SGD, Client, RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.5, 1.0, clip=1.0, noise_multiplier=0.01, local_size=1, seed=3
    ... )
    >>> server = Server(plan, np.zeros(2), SGD(0.5))
    >>> clients = [Client(plan, 1, parameters=2, index=index) for index in range(100)]
    >>> for _ in range(20):
    ...     number = server.open(available=len(clients))
    ...     gradient = server.parameters - [0.25, -0.5]
    ...     for index, client in enumerate(clients):
    ...         server.add(client.answer(number, lambda elements: gradient[None, :]), index)
    ...     model = server.close()
    >>> bool(np.abs(model - [0.25, -0.5]).max() < 0.01)
    True
    """

    #: The public parameters.
    plan: Final[RandomParticipationSGD]
    #: How many rounds were opened and ended; the number of the next one.
    round: int
    #: The clip of the open round or the next one, which clients are told where it moves.
    clip: float
    #: What the rounds came to, since the server was made.
    history: Final[History]
    #: The ledger of the whole training.
    ledger: PrivacyLedger | None
    #: The file that the state is written to.
    checkpoint: Final[Path | None]

    def __init__(
        self,
        plan: RandomParticipationSGD,
        parameters: Any,
        optimizer: Optimizer,
        *,
        ledger: PrivacyLedger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        trial: Callable[[Any], Any] | None = None,
    ) -> None:
        if not (trial is None or callable(trial)):
            raise _arguments.mistyped("trial must be a function of the model, or None", trial)
        self._trial = trial
        self.plan = plan
        self._structure = structure_of(flatten(parameters)[1])
        self._vector = vector(parameters)
        if self._structure.finite(self._vector) is None:
            raise InvalidValueError("parameters must be finite numbers, got NaN or infinity")
        self._optimizer = _arguments.instance(
            "optimizer", optimizer, Optimizer, "an optimizer of turnout.federated, such as SGD(0.1)"
        )
        self._state = optimizer.initial_state(self._structure.total)
        self.ledger = accepted_ledger(plan, ledger)
        self.checkpoint = None if checkpoint is None else writable(checkpoint)
        self._resumed = False
        self._every = _arguments.integer("checkpoint_every", checkpoint_every, least=1)
        self.round = 0
        self.clip = plan.clip
        self.history = History()
        self._open: OpenRound | None = None

    @property
    def parameters(self) -> Any:
        """The model, with the nesting and the dtypes of the one that the training started from."""
        return self._structure.from_vector(self._vector)

    def open(self, available: int) -> int:
        """Pay for a round and open it.

        Parameters
        ----------
        available
            The number of clients that are available and will be asked. It is public and may differ
            from round to round.

        Returns
        -------
        int
            The number of the round, which the clients need.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay for the round. Do not ask any client then.
        ProtocolError
            If a round is open, or ``checkpoint`` holds an earlier training and :meth:`resume` was
            not called: a new training would overwrite it, and the record of what it paid.
        MissingPartyError
            If fewer clients are available than ``secure_sum`` of the plan needs. Nothing is spent.
        InvalidTypeError, InvalidValueError
            If ``available`` is not an integer of at least 1, or too many for a secure sum. Also if
            the gradients of the trial have a wrong shape or dtype, or none of them is finite.
            Nothing is spent.
        """
        if self._open is not None:
            raise ProtocolError(f"round {self.round} is open: close it first")
        clients = _arguments.integer("available", available, least=1, most=2**40)
        check_available(self.plan, clients, self._structure.total)
        self._check_unused()
        if self._trial is not None:
            check_trial(self._trial(self.parameters), None, self._structure)
            self._trial = None
        if self.ledger is not None:
            self._pay(self.ledger)
        elif self.checkpoint is not None and self.plan.seed is None:
            # Without a ledger only this says that clients may have answered the round.
            write_checkpoint(self.checkpoint, self._training_state(opened=1))
        size = self._structure.total
        self._open = OpenRound(self.plan, self.round, clients, size, self.clip)
        return self.round

    def add(self, update: Update | None, client: Hashable) -> None:
        """Add the update of a client to the open round.

        The server takes one update from each client, and only one that an honest client can have
        sent. Its norm is at most ``clip`` for each of ``local_size`` elements, or ``clip`` once
        where a client is the unit. The limit also covers the noise of the client itself, where the
        mode has such noise: an honest client exceeds it with probability 2^-64 at most. Whatever a
        client sends leaves room for the updates of all others. So one client moves the sum by no
        more than that norm. Where an element is the unit and the plan states no ``local_size``,
        that can be far.

        Parameters
        ----------
        update
            The update. None, from a client that sends nothing, changes nothing.
        client
            A number or a name that identifies the sender, a different one for each client that was
            asked. Take it from the connection: an update does not name its sender, and could lie.

        Raises
        ------
        ProtocolError
            If no round is open, the update is for another round or the client's second one, or
            there are more updates than clients were available. Also under a plan with
            ``secure_sum``, where the server must not see single updates.
        PlanMismatchError
            If the update was made under another plan.
        InvalidTypeError, InvalidValueError
            If ``update`` is not an update, or has a wrong length or dtype, a norm that no honest
            client reaches, or numbers that are not finite; or if ``client`` does not identify a
            client. The sum does not change.
        """
        opened = self._opened("an update has nowhere to go")
        if self.plan.secure_sum is not None:
            raise ProtocolError(
                "a plan with secure_sum shows the server sums only: send shares to the aggregators "
                "(turnout.federated.flower does), and pass their sum to put"
            )
        try:
            known = client is not None and hash(client) is not None
        except TypeError:
            known = False
        if not known:
            raise _arguments.mistyped(
                "client must be a number or a name that is the client's alone", client
            )
        if update is not None:
            opened.take(update, client)

    def put(self, values: Array, senders: int = 1) -> None:
        """Add a sum of updates that this process computed, of any number of clients.

        It is for engines that run both halves, and for secure sums. It checks nothing: :meth:`add`
        checks updates from elsewhere, and :meth:`close` checks secure sums.

        Parameters
        ----------
        values
            The sum of the values of the updates, including the noise of the clients.
        senders
            The number of clients whose updates it is the sum of. It matters under a plan with
            ``secure_sum``, see :meth:`close`.

        Raises
        ------
        ProtocolError
            If no round is open.
        """
        count = _arguments.integer("senders", senders, least=0, most=2**40)
        self._opened("values have nowhere to go").put(values, count)

    def close(self) -> Any:
        """Close the round: add noise if the server is trusted to, scale the sum, make a step.

        Returns
        -------
        Tree
            The new model, nested as it was given.

        Raises
        ------
        ProtocolError
            If no round is open.
        MissingPartyError
            If fewer clients sent than ``secure_sum`` of the plan needs. The round is given up.
        InvalidValueError
            If the step leads to a model, or a state of the optimizer, that is not finite, or a
            secure sum is longer than the longest updates of all senders together (see :meth:`add`).
            The round is given up; model and checkpoint do not change.
        OSError
            If the checkpoint cannot be written. The step is made all the same.
        """
        opened = self._opened("open one first")
        try:
            opened.check_secure_sum()
        except TurnoutError:
            self._abandon()
            raise
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = opened.gradient()
            moved, state = self._optimizer.step(self._vector, gradient, self._state, self.round)
        model = self._structure.finite(moved)
        # A state that is not finite would stay so, and the model would stand still.
        if model is None or not all(np.isfinite(part).all() for part in state):
            self._abandon()
            what = "a model" if model is None else "a state of the optimizer"
            raise InvalidValueError(
                f"the step of round {self.round - 1} leads to {what} that is not finite: "
                "the step is skipped, and the round remains paid (is the learning rate "
                "too large?)"
            )
        # Over before the step is made: who interrupts this must not get a second sum of the round.
        self._end(opened, step=True)
        self._vector, self._state = moved, state
        if self.plan.adaptive_clipping is not None and opened.offset is not None:
            move = self.plan.adaptive_clipping._moved
            self.clip = move(self.clip, self.plan.clip, opened.offset)
        if self.checkpoint is not None and self.round % self._every == 0:
            self.write(self.checkpoint)
        return model

    def _abandon(self) -> None:
        """Give up the open round: its updates are forgotten, but it stays paid.

        Raises
        ------
        ProtocolError
            If no round is open.
        """
        self._end(self._opened("nothing to abandon"), step=False)

    def _end(self, opened: OpenRound, step: bool) -> None:
        self.round += 1
        self._open = None
        self.history._add(self.round, opened.available, step, self.ledger, self._told(opened))

    def _told(self, opened: OpenRound) -> dict[str, float]:
        """Return the clip and the share of clipped gradients, according to the noisy votes."""
        adaptive = self.plan.adaptive_clipping
        if adaptive is None or opened.offset is None:
            return {}
        clipped = 1.0 - adaptive.quantile - opened.offset
        return {"clip": self.clip, "clipped": min(max(clipped, 0.0), 1.0)}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the state between two rounds to a file, which appears whole or not at all.

        The ledger of a training without a seed is written beside it, because :meth:`resume` needs
        it.

        Parameters
        ----------
        path
            The file; an earlier one is replaced.

        Raises
        ------
        ProtocolError
            If a round is open.
        OSError
            If the file cannot be written.
        """
        if self._open is not None:
            raise ProtocolError(f"round {self.round} is open: close it first")
        place = Path(path)
        if self.plan.seed is None and self.ledger is not None:
            self.ledger.write(journal_of(place))
        write_checkpoint(place, self._training_state())

    def resume(self) -> bool:
        """Continue from the checkpoint, if it exists.

        The model, the optimizer's state, the round and the ledger come from the file, which
        replaces a ledger that was given. Without a seed the ledger is written beside it
        (``.ledger.json``) whenever a round opens; a training without a ledger writes the checkpoint
        then. Rounds that were opened after the last checkpoint stay paid and keep their numbers,
        since clients have answered them; only their steps are lost. In a study with a seed the same
        rounds are drawn again, exactly as before, and count once.

        Returns
        -------
        bool
            Whether a checkpoint was found.

        Raises
        ------
        ProtocolError
            If a round was opened already, or the server has no ``checkpoint``.
        CorruptDataError, UnsupportedVersionError
            If a file is damaged or of another version, or only one of the two files exists.
        PlanMismatchError
            If the files belong to another plan, model, optimizer or budget, or their ledger lacks
            rounds of the ledger that was given.
        OSError
            If a file cannot be read.
        """
        if self.checkpoint is None:
            raise ProtocolError("no checkpoint was named when the server was made")
        if self._open is not None or self.round > 0:
            raise ProtocolError("the training has begun: resume before the first round")
        found = self.checkpoint.exists()
        if found:
            self._restore(read_checkpoint(self.checkpoint))
        if self.plan.seed is None and self.ledger is not None:
            self._take_journal(self.ledger, self.checkpoint, found)
        self._resumed = True
        return found

    def _opened(self, otherwise: str) -> OpenRound:
        if self._open is None:
            raise ProtocolError(f"no round is open: {otherwise}")
        return self._open

    def _pay(self, ledger: PrivacyLedger) -> None:
        """Pay for the round to open, and save the payment where a crash would lose it."""
        assert self.plan.mechanism is not None
        path = None if self.plan.seed is not None else self.checkpoint
        if path is not None and not path.exists() and ledger.can_spend(self.plan.mechanism):
            # Before anything is spent there are both files: one without the other is a loss.
            ledger.write(journal_of(path))
            write_checkpoint(path, self._training_state())
        ledger.spend(self.plan.mechanism, label=LABEL)
        if path is not None:
            ledger.write(journal_of(path))

    def _training_state(self, opened: int = 0) -> TrainingState:
        return TrainingState(
            plan=self.plan.to_dict(),
            structure=self._structure,
            parameters=self._vector,
            optimizer=self._optimizer.to_dict(),
            optimizer_state=[*self._state, *self._moving()],
            round=self.round + opened,
            ledger=self.ledger,
        )

    def _restore(self, state: TrainingState) -> None:
        path = self.checkpoint
        for name, stored, own in (
            ("plan", state.plan, self.plan.to_dict()),
            ("model", state.structure, self._structure),
            ("optimizer", state.optimizer, self._optimizer.to_dict()),
        ):
            if stored != own:
                raise PlanMismatchError(
                    f"{path}: the checkpoint was made with another {name}{difference(stored, own)}"
                )
        if (state.ledger is None) != (self.ledger is None):
            raise PlanMismatchError(
                f"{path}: the checkpoint has {'no' if state.ledger is None else 'a'} ledger"
            )
        if state.ledger is not None:
            assert self.ledger is not None
            check_ledger(state.ledger, self.ledger, path)
        if self._structure.finite(state.parameters) is None:
            raise CorruptDataError(f"{path}: the checkpoint holds a model that is not finite")
        self._vector, self._state = state.parameters, list(state.optimizer_state)
        if self.plan.adaptive_clipping is not None:
            self.clip = self.plan.adaptive_clipping._stored(self._state, self.plan.clip, path)
        self.round, self.ledger = state.round, state.ledger

    def _moving(self) -> list[Array]:
        """Return what a checkpoint holds beside the optimizer's state: the clip, if it moves."""
        return [] if self.plan.adaptive_clipping is None else [np.array([self.clip])]

    def _take_journal(self, ledger: PrivacyLedger, path: Path, found: bool) -> None:
        """Continue from the ledger beside the checkpoint, which has the latest rounds."""
        journal = journal_of(path)
        if not journal.exists():
            if found:
                raise CorruptDataError(
                    f"{journal}, the record of what was paid after {path}, is missing: put it back"
                )
            return
        written = PrivacyLedger.read(journal)
        check_budget(written, ledger, journal)
        known = dict(parts_of(ledger.entries))
        if all(rounds <= known.get(part, 0) for part, rounds in parts_of(written.entries)):
            return
        if not found:
            raise CorruptDataError(
                f"{path} is missing, and {journal} has paid for rounds of that training: "
                "put the file back, or start a new training with the existing ledger "
                "(PrivacyLedger.read)"
            )
        check_ledger(written, ledger, journal)
        # Clients have seen these rounds and take none of their numbers again.
        self.round += _rounds(written) - _rounds(ledger)
        self.ledger = written

    def _check_unused(self) -> None:
        """Refuse to overwrite an earlier training that was not resumed."""
        if self.checkpoint is None or self._resumed or self.round > 0:
            return
        places = [self.checkpoint]
        if self.plan.seed is None and self.ledger is not None:
            places.append(journal_of(self.checkpoint))
        check_new(places)

    def __repr__(self) -> str:
        """Show how far the training is."""
        state = "open" if self._open is not None else "next"
        return f"Server(round {self.round} {state}, {self._structure.total} parameters)"


def _rounds(ledger: PrivacyLedger) -> int:
    return sum(entry.rounds for entry in ledger.entries)
