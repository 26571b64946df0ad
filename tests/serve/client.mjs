// Runs turnout.js in Node for the tests: a job of JSON on each line of the input, a result on each line of
// the output.

import { createInterface } from "node:readline";

import { Plan, TurnoutError } from "../../python/turnout/serve/static/turnout.js";
import { seeded } from "./words.mjs";

const ZEROS = new Uint8Array(16);

/** Thresholds as JSON: integers become texts. */
function asTexts(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(asTexts);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, asTexts(held)]));
  }
  return value;
}

/** A source of words that keeps those that were taken: of each stream its purpose, its part and its words. */
function recorded(source, streams) {
  return (purpose, path) => {
    const [stream, words] = [source(purpose, path), []];
    streams.push([purpose, path, words]);
    return {
      next: () => {
        const word = stream.next();
        words.push(String(word));
        return word;
      },
    };
  };
}

/** A source whose streams go on: the words of many messages of one seed. */
function going(seed) {
  const [source, streams] = [seeded(seed), new Map()];
  return (purpose, path) => {
    const key = [purpose, ...path].join("/");
    if (!streams.has(key)) streams.set(key, source(purpose, path));
    return streams.get(key);
  };
}

/** The messages of many people: of each answer so many, all with the noise of one seed. */
function crowd(plan, { people, seed }) {
  const words = going(seed);
  const made = people.flatMap(([answer, count]) => Array.from({ length: count }, () => plan.report(answer, { words })));
  return { messages: made.filter((message) => message !== null) };
}

/** The messages of answers, one for each, with noise of seeds or fresh noise. */
async function messages(plan, { answers, seeds, group, coded, state, most, record }) {
  const taken = [];
  const options = (place) => {
    if (!seeds) return {};
    taken.push([]);
    return { words: recorded(seeded(seeds[place]), taken.at(-1)), nonce: ZEROS };
  };
  const words = record ? { taken } : {};
  const made = [];
  if (!plan.isPermanent) {
    for (const [place, answer] of answers.entries()) made.push(plan.report(answer, { ...options(place), group, coded }));
    return { messages: made, ...words };
  }
  const secret = state === undefined ? Uint8Array.from({ length: 32 }, (_, place) => place) : undefined;
  let person = await plan.permanent(state, { most, secret });
  const states = [];
  for (const [place, answer] of answers.entries()) {
    made.push(await person.report(answer, { ...options(place), group, coded }));
    states.push(await person.state());
    person = await plan.permanent(states.at(-1));
  }
  return { messages: made, states, ...words };
}

async function done(job) {
  const plan = await Plan.read(job.plan, { publicKey: job.key ?? null, now: job.now, lastSerial: job.lastSerial });
  const { kind, epsilon, serial, expires, groups, questions, fingerprint, signer } = plan;
  return {
    plan: { kind, epsilon, serial, expires, groups, questions, fingerprint, signer, words: plan.describe() },
    thresholds: asTexts(plan.thresholds),
    ...(job.answers ? await messages(plan, job) : {}),
    ...(job.people ? crowd(plan, job) : {}),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  let result;
  try {
    result = await done(JSON.parse(line));
  } catch (error) {
    if (!(error instanceof TurnoutError)) throw error;
    result = { error: { code: error.code, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
