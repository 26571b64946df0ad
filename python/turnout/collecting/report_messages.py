r"""Messages: a device sends one, a server combines many.

.. code-block:: text

   {"format":"turnout-report","version":1,"plan":"32e0...a7d2","nonce":"8f3b...04c1","report":2}

A message is one line of JSON in UTF-8, an object with these five members in any order, ``group``
where the plan has groups, and no others:

* ``plan`` is the fingerprint of the plan, 64 hexadecimal digits. A message under another plan is
  refused.
* ``nonce`` identifies the message: 16 bytes from the operating system's generator, never from a
  seed, in lower-case hexadecimal. A message that is sent again keeps its nonce, and counts once. A
  message with the nonce of another message but a different report is refused. The nonce says
  nothing about the person or the answer.
* ``group`` is a list with the value of each public column of the plan's ``groups``. Each value must
  be one that the plan lists. The group is not protected.
* ``report`` is the report of the oracle. For oracles with one integer it is that integer, with up
  to 64 bits (some readers of JSON assume at most 53). For rows of integers it is the little-endian
  bytes of the row in lower-case hexadecimal. The oracle defines what these numbers mean
  (``report_dtype``, ``report_shape``, and the notes of its class).

A person who does not take part sends nothing. A message holds no identity and no checksum. The
transport must identify senders, prevent a second message of a person, and protect messages against
changes.
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
    """Reports, and the numbers of messages that were left out.

    :meth:`turnout.Plan.gather` returns it with ``on_bad="count"``. The ``tally`` of the oracle
    accepts it.

    Attributes
    ----------
    reports
        The reports of the accepted messages.
    refusals
        The number of refused messages of each kind. ``"malformed"``, ``"other_version"`` and
        ``"other_plan"`` say what they are. ``"impossible"``: the oracle cannot have made the
        report. ``"contradictory"``: it has the nonce of an earlier message but a different report.
    repeated
        The number of messages left out because they repeat an earlier one.
    improbable
        The number of reports that an honest device sends only with negligible probability
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
        """The number of all refused messages."""
        return sum(self.refusals.values())


def device_of(plan: Any) -> _core.Device | None:
    """Return the core's device for a plan; None if the core does not know the kind.

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
    """Create the message of :meth:`turnout.Plan.report` with the plan's device."""
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
    """Return the codes of an answer, or its numbers."""
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
    """Refuse a plan with personal rates or permanent answers, and an expired plan."""
    refuse_personal(plan)
    plan._check_current()
    oracle = plan.oracle
    if not oracle.fresh:
        raise InvalidValueError(
            f"oracle must draw every report afresh, got {oracle!r}, whose permanent "
            "answers stay on each person's device: make each message with "
            "oracle.client(...).message(plan, answer). Ask each question with permanent "
            "answers under its own plan"
        )


def message_of(plan: Any, codes: Array, key: Key = ()) -> bytes | None:
    """Write the message of a person's report under a plan; None without a report."""
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
    """Combine messages as :meth:`turnout.Plan.gather` does."""
    _arguments.choice("on_bad", on_bad, ("refuse", "count"))
    refuse_personal(plan)
    if plan.groups:
        raise InvalidValueError(
            f"the plan has groups ({', '.join(plan.groups)}), and gather() does not "
            "separate them: collect the messages with tn.Collector(plan)"
        )
    plan._check_current(None if received is None else _arguments.moment("received", received))
    if nodes is not None:
        nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
    elif not plan._everyone_reports:
        raise InvalidValueError(
            f"nodes must be the number of people asked: under {plan.participation!r} "
            "people who stay silent send nothing"
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
    """Pass the numbers of left-out messages to the hooks and the log, if there are any."""
    if refused:
        observe("messages_refused", messages=refused)
    if repeated:
        observe("messages_repeated", messages=repeated)
        _LOGGER.warning("messages that were there before and count once: %d", repeated)


def checked_nodes(plan: Any, nodes: int | None, good: int, *, refused: int) -> int:
    """Check the number of people against the number of accepted messages."""
    everyone = plan._everyone_reports
    if nodes is not None and (good > nodes or (everyone and nodes > good + refused)):
        bound = "equal the number" if everyone else "be at least the number"
        bad = f", or that and some of {refused} bad ones" if everyone and refused else ""
        raise InvalidValueError(f"nodes must {bound} of messages {good}{bad}, got {nodes}")
    # A person whose message is refused has no report, and if everyone reports, there is no node
    # without a report.
    return good if everyone or nodes is None else nodes


def refuse_personal(plan: Any) -> None:
    """Refuse a plan with personal probabilities: messages carry none."""
    if plan.participation.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...) where each person sends one "
            f"message, got {plan.participation!r}: a message does not carry its probability"
        )
