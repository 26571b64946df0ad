"""The plans of a collection: the plan in force, and the messages under any of them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from turnout import Plan
from turnout._core import message_records
from turnout._documents import canonical, parsed
from turnout._files import read_bytes
from turnout._types import Array
from turnout.collecting.keys import Key, key_to_json
from turnout.collecting.message_reading import ERRORS, Batch, Reader, layout_of
from turnout.collecting.origin import PIECE
from turnout.collecting.report_messages import refuse_personal
from turnout.errors import InvalidValueError, PlanExpiredError, StoreUnavailableError
from turnout.serve.storage.interface import (
    NONCE_BYTES,
    Store,
    Writing,
    parts_of,
    record,
)

#: What becomes of a message: it counts, it came in before, or it is refused, of a kind each.
ACCEPTED, REPEATED = 0, 1
REFUSED: Final = {kind: number for number, kind in enumerate((*ERRORS, "invitation"), 2)}

#: Bytes of a message beside its report and its group, with room for spaces.
_ENVELOPE: Final = 512

#: How long a folder is not looked at again, in seconds.
_REST: Final = 1.0


@dataclass(frozen=True)
class Published:
    """A plan, and the file that devices receive.

    Attributes
    ----------
    plan
        The plan.
    file
        The bytes of the plan file.
    public_key
        The public key of its signature, 64 hexadecimal digits; empty without a signature.
    """

    plan: Plan
    file: bytes
    public_key: str

    @classmethod
    def read(cls, path: Path, public_key: str | None = None) -> Published:
        """Read a plan file.

        Raises
        ------
        TurnoutError
            If it is not one, or its people have their own probabilities, which messages do not
            carry.
        OSError
            If it cannot be read.
        """
        plan = Plan.read(path, public_key=public_key)
        try:
            refuse_personal(plan)
        except InvalidValueError as error:
            raise InvalidValueError(f"{path}: {error}") from error
        data = read_bytes(path)
        signature = parsed(data).get("signature", {})
        return cls(plan, data, signature.get("public_key", ""))

    @property
    def message_bytes(self) -> int:
        """The bytes of the longest message under the plan."""
        size, _, width = layout_of(self.plan.oracle)
        report = 24 if width is None else 2 * size * width
        values = self.plan.groups.values()
        return _ENVELOPE + report + sum(2 + max(map(_length, each)) for each in values)


def _length(part: Any) -> int:
    return len(canonical(key_to_json((part,))))


class Family:
    """Plans that ask the same question of the same groups; they share reading and tallies.

    Attributes
    ----------
    plans
        The plans.
    numbers
        Their numbers in the store.
    """

    def __init__(self, plans: Sequence[Plan], numbers: Sequence[int]) -> None:
        self.plans, self.numbers = tuple(plans), tuple(numbers)
        self.groups = plans[0].groups
        self.reader = Reader(plans)

    def read(self, lines: Sequence[bytes], now: datetime | None) -> Batch:
        """Read messages, and refuse those under an expired plan."""
        batch = self.reader.read(lines)
        for number, plan in enumerate(self.plans):
            if now is not None and plan.expires is not None:
                try:
                    plan._check_current(now)
                except PlanExpiredError as error:
                    batch.leave_out_expired(number, str(error))
        return batch

    def counted(self, batch: Batch) -> Iterator[tuple[int, Key, Any]]:
        """Count good messages; return the plan's place, the key and the tally of each group."""
        rows = batch.plans[:, np.newaxis]
        if self.groups:
            rows = np.hstack([rows, batch.groups])
        for (place, *values), members in _kinds_of(rows):
            plan, codes = self.plans[place], batch.codes[members]
            listed = zip(self.groups.values(), values, strict=True)
            key = tuple(of[number] for of, number in listed)
            counts = plan.oracle.count_reports(codes)
            number = len(codes)
            yield place, key, plan.oracle.tally_type.of(plan, counts, number, origin=PIECE)


def _kinds_of(rows: Array) -> Iterator[tuple[list[int], Any]]:
    """Return the distinct rows, and the rows equal to each."""
    if (rows == rows[0]).all():
        yield rows[0].tolist(), slice(None)
        return
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    order, ends = np.argsort(which.ravel(), kind="stable"), np.bincount(which.ravel()).cumsum()
    yield from zip(kinds.tolist(), np.split(order, ends[:-1]), strict=True)


def families(plans: Sequence[Plan], numbers: Sequence[int]) -> list[Family]:
    """Group plans that ask the same question of the same groups; each group has a store number."""
    kinds: list[list[tuple[Plan, int]]] = []
    for plan, number in zip(plans, numbers, strict=True):
        for kind in kinds:
            if kind[0][0] == plan and kind[0][0].groups == plan.groups:
                kind.append((plan, number))
                break
        else:
            kinds.append([(plan, number)])
    return [Family(*zip(*kind, strict=True)) for kind in kinds]


