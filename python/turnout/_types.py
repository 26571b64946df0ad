"""Short names of types for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    # An extra, and what Python has since 3.11; "as" hands them on.
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414
    from typing_extensions import Self as Self  # noqa: PLC0414
else:
    Axes = Figure = Self = Any

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Unsigned = npt.NDArray[np.uint64]
