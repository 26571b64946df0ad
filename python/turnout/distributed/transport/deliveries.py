"""Delivery of messages to other stations, until they arrive or become useless."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from turnout.distributed.messages import Message, Party
from turnout.distributed.roles.base import Participant, State
from turnout.distributed.transport.courier import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Courier,
    never_better,
)
from turnout.errors import MissingPartyError


class Deliveries:
    """A background sender for the messages of roles.

    A recipient that is not reached is tried again: its connection is lost, and the message is not.
    One whose certificate is not trusted is not tried again.

    Parameters
    ----------
    courier
        Sends a message once.
    failed
        Called with the role and the reason, if a message that its round needs was refused.
    changed
        Called when a message is no longer on its way.
    """

    def __init__(
        self,
        courier: Courier,
        failed: Callable[[Participant, Exception], None],
        changed: Callable[[], None],
    ) -> None:
        self._courier = courier
        self._failed = failed
        self._changed = changed
        self._tasks: dict[asyncio.Task[None], tuple[Participant, Message]] = {}
        self._needed: dict[asyncio.Task[None], Message] = {}
        #: What a role gave, and the stage at which it was last looked through.
        self._given: dict[Party, dict[asyncio.Task[None], Message]] = {}
        self._stages: dict[Party, object] = {}

    def send(self, role: Participant, message: Message) -> None:
        """Send a message of a role."""
        task = asyncio.create_task(self._deliver(message))
        self._tasks[task] = role, message
        self._given.setdefault(role.party, {})[task] = message
        if role._needs(message):
            self._needed[task] = message
        task.add_done_callback(self._ended)

    async def _deliver(self, message: Message) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._courier.send(message)
            except MissingPartyError as error:
                # What the other side says, or a certificate, is the same next time.
                if error.__cause__ is None or never_better(error.__cause__):
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _ended(self, task: asyncio.Task[None]) -> None:
        role, _ = self._tasks.pop(task)
        del self._given[role.party][task]
        needed = self._needed.pop(task, None) is not None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception) and needed:
            self._failed(role, error)
        self._changed()

    def drop_useless(self, role: Participant) -> None:
        """Stop sending messages that nobody needs any more."""
        if self._stages.get(role.party) == role._stage:
            return
        self._stages[role.party] = role._stage
        for task, message in self._given.get(role.party, {}).items():
            if role.state is State.FAILED or not role._of_use(message):
                task.cancel()

    @property
    def waiting(self) -> bool:
        """Whether any message is still on its way."""
        return bool(self._tasks)

    @property
    def needed(self) -> list[Message]:
        """The messages on their way without which a round cannot end."""
        return list(self._needed.values())

    async def close(self) -> None:
        """Give up all messages that are still on their way."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
