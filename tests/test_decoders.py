"""Every decoder answers any bytes with a value or with one clear error of turnout's.

Documents are changed inside and sealed again, as somebody does who can compute a checksum: each
value replaced, each member dropped or added. Whatever else a decoder lets out, AttributeError or
UnicodeDecodeError, would end a program that means to refuse a bad file and go on.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import turnout as tn
import turnout.accounting as ta
import turnout.distributed as td
from turnout._seal import SEAL_MARKER
from turnout.collecting import plan_file
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import TurnoutError
from turnout.federated import RandomParticipationSGD
from turnout.federated.optimizers import SGD
from turnout.federated.schedules import CosineDecay, Warmup
from turnout.federated.trees import Structure, flatten
from turnout.frequency.attributes import AttributeTally, PaddedOracle, SampledAttribute
from turnout.frequency.groups import GroupedTally
from turnout.frequency.heavy_hitters import HeavyHitters, Search
from turnout.frequency.longitudinal import Memoized, MemoizedClient
from turnout.frequency.oracle import oracle_from_dict
from turnout.pipeline import PseudonymKey
from turnout.pipeline.job import Job
from turnout.signing import SigningKey

WRONG: list[Any] = [
    None, True, -1, 0, 1, 0.5, 2**31, 2**70, 1e300, float("nan"), float("-inf"), "", "x", "\ud800",
    "0" * 64, "é" * 32, [], [[]], [0, 0], ["x"], [None], {}, {"x": 1}, {"kind": []},
]  # fmt: skip


NO_DOCUMENTS = [
    b"", b"\xff\xfe", b"\xed\xa0\x80", b"[", b"[" * 100_000, b"null", b"[]", b"{}", b'"x"', b"NaN",
    b"1" * 5000, b"true",
]  # fmt: skip


FOLDER = Path(tempfile.mkdtemp(prefix="turnout-decoders-"))
atexit.register(shutil.rmtree, FOLDER)


class Decoder(NamedTuple):
    """A valid document in terms of JSON, what bytes hold it, and who reads them."""

    document: Any
    sealed: Callable[[bytes], bytes]
    read: Callable[[bytes], object]


def plain(body: bytes) -> bytes:
    return body


def in_container(data: bytes, read: Callable[[bytes], object]) -> Decoder:
    """The header of a tally of any kind; the arrays behind it stay."""
    magic, version, length = struct.unpack_from("<8sII", data)
    arrays = data[16 + length : -32]

    def sealed(body: bytes) -> bytes:
        whole = struct.pack("<8sII", magic, version, len(body)) + body + arrays
        return whole + hashlib.sha256(whole).digest()

    return Decoder(json.loads(data[16 : 16 + length]), sealed, read)


def in_client(data: bytes, memoized: Memoized) -> Decoder:
    def sealed(body: bytes) -> bytes:
        return b"turnout-client\0" + hashlib.sha256(body).digest() + body

    return Decoder(
        json.loads(data[47:]), sealed, lambda data: MemoizedClient.from_bytes(memoized, data)
    )


def in_ledger(body: bytes) -> bytes:
    try:
        description = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(description, dict):
        return body
    description["sha256"] = hashlib.sha256(body).hexdigest()
    return json.dumps(description, sort_keys=True, separators=(",", ":")).encode()


def in_plan_file(document: Any) -> Decoder:
    def sealed(body: bytes) -> bytes:
        fingerprint = hashlib.sha256(body).hexdigest().encode()
        return b'{"format":"turnout-plan-file","version":1,"plan":%s,"fingerprint":"%s"}' % (
            body,
            fingerprint,
        )

    return Decoder(document, sealed, plan_in_a_file)


def through_a_file(read: Callable[[Path], object], name: str = "file") -> Callable[[bytes], object]:
    def reading(data: bytes) -> object:
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.touch(0o600)
        path.write_bytes(data)
        return read(path)

    return reading


def through_json(read: Callable[[Any], object]) -> Callable[[bytes], object]:
    """Of what is read out of JSON by something else, which refuses what is none."""

    def reading(data: bytes) -> object:
        try:
            description = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return read(description)

    return reading


ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes", ("x", 2.5, None)]))
PLAN = tn.Plan(
    ORACLE,
    tn.Bernoulli(0.5),
    serial=3,
    expires=datetime.datetime(2999, 1, 1, tzinfo=datetime.timezone.utc),
)
PERSONAL = ORACLE.collect(["no"] * 4, participation=tn.Personalized([0.5, 1.0, 0.25, 1.0]), seed=1)
MEMOIZED = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
CLIENT = MEMOIZED.client(bytes(range(32)), max_values=2)
CLIENT.report(1)
ATTRIBUTES = SampledAttribute(1.0, {"sex": tn.Domain(["f", "m"]), "age": 8}, padding="fake")
GROUPED = GroupedTally(["country", "day"], {("DE", datetime.date(2030, 1, 1)): PERSONAL})
LEDGER = ta.PrivacyLedger(3.0, 1e-5)
LEDGER.spend(ta.GaussianMechanism(10.0), rounds=3, label="x")
SGD_PLAN = RandomParticipationSGD(0.1, 0.5, clip=1.0, noise_multiplier=2.0, local_size=30)
ROUND = td.NoisyAggregation(3, users=2, parties=2, epsilon=1.0).start_round()
SEARCH = HeavyHitters(4.0, bits=6, step=1, oracle="direct_encoding").rounds()
SEARCH.close(SEARCH.current.collect([9] * 50, seed=1))
STATE = json.loads(SEARCH.to_json())
del STATE["sha256"]
OTHERS = [
    tn.SubsetSelection(1.0, 100),
    tn.OptimizedLocalHashing(1.0, 1000, buckets=5, seed_pool=16),
    tn.ProjectiveGeometryResponse(1.0, 1000),
    SEARCH.current,
    tn.CountMeanSketch(1.0, 1000, hashes=8),
    tn.HadamardCountMeanSketch(1.0, 1000, hashes=8),
    MEMOIZED,
    PaddedOracle(1.0, 3, oracle=tn.SubsetSelection(1.0, 3), share=0.25),
]
JOB = {
    "format": "turnout-job", "version": 1, "name": "0" * 32, "plan": PLAN.to_dict(),
    "answers": {}, "content": None, "noise": {"key": "01" * 32}, "parts": None, "totals": None,
}  # fmt: skip
DONE = {
    **JOB,
    "noise": None,
    "parts": 1,
    "totals": {"rows": 3, "nodes": 3, "reports": 2, "dropped": 0, "duplicates": 0},
}


def plan_in_a_file(data: bytes) -> object:
    return tn.Plan._of_file(data, None)


def read_job(path: Path) -> object:
    return Job.read(path.parents[1])


def client_message(data: bytes) -> object:
    return PLAN.gather([data], 1)


DECODERS: dict[str, Decoder] = {
    "tally": in_container(ORACLE.collect(["no"] * 3, seed=1).to_bytes(), tn.Tally.from_bytes),
    "personal tally": in_container(PERSONAL.to_bytes(), tn.Tally.from_bytes),
    "grouped tally": in_container(GROUPED.to_bytes(), GroupedTally.from_bytes),
    "attributes": in_container(
        ATTRIBUTES.collect({"sex": ["f", "m"], "age": [0, 1]}, seed=1).to_bytes(),
        AttributeTally.from_bytes,
    ),
    "client": in_client(CLIENT.to_bytes(), MEMOIZED),
    "plan": Decoder(PLAN.to_dict(), plain, tn.Plan.from_json),
    "plan in a file": in_plan_file(PLAN.to_dict()),
    "plan file": Decoder(
        json.loads(plan_file.plan_file_text(PLAN.to_json(), SigningKey(bytes(32)))),
        plain,
        plan_in_a_file,
    ),
    "message": Decoder(
        json.loads(tn.Plan(ORACLE, tn.Everyone()).report("no") or b"") | {"plan": PLAN.fingerprint},
        plain,
        client_message,
    ),
    "signing key": Decoder(
        {
            "format": "turnout-signing-key",
            "version": 1,
            "algorithm": "ed25519",
            "public_key": SigningKey(bytes(32)).public_key,
            "secret": bytes(32).hex(),
        },
        plain,
        through_a_file(SigningKey.read),
    ),
    "pseudonym key": Decoder(
        {"format": "turnout-pseudonym-key", "version": 1, "key": bytes(32).hex()},
        plain,
        through_a_file(PseudonymKey.read),
    ),
    "ledger": Decoder(LEDGER.to_dict(), in_ledger, ta.PrivacyLedger.from_json),
    "ledger file": Decoder(LEDGER.to_dict(), in_ledger, through_a_file(ta.PrivacyLedger.load)),
    "job": Decoder(JOB, plain, through_a_file(read_job, "_turnout/job.json")),
    "done job": Decoder(DONE, plain, through_a_file(read_job, "_turnout/job.json")),
    "state of rounds": Decoder(STATE, in_ledger, Search.from_json),
    "round of aggregation": Decoder(json.loads(ROUND.to_bytes()), plain, td.Round.from_bytes),
    "training": Decoder(SGD_PLAN.to_dict(), plain, through_json(RandomParticipationSGD.from_dict)),
    "optimizer": Decoder(
        SGD(Warmup(3, CosineDecay(0.5, 10)), momentum=0.5).to_dict(),
        plain,
        through_json(SGD.from_dict),
    ),
    "structure": Decoder(
        flatten({"a": np.zeros((2, 3), np.float32), "b": [np.zeros(2)]})[1].to_dict(),
        plain,
        through_json(Structure.from_dict),
    ),
    **{
        oracle.name: Decoder(oracle.to_dict(), plain, through_json(oracle_from_dict))
        for oracle in OTHERS
    },
}


def changed(document: Any, inside: bool = False) -> Iterator[Any]:
    """Copies of a document, each with one value replaced, or one member dropped or added."""
    yield from WRONG
    if isinstance(document, dict):
        for name, value in document.items():
            yield {other: each for other, each in document.items() if other != name}
            for other in changed(value):
                yield {**document, name: other}
        yield {**document, "more": 1}
    elif isinstance(document, list):
        yield [*document, *document]
        for place, value in enumerate(document):
            for other in changed(value):
                yield [*document[:place], other, *document[place + 1 :]]


@pytest.mark.parametrize("name", DECODERS)
def test_what_is_wrong_inside_a_genuine_seal_is_one_error(name: str) -> None:
    document, sealed, read = DECODERS[name]
    read(sealed(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()))
    bodies = [
        json.dumps(other, sort_keys=True, separators=(",", ":")).encode()
        for other in changed(document)
    ]
    escaped = []
    for body in [*NO_DOCUMENTS, *bodies]:
        try:
            read(sealed(body))
        except TurnoutError:
            pass
        except Exception as error:
            escaped.append((body[:300], repr(error)[:200]))
    assert not escaped, (len(escaped), escaped[:20])


@pytest.mark.parametrize("name", DECODERS)
def test_what_is_cut_or_altered_is_one_error(name: str) -> None:
    document, sealed, read = DECODERS[name]
    whole = sealed(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    step = max(1, len(whole) // 60)
    pieces = [whole[:length] for length in range(0, len(whole), step)]
    for place in range(0, len(whole), step):
        pieces += [
            whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :] for flip in (1, 128)
        ]
    for piece in [*pieces, whole + whole]:
        with contextlib.suppress(TurnoutError):
            read(piece)


def sealed_again(data: bytes) -> bytes:
    """A report file with the seal of what it holds."""
    marker = SEAL_MARKER.encode()
    last = data[data.rindex(marker) + len(marker) :][:64]
    blank = data.replace(marker + last, marker + b"0" * 64)
    return blank.replace(marker + b"0" * 64, marker + hashlib.sha256(blank).hexdigest().encode())


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_report_file_altered_anywhere_and_sealed_again_is_one_error(
    ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"reports.{ending}"
    write_reports(ORACLE.randomize(["no", "yes"] * 3, seed=1), path)
    whole = path.read_bytes()
    assert sealed_again(whole) == whole
    seal = range(whole.rindex(SEAL_MARKER.encode()), whole.rindex(SEAL_MARKER.encode()) + 79)
    names = [place for place in range(len(whole)) if whole[place:].startswith(b"report")]
    refused = 0
    for place in [*names, *range(0, len(whole), 7)]:
        if place in seal:
            continue
        altered = bytearray(whole)
        # In the name of a column this is no UTF-8.
        altered[place] ^= 0x80
        path.write_bytes(sealed_again(bytes(altered)))
        try:
            read_reports(path)
        except TurnoutError:
            refused += 1
    assert refused > len(names)
