"""Decides for whom the other side of a connection may speak."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Callable
from typing import Any

from turnout import _arguments
from turnout.distributed.messages import Party
from turnout.errors import ProtocolError

_LOGGER = logging.getLogger(__name__)

#: Says whether whoever has a certificate may send messages in the name of a party.
Admits = Callable[[Party, dict[str, Any]], bool]


class Admission:
    """Asks a function, which is the caller's, about certificates, which are anybody's.

    Parameters
    ----------
    admits
        The function; None believes every sender.

    Raises
    ------
    InvalidTypeError
        If it is no function, or an asynchronous one: what that gives would count as true.
    """

    def __init__(self, admits: Admits | None) -> None:
        if admits is not None and (not callable(admits) or inspect.iscoroutinefunction(admits)):
            raise _arguments.mistyped(
                "admits must be a function of a party and a certificate that gives True or False",
                admits,
            )
        self._admits = admits

    def check(self, sender: Party, certificate: dict[str, Any]) -> None:
        """Refuse a sender that the certificate does not speak for.

        Raises
        ------
        ProtocolError
            If the function gives anything but True, or raises.
        """
        if self._admits is None:
            return
        try:
            admitted: object = self._admits(sender, certificate)
        except Exception as error:
            # The certificate must not end the round. What the error says may be from it, and is
            # not logged.
            last = traceback.extract_tb(error.__traceback__)[-1]
            _LOGGER.warning(
                "a message is refused: admits raised %s (%s, line %s)",
                type(error).__name__,
                last.filename,
                last.lineno,
            )
            raise ProtocolError(
                f"whether the certificate of the connection speaks for {sender} cannot be told"
            ) from error
        if admitted is True:
            return
        if admitted is not False:
            _LOGGER.warning(
                "a message is refused: admits must give True or False, got an object of type %s",
                type(admitted).__name__,
            )
        raise ProtocolError(f"the certificate of the connection does not speak for {sender}")
