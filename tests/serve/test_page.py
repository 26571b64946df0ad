"""The page in a real browser: people answer, and what leaves is counted once."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.serve.clients import KEY
from tests.serve.conftest import BODIES, Running, Serve, needs_bodies, new_page
from tests.serve.test_client_chromium import KEPT_TEXTS
from tests.serve.waiting import until

import turnout as tn
from turnout.serve.invitations import Invitations
from turnout.signing import SigningKey

LABELS = ["never", "every month", "every week", "every day"]
WINDOWS = {"narrow": (340, 640), "wide": (1400, 900)}


def received(server: Running) -> int:
    """How many messages the server counts."""
    found = server.client.get("/metrics").text
    counted = re.search(r'turnout_messages_total\{outcome="accepted"\} ([0-9]+)', found)
    return int(counted[1]) if counted else 0


def sized(page: Any, window: str) -> None:
    width, height = WINDOWS[window]
    page.set_viewport_size({"width": width, "height": height})


def answered(page: Any, label: str = "every week") -> None:
    page.get_by_label(label).check()
    page.get_by_role("button", name="Make my answer private").click()


@pytest.mark.parametrize("window", WINDOWS)
def test_a_person_answers_and_counts_once(person: Any, serve: Serve, window: str) -> None:
    sized(person, window)
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(server.address)
    assert person.get_by_role("heading", level=1).inner_text() == "How often do you travel?"
    assert "their odds are at most 2.8 to 1" in person.get_by_role("group").last.inner_text()
    answered(person)
    message = person.locator("pre").inner_text()
    assert '"plan":' in message
    assert person.evaluate("document.documentElement.scrollWidth") <= WINDOWS[window][0]
    assert received(server) == 0
    with person.expect_request("**/reports") as sent:
        person.get_by_role("button", name="Send this message").click()
    assert not BODIES or sent.value.post_data == message + "\n"
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1
    # Once more, in a page of the same browser.
    person.reload()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1
    person.get_by_role("link", name="See the results so far").click()
    assert person.locator("main, body").first.inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
def test_a_message_waits_for_the_connection_and_stays_the_same(
    person: Any, serve: Serve, window: str
) -> None:
    sized(person, window)
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(server.address)
    answered(person)
    message = person.locator("pre").inner_text()
    person.route("**/reports", lambda route: route.abort())
    person.get_by_role("button", name="Send this message").click()
    person.get_by_text("It is kept in this browser").wait_for()
    person.reload()
    assert person.locator("pre").inner_text() == message
    person.unroute("**/reports")
    person.context.set_offline(True)
    person.get_by_role("button", name="Send this message").click()
    person.get_by_text("It is kept in this browser").wait_for()
    with person.expect_request("**/reports") as sent:
        person.context.set_offline(False)
    assert not BODIES or sent.value.post_data == message + "\n"
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
def test_who_answers_in_two_pages_at_once_counts_once(
    person: Any, serve: Serve, window: str
) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    other = person.context.new_page()
    for page, label in ((person, "never"), (other, "every day")):
        sized(page, window)
        page.goto(server.address)
        page.get_by_label(label).check()
    for page in (person, other):
        page.get_by_role("button", name="Make my answer private").click()
    messages = [page.locator("pre").inner_text() for page in (person, other)]
    assert messages[0] == messages[1]
    for page in (person, other):
        page.get_by_role("button", name="Send this message").click()
    for page in (person, other):
        page.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


@needs_bodies
def test_an_answer_that_was_not_acknowledged_counts_once(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(server.address)
    answered(person)
    lost = []

    def lose(route: Any) -> None:
        lost.append(route.fetch().json())
        route.abort()

    person.route("**/reports", lose, times=1)
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert lost == [{"accepted": 1, "duplicates": 0, "refused": {}}]
    assert received(server) == 1


def test_who_is_not_drawn_sends_nothing(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS), tn.Bernoulli(1e-6))
    person.goto(server.address)
    asked: list[str] = []
    person.on("request", lambda request: asked.append(request.url))
    answered(person)
    person.get_by_role("heading", name="You were not selected this time").wait_for()
    person.reload()
    person.get_by_role("heading", name="You were not selected this time").wait_for()
    assert not any(url.endswith("/reports") for url in asked)
    assert received(server) == 0


def test_who_was_asked_in_one_round_is_not_asked_in_the_next(
    person: Any, tmp_path: Path, serving: Serve
) -> None:
    search, plans = tn.HeavyHitters(9.0, bits=6, step=2, keep=4).rounds(), tmp_path / "plans"
    plans.mkdir()
    search.plan().write(plans / "0.json", signing_key=KEY)
    server = serving(plans)
    person.goto(server.address)
    # The last round asks for all of a value, and a short search has no other.
    assert (
        "all of it or only its beginning is sent" in person.get_by_role("group").last.inner_text()
    )
    person.get_by_label("Your answer").fill("7")
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    search.close(search.current.collect([7] * 100, seed=1))
    search.plan().write(plans / "1.json", signing_key=KEY)
    heading = person.get_by_role("heading", name="You have already taken part")

    def asked_again() -> int:
        person.reload()
        person.locator("h2").wait_for()
        count: int = heading.count()
        return count

    assert until(asked_again) == 1
    assert received(server) == 1
    # Somebody else is asked.
    other = new_page(person.context.browser)
    other.goto(server.address)
    other.get_by_label("Your answer").wait_for()
    other.context.close()


@pytest.mark.parametrize("taken", [True, False])
def test_a_message_of_yesterday_is_sent_or_said_to_be_late(
    person: Any, tmp_path: Path, serving: Serve, taken: bool
) -> None:
    """It was not sent; today there is another plan, and yesterday's is or is not taken any more."""
    oracle, plans = tn.DirectEncoding(1.0, LABELS), tmp_path / "plans"
    plans.mkdir()
    tn.Plan(oracle, tn.Everyone(), serial=1).write(plans / "1.json", signing_key=KEY)
    server = serving(plans)
    person.goto(server.address)
    answered(person)
    message = person.locator("pre").inner_text()
    person.context.set_offline(True)
    person.get_by_role("button", name="Send this message").click()
    person.get_by_text("The message could not be sent").wait_for()
    tn.Plan(oracle, tn.Everyone(), serial=2).write(plans / "2.json", signing_key=KEY)
    if not taken:
        (plans / "1.json").unlink()
    until(lambda: server.client.get("/plan.json").json()["plan"]["serial"] == 2)
    # A page that stays open sends the message by itself; this one is closed.
    browser = person.context
    person.close()
    browser.set_offline(False)
    person = browser.new_page()
    person.goto(server.address)
    person.get_by_role("heading", name="An earlier message was not sent").wait_for()
    assert person.locator("pre").inner_text() == message
    assert received(server) == 0
    person.get_by_role("button", name="Send the earlier message").click()
    if not taken:
        person.get_by_text("The server no longer accepts answers to the earlier").wait_for()
        person.get_by_role("button", name="Continue").click()
    answered(person)
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1 + taken
    person.reload()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()


