"""The client, which splits an answer into shares with a proof and sends them to the leader."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np

from turnout import _core
from turnout._types import Integers
from turnout.errors import CorruptDataError, ProtocolError
from turnout.serve.tasks.files import ClientFile
from turnout.serve.tasks.peers import Peer, PeerUnavailableError

#: The most reports of one request, and the most bytes unless one report has more.
_REPORTS: Final = 500
_BYTES: Final = 2**22

_ID_BYTES: Final = 16

#: How often a request is sent whose answer does not come, and seconds before the second time.
_TIMES: Final = 5
_PAUSE: Final = 0.5


class Client:
    """A client that sends reports of a task.

    Parameters
    ----------
    file
        The task file of clients.
    ca
        The file of the certificates that must have issued those of the aggregators.

    Raises
    ------
    PeerUnavailableError
        If the leader's keys are not available, or the helper's and the file has none.
    """

    def __init__(self, file: ClientFile, ca: Path | None = None) -> None:
        self._file, self._task = file, file.task
        self._leader = Peer(file.task.leader, "leader", ca=ca)
        self._helper = Peer(file.task.helper, "helper", ca=ca)
        self._configs = self._keys()

    def _keys(self) -> tuple[bytes, bytes]:
        leader = self._config(self._leader)
        try:
            return leader, self._config(self._helper)
        except PeerUnavailableError:
            # The leader takes reports while the helper is away.
            if self._file.helper_config is None:
                raise
            return leader, self._file.helper_config

    @staticmethod
    def _config(peer: Peer) -> bytes:
        try:
            return _core.choose_hpke_config(peer.get("hpke_config").body)
        except CorruptDataError as error:
            raise ProtocolError(f"the {peer.role} at {peer.address} has no key: {error}") from None

    def upload(self, measured: Integers) -> Counter[str]:
        """Send a report for each answer, and count the outcomes.

        Each answer takes part with the probability of the question. A client that does not take
        part sends a report that looks the same.

        Parameters
        ----------
        measured
            The answers, as the question measures them: codes, or the distances of numbers from the
            lower bound.

        Returns
        -------
        Counter
            ``"accepted"``, and the errors of the draft.

        Raises
        ------
        PeerUnavailableError, PeerRefusedError
            If the leader does not accept them.
        """
        given = self._file.question._given(measured)
        most = max(1, min(_REPORTS, _BYTES // self._task.vdaf.report_bytes))
        outcomes: Counter[str] = Counter()
        for start in range(0, len(given), most):
            outcomes += self._send(given[start : start + most])
        return outcomes

    def _send(self, given: Integers) -> Counter[str]:
        ids, body = self._sealed(given)
        errors = self._posted(body)
        outdated = {
            report
            for report, error in errors
            if error == _core.DAP_REPORT_ERRORS["outdated_config"]
        }
        if outdated:
            # The keys changed since they were fetched: once more, with those of today.
            self._configs = self._keys()
            again = np.array([report in outdated for report in ids])
            _, body = self._sealed(given[again])
            errors = [each for each in errors if each[0] not in outdated] + self._posted(body)
        words = {number: word for word, number in _core.DAP_REPORT_ERRORS.items()}
        found = Counter(words.get(error, "other") for _, error in errors)
        found["accepted"] = len(given) - len(errors)
        return found

    def _sealed(self, given: Integers) -> tuple[list[bytes], bytes]:
        """Make the reports of answers; return their IDs and the request."""
        nonces = secrets.token_bytes(_ID_BYTES * len(given))
        ids = [nonces[at : at + _ID_BYTES] for at in range(0, len(nonces), _ID_BYTES)]
        shards = self._file.question._shared(self._task.dap.context, given, nonces)
        now = int(time.time()) // self._task.time_precision
        body = _core.seal_reports(
            self._task.dap,
            *self._configs,
            ids=ids,
            times=[now] * len(ids),
            public_shares=[public for public, _ in shards],
            leader_shares=[shares[0] for _, shares in shards],
            helper_shares=[shares[1] for _, shares in shards],
        )
        return ids, body

    def _posted(self, body: bytes) -> list[tuple[bytes, int]]:
        """Send a request, and again if no answer comes; return the reports that were refused."""
        place = f"tasks/{self._task.name}/reports"
        pause = _PAUSE
        for left in reversed(range(_TIMES)):
            try:
                answer = self._leader.checked(
                    self._leader.request("POST", place, body, "upload-req")
                )
                break
            except PeerUnavailableError:
                if not left:
                    raise
                time.sleep(pause)
                pause *= 2
        try:
            errors = _core.read_upload_errors(answer.body)
        except CorruptDataError as error:
            raise ProtocolError(f"the leader's answer cannot be read: {error}") from None
        # What came twice because the first answer was lost is taken.
        came = left < _TIMES - 1
        replayed = _core.DAP_REPORT_ERRORS["report_replayed"]
        return [each for each in errors if not (came and each[1] == replayed)]
