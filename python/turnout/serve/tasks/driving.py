"""Run the jobs of a leader with the helper between requests, in a separate thread."""

from __future__ import annotations

import logging
import threading
from typing import Final

from turnout.errors import StoreUnavailableError
from turnout.serve.tasks.leader import Leader
from turnout.serve.tasks.peers import PeerRefusedError, PeerUnavailableError

_LOGGER = logging.getLogger(__name__)

#: Seconds between two looks at what is to be done, and the most where the helper does not answer.
_PAUSE: Final = 0.5
_LONGEST: Final = 30.0


class Driver:
    """A thread that runs the jobs of a leader.

    Parameters
    ----------
    leader
        The leader.

    Attributes
    ----------
    trouble
        The reason why the last attempt failed; None if it succeeded.
    """

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._wanted = threading.Event()
        self._end = False
        self._thread = threading.Thread(target=self._run, name="turnout-leader", daemon=True)
        self.trouble: str | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Look for work at once, after reports or a collection job came in."""
        self._wanted.set()

    def stop(self) -> None:
        """Stop after the work in progress."""
        self._end = True
        self._wanted.set()
        self._thread.join()
        self._leader.jobs.close()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._end:
            more = False
            try:
                more = self._leader.step()
                if self.trouble is not None:
                    _LOGGER.info("the jobs go on")
                self.trouble, pause = None, _PAUSE
            except (PeerUnavailableError, PeerRefusedError, StoreUnavailableError) as error:
                if str(error) != self.trouble:
                    _LOGGER.error("the jobs wait: %s", error)
                self.trouble, pause = str(error), min(2 * pause, _LONGEST)
            except Exception:
                _LOGGER.exception("a job could not be run")
                self.trouble, pause = "a job could not be run: the log says why", _LONGEST
            if more:
                continue
            if self.trouble is None:
                self._wanted.wait(pause)
            else:
                # What comes in meanwhile does not make the helper answer.
                self._sleep(pause)
            self._wanted.clear()

    def _sleep(self, seconds: float) -> None:
        waited = 0.0
        while waited < seconds and not self._end:
            threading.Event().wait(_PAUSE)
            waited += _PAUSE
