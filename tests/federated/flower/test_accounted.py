"""Strategies of Flower with differential privacy, accounted for by what they do."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import strategy

from turnout.accounting import from_flower


def test_its_noise_is_what_flower_really_adds() -> None:
    """The mean of what came has noise for what was asked: measured, in units of an update."""
    asked, came, clip, size = 4, 3, 0.5, 4000
    fixed = strategy.DifferentialPrivacyServerSideFixedClipping(
        strategy.FedAvg(weighted_by_key="one"), 2.0, clip, asked
    )
    zeros = ArrayRecord({"x": Array(np.zeros(size))})
    fixed.current_arrays = zeros
    replies = []
    for place in range(came):
        update = np.zeros(size)
        update[place] = 100.0
        content = RecordDict(
            {
                "arrays": ArrayRecord({"x": Array(update)}),
                "metrics": MetricRecord({"one": 1}),
            }
        )
        message = Message(RecordDict(), dst_node_id=place + 1, message_type="train")
        replies.append(Message(content, reply_to=message))
    np.random.seed(1)  # noqa: NPY002 (Flower draws from it)
    found, _ = fixed.aggregate_train(1, replies)
    values = found["x"].numpy()
    weight = clip / came
    deviation = np.std(values[came:])
    ((mechanism, _rounds),) = from_flower(fixed, clients=50, replies=[came]).parts
    # 4,000 numbers: their standard deviation is within 6 %, at a chance below 1e-6.
    assert deviation / weight == pytest.approx(mechanism.noise_multiplier, rel=0.06)  # type: ignore[attr-defined]
