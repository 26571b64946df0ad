import { counterBlock } from "./aes.js";
import { fromHex, toHex, utf8 } from "./bytes.js";
import { DirectEncoding, unrealizable } from "./direct.js";
import { digestOf, DocumentKind, sha256, webCrypto } from "./documents.js";
import { Labels } from "./domains.js";
import { notAQuestion, TurnoutError } from "./errors.js";
import { Exponential, TWO_64 } from "./exact.js";
import { canonical, quoted, readJson } from "./json.js";
import { Layout } from "./layout.js";
import { exp, log } from "./libm.js";
import { checkEpsilon, Description, Members, READ } from "./members.js";
import { rowWords } from "./unary.js";
import { Noise, randomBytes } from "./words.js";

/** The most phases that a person may have. */
const MOST_PHASES = 1_000_000;

const STATE = new DocumentKind("state of a client", "turnout-client", 1, ["context", "secret", "max_values", "given", "sha256"]);

/** Purposes of streams that are part of the format of permanent answers: they never change. */
const PERMANENT_REPORT = 64n;
const PERMANENT_KEY = 65n;

const HALF = 1n << 63n;

function outOfReach(first, lifetime) {
  return notAQuestion(`the first epsilon ${first} is too close to the lifetime epsilon ${lifetime}, or above it`);
}

/** Direct encoding in two stages. */
class DirectChain {
  constructor(size, lifetime, first) {
    this.size = size;
    this.permanent = new DirectEncoding(lifetime, size);
    const { own, other } = this.permanent.thresholds;
    const [rho, target] = [Number(own) / Number(other), exp(first)];
    const others = Number(size) - 2;
    // Solves (rho r + k - 1) / (rho + r + k - 2) = e^first for the second ratio r.
    const wanted = (target * (rho + others) - others - 1) / (rho - target);
    if (first >= lifetime || wanted <= 1) throw outOfReach(first, lifetime);
    const bounds = new Exponential(first);
    let [epsilon, step] = [Math.min(log(wanted), 42), 1e-15];
    for (;;) {
      this.instantaneous = new DirectEncoding(checkEpsilon(epsilon), size);
      const kept = this.instantaneous.thresholds;
      const above = own * kept.own + other * kept.other * (size - 1n);
      const below = other * kept.own + own * kept.other + other * kept.other * (size - 2n);
      if (bounds.atLeast(above, below)) break;
      epsilon *= 1 - step;
      step *= 2;
    }
    this.layout = Layout.one(4);
  }

  /** What makes a permanent answer: the words of the own code and of another one. */
  get words() {
    const { own, other } = this.permanent.thresholds;
    return [own, other];
  }

  get thresholds() {
    return { permanent: this.permanent.thresholds, instantaneous: this.instantaneous.thresholds };
  }

  remembered() {
    // Half a word, its other half, and more where a word is drawn again, which one of ten is at most.
    return 64;
  }

  remember(code, words) {
    return this.permanent.code(code, words);
  }

  report(answer, words) {
    return [this.instantaneous.code(answer, words)];
  }
}

/** The odds of a one against those of a zero, of probabilities in units of 2^-bits. */
function odds(one, zero, bits) {
  const whole = 1n << bits;
  return [one * (whole - zero), zero * (whole - one)];
}

/** The smallest probability of a one in place of a zero that an epsilon allows. */
function leastNoise(epsilon, ratio) {
  const bounds = new Exponential(epsilon);
  let [low, high] = [1n, HALF];
  while (low < high) {
    const middle = low + (high - low) / 2n;
    if (bounds.atLeast(...ratio(middle))) high = middle;
    else low = middle + 1n;
  }
  return high;
}

/** Unary encoding in two stages; a stage has a probability of one for the own bit and one for others. */
class UnaryChain {
  constructor(size, lifetime, first, [permanent, instantaneous]) {
    if (first >= lifetime) throw outOfReach(first, lifetime);
    this.size = size;
    const one = (symmetric, zero) => (symmetric ? TWO_64 - zero : HALF);
    const zero = leastNoise(lifetime, (noise) => odds(one(permanent, noise), noise, 64n));
    this.words = [one(permanent, zero), zero];
    const chained = (second) => {
      const through = (ones) => ones * second[0] + (TWO_64 - ones) * second[1];
      return odds(through(this.words[0]), through(this.words[1]), 128n);
    };
    const other = leastNoise(first, (noise) => chained([one(instantaneous, noise), noise]));
    if (other <= 1n) throw outOfReach(first, lifetime);
    for (const [epsilon, noise] of [[lifetime, zero], [first, other]]) {
      if (HALF - noise < 1n << 31n) throw unrealizable(epsilon, 2);
    }
    this.second = [one(instantaneous, other), other];
    this.layout = Layout.row(8, rowWords(size));
  }

