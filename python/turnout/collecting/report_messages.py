r"""Messages: what one device sends, and a server puts together.

.. code-block:: text

   {"format":"turnout-report","version":1,"plan":"32e0...a7d2","nonce":"8f3b...04c1","report":2}

A message is one line of JSON in UTF-8, an object with these five members in any order, ``group``
where the plan has groups, and no others:

* ``plan`` is the fingerprint of the plan, 64 hexadecimal digits: what was made under another plan
  is refused.
* ``nonce`` is the message's own: 16 bytes from the operating system's generator, never from a
  seed, in lower-case hexadecimal. A message that is sent again keeps them, and counts once; one
  that has those of another message and not its report is refused. They say nothing about the
  person or the answer.
* ``group`` is a list with the value of each public column of the plan's ``groups``, one of those
  that the plan lists for it. It is not protected.
* ``report`` is what the oracle reported: an integer for oracles whose report is one (with up to
  64 bits, more than the 53 that some readers of JSON take for granted), and otherwise, for rows
  of integers, the little-endian bytes of the row in lower-case hexadecimal. What these numbers
  mean is the oracle's (``report_dtype``, ``report_shape``, and the notes of its class).

A person who does not take part sends nothing. A message holds no identity and no checksum: who
sent it, that nobody makes two, and that nobody else can write into it, is for the transport to
see to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from turnout import _arguments, _core, _kinds
from turnout._documents import canonical
from turnout._types import Array
from turnout.collecting.keys import Key, key_to_json
from turnout.collecting.left_out import LeftOut
from turnout.collecting.message_reading import ERRORS, Reader, Seen, layout_of
from turnout.collecting.origin import Origin
from turnout.collecting.randomizer import tell_improbable
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.metrics import observe
from turnout.products import ProductDomain

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gathered:
    """Reports, and how many messages were left out.

    Made by :meth:`turnout.Plan.gather` with ``on_bad="count"``; the ``tally`` of the oracle counts
    its reports.

    Attributes
    ----------
    reports
        The reports of the messages that are good.
    refusals
        How many were refused as ``"malformed"``, of ``"other_version"``, of ``"other_plan"``,
        ``"impossible"``: what the oracle cannot have reported, or ``"contradictory"``: with the
        nonce of an earlier message and another report.
    repeated
        How many were left out because an earlier message is the same: they were sent again.
    improbable
        How many of the reports an honest device sends with negligible chance only
        (:meth:`turnout.FrequencyOracle.improbable`). They are in ``reports``, and count.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
    >>> gathered = plan.gather([b"hello"], nodes=2, on_bad="count")
    >>> gathered.refused, gathered.refusals["malformed"], len(gathered.reports)
    (1, 1, 0)
    """

    reports: Any
    refusals: dict[str, int]
    repeated: int = 0
    improbable: int = 0

    @property
    def refused(self) -> int:
        """How many messages were refused in all."""
        return sum(self.refusals.values())


def device_of(plan: Any) -> _core.Device | None:
    """Make what answers a plan in the core; None where the core does not know the kind.

    Examples
    --------
    >>> import turnout as tn
    >>> device = device_of(tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone()))
    >>> len(device.of_codes([2])) < 250
    True
    """
    oracle = plan.oracle
    own = type(oracle).__module__.startswith("turnout.")
    if not own or _kinds.found(oracle.name) is not type(oracle):
        return None
    try:
        return _core.Device(plan._described)
    except (CorruptDataError, InvalidValueError):
        return None


def make_message(
    plan: Any, device: _core.Device | None, value: Any, group: Any, seed: int | None
) -> bytes | None:
    """Make the message of :meth:`turnout.Plan.report`, with the device of the plan."""
    key = plan._group_key("group", group)
    if device is None:
        reports = plan.oracle.randomize([value], participation=plan.participation, seed=seed)
        return message_of(plan, reports.codes, key)
    checked = _arguments.seed(seed)
    given = canonical(key_to_json(key)) if key else None
    answer = _answer(plan.domain, value)
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return device.of_numbers(answer.ravel().tolist(), given, checked)
    codes = answer.ravel().tolist() if isinstance(answer, np.ndarray) else answer
    return device.of_codes(codes, given, checked)


def _answer(domain: Any, value: Any) -> Array | tuple[int, ...]:
    """Give the codes of an answer, or its numbers."""
    if type(domain) is Domain:
        # One text or number is found without an array.
        code = domain.find(value) if type(value) in (str, int) else None
        if code is not None:
            return (code,)
        return domain.encode([value])
    found: Array = domain.to_codes([value])
    if isinstance(domain, ProductDomain):
        return tuple(int(code) for code in np.unravel_index(found[0], domain.shape))
    return found


def check_fresh(plan: Any) -> None:
    """Refuse a plan that one message cannot answer: personal rates, permanent answers, expired."""
    refuse_personal(plan)
    plan._check_current()
    oracle = plan.oracle
    if not oracle.fresh:
        raise InvalidValueError(
            f"oracle must draw every report afresh, got {oracle!r}, whose permanent answers must "
            "be kept: client(...).message(plan, value) of a Memoized oracle does. Of several "
            "questions, ask each that keeps answers under a plan of its own"
        )


def message_of(plan: Any, codes: Array, key: Key = ()) -> bytes | None:
    """Write the message of one person's reports under a plan: one, or none."""
    if not len(codes):
        return None
    writer = _core.MessageWriter(plan._described, *layout_of(plan.oracle))
    report = np.asarray(codes[0], plan.oracle.report_dtype.newbyteorder("<")).tobytes()
    return writer.write(report, canonical(key_to_json(key)) if key else None)


