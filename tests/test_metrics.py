"""Hooks and logs: heard by whoever asks, and by nobody else."""

import logging
import subprocess
import sys

import pytest

from turnout import metrics
from turnout.errors import InvalidTypeError

FAILING_HOOK = """
from turnout import metrics

def hook(event, values):
    raise RuntimeError(event)

metrics.subscribe(hook)
metrics.observe("rows_read", rows=3)
"""


def test_every_subscriber_hears_until_it_stops():
    first, second = [], []
    stop = metrics.subscribe(lambda event, values: first.append((event, values)))
    end = metrics.subscribe(lambda event, values: second.append(values.pop("rows")))
    metrics.observe("rows_read", rows=3)
    end()
    stop()
    stop()
    metrics.observe("rows_read", rows=4)
    assert first == [("rows_read", {"rows": 3})]  # not what the other hook made of its own copy
    assert second == [3]


def test_a_hook_that_fails_is_logged_and_stops_nobody(caplog):
    heard = []
    ends = [metrics.subscribe(lambda event, values: 1 / 0)]
    ends.append(metrics.subscribe(lambda event, values: heard.append(event)))
    with caplog.at_level(logging.ERROR, "turnout"):
        metrics.observe("part_written", reports=1)
    for end in ends:
        end()
    assert heard == ["part_written"]
    assert "a metrics hook failed at part_written" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_hook_must_be_a_function():
    with pytest.raises(InvalidTypeError, match="hook must be a function, got 3"):
        metrics.subscribe(3)


def test_nothing_is_shown_where_nobody_set_up_logging():
    done = subprocess.run(
        [sys.executable, "-c", FAILING_HOOK], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
