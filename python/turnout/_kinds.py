"""The registry of the kinds of questions: their classes, and how their results are shown.

A plan names its kind by a word. The class of that name registers itself when its module is
imported. For the kinds of turnout the table names the module, so that reading a plan does not
import all of them. An installed package adds kinds by entry points of the group ``turnout.kinds``:
the word for the kind, and the class as ``module:Class``.

No other file contains the name of a module as text.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any, Final

from turnout import _arguments
from turnout._documents import MOST_DEPTH, TOO_DEEP, nested_deeper
from turnout.errors import CorruptDataError, InvalidValueError

_ORACLES: Final = "turnout.frequency.oracles."

#: Of each kind of turnout the module that registers it.
_MODULES: Final = {
    "binary_local_hashing": _ORACLES + "local_hashing",
    "count_mean_sketch": _ORACLES + "count_mean_sketch",
    "direct_encoding": _ORACLES + "direct_encoding",
    "duchi": "turnout.mean.mechanism",
    "hadamard_count_mean_sketch": _ORACLES + "count_mean_sketch",
    "hadamard_response": _ORACLES + "hadamard_response",
    "hierarchical": "turnout.frequency.ordered.levels",
    "hybrid": "turnout.mean.mechanism",
    "joint_table": "turnout.frequency.joint.table",
    "memoized": "turnout.frequency.longitudinal.memoized",
    "optimized_local_hashing": _ORACLES + "local_hashing",
    "optimized_unary_encoding": _ORACLES + "unary_encoding",
    "padded": "turnout.frequency.attributes.padded",
    "pair_tables": "turnout.frequency.joint.pairs",
    "piecewise": "turnout.mean.mechanism",
    "prefixes": "turnout.frequency.heavy_hitters.prefixes",
    "projective_geometry_response": _ORACLES + "projective_geometry",
    "sampled_attribute": "turnout.frequency.attributes.schemes",
    "second_round": "turnout.frequency.adaptive.second",
    "split_budget": "turnout.frequency.attributes.schemes",
    "square_wave": "turnout.distribution.square_wave",
    "subset_selection": _ORACLES + "subset_selection",
    "summation_histogram_encoding": _ORACLES + "summation_histogram",
    "symmetric_unary_encoding": _ORACLES + "unary_encoding",
    "threshold_histogram_encoding": _ORACLES + "unary_encoding",
}

#: How results are told, by the word that the class of a tally says in ``told``.
_TELLINGS: Final = {
    "combinations": "turnout.reporting.frequencies:SharesTogether",
    "distributions": "turnout.reporting.means:Distributions",
    "means": "turnout.reporting.means:Means",
    "ordered": "turnout.reporting.frequencies:OrderedShares",
    "questions": "turnout.reporting.frequencies:SharesOfQuestions",
    "shares": "turnout.reporting.frequencies:Shares",
}

#: What reads tables and files; it stands above all kinds.
_SCAN: Final = "turnout.pipeline.scanning:scan"

#: The entry points by which an installed package adds kinds.
ENTRY_POINTS: Final = "turnout.kinds"

#: The classes that are imported, by their names.
REGISTERED: Final[dict[str, Any]] = {}


def register(kind: Any) -> None:
    """Register the class of a kind by its name.

    Raises
    ------
    InvalidValueError
        If another class has the name.
    """
    earlier = REGISTERED.get(kind.name)
    if earlier is not None and _place(earlier) != _place(kind):
        raise InvalidValueError(
            f"name must be unique among kinds, got {kind.name!r}, the name of "
            f"{'.'.join(_place(earlier))}"
        )
    home = _MODULES.get(kind.name)
    if home is not None and home != kind.__module__:
        raise InvalidValueError(
            f"name must be unique among kinds, got {kind.name!r}, the name of a kind in {home}"
        )
    REGISTERED[kind.name] = kind


def _place(kind: Any) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def scan(data: Any, column: str) -> Any:
    """Read a column of a table or of files: see :func:`turnout.pipeline.scan`."""
    return _loaded(_SCAN)(data, column)


def telling(word: str) -> Any:
    """Return what shows the results of a kind; None if the word is unknown.

    Examples
    --------
    >>> type(telling("shares")).__name__, telling("riddles")
    ('Shares', None)
    """
    return _loaded(_TELLINGS[word])() if word in _TELLINGS else None


def found(name: str) -> Any | None:
    """Return the class of a name, importing its module if needed; None if the name is unknown.

    Examples
    --------
    >>> found("direct_encoding").__name__, found("telepathy")
    ('DirectEncoding', None)
    """
    if name not in REGISTERED and name in _MODULES:
        importlib.import_module(_MODULES[name])
    elif name not in REGISTERED:
        for point in entry_points(group=ENTRY_POINTS, name=name):
            point.load()
    return REGISTERED.get(name)


def known(package: str = "turnout") -> dict[str, Any]:
    """List all classes that a plan can name, including those that are not imported yet.

    Examples
    --------
    >>> "piecewise" in known("turnout.mean")
    True
    """
    if package == "turnout":
        for point in entry_points(group=ENTRY_POINTS):
            point.load()
    inside = {name for name, module in _MODULES.items() if module.startswith(f"{package}.")}
    return {name: found(name) for name in sorted(inside | REGISTERED.keys())}


def from_dict(description: Any) -> Any:
    """Rebuild a randomizer from its description in a plan.

    Raises
    ------
    CorruptDataError
        If it does not describe a randomizer that this release knows, or is nested too deep.

    Examples
    --------
    >>> import turnout as tn
    >>> from_dict(tn.DirectEncoding(1.0, 3).to_dict()).domain.size
    3
    """
    if nested_deeper(description, MOST_DEPTH):
        raise CorruptDataError(f"not the description of an oracle: {TOO_DEEP}")
    match description:
        case {"name": str(name)} if (kind := found(name)) is not None:
            return kind.from_dict(description)
    raise CorruptDataError(f"not the description of an oracle: {_arguments.shown(description)}")
