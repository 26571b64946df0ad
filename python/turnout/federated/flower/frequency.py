"""Estimate frequencies in a federation: every node randomizes its own answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from logging import INFO, WARNING
from typing import Any

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from turnout import Domain, FrequencyEstimate, Plan, Reports, Tally, _arguments, _seeds
from turnout.accounting.values import positive
from turnout.collecting.left_out import LeftOut
from turnout.collecting.randomizer import tell_improbable
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    MalformedMessageError,
    PlanMismatchError,
    ProtocolError,
    TurnoutError,
)
from turnout.federated.flower import records
from turnout.federated.flower.kept import Answer, node_answers, with_room_for
from turnout.federated.flower.strategy import connected_nodes

_COLLECTION = "turnout.collection"
_REPORTS = "turnout.reports"
_MOST_ANSWERS = 2**32


def frequency_client_app(
    answer: Callable[[Context], Any],
    *,
    budget: float,
    plan: Plan | None = None,
    seed: Callable[[Context], int | None] | None = None,
) -> ClientApp:
    """Return a ClientApp that answers a question with a randomized report.

    The node itself draws whether it takes part. It randomizes its answer with the oracle of the
    server's plan and sends the report, or a reply without a report. It saves this reply before it
    sends it. If it is asked again in the same collection, it repeats the reply, so repeated
    questions reveal nothing more.

    Parameters
    ----------
    answer
        A function of the node's context that returns its answer, a label of the plan's domain. If
        the node speaks for several people, it returns a list or array of answers. It must not fail
        because of an answer. A random label replaces an answer that is not a label of the domain: a
        refusal would tell the server what the answer is not.
    budget
        The limit of the sum of the epsilons of all collections that the node ever answers. "Ever"
        needs a file: if the node's configuration has ``turnout-answers``, that is its path.
        Otherwise the answers are kept in ``context.state``, which Flower forgets when the run or
        the SuperNode ends.
    plan
        The only plan that the node accepts. If None, the node accepts every plan that the budget
        allows.
    seed
        For tests and simulations only: a function of the node's context that returns a seed that
        all nodes share. Node ``i`` (``partition-id``) draws with a seed derived from it.

    Returns
    -------
    flwr.clientapp.ClientApp
        An app to name in ``pyproject.toml``. It answers messages of the type query.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The server sees which nodes report, so participation does not amplify privacy: a report protects
    its answer with the plan's epsilon. Participation saves messages and computation.

    Examples
    --------
    >>> app = frequency_client_app(lambda context: context.node_config["answer"], budget=1.0)
    """
    if not callable(answer) or not (seed is None or callable(seed)):
        raise InvalidTypeError(
            "answer and seed must be functions of the node's context, got "
            f"{_arguments.shown(answer)} and {_arguments.shown(seed)}"
        )
    limit = positive("budget", budget)
    if plan is not None:
        _arguments.instance("plan", plan, Plan, "a Plan or None")
    app = ClientApp()

    @app.query()
    def query(message: Message, context: Context) -> Message:
        try:
            asked, name = _question(message)
            if plan is not None:
                plan._check_same(asked, "the question")
            node_seed = (
                None if seed is None else _seeds.derived(seed(context), records.partition(context))
            )
            with node_answers(context) as answers:
                with_room_for(answers, name, asked, limit)
                if name not in answers:
                    answers[name] = _randomized(asked, answer(context), node_seed)
            return _reply(message, asked, answers[name])
        except Exception as error:
            return records.refusal(message, error)

    return app


def collect_frequencies(
    grid: Grid,
    plan: Plan,
    *,
    name: str = "collection",
    timeout: float = 3600.0,
    least_nodes: int = 1,
    patience: float = 600.0,
    most_answers: int = 1,
) -> Tally:
    """Ask all connected nodes and add up their reports.

    Parameters
    ----------
    grid
        Flower's grid.
    plan
        The oracle and the participation, with one rate for all nodes.
    name
        The name of the collection. Nodes answer each collection once; a new name asks anew, and
        costs its epsilon again.
    timeout
        The number of seconds to wait for the reports.
    least_nodes, patience
        The number of nodes that must be connected before any is asked, and the seconds to wait for
        them.
    most_answers
        The largest number of people that a node may speak for.

    Returns
    -------
    turnout.Tally
        The tally of the nodes that replied. Nodes that failed or did not reply in time count only
        in its ``left_out``.

    Raises
    ------
    MissingPartyError
        If too few nodes are connected.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.
    """
    _check_plan(plan)
    most = _arguments.integer("most_answers", most_answers, least=1, most=_MOST_ANSWERS)
    limit = _arguments.seconds("timeout", timeout)
    _check_name(name)
    nodes = connected_nodes(grid, least_nodes, _arguments.seconds("patience", patience))
    record = ConfigRecord({"plan": plan.to_json(), "name": name})
    messages = [
        Message(RecordDict({_COLLECTION: record}), dst_node_id=node, message_type=MessageType.QUERY)
        for node in nodes
    ]
    pieces: dict[int, Reports] = {}

    def take(node: int, reply: Message) -> None:
        if node in pieces:
            raise ProtocolError("the node has replied already")
        pieces[node] = _reports(plan, reply, most)

    records.taken(grid.send_and_receive(messages, timeout=limit), take)
    left_out = LeftOut(unanswered=max(len(nodes) - len(pieces), 0))
    if not pieces:
        zeros = np.zeros(plan.domain.size, plan.oracle._support_dtype)
        return Tally(plan, zeros, received=0, nodes=0, left_out=left_out)
    reports = Reports.concatenate(pieces.values())
    tell_improbable(plan.oracle, reports.codes)
    tally: Tally = plan.oracle.tally(reports)
    return replace(tally, left_out=left_out)


def frequency_server_app(
    plan: Plan,
    on_estimate: Callable[[FrequencyEstimate, Tally, Context], None] | None = None,
    *,
    method: str = "hajek",
    **options: Any,
) -> ServerApp:
    """Return a ServerApp that asks all nodes a question and estimates the frequencies of answers.

    Parameters
    ----------
    plan
        The oracle and the participation, with one rate for all nodes.
    on_estimate
        A function to call with the estimate, the tally and Flower's context. The estimate is also
        logged.
    method
        As for :meth:`turnout.Tally.estimate`.
    **options
        ``name``, ``timeout``, ``least_nodes``, ``patience`` and ``most_answers`` of
        :func:`collect_frequencies`.

    Returns
    -------
    flwr.serverapp.ServerApp
        An app to name in ``pyproject.toml``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])), tn.Bernoulli(0.5))
    >>> app = frequency_server_app(plan, name="monday", least_nodes=3)
    """
    _check_plan(plan)
    if not (on_estimate is None or callable(on_estimate)):
        raise _arguments.mistyped("on_estimate must be a function or None", on_estimate)
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        tally = collect_frequencies(grid, plan, **options)
        log(INFO, "turnout: %r", tally)
        estimate = tally.estimate(method)
        log(INFO, "turnout: %s", estimate)
        if on_estimate is not None:
            on_estimate(estimate, tally, context)

    return app


def _check_plan(plan: Plan) -> None:
    _arguments.instance("plan", plan, Plan, "a Plan")
    if plan.participation.uniform_rate is None:
        raise _arguments.invalid(
            "plan must have one participation rate for all nodes, Everyone() or Bernoulli(...)",
            plan.participation,
        )
    if not plan.oracle.fresh:
        raise _arguments.invalid(
            "plan must be one whose reports are drawn afresh: a node of Flower keeps no permanent "
            "answers, and would draw new ones for each collection",
            plan.oracle,
        )


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise _arguments.mistyped("name must be text, not empty", name)


def _question(message: Message) -> tuple[Plan, str]:
    record = message.content.config_records.get(_COLLECTION)
    if record is None:
        raise MalformedMessageError(f"the message has no record {_COLLECTION!r}")
    name, text = record.get("name"), record.get("plan")
    if not isinstance(name, str) or not name or not isinstance(text, str):
        raise MalformedMessageError(f"the record {_COLLECTION!r} has no plan and name")
    plan = Plan.from_json(text)
    _check_plan(plan)
    plan._check_current()
    return plan, name


def _randomized(plan: Plan, given: Any, seed: int | None) -> Answer:
    """Draw the participation and the reports for a node's answer or answers."""
    values = given if isinstance(given, (list, tuple, np.ndarray)) else [given]
    try:
        plan.domain.encode(values)
    except TurnoutError as error:
        log(WARNING, "turnout: a label at random is reported instead of another: %s", error)
        values = [_label(plan.domain, value, seed) for value in values]
    reports = plan.oracle.randomize(values, participation=plan.participation, seed=seed)
    codes = reports.codes.tolist()
    return Answer(plan.fingerprint, plan.oracle.epsilon, reports.nodes, codes)


