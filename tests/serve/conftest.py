"""A server as a process of its own, on a free port of the loopback."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.serve import databases, forked
from tests.serve.clients import KEY
from tests.serve.waiting import PATIENCE

import turnout as tn

#: The browser of the tests.
ENGINE = os.environ.get("TURNOUT_BROWSER", "chromium")
#: The names of its program.
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
#: Whether its driver tells the bodies of requests, and of answers that did not come from a test.
BODIES = ENGINE == "chromium"
needs_bodies = pytest.mark.skipif(not BODIES, reason="the driver of Firefox tells no bodies")


class Running:
    """A server process.

    Attributes
    ----------
    plan, store
        The words of its command for both.
    address
        Where it listens.
    """

    def __init__(self, plan: Path, store: object, options: Sequence[object]) -> None:
        self.plan, self.store = str(plan), str(store)
        words = ["serve", plan, "--store", store, "--port", "0", *options]
        self.process, self._errors = forked.start([str(word) for word in words])
        self.log: list[str] = []
        self.address = ""
        for line in self._errors:
            self.log.append(line)
            if found := re.match(r"Serving (\S+)", line):
                self.address = found[1]
                break
        else:
            raise RuntimeError("".join(self.log))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=self.address, timeout=PATIENCE)

    def _read(self) -> None:
        self.log += list(self._errors)

    @property
    def host(self) -> tuple[str, int]:
        """Where to connect to."""
        url = httpx.URL(self.address)
        assert url.port is not None
        return url.host, url.port

    def send(self, messages: Sequence[bytes], **more: Any) -> httpx.Response:
        return self.client.post("/reports", content=b"\n".join(messages), **more)

    def results(self, **query: str) -> Any:
        answer = self.client.get("/results.json", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> int:
        """End it as an operator does; gives its exit code."""
        self.process.terminate()
        return self._end()

    def _end(self) -> int:
        self.client.close()
        self.process.join(PATIENCE)
        code = self.process.exitcode
        assert code is not None
        self._reader.join(PATIENCE)
        self._errors.close()
        return code


Serve = Callable[..., Running]


@pytest.fixture(scope="session")
def cluster() -> Iterator[databases.Database]:
    """A PostgreSQL."""
    yield from databases.database()


@pytest.fixture
def database(cluster: databases.Database) -> Iterator[databases.Database]:
    """A PostgreSQL with nothing in it."""
    yield cluster
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture(scope="session")
def run() -> Serve:
    """What starts a server that the test ends."""
    return Running


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serve]:
    """What starts servers, which end with the test."""
    started: list[Running] = []

    def start(plan: tn.Plan | Path, *options: object, store: object = None) -> Running:
        path = plan
        if isinstance(plan, tn.Plan):
            path = tmp_path / "plan.json"
            plan.write(path)
        assert isinstance(path, Path)
        one = Running(path, tmp_path / "reports.db" if store is None else store, options)
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.exitcode is None:
            one.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser. It ends with the module: no other loop of asyncio runs beside it."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, PROGRAMS[ENGINE])), None)
    if program is None:
        pytest.skip(f"{ENGINE} is not installed")
    with playwright.sync_playwright() as found:
        if ENGINE == "chromium":
            started = found.chromium.launch(
                executable_path=program, args=["--no-sandbox"], timeout=1000 * PATIENCE
            )
        else:
            started = found.firefox.launch(
                executable_path=program, channel="moz-firefox", timeout=1000 * PATIENCE
            )
        lacks = None
        try:
            started.new_context().close()
        except playwright.Error as error:
            lacks = str(error)
        if lacks is None:
            yield started
        started.close()
    if lacks is not None:
        pytest.skip(f"this Playwright cannot drive this browser: {lacks}")


def new_page(browser: Any) -> Any:
    """Open a page of a person's own browser."""
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    return context.new_page()


@pytest.fixture
def person(browser: Any) -> Iterator[Any]:
    """A page of a person's own browser; nothing may go wrong in it unsaid."""
    page = new_page(browser)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: (
            wrong.append(said.text)
            if said.type == "error" and "net::ERR_" not in said.text
            else None
        ),
    )
    context = page.context
    yield page
    context.close()
    assert not wrong


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """What starts a server of a signed plan."""
    running: list[Running] = []

    def start(oracle: Any, participation: Any = None, *options: object, **more: Any) -> Running:
        plan = tn.Plan(oracle, participation or tn.Everyone(), **more)
        path = tmp_path / "plan.json"
        plan.write(path, signing_key=KEY)
        options = ("--title", "How often do you travel?", "--least", 1, *options)
        running.append(Running(path, tmp_path / "reports.db", options))
        return running[-1]

    yield start
    for each in running:
        each.stop()
