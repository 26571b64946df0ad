// Altered plans end in a plan or in a TurnoutError, soon: run by `node --test`.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";

import { Plan, TurnoutError } from "../../python/turnout/serve/static/turnout.js";

const TIMES = Number(process.env.FUZZ_TIMES ?? 4000);
const SEED = Number(process.env.FUZZ_SEED ?? 0);
const kept = new URL("../../rust/tests/vectors/messages.jsonl", import.meta.url);
const cases = readFileSync(kept, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const texts = readFileSync(new URL("../../rust/tests/vectors/cases.tsv", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => line.split("\t")[1]);

/** Numbers of a seed: mulberry32. */
function numbers(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** The file of a plan, with the fingerprint that it must have. */
function file(text) {
  const digest = createHash("sha256").update(text).digest("hex");
  return `{"format":"turnout-plan-file","version":1,"plan":${text},"fingerprint":"${digest}"}`;
}

const TOKENS = [
  "0", "1", "-1", "2", "3.0", "0.5", "1e-300", "5e-324", "42.0", "43.0", "1e308", "255", "65536", "1048576", "4294967295",
  "4294967296", "9223372036854775808", "18446744073709551615", "null", "true", '""', '"a"', "[]", "{}", '["a","b"]',
  '{"integers":3}', '{"integers":4294967295}', '"\\u00e9"', '"\\ud800"', '"direct_encoding"', '"hadamard_response"',
  '"count_mean_sketch"', '"subset_selection"', '"summation_histogram_encoding"', '"__proto__"', '"constructor"',
];
const VALUE = /"(?:[^"\\]|\\.)*"|-?[0-9][0-9.e+-]*|true|false|null/g;

/** One value of a plan is another one: of the list, or of some other plan. */
function altered(text, draw) {
  const found = Array.from(text.matchAll(VALUE));
  const match = found[draw(found.length)];
  const other = texts[draw(texts.length)].match(VALUE);
  const token = draw(3) === 0 ? other[draw(other.length)] : TOKENS[draw(TOKENS.length)];
  return text.slice(0, match.index) + token + text.slice(match.index + match[0].length);
}

/** Some characters are others, are missing, or there twice. */
function broken(text, draw) {
  const place = draw(text.length);
  const long = 1 + draw(8);
  const piece = text.slice(place, place + long);
  const between = [String.fromCharCode(draw(128)), "", piece + piece, '"', "[".repeat(draw(200)), "9".repeat(draw(1200))];
  return text.slice(0, place) + between[draw(between.length)] + text.slice(place + long);
}

/** The sort of the result, and the milliseconds of the processor that it took. */
async function tried(data) {
  const start = process.cpuUsage();
  let found;
  try {
    const plan = await Plan.read(data, { publicKey: null, now: 0 });
    found = "read";
    plan.describe();
    assert.equal(JSON.stringify(plan.questions, (_, value) => (typeof value === "bigint" ? String(value) : value))[0], "[");
    const [{ kind, low, dimensions, size }] = plan.questions;
    const answer = kind === "choice" ? plan.questions.map(() => 0) : kind === "value" ? 0 : new Array(dimensions).fill(low);
    const single = plan.questions.length === 1 && kind !== "numbers" ? answer[0] ?? answer : answer;
    if (!(size > 1 << 16)) {
      const person = plan.isPermanent ? await plan.permanent() : plan;
      const message = await person.report(single, { coded: kind === "choice" || kind === "value" });
      assert.ok(message === null || JSON.parse(message).format === "turnout-report");
    }
  } catch (error) {
    if (!(error instanceof TurnoutError)) throw new Error(`of ${data}`, { cause: error });
    found = error.code;
  }
  const { user, system } = process.cpuUsage(start);
  return [found, (user + system) / 1000];
}

test("plans with other values, rightly fingerprinted, are read or refused", async () => {
  const draw = numbers(SEED + 1);
  const counts = new Map();
  for (let time = 0; time < TIMES; time++) {
    let text = texts[draw(texts.length)];
    for (let changes = 1 + draw(3); changes > 0; changes--) text = altered(text, draw);
    const [found, took] = await tried(file(text));
    counts.set(found, (counts.get(found) ?? 0) + 1);
    assert.ok(took < 10_000, `${took} ms for ${text}`);
  }
  // The reader was come to, and what it refuses first was not all.
  for (const code of ["read", "question", "value", "not-canonical"]) assert.ok(counts.get(code) > TIMES / 400, code);
});

test("broken files are refused", async () => {
  const draw = numbers(SEED + 2);
  const counts = new Map();
  for (let time = 0; time < TIMES; time++) {
    const [found, took] = await tried(broken(file(texts[draw(texts.length)]), draw));
    counts.set(found, (counts.get(found) ?? 0) + 1);
    assert.ok(took < 10_000);
  }
  for (const code of ["malformed", "fingerprint", "not-canonical"]) assert.ok(counts.get(code) > TIMES / 400, code);
});

test("altered states of permanent answers are refused", async () => {
  const draw = numbers(SEED + 3);
  const states = cases.filter((each) => each.state !== undefined);
  for (let time = 0; time < TIMES / 10; time++) {
    const each = states[draw(states.length)];
    const text = texts[cases.indexOf(each)];
    const plan = await Plan.read(file(text), { publicKey: null });
    const state = broken(each.state, draw);
    if (state === each.state) continue;
    await assert.rejects(plan.permanent(state), TurnoutError);
    assert.equal((await plan.permanent(each.state)).mostValues, 3);
  }
});

test("large and deep files take time in proportion to their size", async () => {
  for (const text of ["[".repeat(1 << 22), `"${"a".repeat(1 << 22)}`, "1".repeat(1 << 22), '{"a":'.repeat(1 << 20)]) {
    const [found, took] = await tried(text);
    assert.equal(found, "malformed");
    assert.ok(took < 2000, `${took} ms`);
  }
  const labels = Array.from({ length: 1 << 17 }, (_, place) => `"label ${place}"`).join(",");
  const text = `{"format":"turnout-plan","oracle":{"domain":{"labels":[${labels}]},"epsilon":1.0,"name":"direct_encoding"},"participation":{"kind":"everyone"},"version":1}`;
  const [found, took] = await tried(file(text));
  assert.equal(found, "read");
  assert.ok(took < 10_000, `${took} ms`);
});
