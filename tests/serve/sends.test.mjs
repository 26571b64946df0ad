// The outbox and a server that runs: `node --test` with PLAN_FILE, PUBLIC_KEY and SERVER.

import assert from "node:assert/strict";
import test from "node:test";

import { memoryStorage, Outbox, Plan, TurnoutError } from "../../python/turnout/serve/static/turnout.js";

const { PUBLIC_KEY: publicKey, SERVER: server } = process.env;

test("messages arrive once, and others are refused", async () => {
  const text = await (await fetch(new URL("/plan.json", server))).text();
  const plan = await Plan.read(text, { publicKey });
  const url = new URL("/reports", server);
  for (const answer of ["yes", "no", "yes"]) {
    const storage = memoryStorage();
    const outbox = new Outbox({ storage, url });
    const { message } = await outbox.answer(plan, answer);
    assert.equal((await outbox.send(plan)).state, "sent");
    // As if the acknowledgement had been lost.
    storage.set(`report/${plan.fingerprint}`, JSON.stringify({ state: "waiting", message }));
    assert.equal((await outbox.send(plan)).state, "sent");
  }
  const storage = memoryStorage();
  storage.set(`report/${plan.fingerprint}`, JSON.stringify({ state: "waiting", message: "{}" }));
  const refused = (error) => error instanceof TurnoutError && error.code === "refused";
  await assert.rejects(new Outbox({ storage, url }).send(plan), refused);
  const gone = new Outbox({ storage: memoryStorage(), url: "http://127.0.0.1:9/reports" });
  await gone.answer(plan, "yes");
  const unsent = (error) => error instanceof TurnoutError && error.code === "sending";
  await assert.rejects(gone.send(plan), unsent);
});