def test_the_keyboard_is_enough(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(server.address)
    person.get_by_label("never").wait_for()
    keys = person.keyboard
    for key in ("Tab", "Space", "ArrowDown", "Tab", "Enter"):
        keys.press(key)
    person.locator("pre").wait_for()
    for _ in range(3):
        if person.evaluate("document.activeElement.textContent") == "Send this message":
            break
        keys.press("Tab")
    keys.press("Enter")
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "window"), [("light", "narrow"), ("dark", "wide")])
def test_names_contrast_and_structure(person: Any, serve: Serve, scheme: str, window: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    person.emulate_media(color_scheme=scheme)
    sized(person, window)
    server = serve(tn.DirectEncoding(1.0, LABELS), groups={"region": ["north", "south"]})
    person.goto(server.address)
    person.get_by_label("never").wait_for()
    assert axe.run(person).violations_count == 0, axe.run(person).generate_report()
    person.get_by_label("south").check()
    answered(person)
    person.locator("pre").wait_for()
    assert axe.run(person).violations_count == 0, axe.run(person).generate_report()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert axe.run(person).violations_count == 0, axe.run(person).generate_report()


def test_groups_are_said_to_be_sent_as_they_are(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS), groups={"region": ["north", "south"]})
    person.goto(server.address)
    person.get_by_text("sent unchanged").wait_for()
    person.get_by_label("south").check()
    answered(person)
    assert '"south"' in person.locator("pre").inner_text()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


def test_several_questions_and_long_lists(person: Any, serve: Serve) -> None:
    server = serve(tn.SplitBudget(2.0, {"age": 100, "vote": ["yes", "no"]}))
    person.goto(server.address)
    person.get_by_label("age").select_option("42")
    person.get_by_label("yes").check()
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


