"""Draw the pictures of the guide to surveys in a browser: ``python docs/pictures/browser.py``.

It runs the commands of the guide, answers in Chromium, and photographs the pages. It needs the
extra ``serve``, playwright and Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import sync_playwright

import turnout as tn

FOLDER = Path(__file__).parent
TITLE = "How often did you work when you were ill?"
LABELS = ["never", "once", "several times"]
#: What the people of the picture answer.
SHARES = (0.52, 0.3, 0.18)
PEOPLE = 1800


def turnout(*words: object) -> list[str]:
    """Give the words of a command."""
    return [sys.executable, "-m", "turnout", *map(str, words)]


def begin(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Make the plan and the invitations of the guide, and serve them."""
    plan, key = folder / "plan.json", folder / "plans.key"
    subprocess.run(turnout("key", "new", key), check=True)
    options = ("--labels", ",".join(LABELS), "--participation", 1, "--sign", key, "-o", plan)
    subprocess.run(turnout("plan", "-e", 1.5, "-n", 2400, *options), check=True)
    command = turnout(
        "serve", plan, "--store", folder / "reports.db", "--port", 0, "--title", TITLE
    )
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        if line.startswith("Serving "):
            return server, line.split()[1]
    raise RuntimeError("the server did not begin")


def answer(folder: Path, address: str) -> None:
    """Send the messages of all the others."""
    plan = tn.Plan.read(folder / "plan.json")
    draw = np.random.default_rng(20)
    made = [
        plan.report(LABELS[code], seed=int(seed))
        for seed, code in enumerate(draw.choice(len(LABELS), PEOPLE, p=SHARES))
    ]
    for start in range(0, PEOPLE, 100):
        lines = b"\n".join(line for line in made[start : start + 100] if line is not None)
        httpx.post(f"{address}/reports", content=lines).raise_for_status()


def photograph(page: Any, name: str) -> None:
    """Take a picture of a page."""
    page.screenshot(path=FOLDER / f"{name}.png", full_page=True)


def main() -> None:
    """Walk through the guide."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        server, address = begin(folder)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 420, "height": 640}, device_scale_factor=1.5)
        page.goto(address)
        page.get_by_label("once").check()
        photograph(page, "browser_question")
        page.get_by_role("button").click()
        page.locator("pre").wait_for()
        photograph(page, "browser_message")
        page.get_by_role("button", name="Send").click()
        page.get_by_role("heading", name="has arrived").wait_for()
        answer(folder, address)
        page.set_viewport_size({"width": 1000, "height": 700})
        page.goto(f"{address}/results")
        page.screenshot(path=FOLDER / "browser_results.png", full_page=False)
        browser.close()
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
