"""Optional dependencies, imported when they are first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from turnout.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise an error that says how to install it.

    Parameters
    ----------
    module
        Dotted name of the module to import.
    extra
        The extra of turnout that installs it.

    Returns
    -------
    types.ModuleType
        The imported module.

    Raises
    ------
    MissingExtraError
        If the module is not installed; the message names the pip command.

    Examples
    --------
    >>> require("math", "plot").sqrt(4.0)
    2.0
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != top:
            raise
        raise MissingExtraError(
            f"{top} is needed for this and is not installed: pip install 'turnout[{extra}]'",
            name=module,
        ) from error
