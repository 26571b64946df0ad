"""The number of a node's elements, which a server must not find."""

from __future__ import annotations

from typing import Any

import pytest
from tests.federated.flower.test_node import BUDGET, SIZE, asked, local, never, ones, plan_of

from turnout.accounting import PrivacyLedger
from turnout.federated.flower import client_app


def test_too_many_elements_are_refused_without_their_number(context: Any) -> None:
    node = context()
    app = client_app(lambda context: (1234, never), budget=BUDGET, size_bound=SIZE)
    reply = app(asked(plan_of()), node)
    assert reply.has_error()
    assert "1234" not in reply.error.reason
    assert "turnout-ledger" not in node.state


@pytest.mark.parametrize("stated", [None, 9, 5, 4])
def test_refusals_do_not_tell_how_many_elements_there_are(stated: int | None, context: Any) -> None:
    # A server that asks with one bound after the other learns what is public.
    for bound in (1, 3, 4, 5, 8, 9, 20):
        replies = []
        for size in (0, 3, 4):
            app = client_app(
                lambda context, size=size: (size, ones), budget=BUDGET, size_bound=stated
            )
            replies.append(app(asked(plan_of(local_size=bound)), context()))
        accepted = stated is not None and bound >= stated
        assert [reply.has_error() for reply in replies] == [not accepted] * 3
        reasons = {reply.error.reason for reply in replies if reply.has_error()}
        assert len(reasons) == (0 if accepted else 1)


def test_plans_without_a_bound_need_none_of_the_node(context: Any) -> None:
    app = client_app(local(ones), budget=BUDGET)
    plan = plan_of(local_size=None, nominal_local_size=4)
    assert not app(asked(plan), context()).has_error()


@pytest.mark.parametrize("stated", [None, 2**21 - 1, 2**21, 2**22])
def test_a_server_does_not_find_the_size_by_trying_grids(stated: int | None, context: Any) -> None:
    """On the finest grid there is room for fewer than 2^21 elements."""
    usual = {"mode": "participants_only", "local_size": None, "nominal_local_size": 4,
             "client_rate": 1e-9}  # fmt: skip
    fine = plan_of(**usual, noise_multiplier=2.0**-4, grid_bits=36)
    budget = PrivacyLedger(1e6, 0.5)

    def refused(plan: Any, size: int) -> bool:
        app = client_app(lambda context: (size, never), budget=budget, size_bound=stated)
        return bool(app(asked(plan), context()).has_error())

    sizes = [3, 2**21 - 1, 2**21]
    if stated is None:
        # Who has more must say so: any grid finds that.
        for plan in (fine, plan_of(**usual)):
            assert [refused(plan, size) for size in sizes] == [False, False, True]
    else:
        possible = [size for size in sizes if size <= stated]
        assert {refused(fine, size) for size in possible} == {stated >= 2**21}
        assert not any(refused(plan_of(**usual), size) for size in possible)
