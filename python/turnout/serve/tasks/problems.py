"""Refusals of whole requests, as the draft names them."""

from __future__ import annotations

from typing import Final

#: The status of each problem that is not 400, and what people are told of each.
_STATUS: Final = {
    "unrecognizedTask": 404,
    "unrecognizedAggregationJob": 404,
    "unrecognizedCollectionJob": 404,
    "unauthorized": 401,
    "busy": 429,
    "storeUnavailable": 503,
    "tooLarge": 413,
    "wrongType": 415,
}


class ProblemError(Exception):
    """A request that is refused as a whole.

    Parameters
    ----------
    kind
        The draft's word for it, or our own if the draft has none.
    detail
        What is wrong, for people; it holds no secret.

    Examples
    --------
    >>> ProblemError("unrecognizedTask", "no such task here").status
    404
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail

    @property
    def status(self) -> int:
        """The status of the answer."""
        return _STATUS.get(self.kind, 400)