def test_a_number_outside_its_bounds_is_not_sent(person: Any, serve: Serve) -> None:
    server = serve(tn.mean.Piecewise(1.0, bounds=(0, 100)))
    person.goto(server.address)
    number = person.get_by_label("Your answer (a number from 0 to 100)")
    number.fill("137.5")
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("alert").get_by_text("Type a number within its limits.").wait_for()
    assert person.locator("pre").count() == 0
    number.press("Home")
    number.press("Delete")
    assert number.input_value() == "37.5"
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert received(server) == 1


def test_a_plan_of_another_key_is_refused(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(f"{server.address}/#key={SigningKey.generate().public_key}")
    person.get_by_role("heading", name="The question cannot be shown").wait_for()
    person.goto(f"{server.address}/#key={KEY.public_key}")
    person.get_by_label("never").wait_for()


def test_an_incomplete_answer_is_said_in_words(person: Any, serve: Serve) -> None:
    server = serve(tn.DirectEncoding(1.0, LABELS))
    person.goto(server.address)
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("alert").get_by_text("Answer every question first.").wait_for()
    assert person.locator("pre").count() == 0
    person.get_by_label("never").check()
    assert person.get_by_role("alert").inner_text() == ""
    person.get_by_role("button", name="Make my answer private").click()
    person.get_by_role("group", name="The message").wait_for()


def test_a_collection_that_has_ended_says_so(person: Any, tmp_path: Path, serve: Serve) -> None:
    ended = datetime(2025, 1, 1, tzinfo=timezone.utc)
    server = serve(tn.DirectEncoding(1.0, LABELS), expires=ended)
    # The page came the day before, and the answer is sent today.
    person.clock.set_fixed_time(ended - timedelta(days=1))
    person.route("**/plan.json", lambda route: route.fulfill(path=tmp_path / "plan.json"))
    person.goto(f"{server.address}/#key={KEY.public_key}")
    answered(person)
    person.locator("pre").wait_for()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="The server did not accept your answer").wait_for()
    assert received(server) == 0


@pytest.mark.parametrize("blind", [False, True])
def test_an_invited_person_answers_once(
    person: Any, serve: Serve, tmp_path: Path, browser: Any, blind: bool
) -> None:
    invitations, tokens = Invitations.create(3, blind=blind)
    invitations.write(tmp_path / "invitations.json")
    server = serve(
        tn.DirectEncoding(1.0, LABELS), None, "--invitations", tmp_path / "invitations.json"
    )
    person.goto(f"{server.address}/#invitation={tokens[0]}&key={KEY.public_key}")
    leaves = "A ticket is sent" if blind else "Your invitation is sent with the message"
    assert leaves in person.get_by_role("group").last.inner_text()
    answered(person)
    assert leaves in person.locator("details").inner_text()
    with person.expect_request("**/reports") as sent:
        person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    if blind or BODIES:
        assert tokens[0] not in str(sent.value.headers if blind else sent.value.post_data)
    assert received(server) == 1
    # The same link in another browser: it was used. Of a blind one the page says so at once.
    elsewhere = new_page(browser)
    elsewhere.goto(f"{server.address}/#invitation={tokens[0]}")
    if blind:
        elsewhere.get_by_label("every week").hover()
    else:
        answered(elsewhere)
        kept = elsewhere.locator("pre").inner_text()
        elsewhere.get_by_role("button", name="Send this message").click()
    elsewhere.get_by_role("heading", name="The server did not accept your answer").wait_for()
    used = "This invitation has already been used."
    said = "is in use in another browser" if blind else used
    assert said in elsewhere.locator("main").inner_text()
    assert "may have ended" not in elsewhere.locator("main").inner_text()
    if not blind:
        elsewhere.reload()
        elsewhere.get_by_text(used).wait_for()
        stranger = new_page(browser)
        stranger.goto(f"{server.address}/#invitation={'A' * 22}")
        answered(stranger)
        stranger.get_by_role("button", name="Send this message").click()
        stranger.get_by_text("This link is not a valid invitation.").wait_for()
        stranger.context.close()
    # With an invitation of their own, they send the same message.
    elsewhere.goto(f"{server.address}/#invitation={tokens[1]}")
    if blind:
        answered(elsewhere)
    with elsewhere.expect_request("**/reports") as again:
        elsewhere.get_by_role("button", name="Send this message").click()
    elsewhere.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert blind or not BODIES or again.value.post_data == f"{kept}\n"
    elsewhere.context.close()
    assert received(server) == 2
    assert received(server) == 2
    # Those who are invited were asked.
    assert server.results()["asked"] == 3


