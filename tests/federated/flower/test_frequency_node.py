"""What one node answers to questions, without a SuperLink: nothing that no epsilon pays for."""

from __future__ import annotations

from datetime import datetime, timezone
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.federated.flower import frequency_client_app
from turnout.federated.flower.frequency import collect_frequencies


def asked(
    labels: list[Any], name: str = "one", epsilon: float = 1.0, rate: float = 1.0, **terms: Any
) -> Any:
    from flwr.app import ConfigRecord, Message, RecordDict

    participation = tn.Bernoulli(rate) if rate < 1.0 else tn.Everyone()
    plan = tn.Plan(tn.DirectEncoding(epsilon, tn.Domain(labels)), participation, **terms)
    record = ConfigRecord({"plan": plan.to_json(), "name": name})
    content = RecordDict({"turnout.collection": record})
    return Message(content, dst_node_id=7, message_type="query")


def report(reply: Any) -> int:
    assert not reply.has_error(), reply.error
    return int(reply.content["turnout.reports"]["reports"].numpy()[0])


@pytest.mark.parametrize("answer", ["Smith", 3, None, 2.5, ("a", "b"), float("nan")])
@pytest.mark.parametrize("labels", [["yes", "no"], [0, 1]])
def test_a_question_that_the_answer_does_not_fit_is_answered_all_the_same(
    answer: Any, labels: list[Any], context: Any
) -> None:
    # Else a server that asks with a domain of its choice is told what the answer is not.
    app, node = frequency_client_app(lambda context: [answer], budget=2.5), context()
    assert report(app(asked(labels), node)) in {0, 1}
    assert report(app(asked(labels, "two"), node)) in {0, 1}
    refused = app(asked(labels, "three"), node)
    assert refused.error.reason.startswith("BudgetExceededError")


def test_a_question_whose_plan_has_expired_is_not_answered(context: Any) -> None:
    app, node = frequency_client_app(lambda context: ["yes"], budget=1.0), context()
    end = datetime(2001, 1, 1, tzinfo=timezone.utc)
    refused = app(asked(["yes", "no"], serial=1, expires=end), node)
    assert refused.error.reason.startswith("PlanExpiredError: the plan expired at 2001-01-01")
    assert report(app(asked(["yes", "no"], serial=1, expires=end.replace(year=9000)), node)) in {
        0,
        1,
    }


def test_answers_outside_the_domain_give_every_report_alike(
    statistical: ModuleType, context: Any
) -> None:
    app = frequency_client_app(lambda context: ["yes", "Smith", "no"], budget=4.0)
    observed = np.zeros((3, 2))
    for _ in range(3000):
        reply: Any = app(asked(["yes", "no"]), context())
        codes = reply.content["turnout.reports"]["reports"].numpy()
        observed[np.arange(3), codes] += 1
    keep = 1.0 / (1.0 + np.exp(-1.0))
    statistical.check_law(observed[0], [keep, 1 - keep])
    statistical.check_law(observed[1], [0.5, 0.5])
    statistical.check_law(observed[2], [1 - keep, keep])


def test_a_function_that_fails_does_not_show_how(context: Any) -> None:
    class SmithError(Exception):
        pass

    def failing(context: Any) -> Any:
        raise SmithError("Smith")

    reply = frequency_client_app(failing, budget=1.0)(asked(["yes", "no"]), context())
    assert reply.error.reason == "nothing is sent: see the node's log"


def test_reports_that_honest_nodes_hardly_ever_send_are_told(context: Any) -> None:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

    plan = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 64), tn.Everyone())
    full = np.full((2, 1), 2**64 - 1, np.uint64)

    class Grid:
        def get_node_ids(self) -> list[int]:
            return [1]

        def send_and_receive(self, messages: Any, timeout: float) -> list[Any]:
            answer = ConfigRecord({"plan": plan.fingerprint, "nodes": 2})
            reports = ArrayRecord({"reports": Array(full)})
            content = RecordDict({"turnout.collection": answer, "turnout.reports": reports})
            return [Message(content, reply_to=message) for message in messages]

    seen: list[tuple[str, dict[str, float]]] = []
    stop = tn.metrics.subscribe(lambda event, values: seen.append((event, values)))
    try:
        tally = collect_frequencies(Grid(), plan, most_answers=2)  # type: ignore[arg-type]
    finally:
        stop()
    assert tally.received == 2
    assert ("reports_improbable", {"reports": 2}) in seen
