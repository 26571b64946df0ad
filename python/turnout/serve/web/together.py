"""Store uploads together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from turnout.serve.tasks.leader import Upload


class Together:
    """A queue that handles in one call all uploads that come during the previous call."""

    def __init__(
        self, function: Callable[[list[Upload]], list[bytes]], pool: ThreadPoolExecutor
    ) -> None:
        self._function, self._pool = function, pool
        self._waiting: list[tuple[Upload, asyncio.Future[bytes]]] = []
        self._running: asyncio.Task[None] | None = None

    async def take(self, upload: Upload) -> bytes:
        """Add an upload to the next call, and return its result."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append((upload, future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            part, self._waiting = self._waiting, []
            try:
                results: list[bytes] = await loop.run_in_executor(
                    self._pool, self._function, [upload for upload, _ in part]
                )
            except Exception as error:
                for _, future in part:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), result in zip(part, results, strict=True):
                if not future.done():
                    future.set_result(result)