  get thresholds() {
    const named = ([own, other]) => ({ own, other });
    return { permanent: named(this.words), instantaneous: named(this.second) };
  }

  remembered() {
    return Number(this.size);
  }

  #fill(words, threshold) {
    const rows = new Array(this.layout.width).fill(0n);
    for (let place = 0; place < Number(this.size); place++) {
      if (words.next() < threshold(place)) rows[place >> 6] |= 1n << BigInt(place & 63);
    }
    return rows;
  }

  remember(code, words) {
    return this.#fill(words, (place) => this.words[BigInt(place) === code ? 0 : 1]);
  }

  report(answer, words) {
    return this.#fill(words, (place) => this.second[(answer[place >> 6] >> BigInt(place & 63)) & 1n ? 0 : 1]);
  }
}

/** The randomizer of a plan of permanent answers. */
class Memoized {
  constructor(json) {
    const asked = new Description(new Members(json));
    this.name = asked.name;
    this.epsilon = checkEpsilon(asked.epsilon);
    this.firstEpsilon = checkEpsilon(asked.rest.take("first_epsilon", READ.number));
    const names = ["permanent", "instantaneous", "permanent_per", "question"];
    const [permanent, instantaneous, per, question] = names.map((name) => asked.rest.take(name, READ.text));
    asked.rest.finish();
    this.domain = new Labels(asked.domain);
    const { size } = this.domain;
    if (size < 2n || size >= 1n << 32n) throw notAQuestion(`${size} answers, from 2 to 2^32 - 1 can be`);
    const stage = (name) => ["symmetric_unary_encoding", "optimized_unary_encoding"].indexOf(name);
    if (permanent === "direct_encoding" && instantaneous === "direct_encoding") {
      this.chain = new DirectChain(size, this.epsilon, this.firstEpsilon);
    } else if (stage(permanent) >= 0 && stage(instantaneous) >= 0) {
      const symmetric = [permanent, instantaneous].map((name) => stage(name) === 0);
      this.chain = new UnaryChain(size, this.epsilon, this.firstEpsilon, symmetric);
    } else {
      throw notAQuestion("the stages do not go together");
    }
    if (per !== "answer" && per !== "phase") throw notAQuestion("permanent_per is neither answer nor phase");
    Object.assign(this, { permanent, per, question });
  }

  get layout() {
    return this.chain.layout;
  }

  get thresholds() {
    return this.chain.thresholds;
  }

  /** SHA-256 of what makes a permanent answer: neither what a report adds nor its budget is among it. */
  async context() {
    const domain = await digestOf(utf8(this.domain.raw));
    const per = this.per === "phase" ? '"permanent_per":"phase",' : "";
    const [own, other] = this.chain.words;
    return sha256(
      utf8(
        `{"domain":"${domain}","format":"turnout-permanent-answer","permanent":"${this.permanent}",${per}` +
          `"question":${quoted(this.question)},"version":1,"words":["${own}","${other}"]}`,
      ),
    );
  }

  /** The most permanent answers that a person may be allowed. */
  get limit() {
    return this.per === "answer" ? Number(this.domain.size) : MOST_PHASES;
  }

  /** What was given after one more report. */
  after(given, code) {
    if (this.per === "phase") return given.at(-1) === code ? given : [...given, code];
    return given.includes(code) ? given : [...given, code].sort((one, other) => one - other);
  }

  /** Whether a person who is allowed so many answers can have given these. */
  possible(given, most) {
    const ordered = (before, after) => (this.per === "answer" ? before < after : before !== after);
    return (
      Number.isSafeInteger(most) &&
      most >= Math.max(given.length, 1) &&
      most <= this.limit &&
      given.every((code, place) => code < Number(this.domain.size) && (place === 0 || ordered(given[place - 1], code)))
    );
  }
}

/** The question of a plan that asks for permanent answers. */
export function memoizedOf(json) {
  return new Memoized(json);
}

/** Words that were made before. */
class MadeWords {
  constructor(words) {
    this.words = words;
    this.place = 0;
  }

  next() {
    if (this.place === this.words.length) throw new TurnoutError("no-randomness", "a permanent answer took too many words");
    return this.words[this.place++];
  }
}

/** So many words of a stream of a secret key: by WebCrypto, which keeps the time that AES takes apart from it. */
async function secretWords(key, purpose, index, count) {
  const subtle = webCrypto();
  const imported = await subtle.importKey("raw", key, "AES-CBC", false, ["encrypt"]);
  const iv = new Uint8Array(16);
  const blocks = await Promise.all(
    Array.from({ length: Math.ceil(count / 2) }, (_, position) =>
      // One block, alone: its encryption is the first block of the result.
      subtle.encrypt({ name: "AES-CBC", iv }, imported, counterBlock(purpose, index, BigInt(position))),
    ),
  );
  const words = blocks.flatMap((block) => {
    const view = new DataView(block);
    return [view.getBigUint64(0, true), view.getBigUint64(8, true)];
  });
  return words;
}

