"""What one node answers in collections, and what the server takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.federated.flower import frequency_client_app, frequency_server_app
from turnout.federated.flower.frequency import _reports
from turnout.federated.flower.kept import Answer, node_answers

LABELS = ["never", "once", "often"]
Make = Callable[..., Any]


def load_answers(node: Any) -> dict[str, Answer]:
    with node_answers(node) as answers:
        return dict(answers)


def save_answers(node: Any, given: dict[str, Answer]) -> None:
    with node_answers(node) as answers:
        answers.update(given)


def plan_of(epsilon: float = 1.0, rate: float = 0.5, kind: Any = tn.DirectEncoding) -> tn.Plan:
    part = tn.Everyone() if rate == 1.0 else tn.Bernoulli(rate)
    return tn.Plan(kind(epsilon, tn.Domain(LABELS)), part)


def asked(plan: tn.Plan, name: str = "monday") -> Any:
    from flwr.app import ConfigRecord, Message, RecordDict

    record = ConfigRecord({"plan": plan.to_json(), "name": name})
    return Message(RecordDict({"turnout.collection": record}), dst_node_id=7, message_type="query")


def sent(reply: Any) -> list[Any]:
    record = reply.content.array_records.get("turnout.reports")
    return [] if record is None else record["reports"].numpy().tolist()


def app_of(answer: Any = "once", budget: float = 10.0, **options: Any) -> Any:
    return frequency_client_app(lambda context: answer, budget=budget, **options)


@pytest.mark.parametrize("in_file", [True, False])
def test_asked_again_a_node_repeats_itself(in_file: bool, context: Make, tmp_path: Path) -> None:
    # With forty people a second draw would differ with probability above 1 - 1e-9.
    path = tmp_path / "answers.json"
    node = context(turnout_answers=str(path)) if in_file else context()
    app, plan = app_of(["once"] * 40), plan_of()
    first = app(asked(plan), node)
    assert sent(first)
    for _ in range(3):
        again = app(asked(plan), node)
        assert sent(again) == sent(first)
        assert again.content["turnout.collection"] == first.content["turnout.collection"]
    assert sent(app(asked(plan, "tuesday"), node)) != sent(first)
    assert path.exists() == in_file


def test_only_the_owner_reads_who_takes_part(context: Make, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    app_of()(asked(plan_of()), context(turnout_answers=str(path)))
    assert path.stat().st_mode & 0o077 == 0


def test_the_answer_is_written_down_before_it_is_sent(context: Make, tmp_path: Path) -> None:
    path = tmp_path / "none" / "answers.json"
    reply = app_of()(asked(plan_of(rate=1.0)), context(turnout_answers=str(path)))
    assert reply.has_error()


def test_who_does_not_take_part_sends_no_report(context: Make) -> None:
    reply = app_of()(asked(plan_of(rate=1e-9)), context())
    assert not reply.has_error()
    assert not reply.content.array_records
    assert reply.content["turnout.collection"]["nodes"] == 1


def test_the_budget_is_for_all_collections(context: Make, tmp_path: Path) -> None:
    node = context(turnout_answers=str(tmp_path / "answers.json"))
    app, plan = app_of(budget=2.5), plan_of()
    replies = [app(asked(plan, name), node) for name in ("a", "b", "c", "a")]
    assert [reply.has_error() for reply in replies] == [False, False, True, False]
    assert "budget" in replies[2].error.reason
    assert sorted(load_answers(node)) == ["a", "b"]


def test_another_plan_of_one_collection_is_refused(context: Make) -> None:
    node, app = context(), app_of()
    assert not app(asked(plan_of()), node).has_error()
    assert "another plan" in app(asked(plan_of(epsilon=0.5)), node).error.reason


def test_another_plan_than_the_nodes_is_refused(context: Make) -> None:
    reply = app_of(plan=plan_of())(asked(plan_of(epsilon=2.0)), context())
    assert "epsilon" in reply.error.reason


def test_errors_do_not_quote_the_answer(context: Make) -> None:
    def broken(context: Any) -> Any:
        raise ValueError("a secret")

    reply = frequency_client_app(broken, budget=10.0)(asked(plan_of()), context())
    assert reply.has_error()
    assert "secret" not in reply.error.reason


def test_questions_that_are_none_are_refused(context: Make) -> None:
    from flwr.app import ConfigRecord, Message, RecordDict

    for content in (
        RecordDict(),
        RecordDict({"turnout.collection": ConfigRecord({"plan": "{}", "name": "a"})}),
        RecordDict({"turnout.collection": ConfigRecord({"plan": plan_of().to_json()})}),
    ):
        message = Message(content, dst_node_id=7, message_type="query")
        assert app_of()(message, context()).has_error()


def test_seeds_need_numbers_and_give_nodes_different_draws(context: Make) -> None:
    app, plan = app_of(["once"] * 60, seed=lambda context: 1), plan_of()
    assert app(asked(plan), context()).has_error()
    replies = [sent(app(asked(plan), context(partition_id=node))) for node in (0, 0, 1)]
    assert replies[0] == replies[1] != replies[2]


@pytest.mark.parametrize(
    "kind",
    [
        tn.DirectEncoding,
        tn.OptimizedUnaryEncoding,
        tn.OptimizedLocalHashing,
        tn.SubsetSelection,
        tn.HadamardResponse,
        tn.SummationHistogramEncoding,
    ],
)
def test_reports_of_every_form_arrive(kind: Any, context: Make) -> None:
    plan = plan_of(kind=kind)
    message = asked(plan)
    answers = LABELS * 20
    node = context(partition_id=3)
    reply = app_of(answers, seed=lambda context: 9)(message, node)
    reports = _reports(plan, reply, 60)
    assert reports.nodes == 60
    from turnout._seeds import derived

    expected = plan.oracle.randomize(answers, participation=plan.participation, seed=derived(9, 3))
    assert reports == expected
    # So it does from the node's memory.
    assert _reports(plan, app_of(answers)(message, node), 60) == expected


def test_replies_that_are_no_reports_are_refused(context: Make) -> None:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

    plan, message = plan_of(rate=1.0), asked(plan_of(rate=1.0))
    record = {"plan": plan.fingerprint, "nodes": 1}

    def reply(config: Any, codes: Any = (1,), key: str = "reports") -> Any:
        content = RecordDict({"turnout.collection": ConfigRecord(config)})
        content["turnout.reports"] = ArrayRecord({key: Array(np.array(codes))})
        return Message(content, reply_to=message)

    assert _reports(plan, reply(record), 1).codes.tolist() == [1]
    with pytest.raises(PlanMismatchError):
        _reports(plan, reply({**record, "plan": "other"}), 1)
    with pytest.raises(ProtocolError, match="at most 1"):
        _reports(plan, reply({**record, "nodes": 2}, (0, 1)), 1)
    with pytest.raises(MalformedMessageError):
        _reports(plan, reply({"plan": plan.fingerprint}), 1)
    with pytest.raises(MalformedMessageError):
        _reports(plan, reply(record, key="other"), 1)
    with pytest.raises(InvalidValueError):
        _reports(plan, reply(record, (3,)), 1)
    with pytest.raises(InvalidValueError):
        _reports(plan, reply(record, (1, 1)), 1)
    with pytest.raises(InvalidTypeError):
        _reports(plan, reply(record, (0.5,)), 1)
    with pytest.raises(MalformedMessageError):
        _reports(plan, Message(RecordDict(), reply_to=message), 1)


@pytest.mark.parametrize("codes", [[1, 2], [], [[2**64 - 1, 0]]])
def test_answers_survive_their_file(codes: list[Any], context: Make, tmp_path: Path) -> None:
    node = context(turnout_answers=str(tmp_path / "answers.json"))
    save_answers(node, {"a": Answer("f" * 64, 1.5, 7, codes)})
    assert load_answers(node) == {"a": Answer("f" * 64, 1.5, 7, codes)}


def test_damaged_files_are_refused(context: Make, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    node = context(turnout_answers=str(path))
    save_answers(node, {"a": Answer("f", 1.0, 1, [1])})
    whole = json.loads(path.read_text())
    answer = whole["answers"]["a"]
    for damaged in (
        "",
        "[]",
        json.dumps({**whole, "version": 2}),
        json.dumps({**whole, "answers": {"a": {**answer, "more": 1}}}),
        json.dumps({**whole, "answers": {"a": {**answer, "reports": "!"}}}),
        json.dumps({**whole, "answers": {"a": {**answer, "epsilon": None}}}),
        json.dumps({**whole, "answers": {"a": {**answer, "nodes": "1"}}}),
    ):
        path.write_text(damaged)
        with pytest.raises(CorruptDataError, match="answers"):
            load_answers(node)
        assert app_of()(asked(plan_of()), node).has_error()


@pytest.mark.parametrize("reports", [["!"], [[1]], [1.5], [300], [None]])
def test_what_is_no_report_in_the_file_is_not_sent(
    reports: list[Any], context: Make, tmp_path: Path
) -> None:
    plan = plan_of()
    node = context(turnout_answers=str(tmp_path / "answers.json"))
    save_answers(node, {"monday": Answer(plan.fingerprint, 1.0, 1, reports)})
    assert app_of()(asked(plan), node).has_error()


@pytest.mark.parametrize(
    ("make", "error", "name"),
    [
        (lambda: frequency_client_app(1, budget=1.0), InvalidTypeError, "answer"),  # type: ignore[arg-type]
        (lambda: frequency_client_app(str, budget=0.0), InvalidValueError, "budget"),
        (lambda: frequency_client_app(str, budget=1.0, plan=1), InvalidTypeError, "plan"),  # type: ignore[arg-type]
        (lambda: frequency_client_app(str, budget=1.0, seed=1), InvalidTypeError, "seed"),  # type: ignore[arg-type]
        (lambda: frequency_server_app(1), InvalidTypeError, "plan"),  # type: ignore[arg-type]
        (lambda: frequency_server_app(plan_of(), 1), InvalidTypeError, "on_estimate"),  # type: ignore[arg-type]
        (
            lambda: frequency_server_app(
                tn.Plan(tn.DirectEncoding(1.0, 3), tn.Personalized([0.5]))
            ),
            InvalidValueError,
            "participation rate",
        ),
        (
            lambda: frequency_server_app(
                tn.Plan(tn.Memoized(tn.DirectEncoding(2.0, 3), first_epsilon=1.0), tn.Everyone())
            ),
            InvalidValueError,
            "drawn afresh",
        ),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=name):
        make()
