"""The client of browsers in a real one: the core's messages bit for bit, and what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.clients import KEY, STATIC, needs_node, run, text_of
from tests.serve.conftest import needs_bodies, new_page
from tests.serve.test_client_vectors import KEPT, job_of

import turnout as tn

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = needs_node

ORIGIN = "https://survey.test"

#: Makes the messages of a job with the words that Node was given for each.
MAKE = """
async (job) => {
  const { Plan, TurnoutError } = await import("/turnout.js");
  const plan = await Plan.read(job.plan, { publicKey: null });
  const nonce = new Uint8Array(16);
  const words = (streams) => (purpose, path) => {
    const same = ([other, part]) => other === purpose && part.join() === path.join();
    const left = streams.find(same)[2].values();
    return { next: () => BigInt(left.next().value) };
  };
  const secret = Uint8Array.from({ length: 32 }, (_, place) => place);
  const person = plan.isPermanent ? await plan.permanent(null, { most: job.most, secret }) : plan;
  const made = [];
  for (const [place, answer] of job.answers.entries()) {
    made.push(await person.report(answer, { nonce, words: words(job.taken[place]) }));
  }
  return made;
}
"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of an origin of its own, on which the client can be imported; nothing leaves it."""
    opened = new_page(browser)
    context = opened.context
    context.route("**/*", lambda route: route.abort())
    context.route(
        f"{ORIGIN}/", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html")
    )
    context.route(f"{ORIGIN}/turnout.js", lambda route: route.fulfill(path=STATIC / "turnout.js"))
    opened.goto(f"{ORIGIN}/")
    yield opened
    context.close()


def test_chromium_makes_the_messages_that_are_kept(page: Any) -> None:
    jobs = [job_of(case) for case in KEPT]
    for case, job, result in zip(
        KEPT, jobs, run({**job, "record": True} for job in jobs), strict=True
    ):
        assert page.evaluate(MAKE, {**job, "taken": result["taken"]}) == case["messages"], case[
            "name"
        ]


#: Answers as a page does, and says what became of it.
ANSWER = """
async ({ text, publicKey, answer }) => {
  const { Outbox, Plan } = await import("/turnout.js");
  const outbox = new Outbox({ url: "/reports" });
  const plan = await Plan.read(text, { publicKey, lastSerial: await outbox.lastSerial(publicKey) });
  await outbox.sawSerial(publicKey, plan);
  await outbox.answer(plan, answer);
  try {
    return await outbox.send(plan);
  } catch (error) {
    return { state: (await outbox.status(plan)).state, message: error.code };
  }
}
"""


@needs_bodies
def test_a_person_answers_once_and_the_same_message_is_sent_until_it_arrives(
    page: Any, tmp_path: Path
) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), serial=2)
    given = {"text": text_of(plan, tmp_path), "publicKey": KEY.public_key, "answer": "yes"}
    sent: list[str] = []
    replies: list[Any] = [None, (503, ""), (200, "no JSON"), (200, '{"accepted":0,"duplicates":1}')]

    def reply(route: Any) -> None:
        sent.append(route.request.post_data)
        answer = replies.pop(0)
        if answer is None:
            route.abort("internetdisconnected")
        else:
            route.fulfill(status=answer[0], body=answer[1])

    page.context.route(f"{ORIGIN}/reports", reply)
    for _ in range(3):
        assert page.evaluate(ANSWER, given) == {"state": "waiting", "message": "sending"}
        page.reload()
    # Whoever answers otherwise after a reload sends what was drawn first.
    assert page.evaluate(ANSWER, {**given, "answer": "no"}) == {"state": "sent", "message": None}
    assert page.evaluate(ANSWER, given) == {"state": "sent", "message": None}
    assert (len(sent), len(set(sent))) == (4, 1)
    assert plan.gather(sent[:1]).nodes == 1
    older = tn.Plan(plan.oracle, tn.Everyone(), serial=1)
    with pytest.raises(playwright.Error, match="expected 2 or a later one"):
        page.evaluate(ANSWER, {**given, "text": text_of(older, tmp_path)})


def test_two_pages_at_once_draw_one_message(page: Any, tmp_path: Path) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 1000), tn.Everyone())
    given = {"text": text_of(plan, tmp_path), "count": 20}
    other = page.context.new_page()
    other.goto(f"{ORIGIN}/")
    start = """
    ({ text, count }) => {
      window.drawn = import("/turnout.js").then(async ({ Outbox, Plan }) => {
        const outbox = new Outbox();
        const plan = await Plan.read(text, { publicKey: null });
        const answers = Array.from({ length: count }, (_, code) => outbox.answer(plan, code));
        return (await Promise.all(answers)).map((status) => status.message);
      });
    }
    """
    pages = (page, other)
    for each in pages:
        each.evaluate(start, given)
    messages = [message for each in pages for message in each.evaluate("window.drawn")]
    assert (len(messages), len(set(messages))) == (40, 1)


#: All that is kept, by its keys.
KEPT_TEXTS = """
() => new Promise((resolve) => {
  indexedDB.open("turnout").onsuccess = ({ target: { result } }) => {
    const found = {};
    result.transaction("texts").objectStore("texts").openCursor().onsuccess = ({ target }) => {
      const cursor = target.result;
      if (cursor === null) return resolve(found);
      found[cursor.key] = cursor.value;
      cursor.continue();
    };
  };
})
"""


#: Closes the database while it is used, as browsers do after a sleep, and uses it again.
LOST = """
async () => {
  const { browserStorage } = await import("/turnout.js");
  const open = IDBFactory.prototype.open;
  const opened = [];
  IDBFactory.prototype.open = function (...given) {
    const request = open.apply(this, given);
    opened.push(request);
    return request;
  };
  const storage = browserStorage();
  await storage.set("name", "text");
  opened[0].result.close();
  return [await storage.get("name"), opened.length];
}
"""


def test_storage_whose_connection_was_lost_is_opened_again(page: Any) -> None:
    assert page.evaluate(LOST) == ["text", 2]


def test_a_person_who_is_not_drawn_stays_so(page: Any, tmp_path: Path) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Bernoulli(1e-9))
    given = {"text": text_of(plan, tmp_path), "publicKey": KEY.public_key, "answer": "yes"}
    for _ in range(2):
        assert page.evaluate(ANSWER, given) == {"state": "silent", "message": None}
        page.reload()
    kept = page.evaluate(KEPT_TEXTS)
    assert kept == {f"report/{plan.fingerprint}": '{"state":"silent","message":null}'}
    assert page.evaluate("localStorage.length") == 0


def test_permanent_answers_are_kept_across_plans(page: Any, tmp_path: Path) -> None:
    oracle = tn.Memoized(tn.DirectEncoding(3.0, ["no", "yes"]), first_epsilon=1.0)
    page.context.route(f"{ORIGIN}/reports", lambda route: route.fulfill(body='{"accepted":1}'))
    for serial, answer, state in [(1, "yes", "sent"), (2, "yes", "sent"), (3, "no", "budget")]:
        plan = tn.Plan(oracle, tn.Everyone(), serial=serial)
        given = {"text": text_of(plan, tmp_path), "publicKey": KEY.public_key, "answer": answer}
        if state == "sent":
            assert page.evaluate(ANSWER, given)["state"] == state
        else:
            with pytest.raises(playwright.Error, match="may use 1 permanent answer"):
                page.evaluate(ANSWER, given)
        page.reload()