def check_plans(place: Path, public_key: str | None = None) -> None:
    """Refuse plans that :class:`Collection` would refuse, before there is a store.

    Raises
    ------
    TurnoutError, OSError
        If there is no plan, or a file holds none.
    """
    for path, _, _ in _look(place):
        Published.read(path, public_key)


def _look(place: Path) -> list[tuple[Path, int, int]]:
    """List the current plan files of a collection."""
    paths = [place]
    if place.is_dir():
        paths = sorted(path for path in place.iterdir() if path.suffix == ".json")
        if not paths:
            raise InvalidValueError(
                f"{place}: the folder must hold plan files that end in .json, got none"
            )
    stats = [(path, path.stat()) for path in paths]
    return [(path, stat.st_mtime_ns, stat.st_size) for path, stat in stats]


class Collection:
    """A plan file, or a folder of plan files: one for each day, or for each round.

    Parameters
    ----------
    place
        The file, or a folder with files that end in ``.json``. A folder is looked at again while
        the collection runs: plans may be added.
    store
        Where the plans get a number.
    public_key
        Whose signature the files must have; any or none by default.
    invited
        How many people are invited, who are then asked under each plan; None if anybody may answer.

    Raises
    ------
    TurnoutError, OSError
        If there is no plan, or a file holds none.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        store: Store,
        public_key: str | None = None,
        invited: int | None = None,
    ) -> None:
        self._place, self._store, self._public_key = Path(place), store, public_key
        self._invited = invited
        self._asked: set[str] = set()
        self._found = _look(self._place)
        self._looked = time.monotonic()
        self._take()
        self._ask()

    def _take(self) -> None:
        """Read the files that were found."""
        read = [Published.read(path, self._public_key) for path, _, _ in self._found]
        fingerprints = [one.plan.fingerprint for one in read]
        published = [
            one for place, one in enumerate(read) if fingerprints[place] not in fingerprints[:place]
        ]
        plans = [one.plan for one in published]
        numbers = [self._store.number_of(plan.fingerprint, plan.to_json()) for plan in plans]
        # At once: requests look at the plans in another thread.
        self._plans = _Plans(published, families(plans, numbers))

    @property
    def published(self) -> list[Published]:
        """The plans, each once."""
        return self._plans.published

    @property
    def families(self) -> list[Family]:
        """The questions of the plans."""
        return self._plans.families

    def refresh(self) -> bool:
        """Look for added plans; return whether anything changed.

        Raises
        ------
        TurnoutError, OSError
            If an added file cannot be taken. The collection is then unchanged.
        """
        if time.monotonic() - self._looked < _REST:
            return False
        self._looked = time.monotonic()
        self._ask()
        found = _look(self._place)
        if found == self._found:
            return False
        before, self._found = self._found, found
        try:
            self._take()
        except BaseException:
            self._found = before
            raise
        return True

    def _ask(self) -> None:
        """Store that the invited people are asked now, if nothing is stored about that.

        Nothing is where groups are asked apart, where silence is an answer (who never looked has
        not given it), and where a round asks some of them.
        """
        plan, family = self.asked()
        if self._invited is None or plan is None or plan.fingerprint in self._asked:
            return
        if not (plan.groups or plan.oracle.silent or plan.oracle._asked_of):
            number = family.numbers[next(i for i, one in enumerate(family.plans) if one is plan)]
            try:
                with self._store.reading() as reading:
                    known = bool(reading.asked(number)) or bool(reading.received().get(number))
                if not known:
                    self._store.ask(number, canonical(key_to_json(())), self._invited)
            except StoreUnavailableError:
                # It is tried again when the plans are looked at again.
                return
        self._asked.add(plan.fingerprint)

    def in_force(self, now: datetime | None = None) -> Published | None:
        """Return the plan for devices: the plan that expires next.

        Of several that expire at one moment, or never, it is the one with the largest serial. None
        if all have expired.
        """
        return _in_force(self.published, now)

    def asked(self) -> tuple[Plan | None, Family]:
        """Return the plan in force and its question, or only a question if there is none."""
        published, found = self._plans
        current = _in_force(published, None)
        return (None, found[-1]) if current is None else (current.plan, _of(found, current.plan))

    def read(self, lines: Sequence[bytes]) -> Read:
        """Read messages, refuse those that no plan allows, and hash the others."""
        read = read_messages(self.families, lines, datetime.now(timezone.utc))
        for _, batch, _ in read.batches:
            read.records.append(message_records(batch.nonces, batch.contents))
        return read


class _Plans(NamedTuple):
    """The plans of a collection at one moment, and the questions that they ask."""

    published: list[Published]
    families: list[Family]


def _in_force(published: Sequence[Published], now: datetime | None) -> Published | None:
    moment = now or datetime.now(timezone.utc)
    never = datetime.max.replace(tzinfo=timezone.utc)
    current = [one for one in published if (one.plan.expires or never) > moment]

    def order(one: Published) -> tuple[datetime, int]:
        return one.plan.expires or never, -(-1 if one.plan.serial is None else one.plan.serial)

    return min(current, key=order, default=None)


def _of(families: Sequence[Family], plan: Plan) -> Family:
    """Find the question of a plan."""
    return next(family for family in families if any(plan is each for each in family.plans))


def read_messages(families: Sequence[Family], lines: Sequence[bytes], now: datetime | None) -> Read:
    """Read messages of several questions.

    Parameters
    ----------
    families
        The questions.
    lines
        The messages.
    now
        When they came in; None if it does not matter that a plan has expired.
    """
    outcomes: Array = np.full(len(lines), REFUSED["other_plan"], np.int8)
    batches: list[tuple[Family, Batch, Array]] = []
    places: Array = np.arange(len(lines))
    for family in families:
        batch = family.read([lines[place] for place in places] if batches else lines, now)
        outcomes[places[batch.positions]] = ACCEPTED
        others = []
        for place, refusal in batch.refusals.items():
            outcomes[places[place]] = REFUSED[refusal.kind]
            if refusal.kind == "other_plan":
                others.append(places[place])
        batches.append((family, batch, places))
        if not others:
            break
        places = np.array(sorted(others), np.int64)
    return Read(outcomes, batches)


@dataclass(frozen=True)
class Read:
    """Messages that were read.

    Attributes
    ----------
    outcomes
        What becomes of each.
    batches
        The good ones of each family, and the places of the messages that it was given.
    records
        For each batch, what to remember: the records of all, and of those with the same nonce that
        of the first, in order.
    """

    outcomes: Array
    batches: Sequence[tuple[Family, Batch, Array]]
    records: list[tuple[bytes, bytes]] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of messages that count unless they are repetitions."""
        return sum(len(batch) for _, batch, _ in self.batches)

    def leave_out_repeated(self, writing: Writing) -> None:
        """Remember the messages, and leave out repetitions."""
        for (_, batch, places), records in zip(self.batches, self.records, strict=True):
            if not len(batch):
                continue
            before = places[batch.positions]
            batch.leave_out_repeated(Remembered(writing, *records))
            self.outcomes[before] = REPEATED
            self.outcomes[places[batch.positions]] = ACCEPTED
            for place, refusal in batch.refusals.items():
                self.outcomes[places[place]] = REFUSED[refusal.kind]

    def leave_out_uninvited(self, writing: Writing, marks: Mapping[int, bytes]) -> None:
        """Use up invitations, and refuse messages whose invitation was used before.

        Parameters
        ----------
        writing
            The transaction, in which the messages are remembered already.
        marks
            Of each message that came with an invitation or a ticket its mark, by place.
        """
        for family, batch, places in self.batches:
            rows = {}
            for row, place in enumerate(places[batch.positions].tolist()):
                if place in marks:
                    plan = family.plans[batch.plans[row]]
                    rows[row] = mark_under(plan.fingerprint, marks[place])
            before = writing.use(dict.fromkeys(rows.values(), b""))
            met = set(before)
            uninvited = []
            for row, mark in rows.items():
                if mark in met:
                    uninvited.append(row)
                met.add(mark)
            if not uninvited:
                continue
            writing.forget(
                [record(batch.nonces[row], batch.contents[row])[:NONCE_BYTES] for row in uninvited]
            )
            self.outcomes[places[batch.positions[uninvited]]] = REFUSED["invitation"]
            reason = "came with an invitation that was used before"
            batch.leave_out(dict.fromkeys(uninvited, ("invitation", reason)))


def mark_under(fingerprint: str, mark: bytes) -> bytes:
    """Return the mark of an invitation under one plan: each plan is answered once."""
    return hashlib.sha256(fingerprint.encode("ascii") + mark).digest()


class Remembered:
    """The messages that a store remembers, as :class:`turnout.Collector` asks for them.

    Parameters
    ----------
    writing
        The transaction.
    records, first
        The records of the messages, and of those with the same nonce that of the first.
    """

    def __init__(self, writing: Writing, records: bytes, first: bytes) -> None:
        self._writing, self._records, self._first = writing, records, first

    def remember(self, nonces: list[bytes], contents: list[bytes]) -> list[bytes | None]:
        """Remember new messages; for the others return what they said, if it is not the same."""
        known = dict(self._writing.remember(self._first))
        if not known and len(self._first) == len(self._records):
            return [None] * len(nonces)
        found: list[bytes | None] = []
        for (name, said), content in zip(parts_of(self._records), contents, strict=True):
            earlier = known.get(name)
            found.append(None if earlier is None else content if earlier == said else b"")
            known.setdefault(name, said)
        return found
