"""The table of the kinds of questions, by the words for them in plans.

A kind registers its class when its module is imported; for those of turnout the table says which
module that is, so that a plan is read without importing all of them.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from turnout import _arguments
from turnout.errors import CorruptDataError

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

#: The classes that are imported, by their names.
REGISTERED: Final[dict[str, Any]] = {}


def found(name: str) -> Any | None:
    """Find the class of that name, importing its module if need be; None if there is none.

    Examples
    --------
    >>> found("direct_encoding").__name__, found("telepathy")
    ('DirectEncoding', None)
    """
    if name not in REGISTERED and name in _MODULES:
        importlib.import_module(_MODULES[name])
    return REGISTERED.get(name)


def known(package: str = "turnout") -> dict[str, Any]:
    """List all classes that a plan can name, also those of a package that are not imported yet.

    Examples
    --------
    >>> "piecewise" in known("turnout.mean")
    True
    """
    inside = {name for name, module in _MODULES.items() if module.startswith(f"{package}.")}
    return {name: found(name) for name in sorted(inside | REGISTERED.keys())}


def from_dict(description: Any) -> Any:
    """Rebuild a randomizer from its description in a plan, by the class that its name says.

    Raises
    ------
    CorruptDataError
        If it is not the description of a randomizer that this release knows.

    Examples
    --------
    >>> import turnout as tn
    >>> from_dict(tn.DirectEncoding(1.0, 3).to_dict()).domain.size
    3
    """
    match description:
        case {"name": str(name)} if (kind := found(name)) is not None:
            return kind.from_dict(description)
    raise CorruptDataError(f"not the description of an oracle: {_arguments.shown(description)}")
