// What the outbox keeps and sends, without a browser: run by `node --test`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { memoryStorage, Outbox, Plan, TurnoutError } from "../../python/turnout/serve/static/turnout.js";

const text = readFileSync(process.env.PLAN_FILE, "utf8");
const read = () => Plan.read(text, { publicKey: null });

/** A server that answers what it is told to, and the messages that it was sent. */
function server(...answers) {
  const sent = [];
  const fetch = async (url, { method, body }) => {
    sent.push([url, method, body]);
    const [status, answer] = answers.shift();
    if (status === null) throw new TypeError("failed to fetch");
    return new Response(answer, { status });
  };
  return { sent, fetch };
}

const coded = (code) => (error) => error instanceof TurnoutError && error.code === code;

test("a message is the same until it is acknowledged, and is forgotten then", async () => {
  const storage = memoryStorage();
  const { sent, fetch } = server([null], [503, ""], [429, ""], [404, ""], [200, "[]"], [200, '{"accepted":1}']);
  const plan = await read();
  const first = await new Outbox({ storage, fetch }).answer(plan, "yes");
  assert.equal(first.state, "waiting");
  for (let time = 0; time < 4; time++) {
    const outbox = new Outbox({ storage, fetch });
    assert.deepEqual(await outbox.answer(plan, "no"), first);
    await assert.rejects(outbox.send(plan), coded("sending"));
    assert.deepEqual(await outbox.status(plan), first);
  }
  const outbox = new Outbox({ storage, fetch });
  // A list is no receipt, and nothing that the server refused.
  await assert.rejects(outbox.send(plan), coded("sending"));
  assert.deepEqual(await outbox.send(plan), { state: "sent", message: null });
  assert.deepEqual(await outbox.send(plan), { state: "sent", message: null });
  assert.deepEqual(await outbox.answer(plan, "no"), { state: "sent", message: null });
  assert.deepEqual(new Set(sent.map(String)), new Set([`reports,POST,${first.message}\n`]));
  assert.equal(sent.length, 6);
  await outbox.forget(plan);
  assert.equal((await outbox.status(plan)).state, "none");
});

test("storage that fails after the server took a message does not say that nothing was sent", async () => {
  const storage = memoryStorage();
  const { sent, fetch } = server([200, '{"accepted":1}'], [200, '{"duplicates":1}']);
  const plan = await read();
  const failing = { ...storage };
  const outbox = new Outbox({ storage: failing, fetch });
  const { message } = await outbox.answer(plan, "yes");
  failing.set = () => {
    throw new DOMException("", "QuotaExceededError");
  };
  await assert.rejects(outbox.send(plan), (error) => coded("storage")(error) && /the message has arrived/.test(error.message));
  failing.set = storage.set;
  assert.deepEqual(await outbox.send(plan), { state: "sent", message: null });
  assert.deepEqual(sent.map(([, , body]) => body), [`${message}\n`, `${message}\n`]);
});

test("what the server refuses is not sent again", async () => {
  for (const answer of [[400, ""], [410, ""], [200, '{"accepted":0,"duplicates":0,"refused":{"malformed":1}}']]) {
    const { sent, fetch } = server(answer);
    const outbox = new Outbox({ storage: memoryStorage(), fetch, url: "https://survey.test/reports" });
    const plan = await read();
    await outbox.answer(plan, "yes");
    await assert.rejects(outbox.send(plan), coded("refused"));
    assert.equal((await outbox.send(plan)).state, "refused");
    assert.equal(sent.length, 1);
  }
});

test("an error of the caller's own fetch is the caller's, and the message still waits", async () => {
  const fetch = async () => { throw new RangeError("no ticket"); };
  const outbox = new Outbox({ storage: memoryStorage(), fetch });
  const plan = await read();
  await outbox.answer(plan, "yes");
  await assert.rejects(outbox.send(plan), RangeError);
  assert.equal((await outbox.status(plan)).state, "waiting");
});

