"""A server that asks a question, twice."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

import turnout as tn
from turnout.federated.flower import frequency_server_app
from turnout.federated.flower.frequency import collect_frequencies

LABELS = ["never", "once", "often"]
PLAN = tn.Plan(tn.DirectEncoding(3.0, tn.Domain(LABELS)), tn.Bernoulli(0.6))
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder = Path(str(config["folder"]))

    def on_estimate(estimate: object, tally: tn.Tally, ended: Context) -> None:
        (folder / "tally").write_bytes(tally.to_bytes())

    nodes = int(config["nodes"])
    frequency_server_app(PLAN, on_estimate, least_nodes=nodes)(grid, context)
    again = collect_frequencies(grid, PLAN, least_nodes=nodes)
    (folder / "again").write_bytes(again.to_bytes())
