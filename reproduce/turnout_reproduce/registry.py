"""All experiments, by name, and running them: pictures, and one file with all results."""

from __future__ import annotations

import datetime
import difflib
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from turnout._extras import require
from turnout._files import atomic_write
from turnout.errors import InvalidValueError
from turnout_reproduce import (
    fair,
    participation,
    participation_training,
    private_sampling,
    sampling,
)
from turnout_reproduce.outcome import Experiment, Outcome, Scale

_DISTRIBUTIONS: Final = ("turnout", "numpy", "scipy", "matplotlib", "scikit-learn", "jax")

#: In the order in which they are listed and run.
EXPERIMENTS: tuple[Experiment, ...] = (
    *sampling.EXPERIMENTS,
    *fair.EXPERIMENTS,
    *participation.EXPERIMENTS,
    *participation_training.EXPERIMENTS,
    *private_sampling.EXPERIMENTS,
)


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Find experiments by name, by paper, or all of them.

    Parameters
    ----------
    names
        Names such as ``"sampling/figure-1"``, papers such as ``"sampling"``, or ``"all"``.

    Returns
    -------
    list of Experiment
        In the order of the list, each once.

    Raises
    ------
    InvalidValueError
        If there is no such experiment.

    Examples
    --------
    >>> [experiment.name for experiment in chosen(["sampling"])][:2]
    ['sampling/figure-1', 'sampling/figure-2']
    """
    wanted = set()
    for name in names:
        found = {
            experiment.name
            for experiment in EXPERIMENTS
            if name in ("all", experiment.paper, experiment.name)
        }
        if not found:
            known = [experiment.name for experiment in EXPERIMENTS]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            more = f"; did you mean {', '.join(near)}?" if near else ""
            raise InvalidValueError(f"names: there is no experiment {name!r}{more}")
        wanted |= found
    return [experiment for experiment in EXPERIMENTS if experiment.name in wanted]


def reproduce(
    experiments: Sequence[Experiment],
    output: str | os.PathLike[str],
    *,
    scale: Scale | None = None,
    told: Callable[[Experiment, Outcome, float], None] | None = None,
) -> dict[str, Any]:
    """Run experiments and save their pictures and results.

    ``results.json`` is written again after each experiment, so that a run that is stopped leaves
    what it found.

    Parameters
    ----------
    experiments
        What :func:`turnout_reproduce.chosen` gave.
    output
        A folder, which is made if need be.
    scale
        How large they are run; quick by default.
    told
        Called after each with the experiment, its outcome and the seconds that it took.

    Returns
    -------
    dict
        What stands in ``results.json``: versions, seed, scale and all outcomes.

    Raises
    ------
    MissingExtraError
        If a package that an experiment needs is not installed.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from turnout_reproduce import chosen, reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = reproduce(chosen(["sampling/figure-3"]), folder)
    >>> list(results["experiments"])
    ['sampling/figure-3']
    """
    scale = Scale() if scale is None else scale
    folder = Path(output)
    results: dict[str, Any] = {
        "format": "turnout-reproduction",
        "version": 1,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "scale": "full" if scale.full else "quick",
        "seed": scale.seed,
        "versions": _versions(),
        "experiments": {},
    }
    for experiment in experiments:
        start = time.perf_counter()
        outcome = experiment.run(scale)
        seconds = time.perf_counter() - start
        picture = folder / f"{experiment.name}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        write_picture(experiment, outcome, picture)
        results["experiments"][experiment.name] = {
            "title": experiment.title,
            "source": experiment.source,
            "picture": f"{experiment.name}.png",
            "seconds": round(seconds, 3),
            **outcome.to_dict(),
        }
        with atomic_write(folder / "results.json") as temporary:
            temporary.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
        if told is not None:
            told(experiment, outcome, seconds)
    return results


def write_picture(experiment: Experiment, outcome: Outcome, path: Path) -> None:
    """Draw an outcome and save the picture.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.
    """
    require("matplotlib", "plot").use("Agg")
    figure = experiment.draw(outcome)
    try:
        with atomic_write(path) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
    finally:
        require("matplotlib.pyplot", "plot").close(figure)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
