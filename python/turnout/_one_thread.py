"""Linear algebra on one thread: for small steps, waiting for threads costs more than it saves."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread in this process while any caller needs it.

    Without ``threadpoolctl``, which comes with scikit-learn, nothing is limited.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    global _inside, _limit  # noqa: PLW0603 (the setting is one of the process)
    with _lock:
        _inside += 1
        if _inside == 1:
            with contextlib.suppress(ModuleNotFoundError):
                found = importlib.import_module("threadpoolctl")
                _limit = found.threadpool_limits(limits=1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limit is not None:
                _limit.restore_original_limits()
                _limit = None
