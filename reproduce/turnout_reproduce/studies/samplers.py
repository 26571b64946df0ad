"""A study helper: likelihood and mode coverage of samplers against epsilon."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._documents import parsed
from turnout._extras import require
from turnout._files import naming, read_bytes
from turnout._progress import track
from turnout._seeds import derived
from turnout.errors import CorruptDataError, InvalidTypeError
from turnout.samplers.population.draws import seeded
from turnout_reproduce.measures.metrics import mode_coverage, negative_log_likelihood
from turnout_reproduce.studies.study import Picture, Study, curve_of, grouped

Key = tuple[str, float, int]

#: What the panels of the metrics are called.
_METRICS = {
    "nll": "negative log-likelihood of fresh records (nats)",
    "coverage": "mode coverage: mass where the sampler has its densest {level:g}%",
}

#: Cells to the side of the box on which the densest part of a sampler is found.
_CELLS = {1: 4096, 2: 160}


@dataclass(frozen=True)
class SamplerRecord:
    """The result of one sampler at one epsilon.

    Attributes
    ----------
    sampler, epsilon
        The setting.
    nll, nll_error
        Mean over the repeats of the negative log-likelihood of fresh records, in nats, and its
        standard error.
    coverage, coverage_error
        The same of the mode coverage; NaN if it was not asked for.
    seconds
        Mean time to fit and evaluate.
    repeats
        How many.
    losses
        The negative log-likelihood of each repeat: the same place is the same target and records
        for all samplers and epsilons, so that differences can be taken.
    """

    sampler: str
    epsilon: float
    nll: float
    nll_error: float
    coverage: float
    coverage_error: float
    seconds: float
    repeats: int
    losses: tuple[float, ...] = field(default=(), repr=False)


def compare_samplers(
    samplers: Mapping[str, Callable[[float], Any]],
    make_target: Any,
    *,
    epsilons: Iterable[float] = (0.1, 1.0, 2.0, 5.0, 10.0),
    n_records: int = 10_000,
    n_fresh: int = 10_000,
    repeats: int = 20,
    level: float = 0.95,
    bounds: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
    store: str | Path | None = None,
    seed: int = 0,
) -> Study[SamplerRecord]:
    """Study how well samplers keep a known distribution, against epsilon.

    Every repeat makes a target, draws one person's records from it, fits each sampler on them at
    each epsilon, and evaluates it on fresh records. All samplers see the same records.

    Parameters
    ----------
    samplers
        Name to a function of epsilon that makes an unfitted sampler: anything with ``fit(records)``
        (or ``fit_target(target)``) and ``score_samples``.
    make_target
        A target, anything with ``sample(n, seed=)``, ``log_density`` and ``bounds``; or a function
        that makes one from a seed, such as :func:`random_gaussians_1d`.
    epsilons
        The settings.
    n_records, n_fresh
        How many records are fitted on, and evaluated on.
    repeats
        How many targets, from 2.
    level
        Of the mode coverage.
    bounds
        The box in which the densest part of a sampler is found, in one or two dimensions. None
        leaves out the coverage.
    n_jobs
        How many processes work on it, as in joblib; one by default. The samplers' functions may be
        lambdas.
    progress
        Whether a bar is shown on standard error once two seconds have passed.
    store
        A file of results, a line for each: a study that was interrupted goes on where it was, and
        more epsilons, samplers or repeats reuse what is there. It belongs to one choice of the
        other arguments; what was made with others is refused.
    seed
        The root of all seeds, those of samplers with a ``random_state`` that is None among them:
        the same study again gives the same numbers.

    Returns
    -------
    Study
        A :class:`SamplerRecord` for each sampler and epsilon; ``settings`` has ``n_records``,
        ``n_fresh``, ``level``, ``bounds``, ``seed`` and ``repeats``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.
    CorruptDataError
        If the file of results cannot be read or belongs to another study.

    Examples
    --------
    >>> from turnout_reproduce.measures.targets import PublicReference, random_gaussians_1d
    >>> study = compare_samplers(
    ...     {"reference": lambda epsilon: PublicReference()},
    ...     random_gaussians_1d,
    ...     epsilons=[1.0],
    ...     repeats=2,
    ... )
    >>> study.records[0].nll > 1.0
    True
    """
    named = _named(samplers)
    if hasattr(make_target, "log_density") and hasattr(make_target, "sample"):
        make_target = functools.partial(_same, make_target)
    if not callable(make_target):
        raise _arguments.mistyped("make_target must be callable with a seed", make_target)
    levels = _levels(epsilons)
    setting: dict[str, Any] = {
        "n_records": _arguments.integer("n_records", n_records, least=1),
        "n_fresh": _arguments.integer("n_fresh", n_fresh, least=2),
        "level": _arguments.confidence("level", level),
        "bounds": None if bounds is None else np.asarray(bounds, dtype=np.float64).tolist(),
        "seed": _arguments.seed(seed) or 0,
    }
    repeats = _arguments.integer("repeats", repeats, least=2, most=1_000_000)
    done = {} if store is None else _stored(Path(store), setting)
    keys = [
        (name, epsilon, repeat) for repeat in range(repeats) for name in named for epsilon in levels
    ]
    missing = [key for key in keys if key not in done]
    tasks = ((make_target, named[key[0]], key, setting) for key in missing)
    work = _worked(tasks, n_jobs)
    for key, result in track(work, "comparing", progress, total=len(missing)):
        done[key] = result
        if store is not None:
            _append(Path(store), setting, key, result)
    records = []
    for name in named:
        for epsilon in levels:
            rows = np.array([done[name, epsilon, repeat] for repeat in range(repeats)])
            with np.errstate(invalid="ignore"):
                mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / math.sqrt(repeats)
            records.append(
                SamplerRecord(
                    name,
                    epsilon,
                    nll=float(mean[0]),
                    nll_error=float(error[0]),
                    coverage=float(mean[1]),
                    coverage_error=float(error[1]),
                    seconds=float(mean[2]),
                    repeats=repeats,
                    losses=tuple(rows[:, 0].tolist()),
                )
            )
    curves = [
        curve_of(name, rows, "epsilon", metric, words.format(level=100 * setting["level"]))
        for metric, words in _METRICS.items()
        for name, rows in grouped(records, "sampler")
        if metric == "nll" or bounds is not None
    ]
    picture = Picture(tuple(curves), "ε of one draw (the whole data set)", log="x")
    return Study(tuple(records), {**setting, "repeats": repeats}, picture)


def _worked(tasks: Iterator[Any], n_jobs: int | None) -> Iterator[Any]:
    if n_jobs in (None, 1):
        return (_evaluate(*task) for task in tasks)
    joblib = require("joblib", "samplers")
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results: Iterator[Any] = parallel(joblib.delayed(_evaluate)(*task) for task in tasks)
    return results


def _same(target: Any, seed: int) -> Any:
    """Make the target of every repeat where it does not vary."""
    return target


def _evaluate(
    make_target: Callable[[int], Any],
    make_sampler: Callable[[float], Any],
    key: Key,
    setting: dict[str, Any],
) -> tuple[Key, list[float]]:
    """Fit one sampler and measure it: likelihood, coverage, seconds."""
    _, epsilon, repeat = key
    root = derived(setting["seed"], repeat)
    target = make_target((root or 0) % 2**32)
    start = time.perf_counter()
    sampler = seeded(make_sampler(epsilon), derived(root, 3))
    if hasattr(sampler, "fit_target"):
        sampler.fit_target(target)
    else:
        sampler.fit(target.sample(setting["n_records"], seed=derived(root, 1)))
    fresh = target.sample(setting["n_fresh"], seed=derived(root, 2))
    loss = negative_log_likelihood(sampler, fresh).value
    covered = math.nan
    if setting["bounds"] is not None:
        covered = mode_coverage(
            fresh,
            sampler,
            level=setting["level"],
            bounds=setting["bounds"],
            cells=_CELLS[target.dimensions],
        ).value
    return key, [loss, covered, time.perf_counter() - start]


def _named(samplers: Any) -> dict[str, Callable[[float], Any]]:
    if not isinstance(samplers, Mapping) or not samplers:
        raise _arguments.mistyped("samplers must map names to functions of epsilon", samplers)
    for name, make in samplers.items():
        if not isinstance(name, str) or not callable(make):
            raise InvalidTypeError(
                f"samplers must map names to functions of epsilon, got {_arguments.shown(name)}: "
                f"{_arguments.shown(make)}"
            )
    return dict(samplers)


def _levels(epsilons: Any) -> list[float]:
    given = [
        _arguments.number("epsilons", epsilon)
        for epsilon in _arguments.items("epsilons", epsilons, "an iterable of numbers")
    ]
    if not given or not all(0.0 < epsilon < math.inf for epsilon in given):
        raise _arguments.invalid("epsilons must be one or more finite numbers above 0", epsilons)
    return list(dict.fromkeys(given))


def _stored(path: Path, setting: dict[str, Any]) -> dict[Key, list[float]]:
    done: dict[Key, list[float]] = {}
    if not path.exists():
        return done
    text = read_bytes(path).decode("utf-8")
    whole, _, cut = text.rpartition("\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = parsed(line)
            name, epsilon, repeat = entry["key"]
            made, result = entry["setting"], [float(value) for value in entry["result"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptDataError(f"{path}, line {number}: not a result of a study") from error
        if made != setting:
            raise CorruptDataError(
                f"{path}, line {number}: made with {made}, and this study has {setting}"
            )
        done[str(name), float(epsilon), int(repeat)] = result
    if cut:
        # The line that was being written when the study was interrupted.
        path.write_text(text[: len(text) - len(cut)], encoding="utf-8")
    return done


def _append(path: Path, setting: dict[str, Any], key: Key, result: list[float]) -> None:
    # As texts where there is no number of JSON: a coverage that was not asked for is NaN.
    values = [value if math.isfinite(value) else str(value) for value in result]
    entry = json.dumps({"key": list(key), "result": values, "setting": setting}, allow_nan=False)
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(f"{entry}\n")
