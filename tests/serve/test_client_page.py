"""The JavaScript on the page about the client runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

from tests.serve.clients import KEY, NODE, STATIC, needs_node, text_of

import turnout as tn

PAGE = Path(__file__).parents[2] / "docs" / "topics" / "browser.rst"

#: What a page has, and Node has not: a store, and a server.
BEFORE = """
import { readFileSync } from "node:fs";
const kept = new Map();
globalThis.localStorage = {
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, text) => kept.set(key, text),
};
const texts = {
  get: (key) => ({ result: kept.get(key) }),
  put: (text, key) => ({ result: kept.set(key, text) }),
};
const database = {
  transaction() {
    const transaction = { objectStore: () => texts };
    setTimeout(() => transaction.oncomplete());
    return transaction;
  },
};
globalThis.indexedDB = {
  open() {
    const request = { result: database };
    setTimeout(() => request.onsuccess());
    return request;
  },
};
const sent = [];
globalThis.fetch = async (url, request) => {
  if (url === "/plan.json") return new Response(readFileSync("plan.json"));
  sent.push(request.body);
  return new Response('{"accepted":1,"duplicates":0,"refused":{}}');
};
"""

#: What the page says of it.
AFTER = """
import assert from "node:assert/strict";
assert.equal(JSON.stringify(plan.questions), JSON.stringify(
  [{ name: null, kind: "choice", size: 3, labels: ["never", "once", "often"] }],
));
assert.equal(plan.epsilon, 1);
assert.equal(plan.describe()[0], "What is asked: a choice, sometimes replaced by a random one.");
assert.equal((await outbox.status(plan)).state, "sent");
assert.equal(message === null ? 1 : 2, sent.length);
const memoized = await Plan.read(readFileSync("memoized.json"), { publicKey });
assert.ok(await today(memoized, "once"));
assert.ok(await today(memoized, "never"));
assert.equal(localStorage.getItem("state").match(/"given":\\[0,1\\]/)?.length, 1);
"""


@needs_node
def test_the_javascript_of_the_page_runs(tmp_path: Path) -> None:
    assert NODE is not None
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: javascript\n\n((?:   .*\n|\n)+)", page, re.MULTILINE)
    assert len(blocks) == 5
    assert KEY.public_key in page
    code = BEFORE + "".join(map(textwrap.dedent, blocks)) + AFTER
    (tmp_path / "page.mjs").write_text(code)
    (tmp_path / "turnout.js").write_text((STATIC / "turnout.js").read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    labels = tn.Domain(["never", "once", "often"])
    memoized = tn.Memoized(tn.DirectEncoding(3.0, labels), first_epsilon=1.0)
    text = text_of(tn.Plan(memoized, tn.Everyone()), tmp_path)
    (tmp_path / "memoized.json").write_text(text)
    text_of(tn.Plan(tn.DirectEncoding(1.0, labels), tn.Everyone(), serial=1), tmp_path)
    done = subprocess.run(
        [NODE, "page.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_names_every_code() -> None:
    used = set(re.findall(r'new TurnoutError\(\s*"([\w-]+)"', (STATIC / "turnout.js").read_text()))
    page = PAGE.read_text(encoding="utf-8")
    assert {code for code in used if f"``{code}``" not in page} == set()
