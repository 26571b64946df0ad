"""No text of an object shows what is somebody's: an answer, a report, a share, a key, a gradient.

Every public class is either made here with a mark in what it holds, and then no text of it has the
mark, or there is a reason why nothing secret can be in its text. A new public class needs one of
the two. What errors show is tested in ``test_secret_errors.py``.
"""

from __future__ import annotations

import gc
import importlib.util
import pprint
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.loading import load

import turnout as tn
import turnout.accounting as ta
import turnout.distributed as td
import turnout.errors as te
import turnout.federated as tf
import turnout.pipeline as tp
import turnout.planning as tl
import turnout.samplers as ts
from turnout import surveying
from turnout._tables import Tabular
from turnout.collecting.kind import Kind
from turnout.collecting.report_files.header import Groups, Header, PartFacts
from turnout.collecting.report_files.reading import ReportBatch
from turnout.collecting.report_messages import Gathered
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport import Undelivered
from turnout.federated.checkpoint import TrainingState
from turnout.federated.client import Draw
from turnout.federated.grid import Grid
from turnout.federated.trees import Structure, flatten
from turnout.frequency import adaptive, attributes, heavy_hitters, joint, ordered
from turnout.frequency.estimation import answer, covariance, models
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues
from turnout.frequency.longitudinal import MemoizedClient
from turnout.frequency.ordered.reports import _OrderedReports
from turnout.frequency.rounds import Rounds
from turnout.mean.law import SecondMoment
from turnout.pipeline.columns import GroupIndex
from turnout.pipeline.encoding import EncodedBlock, Totals
from turnout.pipeline.job import Job
from turnout.pipeline.randomizing import JobNoise
from turnout.pipeline.sources import Block, Source
from turnout.planning.participation import _MixedPlan
from turnout.samplers.normalizer import LogNormalizer
from turnout.signing import SigningKey

API = Path(__file__).with_name("public_api.py")
FLOWER = importlib.util.find_spec("flwr") is not None

#: What stands in everything that is somebody's, as digits.
MARK = "48271"
CODE, SHARE = int(MARK), float(f"0.{MARK}")
BYTES = MARK.encode() * 6 + b"xx"
TEXTS = (MARK, BYTES.hex()[:20])

ORACLE = tn.DirectEncoding(1.0, 10**5)
CODES = np.full(9, CODE)


def reports() -> tn.Reports:
    return tn.Reports(ORACLE, tn.Everyone(), CODES, CODES.size)


def message() -> bytes:
    plan = tn.Plan(ORACLE, tn.Everyone())
    text = plan.report(0)
    assert text is not None
    return text.replace(text[text.index(b'"report":') :], b'"report":%d}' % CODE)


def answers() -> Any:
    return tp.scan(pa.table({"answer": CODES, "group": [MARK] * 9}), "answer", group_by="group")


def block() -> Any:
    return next(iter(answers()._all_blocks()))


def encoded() -> Any:
    return answers()._encoder(tn.Domain.from_integers(10**5))(block())


def job() -> Job:
    noise = JobNoise(BYTES, None)
    plan = tn.Plan(ORACLE, tn.Everyone())
    return Job(Path("reports"), "0" * 32, plan, {"fingerprint": MARK}, noise, MARK)


def share() -> td.Message:
    party = td.Party(td.Role.USER)
    return td.Message(MessageKind.SHARE, bytes(16), party, party, BYTES)


def undelivered() -> Undelivered:
    return Undelivered(share(), te.ProtocolError("too late"))


PLAN = tf.RandomParticipationSGD(1.0, 1.0, clip=1.0, noise_multiplier=2.0, local_size=2)
GRADIENTS = np.full((2, 3), SHARE)
UPDATE = tf.Update(0, np.full(3, CODE), PLAN.fingerprint)


def client() -> tf.Client:
    made = tf.Client(PLAN, 2, parameters=3)
    made.draw(CODE)
    return made


def server() -> tf.Server:
    made = tf.Server(PLAN, np.full(3, SHARE), tf.SGD(0.1))
    made.open(2)
    made.add(UPDATE, 0)
    return made