def gather(
    plan: Any,
    messages: Iterable[bytes | str],
    nodes: int | None,
    on_bad: str,
    received: datetime | None,
) -> Any:
    """Put messages together as :meth:`turnout.Plan.gather` does."""
    _arguments.choice("on_bad", on_bad, ("refuse", "count"))
    refuse_personal(plan)
    if plan.groups:
        raise InvalidValueError(
            f"the plan has groups ({', '.join(plan.groups)}), and gather() does not keep them "
            "apart: take the messages in with tn.Collector(plan)"
        )
    plan._check_current(None if received is None else _arguments.moment("received", received))
    if nodes is not None:
        nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
    elif not plan._everyone_reports:
        raise InvalidValueError(
            "nodes must say how many people were asked: under "
            f"{plan.participation!r} silent ones send nothing"
        )
    batch = Reader([plan]).read(messages)
    repeated = batch.leave_out_repeated(Seen())
    if on_bad == "refuse" and batch.refusals:
        position, refusal = min(batch.refusals.items())
        raise ERRORS[refusal.kind](f"messages[{position}] {refusal}") from None
    refusals = batch.refusals_by_kind()
    codes = batch.codes
    refused, asked = sum(refusals.values()), nodes
    nodes = checked_nodes(plan, asked, len(codes), refused=refused)
    origin = Origin.of_messages(batch.nonces)
    reports = plan.oracle._reports(plan.participation, codes, nodes, origin=origin)
    left_out = LeftOut(unanswered=max((asked or 0) - nodes, 0), refused=refused)
    if left_out:
        reports = replace(reports, left_out=left_out)
    tell(refused, repeated)
    improbable = tell_improbable(plan.oracle, codes)
    if on_bad == "refuse":
        return reports
    return Gathered(reports, refusals, repeated, improbable)


def tell(refused: int, repeated: int) -> None:
    """Tell the hooks and the log what was left out; nothing where nothing was."""
    if refused:
        observe("messages_refused", messages=refused)
    if repeated:
        observe("messages_repeated", messages=repeated)
        _LOGGER.warning("messages that were there before and count once: %d", repeated)


def checked_nodes(plan: Any, nodes: int | None, good: int, *, refused: int) -> int:
    """Check the number of people against that of good messages; bad ones may be anybody's."""
    everyone = plan._everyone_reports
    if nodes is not None and (good > nodes or (everyone and nodes > good + refused)):
        bound = "equal the number" if everyone else "be at least the number"
        bad = f", or that and some of {refused} bad ones" if everyone and refused else ""
        raise InvalidValueError(f"nodes must {bound} of messages {good}{bad}, got {nodes}")
    # Who is refused has no report: where all report there is no node without one.
    return good if everyone or nodes is None else nodes


def refuse_personal(plan: Any) -> None:
    """Refuse a plan whose people have probabilities of their own: messages carry none."""
    if plan.participation.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...) where each person sends one "
            f"message, got {plan.participation!r}: a message does not carry its probability"
        )