test("nothing leaves that could not be stored, and what others stored is not taken", async () => {
  const full = { ...memoryStorage(), set: () => { throw new DOMException("full", "QuotaExceededError"); } };
  const { sent, fetch } = server();
  const plan = await read();
  const outbox = new Outbox({ storage: full, fetch });
  await assert.rejects(outbox.answer(plan, "yes"), coded("storage"));
  assert.equal((await outbox.send(plan)).state, "none");
  assert.equal(sent.length, 0);
  for (const wrong of ["", "{", "null", "[]", '{"state":"sent"}', '{"state":"lost","message":null}']) {
    const storage = memoryStorage();
    storage.set(`report/${plan.fingerprint}`, wrong);
    await assert.rejects(new Outbox({ storage, fetch }).answer(plan, "yes"), coded("storage"));
  }
});

test("what waits under another plan is found and sent", async () => {
  const storage = memoryStorage();
  const { sent, fetch } = server([null], [200, '{"accepted":1}']);
  const outbox = new Outbox({ storage, fetch });
  const plan = await read();
  const { message } = await outbox.answer(plan, "yes", { collection: "/" });
  await assert.rejects(outbox.send(plan), coded("sending"));
  assert.deepEqual(await outbox.earlier(plan, { collection: "/" }), []);
  const waits = [{ fingerprint: plan.fingerprint, message }];
  for (const today of [null, { fingerprint: "0".repeat(64) }]) {
    assert.deepEqual(await new Outbox({ storage }).earlier(today, { collection: "/" }), waits);
    assert.deepEqual(await outbox.earlier(today, { collection: "/other" }), []);
  }
  assert.equal((await outbox.send(waits[0])).state, "sent");
  assert.deepEqual(new Set(sent.map(String)), new Set([`reports,POST,${message}\n`]));
  assert.deepEqual(await outbox.earlier(null, { collection: "/" }), []);
});

test("the largest serial of each collection is remembered", async () => {
  const outbox = new Outbox({ storage: memoryStorage() });
  const plan = await read();
  assert.equal(await outbox.lastSerial("one"), null);
  await outbox.sawSerial("one", plan);
  assert.equal(await outbox.lastSerial("one"), plan.serial);
  await outbox.sawSerial("one", { serial: plan.serial - 1 });
  await outbox.sawSerial("one", { serial: null });
  assert.equal(await outbox.lastSerial("one"), plan.serial);
  assert.equal(await outbox.lastSerial("two"), null);
});

test("a call that cannot be is refused", async () => {
  await assert.rejects(Plan.read(text), coded("argument"));
  await assert.rejects(Plan.read(text, { publicKey: "00" }), coded("argument"));
  await assert.rejects(Plan.read(5, { publicKey: null }), coded("argument"));
  assert.throws(() => new Outbox(), coded("storage"));
  const plan = await read();
  assert.throws(() => plan.report("yes", { nonce: new Uint8Array(15) }), coded("argument"));
  await assert.rejects(plan.permanent(), coded("fresh"));
  const bytes = new TextEncoder().encode(text);
  assert.equal((await Plan.read(bytes, { publicKey: null })).fingerprint, plan.fingerprint);
  assert.equal((await Plan.read(bytes.buffer, { publicKey: null })).fingerprint, plan.fingerprint);
});

test("a browser without what is needed is told so", async () => {
  const plan = await read();
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  const replace = (value) => Object.defineProperty(globalThis, "crypto", { value, configurable: true });
  const whole = globalThis.crypto;
  try {
    replace({ getRandomValues: (into) => whole.getRandomValues(into) });
    await assert.rejects(Plan.read(text, { publicKey: null }), coded("no-webcrypto"));
    replace({});
    assert.throws(() => plan.report("yes"), coded("no-randomness"));
    const importKey = async () => { throw new DOMException("Ed25519", "NotSupportedError"); };
    replace({ subtle: { digest: (...given) => whole.subtle.digest(...given), importKey } });
    await assert.rejects(Plan.read(text, { publicKey: null }), coded("no-ed25519"));
  } finally {
    Object.defineProperty(globalThis, "crypto", own);
  }
});
