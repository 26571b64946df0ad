"""Write the cases of which the core's tests make messages: plans, and answers to them.

``python -m tests.serve.vectors`` writes ``rust/tests/vectors/cases.tsv``, and after it
``WRITE_VECTORS=1 cargo test --test vectors`` the messages beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.serve.clients import plain
from tests.serve.test_client_messages import CASES
from tests.test_device_permanent import STAGES, memoized

import turnout as tn

FOLDER = Path(__file__).parents[2] / "rust" / "tests" / "vectors"

#: Of these plans and messages are long.
LONG = {"sampled of many", "hybrid in 300 dimensions", "hybrid of small epsilon in 300 dimensions"}


def lines() -> list[str]:
    """Return a line for each case: its name, its plan and answers, with tabs between them."""
    rates = (1.0, 0.5, 0.012)
    found = []
    for place, (name, (oracle, answers)) in enumerate(CASES.items()):
        if name in LONG:
            continue
        rate = rates[place % 3] if not name.startswith("round") else 0.5
        plan = tn.Plan(oracle, tn.Bernoulli(rate) if rate < 1 else tn.Everyone())
        found.append((name, plan, [plain(answer) for answer in answers[:4]]))
    for stages in STAGES:
        for per in ("answer", "phase"):
            plan = tn.Plan(memoized(stages, per), tn.Bernoulli(0.75))
            found.append((f"memoized {' '.join(stages)} {per}", plan, ["é", "é", "never", "é"]))
    return [
        "\t".join([name, plan.to_json(), *(json.dumps(each, ensure_ascii=False) for each in given)])
        for name, plan, given in found
    ]


if __name__ == "__main__":
    (FOLDER / "cases.tsv").write_text("".join(f"{line}\n" for line in lines()))