def engine() -> tf.InProcessEngine:
    return tf.InProcessEngine(
        PLAN, np.full(3, SHARE), lambda client, elements, parameters: GRADIENTS, [2, 2], tf.SGD(0.1)
    )


def sampler(made: Any, records: Any) -> Callable[[], Any]:
    def fitted() -> Any:
        pytest.importorskip("sklearn")
        return made.fit(records)

    return fitted


RECORDS = np.full((20, 1), SHARE)
UNIFORM = ts.Uniform([0.0], [1.0])


def population() -> Any:
    pytest.importorskip("sklearn")
    finite = ts.FiniteMollifier(1.0, 10**5)
    return ts.sample_population(finite, CODES, [MARK] * 9, seed=1)


def state() -> TrainingState:
    parameters = np.full(3, SHARE)
    return TrainingState({}, flatten(parameters)[1], parameters, {}, [parameters], 3)


#: How a class is made with the mark in what it holds.
MADE: dict[type, Callable[[], Any]] = {
    tn.Reports: reports,
    _OrderedReports: lambda: ordered.ordered(reports()),
    ReportBatch: lambda: ReportBatch(
        CODES, np.full(9, SHARE), np.full(9, CODE), np.frombuffer(BYTES, np.uint8)
    ),
    Gathered: lambda: tn.Plan(ORACLE, tn.Everyone()).gather([message()], on_bad="count"),
    MemoizedClient: lambda: tn.Memoized(ORACLE, first_epsilon=0.5).client(BYTES),
    SigningKey: lambda: SigningKey(BYTES),
    tp.PseudonymKey: lambda: tp.PseudonymKey(BYTES),
    tp.Answers: answers,
    Source: lambda: answers().source,
    Block: block,
    EncodedBlock: encoded,
    GroupIndex: lambda: encoded().groups,
    Job: job,
    td.Message: share,
    Undelivered: lambda: Undelivered(share(), te.ProtocolError("too late")),
    Draw: lambda: Draw(0, True, CODES),
    tf.Update: lambda: UPDATE,
    tf.Client: client,
    tf.Server: server,
    tf.InProcessEngine: engine,
    TrainingState: state,
    ts.FiniteMollifier: sampler(ts.FiniteMollifier(1.0, 10**5), CODES),
    ts.RandomizedResponseSampler: sampler(ts.RandomizedResponseSampler(1.0, 10**5), CODES),
    ts.MinimaxSampler: sampler(ts.MinimaxSampler(1.0, 10**5), CODES),
    ts.MollifiedDensity: sampler(ts.MollifiedDensity(1.0, reference=UNIFORM), RECORDS),
    ts.TableSampler: sampler(
        ts.TableSampler(1.0, {"x": (0.0, 1.0)}), pa.table({"x": RECORDS[:, 0]})
    ),
    ts.PopulationDraws: population,
}

#: Why nothing secret is in the text of a class, and of those that derive from it.
REASONS: dict[str, tuple[type, ...]] = {
    "its words are tested where it is raised": (tn.TurnoutError,),
    "a question, an answer that can be given, or a mechanism, with parameters that all know": (
        Kind, ta.Mechanism, ta.Composition, ta.VariationRatio, ta.LedgerEntry, td.PrimeField,
        td.AggregationMechanism, td.VerifiedSum, td.JanusTask, tn.Domain, tn.Bounds,
        joint.ProductDomain, attributes.Questions,
        TextValues, IntegerValues, tn.TwoRoundCollection,
        tn.HeavyHitters, tn.Plan, tf.RandomParticipationSGD, Grid, tf.Optimizer, tf.Schedule,
        tf.AdaptiveClipping, tf.SecureSum,
        Structure, ts.Reference, ts.CollectedReference, ts.RelativeMollifier,
        tn.weighting.WeightedPlan,
        joint.JointMarginal, models.ScoreMoments, models.PairSupport, SecondMoment,
    ),
    "a participation: who collects knows the probabilities": (tn.Participation,),
    "noisy sums, or what is estimated of them: made to be published": (
        BaseTally, tn.GroupedTally, Tabular, adaptive.TwoRoundTallies, adaptive.Spending, Rounds,
        answer.AnswerEstimate, ordered.Quantile, ordered.OrderedStatistics, ordered.LinearEstimate,
        tn.distribution.DistributionQuantile, joint.ShareInterval, joint.ConditionalShare,
        heavy_hitters.RoundRecord, tn.thresholding.ThresholdedCount, covariance.Covariance,
        surveying.SurveyResults, ts.PopulationEstimate,
    ),
    "numbers of rows, people or bytes, and sums of probabilities": (
        tn.LeftOut, Totals, PartFacts, Header, DesignSums, td.Costs,
    ),
    "names of groups and files, which are public": (Groups, tp.ReportSet),
    "what a choice promises, of no data": (
        ta.Bracket, _MixedPlan, tl.OracleCandidate, tl.PlanCandidate, tl.PlanCheck,
        tl.TradeOffCurve, td.RecommendationRecord, ts.PrivacyBudget,
    ),
    "who takes part in a round, and what all of them know of it": (
        td.Party, td.Role, MessageKind, td.Round,
    ),
    "numbers that whoever holds the records asks for": (LogNormalizer,),
    "a base of classes that are made here": (ts.PrivateSampler,),
}  # fmt: skip


