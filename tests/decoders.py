"""Every decoder of bytes that come from elsewhere: what it reads, and what a valid input is.

``test_decoders.py`` tries each with what is wrong inside a genuine seal, and ``fuzz/decoders.py``
with whatever a fuzzer makes. Nothing here needs pytest.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import hashlib
import importlib.util
import itertools
import json
import runpy
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from tests.decoding import (
    FOLDER,
    Decoder,
    after_header,
    archive_file,
    array_file,
    binary,
    canonical,
    described,
    in_a_file,
    in_bytes,
    in_container,
    in_ledger,
    in_text,
    plain,
    sealed_again,
    through_a_file,
)

import turnout as tn
import turnout.accounting as ta
import turnout.distributed as td
from turnout._arrays import read_archive, read_array
from turnout.accounting import registry
from turnout.collecting import plan_file
from turnout.collecting.report_files import read_reports, write_reports
from turnout.collecting.report_files.header import Groups, Header, PartFacts
from turnout.collecting.sums import DesignSums
from turnout.distributed import messages, payloads
from turnout.distributed.field import PrimeField
from turnout.distributed.roles.elections import (
    Election,
    Word,
    pack_missing,
    pack_word,
    unpack_missing,
    unpack_word,
)
from turnout.distributed.rounds import exchange
from turnout.distributed.transport import frames
from turnout.errors import TurnoutError
from turnout.federated import RandomParticipationSGD
from turnout.federated.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from turnout.federated.optimizers import SGD
from turnout.federated.trees import Structure, flatten
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.attributes import AttributeTally, PaddedOracle, SampledAttribute
from turnout.frequency.groups import GroupedTally
from turnout.frequency.heavy_hitters import HeavyHitters, Search
from turnout.frequency.longitudinal import Memoized, MemoizedClient
from turnout.frequency.oracle import FrequencyOracle
from turnout.pipeline import PseudonymKey
from turnout.pipeline.job import Job
from turnout.samplers import CollectedReference
from turnout.samplers.tables.collected_file import read_collected, text_of
from turnout.samplers.tables.columns import columns_of
from turnout.serve.tasks.files import ClientFile, CollectorFile, HelperFile, LeaderFile
from turnout.signing import SigningKey
from turnout_reproduce.datasets import read_idx

#: Where the files of a task are.
TASKS = Path(__file__).parent / "serve" / "tasks"


def in_client(data: bytes, memoized: Memoized) -> Decoder:
    description = json.loads(data)
    del description["sha256"]
    return Decoder(
        canonical(description),
        in_ledger,
        lambda data: MemoizedClient.from_bytes(memoized, data),
        in_bytes,
    )


def in_plan_file(document: Any) -> Decoder:
    def sealed(body: bytes) -> bytes:
        fingerprint = hashlib.sha256(body).hexdigest().encode()
        return b'{"format":"turnout-plan-file","version":1,"plan":%s,"fingerprint":"%s"}' % (
            body,
            fingerprint,
        )

    return Decoder(canonical(document), sealed, plan_in_a_file)


ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes", ("x", 2.5, None)]))
PLAN = tn.Plan(
    ORACLE,
    tn.Bernoulli(0.5),
    serial=3,
    expires=datetime.datetime(2999, 1, 1, tzinfo=datetime.timezone.utc),
)
TALLY = ORACLE.collect(["no"] * 3, seed=1)
PERSONAL = ORACLE.collect(["no"] * 4, participation=tn.Personalized([0.5, 1.0, 0.25, 1.0]), seed=1)
MEMOIZED = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
CLIENT = MEMOIZED.client(bytes(range(32)), max_values=2)
CLIENT.report(1)
ATTRIBUTES = SampledAttribute(1.0, {"sex": tn.Domain(["f", "m"]), "age": 8}, padding="fake")
ATTRIBUTE_TALLY = ATTRIBUTES.collect({"sex": ["f", "m"], "age": [0, 1]}, seed=1)
GROUPED = GroupedTally(["country", "day"], {("DE", datetime.date(2030, 1, 1)): PERSONAL})
MEAN = tn.mean.Duchi(1.0, (0.0, 1.0))
MEAN_TALLY = MEAN.collect([0.25, 0.5], seed=1)
LEDGER = ta.PrivacyLedger(3.0, 1e-5)
LEDGER.spend(ta.GaussianMechanism(10.0), rounds=3, label="x")
SGD_PLAN = RandomParticipationSGD(0.1, 0.5, clip=1.0, noise_multiplier=2.0, local_size=30)
STRUCTURE = flatten({"a": np.zeros((2, 3), np.float32), "b": [np.zeros(2)]})[1]
AGGREGATIONS: list[Any] = [
    td.NoisyAggregation(3, users=2, parties=2, epsilon=1.0),
    td.SamplingAggregation(2, users=4, parties="users", rate=0.9, dummies=5),
    td.TwoStageSampling(2, users=4, reported=1, rate=0.5, floor=2),
]
PROVEN = [td.VerifiedAggregation(3, users=9, epsilon=1.0), td.VerifiedSum((0, 9), 9, epsilon=1.0)]
MECHANISMS: list[ta.Mechanism] = [
    ta.RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=2.5),
    ta.FixedSizeBatches(10, 300, 1.5),
    ta.ShuffledBatches(30, 1.5),
    ta.RandomCheckIns(0.25, 30, 1.5),
    ta.CountSampling(0.3, 12),
    ta.SampleAndThreshold(0.25, 20),
    ta.SummedDiscreteGaussianNoise(0.2, pieces=90),
    ta.NoisySums("discrete_gaussian", 2.5, rate=0.3, largest=4),
    ta.TwoStageCountSampling(0.3, 20, 5, gamma=2.5, floor=12, dummies=3),
    ta.Shuffled(tn.DirectEncoding(0.5, 7), 10, tn.Bernoulli(0.3)),
]
ROUND = td.Round.start(AGGREGATIONS[0])
SEARCH = HeavyHitters(4.0, bits=6, step=1, oracle="direct_encoding").rounds()
SEARCH.close(SEARCH.current.collect([9] * 50, seed=1))
STATE = json.loads(SEARCH.to_json())
del STATE["sha256"]
OTHERS = [
    tn.SubsetSelection(1.0, 100),
    tn.OptimizedLocalHashing(1.0, 1000, buckets=5, hashes=16),
    tn.ProjectiveGeometryResponse(1.0, 1000),
    SEARCH.current,
    SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=[0.2, 0.25, 0.3]),
    tn.CountMeanSketch(1.0, 1000, hashes=8),
    tn.HadamardCountMeanSketch(1.0, 1000, hashes=8),
    MEMOIZED,
    PaddedOracle(1.0, 3, oracle=tn.SubsetSelection(1.0, 3), own_probability=0.25),
]
JOB = {
    "format": "turnout-job", "version": 2, "name": "0" * 32, "plan": PLAN.to_dict(),
    "answers": {}, "content": None, "noise": {"key": "01" * 32}, "parts": None, "totals": None,
    "file_rows": {},
}  # fmt: skip
DONE = {
    **JOB,
    "noise": None,
    "parts": 1,
    "totals": {"nodes": 3, "reports": 2, "left_out": tn.LeftOut(unanswered=1).to_dict()},
    "file_rows": {"people.csv": 4},
}
#: A plan of every kind.
PLANS = {
    name: tn.Plan(oracle, tn.Everyone())
    for name, oracle in runpy.run_path(str(Path(__file__).with_name("kinds.py")))["KINDS"].items()
}
FIELD = PrimeField(251)
MESSAGE = messages.Message(
    messages.MessageKind.SHARE,
    bytes(16),
    messages.Party(messages.Role.USER, 1),
    messages.Party(messages.Role.AGGREGATOR),
    b"payload",
)


def plan_in_a_file(data: bytes) -> object:
    return tn.Plan._of_file(data, None)


def read_job(path: Path) -> object:
    return Job.read(path.parents[1])


def client_message(data: bytes) -> object:
    return PLAN.gather([data], 1)


def tallied(reports: Any) -> object:
    """Reports that are taken can be counted."""
    reports.plan.oracle.tally(reports)
    return reports


#: The header of a part of a job with groups, of nodes with probabilities of their own.
HEADER = Header(
    tn.Plan(ORACLE, tn.Personalized([0.5])),
    3,
    2,
    DesignSums(3 << 63, 3 << 62),
    Groups(
        ("country", "day"),
        (("DE", datetime.date(2026, 1, 31)), (None, datetime.date(2026, 2, 1))),
        (2, 1),
        (DesignSums(1 << 64, 1 << 63), DesignSums(1 << 63, 1 << 62)),
        (0, 4),
    ),
    True,
    PartFacts("6f", 7),
    left_out=tn.LeftOut(unanswered=4, ungrouped=1),
)


def report_file(ending: str) -> Decoder:
    path = FOLDER / f"valid.{ending}"
    write_reports(ORACLE.randomize(["no", "yes"] * 3, seed=1), path)
    return binary(
        path.read_bytes(),
        through_a_file(lambda path: tallied(read_reports(path, max_memory=2**24))),
        in_a_file(write_reports, ending),
        sealed_again,
    )


def checkpoint() -> Decoder:
    state = TrainingState(
        SGD_PLAN.to_dict(), STRUCTURE, np.arange(8.0), SGD(0.5).to_dict(), [np.zeros(2)], 3, LEDGER
    )
    path = FOLDER / "valid.npz"
    write_checkpoint(path, state)
    return binary(
        path.read_bytes(),
        through_a_file(read_checkpoint),
        in_a_file(lambda state, path: write_checkpoint(path, state), "npz"),
        sealed_again,
    )


def archived(data: bytes) -> object:
    return {name: bytes(member) for name, member in read_archive(data).items()}


def message_checksum(content: bytes) -> bytes:
    return content + messages._checksum(content)


def framed(data: bytes) -> object:
    """All frames of a stream."""

    async def reading() -> list[bytes]:
        reader = asyncio.StreamReader(limit=2**10)
        reader.feed_data(data)
        reader.feed_eof()
        found = []
        while (content := await frames.read_frame(reader, 2**16 + 100)) is not None:
            found.append(content)
        return found

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(reading())
    finally:
        loop.close()


def round_with_one_altered(data: bytes) -> None:
    """A round in which one message has another kind, sender or payload than its sender wrote."""
    if len(data) < 4:
        return
    which, number, envelope, place = data[:4]
    real, sent = messages.Message.to_bytes, itertools.count()

    def to_bytes(message: messages.Message) -> bytes:
        if next(sent) != number % 32:
            return real(message)
        payload = bytearray(message.payload)
        start = place % (len(payload) + 1)
        payload[start : start + len(data[4:])] = data[4:]
        if envelope & 1:
            message = dataclasses.replace(message, kind=messages.MessageKind(1 + envelope // 8 % 6))
        if envelope & 2:
            sender = messages.Party(messages.Role(1 + envelope // 8 % 4), envelope // 64)
            message = dataclasses.replace(message, sender=sender)
        if envelope & 4:
            payload = payload[: place % (len(payload) + 1)]
        return real(dataclasses.replace(message, payload=bytes(payload)))

    mechanism = AGGREGATIONS[which % len(AGGREGATIONS)]
    with mock.patch.object(messages.Message, "to_bytes", to_bytes):
        exchange(td.Round.start(mechanism), [0, 1, 1, 0][: mechanism.users])


ELECTED = td.TwoStageSampling(2, 8, reported=1, rate=0.5, floor=3, max_missing_users=2)


def election() -> bytes:
    found = Election(3, np.array([1, 2]), (np.array([0]), np.array([1, 2])), {})
    return found.public_part() + found.duty_part([(1, np.array([0, 2]))])


def of_ledger(ledger: ta.PrivacyLedger) -> bytes:
    return ledger._to_json().encode()


REFERENCE_COLUMNS = columns_of({"a": ["p", "q"], "b": ["r", "s"]})
COLLECTED = CollectedReference(
    1.0,
    3,
    {"a": np.array([0.25, 0.75]), "b": np.array([0.5, 0.5])},
    {("a", "b"): np.array([[0.25, 0.0], [0.25, 0.5]])},
)

DECODERS: dict[str, Decoder] = {
    "tally": in_container(TALLY.to_bytes(), tn.Tally.from_bytes),
    "tally sums": after_header(TALLY.to_bytes(), tn.Tally.from_bytes),
    "personal tally": in_container(PERSONAL.to_bytes(), tn.Tally.from_bytes),
    "personal tally sums": after_header(PERSONAL.to_bytes(), tn.Tally.from_bytes),
    "grouped tally": in_container(GROUPED.to_bytes(), GroupedTally.from_bytes),
    "grouped tally sums": after_header(GROUPED.to_bytes(), GroupedTally.from_bytes),
    "mean tally": in_container(MEAN_TALLY.to_bytes(), type(MEAN_TALLY).from_bytes),
    "mean tally sums": after_header(MEAN_TALLY.to_bytes(), type(MEAN_TALLY).from_bytes),
    "attributes": in_container(ATTRIBUTE_TALLY.to_bytes(), AttributeTally.from_bytes),
    "attributes sums": after_header(ATTRIBUTE_TALLY.to_bytes(), AttributeTally.from_bytes),
    "client": in_client(CLIENT.to_bytes(), MEMOIZED),
    "plan": Decoder(canonical(PLAN.to_dict()), plain, tn.Plan.from_json, in_text),
    **{
        f"plan of {name}": Decoder(canonical(plan.to_dict()), plain, tn.Plan.from_json, in_text)
        for name, plan in PLANS.items()
    },
    "plan in a file": in_plan_file(PLAN.to_dict()),
    "plan file": Decoder(
        plan_file.plan_file_text(PLAN._described, SigningKey(bytes(32))).encode(),
        plain,
        plan_in_a_file,
    ),
    "message": Decoder(
        canonical(
            json.loads(tn.Plan(ORACLE, tn.Everyone()).report("no") or b"")
            | {"plan": PLAN.fingerprint}
        ),
        plain,
        client_message,
    ),
    "signing key": Decoder(
        canonical(
            {
                "format": "turnout-signing-key",
                "version": 1,
                "algorithm": "ed25519",
                "public_key": SigningKey(bytes(32)).public_key,
                "secret": bytes(32).hex(),
            }
        ),
        plain,
        through_a_file(SigningKey.read),
    ),
    "collected reference": Decoder(
        text_of(COLLECTED, REFERENCE_COLUMNS).encode(),
        plain,
        through_a_file(lambda path: read_collected(path, REFERENCE_COLUMNS)),
        lambda found: text_of(found, REFERENCE_COLUMNS).encode(),
    ),
    "pseudonym key": Decoder(
        canonical({"format": "turnout-pseudonym-key", "version": 1, "key": bytes(32).hex()}),
        plain,
        through_a_file(PseudonymKey.read),
    ),
    **{
        f"file of the {kind.role}": Decoder(
            (TASKS / f"{kind.role}.json").read_bytes(), plain, through_a_file(kind.read)
        )
        for kind in (LeaderFile, HelperFile, ClientFile, CollectorFile)
    },
    "ledger": Decoder(
        canonical(LEDGER.to_dict()), in_ledger, ta.PrivacyLedger._from_json, of_ledger
    ),
    "ledger file": Decoder(
        canonical(LEDGER.to_dict()), in_ledger, through_a_file(ta.PrivacyLedger.read), of_ledger
    ),
    "job": Decoder(canonical(JOB), plain, through_a_file(read_job, "_turnout/job.json")),
    "done job": Decoder(canonical(DONE), plain, through_a_file(read_job, "_turnout/job.json")),
    "state of rounds": Decoder(canonical(STATE), in_ledger, Search.from_json, in_text),
    "round of aggregation": Decoder(ROUND.to_bytes(), plain, td.Round.from_bytes, in_bytes),
    "training": described(SGD_PLAN, RandomParticipationSGD.from_dict),
    "structure": described(STRUCTURE, Structure.from_dict),
    "mean": described(MEAN, type(MEAN).from_dict),
    **{
        f"mechanism {type(mechanism).__name__}": described(mechanism, registry.mechanism_from_dict)
        for mechanism in MECHANISMS
    },
    **{
        f"aggregation {mechanism.name}": described(mechanism, td.mechanism_from_dict)
        for mechanism in (*AGGREGATIONS, *PROVEN)
    },
    **{oracle.name: described(oracle, FrequencyOracle.from_dict) for oracle in OTHERS},
    "report header": Decoder(
        HEADER.to_text().encode(),
        plain,
        Header.from_text,
        lambda header: header.to_text().encode(),
    ),
    "parquet": report_file("parquet"),
    "arrow": report_file("arrow"),
    "checkpoint": checkpoint(),
    "array": binary(array_file(np.arange(6.0).reshape(2, 3)), read_array, array_file),
    "archive": binary(archive_file({"one": b"1", "two": b"22"}), archived, archive_file),
    "idx": binary(b"\0\0\x08\2\0\0\0\2\0\0\0\3abcdef", through_a_file(read_idx)),
    "aggregation message": binary(
        MESSAGE.to_bytes()[:-16], messages.Message.from_bytes, in_bytes, message_checksum
    ),
    "altered round": binary(b"\2\1\0\0", round_with_one_altered),
    "frames": binary(frames.frame(b"abc") + frames.frame(b""), framed),
    "acknowledgement": binary(
        frames.refused(TurnoutError("too late")), frames.read_acknowledgement, frames.refused
    ),
    "elements": binary(
        FIELD._pack(np.arange(3, dtype=np.uint32)), lambda data: FIELD._unpack(data, 3), FIELD._pack
    ),
    "roster": binary(
        payloads.pack_roster(np.array([7, 0, 9], np.uint64)),
        lambda data: payloads.unpack_roster(data, 3),
        payloads.pack_roster,
    ),
    "share": binary(
        payloads.pack_share(3, bytes(32), seeded=True),
        lambda data: payloads.unpack_share(data, FIELD, 3),
    ),
    "party sum": binary(
        payloads.pack_party_sum(np.array([7, 0, 9], np.uint64), FIELD, np.zeros(3, np.uint32)),
        lambda data: payloads.unpack_party_sum(data, FIELD, 3),
    ),
    "item shares": binary(
        payloads.pack_item_shares(np.array([0, 2]), FIELD, np.zeros(2, np.uint32)),
        lambda data: payloads.unpack_item_shares(data, FIELD, 3),
        lambda found: payloads.pack_item_shares(found[0], FIELD, found[1]),
    ),
    "election": binary(election(), lambda data: Election.unpack(data, 4, 2, 1)),
    "missing users": binary(
        pack_missing(ELECTED, 1, [0, 2]),
        lambda data: unpack_missing(ELECTED, data),
        lambda found: pack_missing(ELECTED, found[0], found[1].tolist()),
    ),
    "word of an election": binary(
        pack_word(2, Word.ADD_UP), unpack_word, lambda found: pack_word(*found)
    ),
}

if importlib.util.find_spec("flwr") is not None:
    from turnout.federated.flower import kept, secure

    def answered(data: bytes) -> object:
        try:
            return kept._decoded(data.decode())
        except UnicodeDecodeError:
            return None

    ANSWER = kept.Answer(PLAN.fingerprint, 1.0, 3, [0, 1, 2])
    DECODERS["answers"] = Decoder(
        canonical(
            {
                "format": "turnout-answers",
                "version": 1,
                "answers": {"x": dataclasses.asdict(ANSWER)},
            }
        ),
        plain,
        answered,
    )
    DECODERS["file of an aggregator"] = Decoder(
        canonical(
            {
                "format": "turnout-aggregator",
                "version": 1,
                "key": "AAAgAAEAAQAgzzVH8TEBbAeCqtaHogyBU3H4V7kGiE1Mt2KiXMQS5R0=",
                "private_key": "YOT2rcGg3NhedzQYWEakQOk7jALeCLrVT8ZvAPqQGmY=",
                "answered": {"17": 3},
            }
        ),
        plain,
        secure._File.of,
        lambda found: found.text().encode(),
    )
