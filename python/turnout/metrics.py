"""Hooks for the numbers of a running collection.

>>> from turnout import metrics
>>> seen = []
>>> stop = metrics.subscribe(lambda event, values: seen.append((event, values)))
>>> metrics.observe("rows_read", rows=3)  # what the parts of turnout call
>>> stop()
>>> seen
[('rows_read', {'rows': 3})]

Events and their values:

``rows_read``
    ``rows`` of a part were read. Of these, ``dropped`` had no answer and ``duplicates`` were
    duplicate rows of a person.
``part_written``
    A file of a job was written: ``rows`` it was made from, ``reports`` it contains.
``file_tallied``
    A file of reports was counted: ``reports`` it contains, ``seconds`` it took.
``messages_refused``
    ``messages`` of devices were not reports of the plan.
``messages_repeated``
    ``messages`` of devices were repeated, and counted once.
``reports_improbable``
    ``reports`` of devices, Flower nodes or files that an honest one sends only with negligible
    probability.

The plan does not protect the numbers of rows and reports: whoever runs the collection sees which
people took part. Values never contain answers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from turnout import _arguments
from turnout._public import listing

__all__ = ["subscribe"]

__dir__ = listing(__all__)

_LOGGER = logging.getLogger(__name__)

#: What is called: the name of the event and its values.
Hook = Callable[[str, dict[str, float]], None]

_hooks: list[Hook] = []
_lock = threading.Lock()


def subscribe(hook: Hook) -> Callable[[], None]:
    """Call a function with every event.

    Parameters
    ----------
    hook
        Called with the name of the event and its values, in the thread of the event. Its exceptions
        are logged and otherwise ignored.

    Returns
    -------
    collections.abc.Callable
        Ends the subscription.

    Raises
    ------
    InvalidTypeError
        If ``hook`` cannot be called.

    Examples
    --------
    >>> from turnout import metrics
    >>> stop = metrics.subscribe(lambda event, values: None)
    >>> stop()
    """
    if not callable(hook):
        raise _arguments.mistyped("hook must be a function", hook)
    with _lock:
        _hooks.append(hook)

    def stop() -> None:
        with _lock:
            if hook in _hooks:
                _hooks.remove(hook)

    return stop


def observe(event: str, **values: float) -> None:
    """Notify every subscriber of an event.

    Parameters
    ----------
    event
        Its name.
    values
        Its numbers.

    Examples
    --------
    >>> from turnout import metrics
    >>> metrics.observe("rows_read", rows=3)  # what the parts of turnout call
    """
    with _lock:
        hooks = list(_hooks)
    for hook in hooks:
        try:
            hook(event, dict(values))
        except Exception:
            _LOGGER.exception("a metrics hook failed at %s", event)
