"""Where a node keeps its privacy ledger: in a file of its owner, or in the run's own memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from flwr.app import ConfigRecord, Context

from turnout._turns import turn
from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidValueError

#: The key of the node's configuration that names the ledger's file, and of the record in memory.
LEDGER_KEY = "turnout-ledger"


@contextlib.contextmanager
def node_ledger(context: Context, budget: PrivacyLedger | None) -> Iterator[PrivacyLedger | None]:
    """Lend the node's ledger and write down what was spent, before anything is computed.

    What the block spends is on disk, forced there, when the block ends; if it ends in an exception
    everything is as before. Processes that use the same file take turns.

    Parameters
    ----------
    context
        The node's context. If its configuration has ``turnout-ledger``, that is the path of the
        ledger's file. Otherwise the ledger lives in ``context.state``: as long as the run.
    budget
        What a new ledger starts from, where there is none yet; None if there is no such budget.

    Yields
    ------
    PrivacyLedger or None
        None if there is neither a ledger nor a budget.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        If the ledger is damaged or of another version.
    InvalidValueError
        If a file is named that does not exist and there is no budget to start it from.
    OSError
        If the file cannot be read or written.

    Examples
    --------
    >>> from flwr.app import RecordDict
    >>> from turnout.accounting import GaussianMechanism
    >>> context = Context(1, 1, node_config={}, state=RecordDict(), run_config={})
    >>> with node_ledger(context, PrivacyLedger(1.0, 1e-5)) as ledger:
    ...     ledger.spend(GaussianMechanism(10.0))
    >>> with node_ledger(context, None) as ledger:
    ...     len(ledger.entries)
    1
    """
    named = context.node_config.get(LEDGER_KEY)
    if named is None:
        record = context.state.config_records.get(LEDGER_KEY)
        ledger = _new(budget) if record is None else PrivacyLedger.from_json(str(record["json"]))
        yield ledger
        if ledger is not None:
            context.state[LEDGER_KEY] = ConfigRecord({"json": ledger.to_json()})
        return
    path = Path(str(named))
    with turn(path):
        known = PrivacyLedger.load(path) if path.exists() else _new(budget)
        if known is None:
            raise InvalidValueError(
                f"{LEDGER_KEY} of the node's configuration names {path}, which does not exist, and "
                "there is no budget to start it from: make it with PrivacyLedger(...).save"
            )
        before = known.to_json()
        yield known
        if not path.exists() or known.to_json() != before:
            known.save(path)


def _new(budget: PrivacyLedger | None) -> PrivacyLedger | None:
    return None if budget is None else PrivacyLedger.from_json(budget.to_json())
