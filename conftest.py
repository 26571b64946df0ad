"""How the tests run: one thread of the core and of BLAS a worker, and slow tests apart.

A test is slow if ``tests/slow.txt`` names it. The list is written by ``make slow-tests`` from the
times of a whole run on all cores: what took LIMIT seconds or more, with all the fixtures that it
needs, whichever test set them up. ``make test`` leaves them out, except those with the marker
``everyday``: the one small case of a law whose tests are all slow.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

#: Workers share the processor among them, not each with itself.
for _threads in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

SLOW = Path(__file__).parent / "tests" / "slow.txt"

#: Seconds from which on a test is slow.
LIMIT = 0.3

#: Pages that everybody reads.
FIRST_PAGES = ("README.md::", "docs/start.rst::")

#: Folders whose tests share a cluster, which takes long to start: one worker runs them all.
TOGETHER = ("tests/ray/", "tests/federated/flower/")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the list."""
    parser.addoption(
        "--write-slow",
        action="store_true",
        help=f"write the tests of {LIMIT:g} s and more to {SLOW}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have the times of a run collected where the list is written."""
    if config.getoption("--write-slow"):
        config.pluginmanager.register(SharedFixtures())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Times())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    lines = SLOW.read_text(encoding="utf-8").splitlines()
    slow = {line.split(" ", 1)[1] for line in lines if line and not line.startswith("#")}
    for item in items:
        if name(item.nodeid) in slow:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(FIRST_PAGES):
            item.add_marker(pytest.mark.everyday)


def name(nodeid: str) -> str:
    """Name a test in one line of ASCII."""
    return nodeid.encode("unicode_escape").decode("ascii")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a file to one worker, which makes its fixtures once; and a folder with one cluster."""
    from xdist.scheduler import LoadScopeScheduling

    class FilesAndClusters(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    return FilesAndClusters(config, log)


class SharedFixtures:
    """Says of each test how long the fixtures took that it found set up by another."""

    def __init__(self) -> None:
        self.seconds: dict[pytest.FixtureDef[Any], float] = {}
        self.new: set[pytest.FixtureDef[Any]] = set()

    def pytest_runtest_setup(self) -> None:
        """Begin: nothing is set up for this test yet."""
        self.new = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Time a fixture."""
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[fixturedef] = time.perf_counter() - start
            self.new.add(fixturedef)

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Leave the sum where the report of the test takes it along."""
        used = {used[-1] for used in item._fixtureinfo.name2fixturedefs.values()}
        shared = sum(self.seconds.get(fixture, 0.0) for fixture in used - self.new)
        item.user_properties.append(("shared fixtures", shared))


class Times:
    """Adds up how long each test took, and writes the list at the end."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a part of a test, and what others set up for it."""
        self.seconds[name(report.nodeid)] += report.duration
        if report.when == "call":
            shared = dict(report.user_properties).get("shared fixtures", 0.0)
            self.seconds[name(report.nodeid)] += float(str(shared))

    def pytest_sessionfinish(self) -> None:
        """Write the list; tests that did not run now stay as they are."""
        known = {}
        for line in SLOW.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                seconds, test = line.split(" ", 1)
                known[test] = float(seconds)
        slow = {test: took for test, took in {**known, **self.seconds}.items() if took >= LIMIT}
        head = (
            f"# Tests that took {LIMIT:g} s or more, written by `make slow-tests`: seconds, test.\n"
        )
        lines = [f"{took:.1f} {test}\n" for test, took in sorted(slow.items())]
        SLOW.write_text(head + "".join(lines), encoding="utf-8")
