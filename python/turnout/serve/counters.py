"""The server's own counters, in Prometheus's text format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

#: Of each metric: what it is, and what it counts.
_METRICS: Final = {
    "turnout_requests_total": ("counter", "Answered requests, by path and status."),
    "turnout_messages_total": ("counter", "Messages by what became of them."),
    "turnout_refused_reports_total": ("counter", "Refused reports of a task, by the reason."),
    "turnout_transactions_total": ("counter", "Transactions that took messages in."),
    "turnout_waiting_bytes": ("gauge", "Bytes of messages that wait to be stored."),
    "turnout_store_usable": ("gauge", "Whether the last transaction succeeded."),
    "turnout_plan_expires_seconds": ("gauge", "When the plan in force expires, since 1970."),
}


class Counters:
    """Counts requests and messages. No label holds an answer, a group or an address.

    Examples
    --------
    >>> counters = Counters()
    >>> counters.count("turnout_messages_total", 3, outcome="accepted")
    >>> print(counters.text({"turnout_waiting_bytes": 0}).splitlines()[2])
    turnout_messages_total{outcome="accepted"} 3
    """

    def __init__(self) -> None:
        self._numbers: dict[str, Counter[tuple[tuple[str, str], ...]]] = defaultdict(Counter)

    def count(self, metric: str, number: int = 1, **labels: str) -> None:
        """Increase a counter."""
        self._numbers[metric][tuple(labels.items())] += number

    def put(self, metric: str, number: int, **labels: str) -> None:
        """Set a counter that is counted elsewhere."""
        self._numbers[metric][tuple(labels.items())] = number

    def text(self, gauges: Mapping[str, float]) -> str:
        """Write all counters, and current measurements."""
        lines = []
        for name, (kind, said) in _METRICS.items():
            found = self._numbers.get(name, Counter())
            values: dict[str, float] = {
                _labels(labels): number for labels, number in sorted(found.items())
            }
            if name in gauges:
                values = {"": gauges[name]}
            if values:
                lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
                lines += [f"{name}{labels} {number}" for labels, number in values.items()]
        return "\n".join(lines) + "\n"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""
