"""The encoding of plans of federated training, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout import _arguments
from turnout._documents import check_version
from turnout.errors import CorruptDataError

FORMAT = "turnout-federated-plan"
VERSION = 1

_NAMES = frozenset(
    {
        "client_rate",
        "sample_rate",
        "clip",
        "noise_multiplier",
        "target",
        "local_size",
        "nominal_local_size",
        "mode",
        "noise",
        "grid_bits",
        "batch_slack",
        "seed",
    }
)


def fields(description: Any) -> dict[str, Any]:
    """Give the fields of a described plan, whose values are not checked yet.

    Raises
    ------
    UnsupportedVersionError
        If it is a plan of a version that this release does not read.
    CorruptDataError
        If it is no plan, or has other fields.
    """
    if not isinstance(description, Mapping) or description.get("format") != FORMAT:
        raise CorruptDataError(f"not a plan of federated training: {_arguments.shown(description)}")
    check_version("plan of federated training", description, FORMAT, VERSION)
    values = {str(name): value for name, value in description.items()}
    del values["format"]
    if values.pop("version", None) is None or set(values) != _NAMES:
        raise CorruptDataError(
            "not a plan of federated training: expected the fields "
            f"{', '.join(sorted(_NAMES))}, got {_arguments.shown(sorted(values))}"
        )
    return values
