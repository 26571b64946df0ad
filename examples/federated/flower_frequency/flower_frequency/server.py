"""The server: what it asks, with which oracle, and what it makes of the reports."""

from __future__ import annotations

from flwr.app import Context

import turnout as tn
from turnout.federated.flower import frequency_server_app

PLAN = tn.Plan(
    tn.DirectEncoding(epsilon=2.0, domain=tn.Domain(["never", "once", "often"])),
    tn.Bernoulli(0.5),
)


def on_estimate(estimate: tn.FrequencyEstimate, tally: tn.Tally, context: Context) -> None:
    """Print a table."""
    interval = estimate.interval(0.95)
    print(f"{tally.received} of {tally.nodes} nodes reported")
    columns = (tally.domain.labels, estimate.frequencies, interval.low, interval.high)
    for label, frequency, least, most in zip(*columns, strict=True):
        print(f"{label:>6}: {frequency:6.1%}  ({least:.1%} to {most:.1%})")


app = frequency_server_app(PLAN, on_estimate, name="2026", least_nodes=3, timeout=300.0)
