"""Name the instance of Prio3: what the reports of a task measure, and how that is proved."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from turnout import _core
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: Of each instance: its number in the registry of VDAF, what makes it, and its parameters.
_KINDS: Final[Mapping[str, tuple[int, str, tuple[str, ...]]]] = {
    "Prio3Count": (1, "count", ()),
    "Prio3Sum": (2, "sum", ("max_measurement",)),
    "Prio3SumVec": (3, "sum_vec", ("length", "max_measurement", "chunk_length")),
    "Prio3Histogram": (4, "histogram", ("length", "chunk_length")),
    "Prio3MultihotCountVec": (5, "multihot", ("length", "chunk_length", "max_weight")),
}


@dataclass(frozen=True)
class Vdaf:
    """An instance of Prio3 for two aggregators.

    Attributes
    ----------
    kind
        Its name in the draft.
    parameters
        Its parameters, by their names there.

    Examples
    --------
    >>> named = (("length", 3), ("chunk_length", 1), ("max_weight", 1))
    >>> vdaf = Vdaf("Prio3MultihotCountVec", named)
    >>> vdaf.number, vdaf.configuration.hex()
    (5, '00000003000000010000000000000001')
    """

    kind: str
    parameters: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, prio3: _core.Prio3) -> Vdaf:
        """Name an instance and its parameters.

        Examples
        --------
        >>> from turnout import _core
        >>> Vdaf.of(_core.Prio3.sum(100))
        Vdaf(kind='Prio3Sum', parameters=(('max_measurement', 100),))
        """
        [(kind, names)] = [
            (kind, names)
            for kind, (number, _, names) in _KINDS.items()
            if number == prio3.algorithm_id
        ]
        return cls(kind, tuple((name, getattr(prio3, name)) for name in names))

    @classmethod
    def from_dict(cls, description: Any) -> Vdaf:
        """Read what :meth:`to_dict` returned.

        Raises
        ------
        CorruptDataError
            If it is not an instance of Prio3, or has impossible parameters.
        """
        if isinstance(description, dict):
            given = dict(description)
            kind = given.pop("type", None)
            if isinstance(kind, str) and kind in _KINDS:
                names = _KINDS[kind][2]
                if given.keys() == set(names) and all(type(each) is int for each in given.values()):
                    found = cls(kind, tuple((name, given[name]) for name in names))
                    try:
                        found.prio3  # noqa: B018 (refuses what cannot be)
                    except (InvalidTypeError, InvalidValueError, OverflowError) as error:
                        raise CorruptDataError(f"a vdaf that cannot be: {error}") from error
                    return found
        raise CorruptDataError(f"vdaf must be one of {', '.join(_KINDS)} with its parameters")

    def to_dict(self) -> dict[str, Any]:
        """Return the members as JSON values."""
        return {"type": self.kind, **dict(self.parameters)}

    @property
    def number(self) -> int:
        """The number in the registry of VDAF."""
        return _KINDS[self.kind][0]

    @property
    def configuration(self) -> bytes:
        """The parameters in the form of the configuration of a task."""
        return _core.write_vdaf_configuration(self.number, **dict(self.parameters))

    @functools.cached_property
    def prio3(self) -> _core.Prio3:
        """The instance itself."""
        make = getattr(_core.Prio3, _KINDS[self.kind][1])
        found: _core.Prio3 = make(**dict(self.parameters))
        return found

    @property
    def report_bytes(self) -> int:
        """The largest number of bytes of one report of an upload."""
        shares = self.prio3.input_share_length(0) + self.prio3.input_share_length(1)
        # An ID, a time, two ciphertexts with their keys and tags, and lengths before all of them.
        return self.prio3.public_share_length + shares + 512
