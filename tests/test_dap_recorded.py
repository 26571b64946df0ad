"""What Janus answered us, again: its release build at commit 4ab28a36c70c of August 2026.

``recorded/janus.json`` has exchanges of two tasks, a histogram of four buckets without noise, one
in each batch mode. As leader we sent twelve reports to a Janus helper, one of which had a spoilt
share for it; as client and collector we used a Janus leader and a Janus helper. The keys in the
file are of these tasks alone.
"""

import base64
import json
from pathlib import Path

import pytest

from turnout import _core

RECORDED = json.loads((Path(__file__).parent / "recorded" / "janus.json").read_text())
HISTOGRAM = _core.Prio3.histogram(4, chunk_length=2)
MODES = pytest.mark.parametrize("mode", [0, 1], ids=["time interval", "leader-selected"])


def plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def key() -> _core.HpkeKey:
    keys = RECORDED["keys"]
    return _core.HpkeKey(plain(keys["config"]), plain(keys["private_key"]))


def task(exchange: dict[str, str]) -> _core.DapTask:
    read = _core.DapTask.read(plain(exchange["task_id"]), plain(exchange["configuration"]))
    assert _core.read_vdaf_configuration(read.vdaf_type, read.vdaf_configuration) == {
        "length": 4,
        "chunk_length": 2,
    }
    return read


def test_the_keys_of_janus_can_be_encrypted_to():
    chosen = _core.choose_hpke_config(plain(RECORDED["configs"]))
    assert chosen in _core.read_hpke_configs(plain(RECORDED["configs"]))


@MODES
def test_our_leader_and_a_helper_of_janus_verify_and_add_up(mode, key):
    exchange = RECORDED["helper"][mode]
    ours = task(exchange)
    request = _core.AggregationJobInitReq(plain(exchange["request"]), dialect="janus")
    assert (request.batch_id is None) == (ours.batch_mode == "time_interval")

    ids, results = _core.read_aggregation_job_resp(plain(exchange["answer"]), dialect="janus")
    assert ids == request.ids
    refused = {number: one for number, one in enumerate(results) if not isinstance(one, bytes)}
    assert refused == {3: _core.DAP_REPORT_ERRORS["vdaf_verify_error"]}

    states = [plain(state) for state in exchange["states"]]
    verified = [(states[n], one) for n, one in enumerate(results) if isinstance(one, bytes)]
    outputs = HISTOGRAM.leader_continued(ours.context, verified)
    share = HISTOGRAM.aggregate([one for one in outputs if isinstance(one, bytes)])

    asked = _core.AggregateShareReq(plain(exchange["share_request"]))
    kept = [one for number, one in enumerate(ids) if number not in refused]
    assert (asked.report_count, asked.checksum) == (11, _core.report_checksum(kept))
    other = _core.open_aggregate_share(
        ours, "helper", key, asked.collection_job_req, plain(exchange["share"])
    )
    assert HISTOGRAM.unshard([share, other]) == exchange["sums"] == [3, 3, 3, 2]


@MODES
def test_our_collector_reads_what_two_aggregators_of_janus_counted(mode, key):
    exchange = RECORDED["collector"][mode]
    ours = task(exchange)
    request = _core.CollectionJobReq(plain(exchange["request"]))
    reports, interval, leader, helper = _core.read_collection_job_resp(plain(exchange["answer"]))
    shares = [
        _core.open_aggregate_share(ours, role, key, request, share)
        for role, share in (("leader", leader), ("helper", helper))
    ]
    sums = HISTOGRAM.unshard(shares)
    assert sums == exchange["sums"]
    # A leader of Janus makes batches of the smallest size, here 10 of 12.
    assert reports == exchange["reports"] == sum(sums) == (12, 10)[mode]
    if request.interval is not None:
        assert interval == request.interval