@pytest.mark.parametrize("blind", [False, True])
def test_a_second_person_at_a_browser_is_told_that_their_link_is_unused(
    person: Any, serve: Serve, tmp_path: Path, blind: bool
) -> None:
    invitations, tokens = Invitations.create(2, blind=blind)
    invitations.write(tmp_path / "invitations.json")
    server = serve(
        tn.DirectEncoding(1.0, LABELS), None, "--invitations", tmp_path / "invitations.json"
    )
    # Nothing is asked without a link, or with one whose end is missing.
    for end in ("", f"#invitation={tokens[0][:-1]}"):
        person.goto(f"{server.address}/{end}")
        person.get_by_role("heading", name="Use your invitation").wait_for()
    person.goto(f"{server.address}/#invitation={tokens[0]}")
    answered(person)
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    person.goto(f"{server.address}/#invitation={tokens[1]}")
    person.get_by_role("heading", name="Another invitation was used in this browser").wait_for()
    assert received(server) == 1


def test_a_ticket_is_asked_for_when_a_person_comes_and_not_when_they_send(
    person: Any, serve: Serve, tmp_path: Path
) -> None:
    invitations, tokens = Invitations.create(1, blind=True)
    invitations.write(tmp_path / "invitations.json")
    server = serve(
        tn.DirectEncoding(1.0, LABELS), None, "--invitations", tmp_path / "invitations.json"
    )
    posted: list[str] = []
    person.on(
        "request",
        lambda request: request.method == "POST" and posted.append(request.url.split("/")[-1]),
    )
    person.goto(f"{server.address}/#invitation={tokens[0]}")
    person.get_by_label("every week").wait_for()
    # Whatever opens the link to look at it uses nothing up, nor does a script.
    person.evaluate("window.dispatchEvent(new Event('pointermove'))")
    person.wait_for_timeout(300)
    assert posted == []
    with person.expect_response("**/tickets") as signed:
        person.keyboard.press("Tab")
    assert signed.value.status == 200
    signed.value.finished()
    # The page finishes the ticket and keeps it.
    until(lambda: '{"ticket":' in str(person.evaluate(KEPT_TEXTS)))
    person.reload()
    answered(person)
    person.get_by_role("button", name="Send this message").wait_for()
    assert posted == ["tickets"]
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert posted == ["tickets", "reports"]
    assert received(server) == 1


@needs_bodies
def test_a_ticket_whose_answer_was_lost_is_asked_for_again(
    person: Any, serve: Serve, tmp_path: Path
) -> None:
    invitations, tokens = Invitations.create(1, blind=True)
    invitations.write(tmp_path / "invitations.json")
    server = serve(
        tn.DirectEncoding(1.0, LABELS), None, "--invitations", tmp_path / "invitations.json"
    )
    lost: list[Any] = []

    def lose(route: Any) -> None:
        lost.append(route.fetch().status)
        route.abort()

    person.route("**/tickets", lose, times=1)
    person.goto(f"{server.address}/#invitation={tokens[0]}")
    with person.expect_event("requestfailed"):
        answered(person)
    # The message is kept before it is shown; a page that is left earlier asks again.
    person.get_by_role("button", name="Send this message").wait_for()
    person.reload()
    person.get_by_role("button", name="Send this message").click()
    person.get_by_role("heading", name="Your answer has arrived").wait_for()
    assert lost == [200]
    assert received(server) == 1


@pytest.mark.parametrize("window", WINDOWS)
def test_results_stay_in_the_window_whatever_the_labels(
    person: Any, serve: Serve, window: str
) -> None:
    sized(person, window)
    long = "Donaudampfschifffahrtsgesellschaft" * 6
    question = tn.DirectEncoding(8.0, [long, "<b>no</b>", "\u05dc\u05d0"])
    server = serve(question)
    assert server.send([tn.Plan(question, tn.Everyone()).report(long)]).status_code == 200
    person.goto(f"{server.address}/results")
    assert person.locator("blockquote").inner_text().count(long) == 1
    assert person.evaluate("document.documentElement.scrollWidth") <= WINDOWS[window][0]
    # Text from right to left takes no number of the sentence along.
    assert "“\u2068\u05dc\u05d0\u2069” " in person.locator("blockquote").inner_text()
    assert person.locator("b").count() == 0
    # A narrow column of labels does not cut short words.
    widths = person.locator("tbody th").evaluate_all("all => all.map((one) => one.offsetWidth)")
    assert min(widths) >= 144
