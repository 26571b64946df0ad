// People in browsers, each with a store of its own: reads {server, publicKey, people} from stdin, of people the
// answer and what their browser keeps; answers the plan in force for each, and writes what each keeps then.

import { readFileSync } from "node:fs";

import { Outbox, Plan } from "../../python/turnout/serve/static/turnout.js";

const { server, publicKey, people } = JSON.parse(readFileSync(0, "utf8"));
const collection = "/";

/** What the page does. */
async function visit({ kept, answer }) {
  const storage = {
    get: (key) => kept[key] ?? null,
    set: (key, text) => void (kept[key] = text),
    remove: (key) => void delete kept[key],
  };
  const outbox = new Outbox({ storage, url: new URL("/reports", server) });
  const text = await (await fetch(new URL("/plan.json", server))).text();
  const plan = await Plan.read(text, { publicKey, lastSerial: await outbox.lastSerial(collection) });
  await outbox.sawSerial(collection, plan);
  let { state } = await outbox.answer(plan, answer, { collection });
  if (state === "waiting") ({ state } = await outbox.send(plan));
  return { kept, state, round: plan.round };
}

const found = [];
for (const person of people) found.push(await visit(person));
console.log(JSON.stringify(found));
