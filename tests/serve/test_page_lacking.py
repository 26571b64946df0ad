"""The page in browsers that lack something: it says what, and asks nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.serve.conftest import Serve, new_page

import turnout as tn

LABELS = ["no", "yes"]
REFUSED = "{ throw new DOMException('', 'SecurityError'); }"
UNKNOWN = "{ throw new DOMException('', 'NotSupportedError'); }"
NOT_STORED = "The storage of this browser failed (SecurityError): nothing was sent. Allow this site"
#: What a browser may lack, and what the page says then.
LACKING = {
    "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })": "IndexedDB is missing",
    "Object.defineProperty(globalThis, 'indexedDB', { value: null })": "IndexedDB is missing",
    f"IDBFactory.prototype.open = () => {REFUSED}": NOT_STORED,
    f"LockManager.prototype.request = async () => {REFUSED}": NOT_STORED,
    "Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined })": "with https://",
    f"SubtleCrypto.prototype.importKey = async () => {UNKNOWN}": "use Chrome 137, Firefox 129",
}


@pytest.mark.slow
def test_a_browser_that_lacks_something_asks_nothing(browser: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    for script, said in LACKING.items():
        page = new_page(browser)
        page.add_init_script(script)
        page.goto(server.address)
        page.get_by_role("heading", name="The question cannot be shown").wait_for()
        assert said in page.locator("main").inner_text()
        assert page.get_by_role("button").count() == 0
        page.context.close()


@pytest.mark.slow
def test_a_clock_that_is_wrong_is_named(browser: Any, serve: Serve) -> None:
    """The server never sends an expired plan, so the clock of the device may be at fault."""
    end = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)
    server = serve(tn.DirectEncoding(1.0, LABELS), expires=end)
    page = new_page(browser)
    page.clock.set_fixed_time(end + timedelta(days=1))
    page.goto(server.address)
    page.get_by_text("If its date or time is wrong, correct it").wait_for()
    assert page.get_by_role("button").count() == 0
    page.clock.set_fixed_time(end - timedelta(hours=1))
    page.reload()
    page.get_by_role("button", name="Make my answer private").wait_for()
    page.context.close()


@pytest.mark.slow
def test_a_page_whose_program_does_not_run_says_so(browser: Any, serve: Serve) -> None:
    """A file did not arrive, or the browser does not understand it."""
    server = serve(tn.DirectEncoding(1.0, LABELS))
    cases: list[tuple[str, Callable[[Any], None], str]] = [
        ("page.js", lambda route: route.abort(), "Check your connection"),
        ("turnout.js", lambda route: route.fulfill(status=429), "Check your connection"),
        (
            "turnout.js",
            lambda route: route.fulfill(body="class { %", content_type="text/javascript"),
            "This browser is too old",
        ),
    ]
    for name, answer, said in cases:
        page = new_page(browser)
        page.route(f"**/{name}", answer)
        page.goto(server.address)
        page.get_by_role("alert").get_by_text(said).wait_for()
        assert "Loading" not in page.locator("main").inner_text()
        page.context.close()
    # A browser that knows no modules asks for none.
    page = new_page(browser)
    page.add_init_script("delete HTMLScriptElement.prototype.noModule")
    page.route("**/page.js", lambda route: route.fulfill(content_type="text/javascript"))
    page.goto(server.address)
    page.get_by_role("alert").get_by_text("This browser is too old").wait_for()
    page.context.close()