def _label(domain: Domain, value: Any, seed: int | None) -> Any:
    """Return an answer, or a random label if the answer is not a label."""
    try:
        domain.encode([value])
    except TurnoutError:
        return domain.decode(np.random.default_rng(seed).integers(domain.size, size=1))[0]
    return value


def _reply(message: Message, plan: Plan, answer: Answer) -> Message:
    content = RecordDict({_COLLECTION: ConfigRecord({"plan": answer.plan, "nodes": answer.nodes})})
    if answer.reports:
        codes = np.array(answer.reports, plan.oracle.report_dtype)
        if codes.shape[1:] != plan.oracle.report_shape or codes.tolist() != answer.reports:
            raise CorruptDataError("the stored reports of the collection do not fit its plan")
        content[_REPORTS] = ArrayRecord({"reports": Array(codes)})
    return Message(content, reply_to=message)


def _reports(plan: Plan, reply: Message, most: int) -> Reports:
    """Return the reports from a reply."""
    record = reply.content.config_records.get(_COLLECTION)
    if record is None or type(nodes := record.get("nodes")) is not int:
        raise MalformedMessageError(f"the reply has no record {_COLLECTION!r} with its nodes")
    if record.get("plan") != plan.fingerprint:
        raise PlanMismatchError("the reply was made under another plan")
    if not 0 <= nodes <= most:
        raise ProtocolError(f"the node speaks for {nodes} people, at most {most} are taken")
    arrays = reply.content.array_records.get(_REPORTS)
    try:
        if arrays is None:
            codes = np.empty((0, *plan.oracle.report_shape), plan.oracle.report_dtype)
        else:
            codes = records.numbers_of(arrays["reports"])
        return Reports(plan.oracle, plan.participation, codes, nodes)
    except TurnoutError:
        raise
    except Exception as error:
        # Whatever a node's bytes lead to is wrong with that node's reply alone.
        raise MalformedMessageError(f"the reply has no reports: {error}") from error