def public_classes() -> dict[type, str]:
    names = load(API).public_names(FLOWER).items()
    return {value: path for path, value in reversed(names) if isinstance(value, type)}


CLASSES = public_classes()


def plain(kind: type) -> bool:
    """Whether an object shows its class and address alone."""
    return (
        kind.__repr__ is object.__repr__
        and kind.__str__ is object.__str__
        and kind.__format__ is object.__format__
        and not hasattr(kind, "_repr_html_")
    )


def holds_mark(made: object) -> bool:
    """Whether the mark is somewhere in an object, its parts and theirs."""
    waiting, seen = [made], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, (type, ModuleType)):
            continue
        seen.add(id(part))
        if isinstance(part, np.ndarray):
            if MARK in str(part.ravel()[:100].tolist()):
                return True
        elif isinstance(part, pa.Table):
            if MARK in str(part.to_pylist()):
                return True
        elif isinstance(part, FunctionType):
            # Not what stands beside it: that is this module.
            waiting += part.__closure__ or ()
        elif isinstance(part, (bytes, bytearray)):
            if MARK.encode() in bytes(part):
                return True
        elif isinstance(part, (str, int, float)):
            if MARK in str(part):
                return True
        else:
            waiting += gc.get_referents(part)
    return False


def texts(made: Any) -> Iterator[str]:
    yield from (repr(made), str(made), f"{made}", f"{[made]}", pprint.pformat({"x": made}))
    if hasattr(made, "_repr_html_"):
        yield made._repr_html_()


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_no_text_shows_what_an_object_holds(kind: type) -> None:
    made = MADE[kind]()
    assert isinstance(made, kind)
    # Of what a sampler learns from the mark, few numbers are the mark itself.
    assert holds_mark(made) or isinstance(made, ts.PrivateSampler)
    shown = [text for text in texts(made) if any(mark in text for mark in TEXTS)]
    assert not shown, shown[0]


def test_every_public_class_is_made_here_or_has_a_reason() -> None:
    """An object whose class says nothing of texts shows its class and address alone."""
    told = {kind for kinds in REASONS.values() for kind in kinds}
    open_ones = [
        path
        for kind, path in CLASSES.items()
        if not plain(kind) and kind not in MADE and not issubclass(kind, tuple(told))
    ]
    assert not open_ones, (
        f"{open_ones}: if it can hold an answer, a report, a share, a key or a gradient, make "
        "it in MADE with the mark in it; if it cannot, say in REASONS why"
    )


def test_a_class_that_shows_the_mark_is_seen() -> None:
    @dataclass
    class Answer:
        value: Any

    for value in (CODES, SHARE, MARK, BYTES, [Answer(CODE)]):
        made = Answer(value)
        assert holds_mark(made)
        assert any(mark in text for text in texts(made) for mark in TEXTS)
    assert not holds_mark(Answer(1))
    assert not plain(Answer)