/** The words of a permanent answer: of the secret, of what makes permanent answers, and of the code. */
async function permanentWords(secret, context, code, count) {
  let key = secret;
  for (let start = 0; start < context.length; start += 7) {
    let index = 0n;
    context.subarray(start, start + 7).forEach((byte, place) => (index |= BigInt(byte) << BigInt(8 * place)));
    const next = new Uint8Array(32);
    const view = new DataView(next.buffer);
    const words = await secretWords(key, PERMANENT_KEY, index, 4);
    words.forEach((word, place) => view.setBigUint64(8 * place, word, true));
    key = next;
  }
  return new MadeWords(await secretWords(key, PERMANENT_REPORT, code, count));
}

/**
 * A person's side of a collection that is repeated. Its `state` holds a secret and which answers were
 * given: it belongs where the answers themselves would be kept, and must be stored before the message
 * of an answer leaves.
 */
export class PermanentAnswers {
  #plan;
  #question;
  #context;
  #secret;
  #given;

  constructor(plan, question, { context, secret, most, given }) {
    this.#plan = plan;
    this.#question = question;
    this.#context = context;
    this.#secret = secret;
    this.#given = given;
    this.mostValues = most;
  }

  /** Those of a state, or new ones with a limit. */
  static async of(plan, question, { state = null, most, secret } = {}) {
    const context = await question.context();
    if (state === null) {
      const own = secret ?? randomBytes(32);
      if (!(own instanceof Uint8Array && own.length === 32)) throw new TurnoutError("argument", "secret must be 32 bytes");
      if (!question.possible([], most)) {
        throw new TurnoutError("argument", `most must be from 1 to ${question.limit}: the permanent answers of a person`);
      }
      return new PermanentAnswers(plan, question, { context, secret: own, most, given: [] });
    }
    const json = STATE.read(state);
    const digest = await digestOf(utf8(canonical(json, "sha256") ?? ""));
    if (json.member("sha256").text !== digest || canonical(json) !== state) {
      throw new TurnoutError("fingerprint", "the state of a client was altered");
    }
    // Nothing of it is shown: it holds a secret.
    const kept = fromHex(json.member("secret").text, 32);
    const found = json.member("context").text;
    const limit = json.member("max_values").integer;
    const given = json.member("given").list?.map((code) => code.integer);
    if (kept === null || limit === null || given === undefined || !given.every((code) => code >= 0n && code < 1n << 32n)) {
      throw STATE.malformed("it is not what a client writes");
    }
    if (found !== toHex(context)) {
      throw new TurnoutError("other-state", "the state is of permanent answers to another question");
    }
    const numbers = given.map(Number);
    if (!question.possible(numbers, Number(limit))) throw STATE.malformed("it is not what a client writes");
    return new PermanentAnswers(plan, question, { context, secret: kept, most: Number(limit), given: numbers });
  }

  /** By what a state is known to be of these permanent answers. */
  get context() {
    return toHex(this.#context);
  }

  get valuesGiven() {
    return this.#given.length;
  }

  /** The secret and the answers given, with a checksum. */
  async state() {
    const text =
      `{"context":"${this.context}","format":"turnout-client","given":[${this.#given.join(",")}],` +
      `"max_values":${this.mostValues},"secret":"${toHex(this.#secret)}","version":1}`;
    return canonical(readJson(`${text.slice(0, -1)},"sha256":"${await digestOf(utf8(text))}"}`));
  }

  /** The message of this round, or null if this person does not take part: then nothing is spent. */
  async report(answer, { group, words, nonce, now, coded = false } = {}) {
    const plan = this.#plan;
    plan.checkCurrent(now);
    const code = this.#question.domain.find(answer, coded);
    const values = plan.groupOf(group);
    const after = this.#question.after(this.#given, Number(code));
    if (after.length > this.mostValues) {
      throw new TurnoutError(
        "budget",
        `this person may use ${this.mostValues} permanent answer(s), and this would be another one`,
      );
    }
    const noise = new Noise(words);
    if (!plan.selection.draw(noise)) return null;
    const { chain } = this.#question;
    const phase = new Uint8Array(8);
    new DataView(phase.buffer).setBigUint64(0, BigInt(Math.max(after.length - 1, 0)), true);
    const context =
      this.#question.per === "answer" ? this.#context : await sha256(new Uint8Array([...this.#context, ...phase]));
    const remembered = await permanentWords(this.#secret, context, code, chain.remembered());
    const report = chain.report(chain.remember(code, remembered), noise.stream("report"));
    const message = plan.message(chain.layout, report, values, nonce);
    this.#given = after;
    return message;
  }
}
