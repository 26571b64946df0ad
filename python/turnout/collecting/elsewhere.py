"""Answers and reports that are not in memory: oracles hand themselves to them."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

#: What makes answers of data and the name of a column: whoever reads tables adds itself here.
READERS: Final[list[Callable[[Any, str], Any]]] = []

#: Where that is, imported when a table is first given: it is above all kinds.
_MODULE: Final = "turnout.pipeline.scanning"


class AnswersElsewhere(ABC):
    """Answers that are read block by block: they know how, and what to do with each block."""

    __slots__ = ()

    @abstractmethod
    def randomized_by(self, oracle: Any, participation: Any, seed: int | None) -> Any:
        """Give the :class:`turnout.Reports` of all answers."""

    @abstractmethod
    def collected_by(self, oracle: Any, participation: Any, seed: int | None) -> Any:
        """Give the :class:`turnout.Tally` of all answers, with no reports in memory."""


class ReportsElsewhere(ABC):
    """Reports that are read batch by batch."""

    __slots__ = ()

    @abstractmethod
    def tallied_by(self, oracle: Any) -> Any:
        """Give the :class:`turnout.Tally` of all reports, which the oracle must have made."""


def answers_in(data: Any, column: str) -> Any:
    """Give the answers in a column of a table, a query or files.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As :func:`turnout.pipeline.scan`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> answers_in(pa.table({"vote": ["yes", "no"]}), "vote").rows
    2
    """
    if not READERS:
        importlib.import_module(_MODULE)
    return READERS[0](data, column)
