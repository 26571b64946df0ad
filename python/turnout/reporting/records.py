"""Estimates as objects for programs: the output of ``--json``, and of a server."""

from __future__ import annotations

import json
import math
from typing import Any

from turnout.reporting.telling import Telling, View, groups_of


def record(
    estimate: Any, view: View, kind: Telling, counted: Any, *, method: str, made: str | None
) -> dict[str, Any]:
    """Describe estimates of all people, or of groups, as a JSON-compatible dictionary.

    Parameters
    ----------
    estimate, view, kind
        What is shown, and how.
    counted
        What has its plan and the numbers of nodes and reports.
    method
        What its estimator is called.
    made
        How the intervals of all people are made; None if there are none.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.reporting.telling import telling
    >>> tally = tn.DirectEncoding(3.0, ["no", "yes"]).simulate([900, 100], seed=1)
    >>> estimate, kind = tally.estimate(), telling(tally.plan)
    >>> found = record(estimate, View(None), kind, tally, method="hajek", made="score")
    >>> found["nodes"], [each["label"] for each in found["estimates"]]
    (1000, ['no', 'yes'])
    """
    groups = groups_of(estimate)
    over = {"over": view.over if view.simultaneous else None}
    return {
        "nodes": counted.nodes,
        "received": counted.received,
        "left_out": counted.left_out.to_dict(),
        "method": method,
        **kind.described(estimate),
        "interval": {**view.scope, **(over if groups else {"method": made})},
        "plan": counted.plan.to_dict(),
        **({"groups": list(groups)} if groups else {}),
        **kind.values(estimate, view),
    }


def json_text(value: dict[str, Any]) -> str:
    """Write an object as JSON; infinite values and NaN become null.

    Examples
    --------
    >>> json_text({"low": -math.inf, "high": [0.5]})
    '{"low": null, "high": [0.5]}'
    """
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
