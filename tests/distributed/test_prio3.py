"""Prio3 of the core through the binding: the vectors of the draft, and whatever else is refused."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout._core import Prio3
from turnout.errors import CodeOutsideDomainError, CorruptDataError, InvalidValueError

VECTORS = Path(__file__).parents[2] / "rust/tests/vectors/vdaf"
KEY, CONTEXT, NONCE = bytes(range(32)), b"a poll", bytes(16)


def made(name: str, vector: dict[str, Any]) -> Prio3:
    """Make Prio3 as a vector says."""
    kind, shares, chunk = (
        name.split("_", maxsplit=1)[0],
        vector["shares"],
        vector.get("chunk_length"),
    )
    match kind:
        case "Prio3Count":
            return Prio3.count(shares)
        case "Prio3Sum":
            return Prio3.sum(vector["max_measurement"], shares)
        case "Prio3SumVec":
            return Prio3.sum_vec(vector["max_measurement"], vector["length"], chunk, shares)
        case "Prio3Histogram":
            return Prio3.histogram(vector["length"], chunk, shares)
    return Prio3.multihot(vector["length"], vector["max_weight"], chunk, shares)


def joined(share: Any) -> bytes:
    """Read an output share, in one piece or element by element."""
    return bytes.fromhex(share if isinstance(share, str) else "".join(share))


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.json")), ids=lambda path: path.stem)
def test_the_vectors_of_the_draft_come_out(path: Path) -> None:
    vector = json.loads(path.read_text())
    prio3 = made(path.stem, vector)
    context, key = bytes.fromhex(vector["ctx"]), bytes.fromhex(vector["verify_key"])
    states: dict[tuple[int, int], bytes] = {}

    def step(operation: str, index: int, party: int) -> tuple[Any, Any]:
        report = vector["reports"][index]
        shares = [bytes.fromhex(share) for share in report["verifier_shares"][0]]
        messages = [bytes.fromhex(message) for message in report["verifier_messages"]]
        match operation:
            case "verify_init":
                nonce, public = bytes.fromhex(report["nonce"]), report["public_share"]
                mine = bytes.fromhex(report["input_shares"][party])
                states[index, party], share = prio3.verify_init(
                    key, context, party, nonce, bytes.fromhex(public), mine
                )
                return share, shares[party]
            case "verifier_shares_to_message":
                return prio3.verifier_message(context, shares), messages[0]
            case "verify_next":
                output = prio3.verify_next(context, party, states[index, party], messages[0])
                return output, joined(report["out_shares"][party])
            case "aggregate":
                outputs = [joined(each["out_shares"][party]) for each in vector["reports"]]
                return prio3.aggregate(outputs), bytes.fromhex(vector["agg_shares"][party])
        shares = [bytes.fromhex(share) for share in vector["agg_shares"]]
        expected = vector["agg_result"]
        return prio3.unshard(shares), expected if isinstance(expected, list) else [expected]

    followed = 0
    for operation in vector["operations"]:
        name = operation["operation"]
        if name == "shard":
            continue
        where = operation.get("report_index", 0), operation.get("aggregator_id", 0)
        followed += 1
        if operation["success"]:
            found, expected = step(name, *where)
            assert found == expected
        else:
            with pytest.raises((InvalidValueError, CorruptDataError)):
                step(name, *where)
    assert followed > 1


def exchanged(prio3: Prio3, reports: list[tuple[bytes, bytes, list[bytes]]]) -> list[Any]:
    """Verify reports as leader and helper: both output shares, or why one was refused."""
    begun = prio3.leader_initialized(KEY, CONTEXT, [(n, p, shares[0]) for n, p, shares in reports])
    answers = prio3.helper_initialized(
        KEY,
        CONTEXT,
        [
            (nonce, public, shares[1], b"" if isinstance(start, str) else start[1])
            for (nonce, public, shares), start in zip(reports, begun, strict=True)
        ],
    )
    found: list[Any] = []
    for start, answer in zip(begun, answers, strict=True):
        if isinstance(start, str) or isinstance(answer, str):
            found.append(start if isinstance(start, str) else answer)
            continue
        [output] = prio3.leader_continued(CONTEXT, [(start[0], answer[1])])
        found.append(output if isinstance(output, str) else (output, answer[0]))
    return found


@pytest.mark.parametrize(
    ("prio3", "measurements", "total"),
    [
        (Prio3.count(), [[1], [0], [1]], [2]),
        (Prio3.sum(300), [[300], [0], [7]], [307]),
        (Prio3.sum_vec(9, 3), [[9, 0, 1], [9, 9, 9]], [18, 9, 10]),
        (Prio3.histogram(3), [[0], [2], [2]], [1, 0, 2]),
        (Prio3.multihot(3), [[0, 0, 0], [0, 1, 0]], [0, 1, 0]),
    ],
)
def test_a_leader_and_a_helper_add_up(
    prio3: Prio3, measurements: list[list[int]], total: list[int]
) -> None:
    reports = []
    for measurement in measurements:
        nonce = secrets.token_bytes(16)
        reports.append((nonce, *prio3.shard(CONTEXT, measurement, nonce)))
    pairs = exchanged(prio3, reports)
    shares = [prio3.aggregate([pair[party] for pair in pairs]) for party in (0, 1)]
    assert prio3.unshard(shares) == total
    halves = prio3.aggregate([pairs[0][0]]), prio3.aggregate([pair[0] for pair in pairs[1:]])
    assert prio3.aggregate([halves[1]], halves[0]) == shares[0]


def test_votes_are_shared_at_once() -> None:
    votes = np.array([0, 2, -1, 2], np.int64)
    for prio3, expected in ((Prio3.multihot(3), [1, 0, 2]), (Prio3.histogram(4), [1, 0, 2, 1])):
        nonces = secrets.token_bytes(64)
        made = prio3.shard_votes(CONTEXT, votes, nonces)
        reports = [(nonces[16 * at : 16 * at + 16], *report) for at, report in enumerate(made)]
        shares, refused = prio3.verify_together(KEY, CONTEXT, reports)
        assert refused == [None] * 4
        assert prio3.unshard(shares) == expected
        _, again = prio3.verify_together(KEY, CONTEXT, [*reports, reports[1]])
        assert again == [*refused, "replayed"]
    with pytest.raises(CodeOutsideDomainError):
        Prio3.multihot(3).shard_votes(CONTEXT, np.array([3]), NONCE)
    with pytest.raises(InvalidValueError, match="votes and nonces must have the same length"):
        Prio3.multihot(3).shard_votes(CONTEXT, np.array([1]), b"")
    with pytest.raises(InvalidValueError, match="Histogram"):
        Prio3.sum(3).shard_votes(CONTEXT, np.array([1]), NONCE)


def test_altered_and_truncated_reports_are_refused_by_word() -> None:
    prio3 = Prio3.multihot(3)
    public, shares = prio3.shard(CONTEXT, [0, 1, 0], NONCE)
    leader = bytearray(shares[0])
    leader[0] ^= 1
    cases = {
        "proof": (NONCE, public, [bytes(leader), shares[1]]),
        "malformed": (NONCE, public[1:], shares),
    }
    for word, report in cases.items():
        assert exchanged(prio3, [report]) == [word]
        assert prio3.verify_together(KEY, CONTEXT, [report])[1] == [word]
    assert prio3.verify_together(KEY, CONTEXT, [(NONCE, public, shares[:1])])[1] == ["malformed"]
    assert prio3.verify_together(KEY, b"another", [(NONCE, public, shares)])[1] == ["proof"]
    other = prio3.shard(CONTEXT, [0, 1, 0], NONCE)[1]
    assert exchanged(prio3, [(NONCE, public, [shares[0], other[1]])]) == ["proof"]


def test_noise_is_added_and_may_be_below_zero() -> None:
    for prio3 in (Prio3.multihot(2000), Prio3.sum_vec(3, 2000)):
        zero = prio3.aggregate([])
        for noise, parameter, deviation in (
            ("discrete_laplace", 10.0, 14.1),
            ("discrete_gaussian", 100.0, 10.0),
        ):
            noised = [prio3.add_noise(zero, noise, parameter, 5, seed) for seed in (1, 2)]
            sums = np.array(prio3.unshard(noised), dtype=np.float64)
            # Of 2,000 numbers, five standard deviations of the mean square and more.
            assert abs(sums.std() / (deviation * 2**0.5) - 1.0) < 0.15
            assert (sums < 0).any()
            assert noised[0] == prio3.add_noise(zero, noise, parameter, 5, 1)
            assert prio3.add_noise(zero, noise, parameter, 5) != noised[0]
    with pytest.raises(InvalidValueError, match="may not fit into the field"):
        Prio3.sum(2**61).add_noise(bytes(8), "discrete_laplace", 1.0, 100)
    with pytest.raises(InvalidValueError, match="noise must be"):
        Prio3.count().add_noise(bytes(8), "skellam", 1.0, 100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Prio3.count(1),
        lambda: Prio3.sum(0),
        lambda: Prio3.multihot(0),
        lambda: Prio3.multihot(3, 4),
        lambda: Prio3.histogram(3, 0),
        lambda: Prio3.sum_vec(2**40, 2**20),
        lambda: Prio3.multihot(3).shard(CONTEXT, [1, 1, 0], NONCE),
        lambda: Prio3.sum(3).shard(CONTEXT, [4], NONCE),
        lambda: Prio3.sum(3).shard(CONTEXT, [3], NONCE[1:]),
        lambda: Prio3.count(3).leader_initialized(KEY, CONTEXT, [(NONCE, b"", b"")]),
        lambda: Prio3.count().leader_initialized(KEY[1:], CONTEXT, []),
        lambda: Prio3.count().verify_init(KEY, CONTEXT, 2, NONCE, b"", b""),
    ],
)
def test_bad_arguments_are_refused(make: Any) -> None:
    with pytest.raises(InvalidValueError):
        make()


def test_sizes_are_those_of_what_is_made() -> None:
    prio3 = Prio3.multihot(30, aggregators=3)
    public, shares = prio3.shard(CONTEXT, [0] * 30, NONCE)
    assert len(public) == prio3.public_share_length
    assert [len(share) for share in shares] == [prio3.input_share_length(at) for at in range(3)]
    assert len(prio3.aggregate([])) == prio3.aggregate_share_length == 30 * 16
    assert (prio3.length, prio3.max_weight, prio3.aggregators, prio3.algorithm_id) == (30, 1, 3, 5)
    assert prio3.modulus.bit_length() == 128
    assert prio3 == Prio3.multihot(30, chunk_length=prio3.chunk_length, aggregators=3)
    assert prio3 != Prio3.multihot(31, aggregators=3)
