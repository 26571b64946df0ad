"""The half of the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout.accounting import PrivacyLedger
from turnout.accounting.ledger_entries import parts_of
from turnout.errors import CorruptDataError, InvalidValueError, PlanMismatchError, ProtocolError
from turnout.federated.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from turnout.federated.client import LABEL, Update, accepted_ledger
from turnout.federated.optimizers import Optimizer
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.rounds import OpenRound
from turnout.federated.sums import check_trial, structure_of
from turnout.federated.trees import flatten, vector


class Server:
    """The server: it opens a round, adds up what comes back, and makes a step of it.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        The model to start from: nested lists, tuples and dicts of float32 or float64 arrays.
    optimizer
        What makes a step of a gradient, such as :class:`~turnout.federated.SGD`.
    ledger
        The ledger of the whole training; one with the plan's target if None, or none if there is
        no target.
    checkpoint
        A file that the state is written to, see :meth:`resume`.
    checkpoint_every
        After how many rounds it is written.
    trial
        ``trial(parameters)`` gives the gradients of a few made-up elements at the model, as clients
        give those of real ones. It is called once, before the first round is paid: what is wrong
        for every element is found before anything is spent.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or there is a ledger and no noise.

    Notes
    -----
    The ledger pays for a round when it is opened, before anybody is asked for anything. Its total
    is that of a client who was available in every round, so no client has spent more in this
    training.

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
        if self._finite(self._vector) is None:
            raise InvalidValueError("parameters must be finite numbers, got NaN or infinity")
        self._optimizer = _arguments.instance(
            "optimizer", optimizer, Optimizer, "an optimizer of turnout.federated, such as SGD(0.1)"
        )
        self._state = optimizer.initial_state(self._structure.total)
        self.ledger = accepted_ledger(plan, ledger)
        self.checkpoint = None if checkpoint is None else _writable(checkpoint)
        self._resumed = False
        self._every = _arguments.integer("checkpoint_every", checkpoint_every, least=1)
        self.round = 0
        self._open: OpenRound | None = None

    @property
    def parameters(self) -> Any:
        """The model: nested as it was given, with the dtypes that were given."""
        return self._structure.from_vector(self._vector)

    def open(self, available: int) -> int:
        """Pay for a round and open it.

        Parameters
        ----------
        available
            How many clients are available and will be asked; public, may differ by round.

        Returns
        -------
        int
            The number of the round, which clients are told.

        Raises
        ------
        BudgetExceededError
            If the ledger cannot pay. No client may be asked.
        ProtocolError
            If a round is open, or there is a checkpoint of an earlier training at the place of
            this one's and :meth:`resume` was not called: a new training would write over it, and
            over what it paid.
        InvalidTypeError, InvalidValueError
            If ``available`` is no integer of at least 1, or the gradients of the trial have another
            shape or dtype, or none of them is finite. Nothing is spent.
        """
        if self._open is not None:
            raise ProtocolError(f"round {self.round} is open: close or abandon it first")
        clients = _arguments.integer("available", available, least=1, most=2**40)
        self._check_unused()
        if self._trial is not None:
            check_trial(self._trial(self.parameters), None, self._structure)
            self._trial = None
        if self.ledger is not None:
            self._pay(self.ledger)
        self._open = OpenRound(self.plan, self.round, clients, self._structure.total)
        return self.round

    def add(self, update: Update | None, client: Hashable) -> None:
        """Add what a client sent.

        Taken is what an honest client can have sent, once: an update of a norm of at most ``clip``
        for each of ``local_size`` elements (once where a client is the unit), beside the noise of
        its own that the mode has (an honest client's exceeds that with probability 2^-64 at most).
        Whatever is sent leaves room for the updates of all others. So one client moves the sum by
        no more than that norm; where an element is the unit and the plan states no ``local_size``,
        that can be far.

        Parameters
        ----------
        update
            What came back; None, from a client that sends nothing, changes nothing.
        client
            Who sent it, as the connection knows: a number or a name, one for each client that was
            asked. An update does not say it, and could say anything.

        Raises
        ------
        ProtocolError
            If no round is open, the update is for another round or the client's second one, or
            more updates came than clients were available.
        PlanMismatchError
            If it was made under another plan.
        InvalidTypeError, InvalidValueError
            If it is no update, or has another length or dtype, a norm that no honest client's has,
            or numbers that are not finite; or if ``client`` cannot be told from others. The sum is
            as before.
        """
        opened = self._opened("an update has nowhere to go")
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

    def put(self, values: Array) -> None:
        """Add what was computed in this process, of any number of clients.

        For engines that are both halves: nothing is checked, as :meth:`add` checks what comes from
        elsewhere.

        Parameters
        ----------
        values
            A sum of updates' values, noise of clients included.

        Raises
        ------
        ProtocolError
            If no round is open.
        """
        self._opened("values have nowhere to go").put(values)

    def close(self) -> Any:
        """Add noise if the server is trusted with it, scale, and make a step.

        Returns
        -------
        Tree
            The new model, nested as it was given.

        Raises
        ------
        ProtocolError
            If no round is open.
        InvalidValueError
            If the step leads to a model, or a state of the optimizer, that is not finite. The
            round is given up; model and checkpoint are as before.
        OSError
            If the checkpoint cannot be written. The step was made.
        """
        opened = self._opened("open one first")
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = opened.gradient()
            moved, state = self._optimizer.step(self._vector, gradient, self._state, self.round)
        model = self._finite(moved)
        # A state that is not finite would stay so, and the model would stand still.
        if model is None or not all(np.isfinite(part).all() for part in state):
            self._abandon()
            what = "a model" if model is None else "a state of the optimizer"
            raise InvalidValueError(
                f"the step of round {self.round - 1} leads to {what} that is not finite: it is "
                "not made, and the round stays paid (is the learning rate too large?)"
            )
        self._vector, self._state = moved, state
        self.round += 1
        self._open = None
        if self.checkpoint is not None and self.round % self._every == 0:
            self.write(self.checkpoint)
        return model

    def _abandon(self) -> None:
        """Give a round up: what came back is forgotten, what was paid stays paid.

        Raises
        ------
        ProtocolError
            If no round is open.
        """
        self._opened("nothing to abandon")
        self.round += 1
        self._open = None

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the state between two rounds to a file, which appears whole or not at all.

        The ledger of a training without a seed is written beside it, as :meth:`resume` needs it.

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
            raise ProtocolError(f"round {self.round} is open: close or abandon it first")
        place = Path(path)
        if self.plan.seed is None and self.ledger is not None:
            self.ledger.write(self._journal(place))
        write_checkpoint(place, self._training_state())

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one.

        The model, the optimizer's state, the round and the ledger are those of the file; a ledger
        that was given is used no more. Without a seed the ledger is written beside it
        (``.ledger.json``) whenever a round opens: rounds that were opened after the last checkpoint
        stay paid and keep their numbers, since clients have answered them; only their steps are
        lost. In a study with a seed they are drawn again exactly as they were, and count once.

        Returns
        -------
        bool
            Whether anything was found.

        Raises
        ------
        ProtocolError
            If a round was opened already, or no checkpoint was named.
        CorruptDataError, UnsupportedVersionError
            If a file is damaged or of another version, or one of the two is there and the other
            is missing.
        PlanMismatchError
            If the files are of another plan, model, optimizer or budget, or their ledger lacks
            something that is in the one that was given.
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
        """Pay for the round that is opened, and write that down where a crash would forget it."""
        assert self.plan.mechanism is not None
        path = None if self.plan.seed is not None else self.checkpoint
        if path is not None and not path.exists() and ledger.can_spend(self.plan.mechanism):
            # Before anything is spent there are both files: one without the other is a loss.
            ledger.write(self._journal(path))
            write_checkpoint(path, self._training_state())
        ledger.spend(self.plan.mechanism, label=LABEL)
        if path is not None:
            ledger.write(self._journal(path))

    def _finite(self, values: Floats) -> Any:
        """Give the model of all its numbers; None unless it is finite in its own dtypes."""
        with np.errstate(over="ignore"):
            model = self._structure.from_vector(values)
        leaves = flatten(model)[0]
        return model if all(np.isfinite(leaf).all() for leaf in leaves) else None

    def _training_state(self) -> TrainingState:
        return TrainingState(
            plan=self.plan.to_dict(),
            structure=self._structure,
            parameters=self._vector,
            optimizer=self._optimizer.to_dict(),
            optimizer_state=self._state,
            round=self.round,
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
                    f"{path}: the checkpoint was made with another {name}{_difference(stored, own)}"
                )
        if (state.ledger is None) != (self.ledger is None):
            raise PlanMismatchError(
                f"{path}: the checkpoint has {'no' if state.ledger is None else 'a'} ledger"
            )
        if state.ledger is not None:
            self._check_budget(state.ledger, path)
            self._check_kept(state.ledger, path)
        if self._finite(state.parameters) is None:
            raise CorruptDataError(f"{path}: the checkpoint holds a model that is not finite")
        self._vector, self._state = state.parameters, list(state.optimizer_state)
        self.round, self.ledger = state.round, state.ledger

    def _take_journal(self, ledger: PrivacyLedger, path: Path, found: bool) -> None:
        """Go on from the ledger beside the checkpoint, which knows of the latest rounds."""
        journal = self._journal(path)
        if not journal.exists():
            if found:
                raise CorruptDataError(
                    f"{journal} is missing, which knows what was paid after {path}: put it back"
                )
            return
        written = PrivacyLedger.read(journal)
        self._check_budget(written, journal)
        known = dict(parts_of(ledger.entries))
        if all(rounds <= known.get(part, 0) for part, rounds in parts_of(written.entries)):
            return
        if not found:
            raise CorruptDataError(
                f"{path} is missing, and {journal} has paid for rounds of that training: put the "
                "file back, or train anew with the ledger that is there, PrivacyLedger.read"
            )
        self._check_kept(written, journal)
        # Clients have seen these rounds and take none of their numbers again.
        self.round += _rounds(written) - _rounds(ledger)
        self.ledger = written

    def _check_budget(self, ledger: PrivacyLedger, path: Path | None) -> None:
        assert self.ledger is not None
        for name in ("epsilon", "delta", "adjacency"):
            if getattr(ledger, name) != getattr(self.ledger, name):
                raise PlanMismatchError(
                    f"{path}: its ledger has {name} = {getattr(ledger, name)!r}, this training "
                    f"{getattr(self.ledger, name)!r}"
                )

    def _check_kept(self, ledger: PrivacyLedger, path: Path | None) -> None:
        """Refuse a ledger that lacks something of the one so far, which would be forgotten."""
        assert self.ledger is not None
        stored = dict(parts_of(ledger.entries))
        for mechanism, rounds in parts_of(self.ledger.entries):
            if rounds > stored.get(mechanism, 0):
                raise PlanMismatchError(
                    f"{path}: its ledger has {stored.get(mechanism, 0)} rounds of {mechanism!r} "
                    f"and the one that was given {rounds}, which would be forgotten"
                )

    def _check_unused(self) -> None:
        """Refuse to write over an earlier training that was not looked at."""
        if self.checkpoint is None or self._resumed or self.round > 0:
            return
        places = [self.checkpoint]
        if self.plan.seed is None and self.ledger is not None:
            places.append(self._journal(self.checkpoint))
        for place in places:
            if place.exists():
                raise ProtocolError(
                    f"{place} is there from an earlier training: call resume() to go on with it, "
                    "or name another checkpoint"
                )

    @staticmethod
    def _journal(checkpoint: Path) -> Path:
        return checkpoint.with_name(checkpoint.name + ".ledger.json")

    def __repr__(self) -> str:
        """Show how far it is."""
        state = "open" if self._open is not None else "next"
        return f"Server(round {self.round} {state}, {self._structure.total} parameters)"


def _writable(checkpoint: str | os.PathLike[str]) -> Path:
    """Find out before the first round what would fail after it."""
    try:
        path = Path(checkpoint)
    except TypeError as error:
        raise _arguments.mistyped("checkpoint must be the path of a file", checkpoint) from error
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise _arguments.invalid(
            "checkpoint must be a file in a folder that exists", str(checkpoint)
        )
    return path


def _difference(stored: Any, own: Any) -> str:
    """Say in which entries two descriptions differ."""
    if not (isinstance(stored, dict) and isinstance(own, dict)):
        return ""
    parts = [
        f"{name} = {_arguments.shown(stored.get(name))}, this has {_arguments.shown(own.get(name))}"
        for name in sorted(stored.keys() | own.keys())
        if stored.get(name) != own.get(name)
    ]
    return ": " + "; ".join(parts)


def _rounds(ledger: PrivacyLedger) -> int:
    return sum(entry.rounds for entry in ledger.entries)
