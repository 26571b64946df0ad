/*
 * turnout in a browser: reads a signed plan, makes the message of an answer, and sends it.
 *
 * Made by client/build.py from the modules in client/: change those. Licence: that of turnout.
 */

/** Bytes as lower-case hexadecimal digits. */
function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of so many pairs of lower-case digits, or null. */
function fromHex(digits, length) {
  if (typeof digits !== "string" || digits.length !== 2 * length || !/^[0-9a-f]*$/.test(digits)) return null;
  return Uint8Array.from({ length }, (_, place) => parseInt(digits.slice(2 * place, 2 * place + 2), 16));
}

/** The bytes of a text in UTF-8. */
function utf8(text) {
  return new TextEncoder().encode(text);
}

/** Writes a non-negative integer as so many bytes, the least significant first. */
function writeInteger(number, width, into, start) {
  let rest = BigInt.asUintN(8 * width, number);
  for (let place = 0; place < width; place++) {
    into[start + place] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}

/** Each kind of question in plain words. */
const WORDS = {
  binary_local_hashing: "a choice, sent as one bit of a random hash of it",
  count_mean_sketch: "a choice, sent as a row of random bits",
  direct_encoding: "a choice, sometimes replaced by a random one",
  duchi: "a number, sent as one of two ends of its range, drawn at random",
  hadamard_count_mean_sketch: "a choice, sent as one random bit",
  hadamard_response: "a choice, sent as a random number",
  hierarchical: "a choice on a scale, sent as a coarser or finer step, with noise",
  hybrid: "a number, sent as a random one",
  joint_table: "several choices, sent together, with noise",
  memoized: "a choice that is asked repeatedly, with noise that stays the same",
  optimized_local_hashing: "a choice, sent as a random hash of it",
  optimized_unary_encoding: "a choice, sent as a row of random bits",
  padded: "a choice, often replaced by a random one",
  pair_tables: "several choices; two of them are sent, with noise",
  piecewise: "a number, sent as a random one",
  prefixes: "a value; all of it or only its beginning is sent, with noise",
  projective_geometry_response: "a choice, sent as a random number",
  sampled_attribute: "several choices; one of them is sent, with noise",
  second_round: "a choice, sent by a random part of the people, with noise; the chance of sending depends on the choice",
  split_budget: "several choices; all of them are sent, with noise",
  square_wave: "a number, usually sent as one close to it",
  subset_selection: "a choice, sent as a random set of choices",
  summation_histogram_encoding: "a choice, sent as a row of random numbers",
  symmetric_unary_encoding: "a choice, sent as a row of random bits",
  threshold_histogram_encoding: "a choice, sent as a row of random bits",
};

/** The odds that epsilon stands for, rounded up to what a person reads. */
function bet(epsilon) {
  const ratio = Math.exp(epsilon);
  if (!(ratio < 1e6)) return "more than a million";
  const digits = ratio < 10 ? 10 : 1;
  return String(Math.ceil(ratio * digits - 1e-9) / digits);
}

/** What a plan means, in sentences for the person who answers. */
function describeKind(plan) {
  const sentences = [`What is asked: ${WORDS[plan.kind]}.`];
  const told = plan.isPermanent ? "all messages about one answer of yours" : "your message";
  sentences.push(
    `Your answer is hidden before it leaves this device. Suppose that somebody would bet 1 to 1 on your answer. ` +
      `After reading ${told}, their odds are at most ${bet(plan.epsilon)} to 1 (epsilon ${plan.epsilon}).`,
  );
  const { kind, rate } = plan.participation;
  if (kind === "bernoulli" && rate < 1) {
    const share = rate >= 0.01 ? `${Number((100 * rate).toPrecision(3))} of 100` : `${Number((1e6 * rate).toPrecision(3))} of a million`;
    sentences.push(`About ${share} people are selected at random to take part. Nothing is sent from the others.`);
  }
  if (plan.groups.length > 0) {
    sentences.push(`The message also holds this, not hidden: ${plan.groups.map(({ column }) => column).join(", ")}.`);
  }
  return sentences;
}

/** What turnout refuses: `code` says which kind of refusal it is, the message says what to do. */
export class TurnoutError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "TurnoutError";
    this.code = code;
  }
}

/** The error for a plan that asks what cannot be asked. */
function notAQuestion(reason) {
  return new TurnoutError("question", `the plan asks no question that exists: ${reason}`);
}

/** The error for an answer. What was answered is not shown: it may end in a log. */
function noAnswer(reason) {
  return new TurnoutError("answer", `the answer ${reason}`);
}

/** The beginning of a long text. */
function shown(text) {
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}

/** How deep lists and objects may stand within each other. */
const MOST_DEPTH = 64;

/** The most characters of a number. */
const MOST_DIGITS = 1000;

/**
 * Reads a text that is one value of JSON, as turnout's core does: no member twice, numbers that floating
 * point can hold, bounded depth. Each value keeps the text that it was read from, `raw`.
 */
function readJson(text) {
  const reader = new Reader(text.startsWith("\ufeff") ? text.slice(1) : text);
  const value = reader.value(MOST_DEPTH);
  reader.space();
  if (reader.place < reader.text.length) throw reader.flaw("more text");
  return value;
}

/** A value: its kind, the text that it was read from, and what it holds. */
class Json {
  constructor(kind, raw, held) {
    this.kind = kind;
    this.raw = raw;
    this.held = held;
  }

  /** The text that it is; null if it is something else, or half of a surrogate pair stands in it. */
  get text() {
    return this.kind === "text" ? this.held : null;
  }

  /** The integer that it is, of at most 127 bits, or null. */
  get integer() {
    if (this.kind !== "integer" || this.raw.length > 40) return null;
    const number = BigInt(this.raw);
    return number >= -(1n << 127n) && number < 1n << 127n ? number : null;
  }

  /** The floating-point number that it is, or null. */
  get number() {
    if (this.kind !== "integer" && this.kind !== "float") return null;
    const number = Number(this.raw);
    return Number.isFinite(number) ? number : null;
  }

  get list() {
    return this.kind === "list" ? this.held : null;
  }

  /** The members by their names, or null. */
  get members() {
    return this.kind === "object" ? this.held : null;
  }

  member(name) {
    return this.members?.get(name) ?? null;
  }

  /** What it is in JavaScript: integers that floating point would round become BigInt. */
  get plain() {
    switch (this.kind) {
      case "integer": {
        const number = Number(this.raw);
        return Number.isSafeInteger(number) ? number : BigInt(this.raw);
      }
      case "list":
        return this.held.map((each) => each.plain);
      case "object":
        return Object.fromEntries(Array.from(this.held, ([name, value]) => [name, value.plain]));
      case "float":
        return Number(this.raw);
      default:
        return this.held;
    }
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.place = 0;
  }

  flaw(what) {
    return new TurnoutError("malformed", `not JSON: ${what} at character ${this.place}`);
  }

  get next() {
    return this.text[this.place];
  }

  skip(character) {
    const found = this.next === character;
    if (found) this.place += 1;
    return found;
  }

  space() {
    while (this.next === " " || this.next === "\t" || this.next === "\n" || this.next === "\r") this.place += 1;
  }

  value(depth) {
    this.space();
    const start = this.place;
    const [kind, held] = this.#found(depth);
    return new Json(kind, this.text.slice(start, this.place), held);
  }

  #found(depth) {
    const next = this.next;
    if (next === "{") return ["object", this.#object(this.#deeper(depth))];
    if (next === "[") return ["list", this.#list(this.#deeper(depth))];
    if (next === '"') return ["text", this.#string()];
    if (next === "-" || (next >= "0" && next <= "9")) return this.#number();
    for (const [word, kind, held] of [["true", "truth", true], ["false", "truth", false], ["null", "null", null]]) {
      if (this.text.startsWith(word, this.place)) {
        this.place += word.length;
        return [kind, held];
      }
    }
    throw this.flaw("no value");
  }

  #deeper(depth) {
    if (depth === 0) throw this.flaw("nested too deep");
    return depth - 1;
  }

  #list(depth) {
    this.place += 1;
    const values = [];
    this.space();
    if (this.skip("]")) return values;
    for (;;) {
      values.push(this.value(depth));
      this.space();
      if (this.skip("]")) return values;
      if (!this.skip(",")) throw this.flaw("no comma");
    }
  }

  #object(depth) {
    this.place += 1;
    const members = new Map();
    this.space();
    if (this.skip("}")) return members;
    for (;;) {
      this.space();
      if (this.next !== '"') throw this.flaw("no name of a member");
      const name = this.#string();
      if (name === null) throw this.flaw("no Unicode text");
      this.space();
      if (!this.skip(":")) throw this.flaw("no colon");
      const value = this.value(depth);
      if (members.has(name)) throw this.flaw("a member is duplicated");
      members.set(name, value);
      this.space();
      if (this.skip("}")) return members;
      if (!this.skip(",")) throw this.flaw("no comma");
    }
  }

  #string() {
    const start = this.place;
    this.place += 1;
    for (;;) {
      const next = this.next;
      if (next === undefined) throw this.flaw("a text without end");
      if (next < " ") throw this.flaw("a control character");
      this.place += 1;
      if (next === '"') break;
      if (next === "\\") {
        const escape = this.next;
        if (escape === undefined || !'"\\/bfnrtu'.includes(escape)) throw this.flaw("an unknown escape");
        this.place += 1;
        if (escape === "u") {
          if (!/^[0-9a-fA-F]{4}$/.test(this.text.slice(this.place, this.place + 4))) {
            throw this.flaw("no hexadecimal digit");
          }
          this.place += 4;
        }
      }
    }
    const text = JSON.parse(this.text.slice(start, this.place));
    return isUnicode(text) ? text : null;
  }

  #number() {
    const start = this.place;
    this.skip("-");
    if (!this.skip("0")) this.#digits();
    let kind = "integer";
    if (this.skip(".")) {
      kind = "float";
      this.#digits();
    }
    if (this.skip("e") || this.skip("E")) {
      kind = "float";
      if (!this.skip("+")) this.skip("-");
      this.#digits();
    }
    const raw = this.text.slice(start, this.place);
    if (raw.length > MOST_DIGITS) throw this.flaw("a number of too many digits");
    if (kind === "float" && !Number.isFinite(Number(raw))) {
      throw this.flaw("a number out of the range of floating point");
    }
    return [kind, null];
  }

  #digits() {
    const start = this.place;
    while (this.next >= "0" && this.next <= "9") this.place += 1;
    if (this.place === start) throw this.flaw("no digit");
  }
}

/** Whether no half of a surrogate pair stands alone in a text. */
function isUnicode(text) {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

/**
 * The one text of a value: members in the order of code points, no spaces, ASCII only, numbers as Python
 * writes them; null where a text is no Unicode. One member may be left out.
 */
function canonical(value, leftOut) {
  switch (value.kind) {
    case "integer":
      return value.raw === "-0" ? "0" : value.raw;
    case "float":
      return numberText(Number(value.raw));
    case "text":
      return value.held === null ? null : quoted(value.held);
    case "list": {
      const texts = value.held.map((each) => canonical(each));
      return texts.includes(null) ? null : `[${texts.join(",")}]`;
    }
    case "object": {
      const names = Array.from(value.held.keys()).filter((name) => name !== leftOut).sort(byCodePoints);
      const texts = names.map((name) => [quoted(name), canonical(value.held.get(name))]);
      return texts.some(([, text]) => text === null) ? null : `{${texts.map((each) => each.join(":")).join(",")}}`;
    }
    default:
      return value.raw;
  }
}

function byCodePoints(left, right) {
  const [one, other] = [Array.from(left), Array.from(right)];
  for (let place = 0; place < one.length && place < other.length; place++) {
    const difference = one[place].codePointAt(0) - other[place].codePointAt(0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

const SHORT = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

/** A text in quotes, as canonical texts have it. */
function quoted(text) {
  const escaped = text.replace(
    /[^ -~]|["\\]/g,
    (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${escaped}"`;
}

/** A floating-point number with the fewest digits that give it back, as Python writes it. */
function numberText(number) {
  const sign = number < 0 || Object.is(number, -0) ? "-" : "";
  if (number === 0) return `${sign}0.0`;
  const [mantissa, power] = Math.abs(number).toExponential().split("e");
  const [digits, exponent] = [mantissa.replace(".", ""), Number(power)];
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, "0");
  return `${sign}${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1) || "0"}`;
}

/** The canonical texts that a value of JavaScript can stand for in a plan: 1 is both 1 and 1.0 there. */
function textsOf(value) {
  if (value === null || typeof value === "boolean") return [String(value)];
  if (typeof value === "bigint") return [String(value)];
  if (typeof value === "string") return isUnicode(value) ? [quoted(value)] : [];
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return [];
    return Number.isInteger(value) ? [String(BigInt(value)), numberText(value)] : [numberText(value)];
  }
  try {
    const text = canonical(readJson(JSON.stringify(value)));
    return text === null ? [] : [text];
  } catch {
    return [];
  }
}

/** WebCrypto, or the error that says what is missing. */
function webCrypto() {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) {
    throw new TurnoutError("no-webcrypto", "crypto.subtle is missing: browsers have it on https:// and on localhost only");
  }
  return subtle;
}

/** SHA-256 of bytes. */
async function sha256(bytes) {
  return new Uint8Array(await webCrypto().digest("SHA-256", bytes));
}

/** SHA-256 of bytes in hexadecimal digits. */
async function digestOf(bytes) {
  return toHex(await sha256(bytes));
}

/** A kind of documents: a format, a version, and the members that are known. */
class DocumentKind {
  constructor(word, format, version, members, optional = []) {
    Object.assign(this, { word, format, version, members, optional });
  }

  malformed(reason) {
    return new TurnoutError("malformed", `not a ${this.word} of turnout: ${reason}`);
  }

  read(text) {
    const json = readJson(text);
    this.check(json);
    return json;
  }

  /** Checks format, version and the names of all members, in this order: a later version may have others. */
  check(json) {
    if (json.member("format")?.text !== this.format) throw this.malformed(`its format is not '${this.format}'`);
    const version = json.member("version");
    if (version?.integer !== BigInt(this.version)) {
      const found = version === null ? "none" : shown(version.raw);
      throw new TurnoutError("version", `the ${this.word} has version ${found}; this client reads ${this.version}`);
    }
    const names = Array.from(json.members.keys());
    const known = ["format", "version", ...this.members, ...this.optional];
    const missing = this.members.filter((name) => !json.members.has(name));
    const unknown = names.filter((name) => !known.includes(name));
    for (const [problem, wrong] of [["lacks", missing], ["has unknown members", unknown]]) {
      if (wrong.length > 0) {
        const list = shown(wrong.map((name) => `'${name}'`).join(", "));
        throw new TurnoutError("members", `the ${this.word} ${problem} ${list}`);
      }
    }
  }

  /** The error for a member that is something else. */
  value(name, expected, found) {
    const text = found === null ? "nothing" : shown(found.raw);
    return new TurnoutError("value", `the ${name} of a ${this.word} must be ${expected}, got ${text}`);
  }
}

/** What a member can be read as: a word for messages, and a function that gives null for anything else. */
const READ = {
  any: ["anything", (json) => json],
  number: ["a number", (json) => json.number],
  text: ["a text", (json) => json.text],
  integer: ["an integer from 0 to 2^64 - 1", (json) => (json.integer >= 0n && json.integer < 1n << 64n ? json.integer : null)],
  object: ["an object", (json) => (json.members === null ? null : new Members(json))],
  list: ["a list", (json) => json.list],
};

/** The members of a description, taken one by one, so that none is left unread. */
class Members {
  #left;

  constructor(json) {
    if (json.members === null) throw notAQuestion("a description is no object");
    this.#left = new Map(json.members);
  }

  /** Takes a member that may be missing: then null. */
  find(name, [word, read]) {
    const json = this.#left.get(name);
    if (json === undefined) return null;
    this.#left.delete(name);
    const found = read(json);
    if (found === null) throw notAQuestion(`the member ${name} is not ${word}`);
    return found;
  }

  take(name, reader) {
    const found = this.find(name, reader);
    if (found === null) throw notAQuestion(`there is no member ${name}`);
    return found;
  }

  /** Takes a list whose items are all read alike. */
  takeList(name, reader) {
    const [word, read] = reader;
    return this.take(name, READ.list).map((json) => {
      const found = read(json);
      if (found === null) throw notAQuestion(`an item of ${name} is not ${word}`);
      return found;
    });
  }

  has(name) {
    return this.#left.has(name);
  }

  finish() {
    for (const name of this.#left.keys()) throw notAQuestion(`there is an unknown member ${name}`);
  }
}

/** What a plan says of its question: its kind, epsilon and domain, and what its kind alone has. */
class Description {
  constructor(members) {
    this.name = members.take("name", READ.text);
    this.epsilon = members.take("epsilon", READ.number);
    this.domain = members.take("domain", READ.any);
    this.rest = members;
  }
}

/** Refuses an epsilon that no randomizer has. */
function checkEpsilon(epsilon) {
  if (!(epsilon > 0 && epsilon <= 42)) throw notAQuestion(`epsilon is ${epsilon}, and must be above 0 and at most 42`);
  return epsilon;
}

/** The most combinations of answers, and the most cells of all tables of two. */
const MOST_CELLS = 1n << 20n;

/** The labels of one question: codes that are their own labels, or values that the plan lists. */
class Labels {
  constructor(domain) {
    const members = new Members(domain);
    const integers = members.find("integers", READ.integer);
    const labels = members.find("labels", READ.list);
    members.finish();
    if ((integers === null) === (labels === null)) throw notAQuestion("a domain has either integers or labels");
    this.raw = domain.raw;
    this.values = labels === null ? null : labels.map((json) => json.plain);
    this.size = integers ?? BigInt(labels.length);
    this.codes = new Map();
    (labels ?? []).forEach((json, code) => {
      if (json.kind === "text" && json.held === null) throw notAQuestion(`label ${code} is no Unicode text`);
      const key = json.kind === "text" ? `t${json.held}` : `o${json.raw}`;
      if (this.codes.has(key)) throw notAQuestion(`label ${code} is duplicated`);
      this.codes.set(key, BigInt(code));
    });
  }

  /** The code of an answer: of a text the label that is this text, of another value that which stands for it. */
  find(answer, coded) {
    if (this.values === null || coded) return codeOf(answer, this.size);
    const keys = typeof answer === "string" ? [`t${answer}`] : textsOf(answer).map((text) => `o${text}`);
    const found = keys.filter((key) => this.codes.has(key)).map((key) => this.codes.get(key));
    if (found.length > 1) throw noAnswer("is two labels of this question: give its code, with coded: true");
    if (found.length === 0) throw noAnswer(`is not one of the ${this.size}`);
    return found[0];
  }
}

function codeOf(answer, size) {
  const whole = typeof answer === "bigint" || (typeof answer === "number" && Number.isSafeInteger(answer));
  const code = whole ? BigInt(answer) : -1n;
  if (code < 0n || code >= size) throw noAnswer(`is not one of the ${size}`);
  return code;
}

/** Several questions: an answer is an object by their names, or a list in their order. */
class Columns {
  constructor(domain) {
    const members = new Members(domain);
    this.asked = members.takeList("columns", READ.object).map((column) => {
      const asked = { name: column.take("name", READ.text), domain: column.take("domain", READ.any) };
      column.finish();
      return { ...asked, labels: new Labels(asked.domain) };
    });
    members.finish();
    const names = new Set(this.asked.map((asked) => asked.name));
    if (names.size < this.asked.length || this.asked.some((asked) => asked.labels.size < 2n)) {
      throw notAQuestion("a question has one answer, or the name of another");
    }
    if (this.asked.length < 2) throw notAQuestion("a domain of columns has at least two questions");
  }

  get sizes() {
    return this.asked.map((asked) => asked.labels.size);
  }

  /** The pairs of questions, as places. */
  get pairs() {
    const count = this.asked.length;
    const pairs = [];
    const names = new Set();
    let cells = 0n;
    // Each table has four cells at least.
    if (count >= 3 && (count * (count - 1)) / 2 <= Number(MOST_CELLS / 4n)) {
      for (let one = 0; one < count; one++) {
        for (let other = one + 1; other < count; other++) {
          const [first, second] = [this.asked[one], this.asked[other]];
          cells += first.labels.size * second.labels.size;
          names.add(`${first.name} \u00d7 ${second.name}`);
          pairs.push([one, other]);
        }
      }
    }
    if (pairs.length === 0 || cells > MOST_CELLS || names.size < pairs.length) {
      throw notAQuestion("not the questions of tables of two");
    }
    return pairs;
  }

  find(answer, coded) {
    const names = this.asked.map((asked) => asked.name);
    const values = Array.isArray(answer)
      ? answer
      : answer !== null && typeof answer === "object"
        ? names.filter((name) => Object.hasOwn(answer, name)).map((name) => answer[name])
        : [];
    if (values.length !== names.length) throw noAnswer(`must have an answer to each of: ${names.join(", ")}`);
    return this.asked.map((asked, place) => asked.labels.find(values[place], coded));
  }
}

/** The code of a combination of answers: the last question runs fastest. */
function combined(codes, sizes) {
  return codes.reduce((all, code, place) => all * sizes[place] + code, 0n);
}

/** Numbers within bounds: one, or a list of so many. */
class Numbers {
  constructor(low, high, dimensions) {
    Object.assign(this, { low, high, dimensions });
  }

  find(answer) {
    const numbers = Array.isArray(answer) ? answer : [answer];
    const inside = (value) => typeof value === "number" && value >= this.low && value <= this.high;
    if (numbers.length === this.dimensions && numbers.every(inside) && (Array.isArray(answer) || this.dimensions === 1)) {
      return numbers;
    }
    const what = this.dimensions === 1 ? "no number" : `no list of ${this.dimensions} numbers`;
    throw noAnswer(`is ${what} from ${this.low} to ${this.high}`);
  }
}

/** The most bytes of a text, or characters of an alphabet. */
const LONGEST = 512n;

/** The values of a search, as rows of bits, most significant first. */
class Values {
  constructor(json) {
    const members = new Members(json);
    this.kind = members.take("kind", READ.text);
    this.alphabet = null;
    let exist = false;
    if (this.kind === "integers") {
      this.symbolBits = Number(members.take("bits", READ.integer));
      this.length = 1;
      exist = this.symbolBits >= 1 && this.symbolBits <= 64;
    } else if (this.kind === "text") {
      const alphabet = members.take("alphabet", READ.any);
      const length = members.take("length", READ.integer);
      if (alphabet.kind !== "null") {
        if (alphabet.text === null) throw notAQuestion("the alphabet is no text");
        this.alphabet = Array.from(alphabet.text);
      }
      exist = length >= 1n && length <= LONGEST && this.#alphabetExists();
      this.length = Number(length);
      this.symbolBits = this.alphabet === null ? 8 : this.alphabet.length.toString(2).length;
    }
    members.finish();
    if (!exist) throw notAQuestion("not a kind of values");
    this.bits = this.length * this.symbolBits;
  }

  #alphabetExists() {
    if (this.alphabet === null) return true;
    const different = new Set(this.alphabet);
    return different.size > 0 && different.size === this.alphabet.length && !different.has("\0");
  }

  /** What the values are, in words. */
  toString() {
    if (this.kind === "integers") return `whole numbers of ${this.symbolBits} bits`;
    if (this.alphabet === null) return `texts of at most ${this.length} bytes of UTF-8`;
    return `texts of at most ${this.length} characters of the alphabet`;
  }

  /** The bits of a value, or null. */
  digits(answer) {
    let codes;
    if (this.kind === "integers") {
      const whole =
        typeof answer === "bigint" ||
        (typeof answer === "number" && Number.isSafeInteger(answer)) ||
        (typeof answer === "string" && /^(0|[1-9][0-9]{0,19})$/.test(answer));
      const number = whole ? BigInt(answer) : -1n;
      if (number < 0n || number >> BigInt(this.symbolBits) !== 0n) return null;
      return number.toString(2).padStart(this.symbolBits, "0");
    }
    if (typeof answer !== "string" || !isUnicode(answer)) return null;
    if (this.alphabet === null) codes = Array.from(new TextEncoder().encode(answer));
    else codes = Array.from(answer, (character) => this.alphabet.indexOf(character) + 1);
    if (codes.length > this.length || codes.includes(0)) return null;
    return codes.map((code) => code.toString(2).padStart(this.symbolBits, "0")).join("").padEnd(this.bits, "0");
  }

  /** Whether some value begins with these bits: nothing follows the end of a text, its characters exist. */
  possible(digits) {
    if (this.kind === "integers") return true;
    const size = this.symbolBits;
    const whole = Math.floor(digits.length / size);
    const codes = [];
    for (let start = 0; start < digits.length; start += size) {
      // A character that is cut has zeros for what is unknown: the smallest that it can be.
      codes.push(parseInt(digits.slice(start, start + size).padEnd(size, "0"), 2));
    }
    const end = codes.slice(0, whole).indexOf(0);
    if (end >= 0 && codes.slice(end).some((code) => code !== 0)) return false;
    if (this.alphabet !== null) return codes.every((code) => code <= this.alphabet.length);
    const over = end >= 0 || digits.length === this.bits;
    return beginsUtf8(codes.slice(0, end >= 0 ? end : whole), over);
  }
}

/** Whether bytes are UTF-8, or the beginning of some if it is not over. */
function beginsUtf8(bytes, over) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    decoder.decode(Uint8Array.from(bytes), { stream: !over });
    return true;
  } catch {
    return false;
  }
}

/** The candidates of a round of a search: values with each of some prefixes, and all others. */
class Prefixes {
  constructor(domain) {
    const members = new Members(domain);
    this.values = new Values(members.take("values", READ.any));
    const kept = members.takeList("kept", READ.text);
    const bits = members.take("bits", READ.integer);
    members.finish();
    const known = kept[0]?.length ?? 0;
    const fits =
      bits >= BigInt(Math.max(known, 1)) &&
      bits <= BigInt(this.values.bits) &&
      bits - BigInt(known) <= 20n &&
      kept.length <= Number(MOST_CELLS >> (bits - BigInt(known)));
    const digits = (prefix) => prefix.length === known && /^[01]*$/.test(prefix);
    const ascending = kept.every((prefix, place) => place === 0 || kept[place - 1] < prefix);
    if (kept.length === 0 || !fits || !kept.every(digits) || !ascending) throw notAQuestion("not a domain of prefixes");
    [this.bits, this.known] = [Number(bits), known];
    const step = this.bits - known;
    this.codes = new Map();
    for (const prefix of kept) {
      for (let ending = 0; ending < 2 ** step; ending++) {
        const digitsOf = prefix + (step === 0 ? "" : ending.toString(2).padStart(step, "0"));
        if (this.values.possible(digitsOf)) this.codes.set(digitsOf, BigInt(this.codes.size));
      }
    }
    if (this.codes.size === 0) throw notAQuestion("not a domain of prefixes: no value has any");
    this.size = BigInt(this.codes.size) + 1n;
  }

  find(answer, coded) {
    if (coded) return codeOf(answer, this.size);
    const digits = this.values.digits(answer);
    if (digits === null) throw noAnswer(`is not one of the ${this.values}`);
    return this.codes.get(digits.slice(0, this.bits)) ?? this.size - 1n;
  }
}

/*
 * Enclosures of real numbers by integers, for setting up exact decisions; the same arithmetic as
 * turnout's core, so that every threshold is the same integer.
 */

/** Fractional bits of the working precision. */
const BITS = 256n;

const TWO_64 = 1n << 64n;
const LOW_32 = (1n << 32n) - 1n;

const VIEW = new DataView(new ArrayBuffer(8));

/** The 64 bits of a floating-point number. */
function bitsOf(number) {
  VIEW.setFloat64(0, number);
  return VIEW.getBigUint64(0);
}

/** The floating-point number of 64 bits. */
function ofBits(bits) {
  VIEW.setBigUint64(0, bits);
  return VIEW.getFloat64(0);
}

/** The next larger number after a positive one. */
function nextUp(number) {
  return ofBits(bitsOf(number) + 1n);
}

/** The next smaller number before a positive one. */
function nextDown(number) {
  return ofBits(bitsOf(number) - 1n);
}

/** A positive number as a mantissa and a power of two, exactly. */
function decompose(number) {
  const bits = bitsOf(number);
  const fraction = bits & ((1n << 52n) - 1n);
  const biased = (bits >> 52n) & 0x7ffn;
  return biased === 0n ? [fraction, -1074n] : [fraction | (1n << 52n), biased - 1075n];
}

/** A positive number times a power of two, cut to a whole number, exactly. */
function scaledFloor(number, power) {
  const [mantissa, exponent] = decompose(number);
  const shift = exponent + BigInt(power);
  return shift >= 0n ? mantissa << shift : mantissa >> -shift;
}

/** How many binary digits a positive integer has. */
function bitLength(number) {
  return number.toString(2).length;
}

function divideUp(numerator, denominator) {
  return (numerator + denominator - 1n) / denominator;
}

function shiftUp(value, shift) {
  const floor = value >> shift;
  return floor << shift === value ? floor : floor + 1n;
}

/** A real number in [low, high] / 2^bits. */
class Interval {
  constructor(low, high, bits) {
    this.low = low;
    this.high = high;
    this.bits = bits;
  }

  static one(bits) {
    return new Interval(1n << bits, 1n << bits, bits);
  }

  /** A positive floating-point number. */
  static of(number, bits) {
    const [mantissa, exponent] = decompose(number);
    const shift = exponent + bits;
    return shift >= 0n
      ? new Interval(mantissa << shift, mantissa << shift, bits)
      : new Interval(mantissa >> -shift, shiftUp(mantissa, -shift), bits);
  }

  /** One less this, for a number in [0, 1]. */
  complement() {
    const unit = 1n << this.bits;
    return new Interval(this.high > unit ? 0n : unit - this.high, unit - this.low, this.bits);
  }

  times(other) {
    return new Interval(
      (this.low * other.low) >> this.bits,
      shiftUp(this.high * other.high, this.bits),
      this.bits,
    );
  }

  power(exponent) {
    let [result, square, left] = [Interval.one(this.bits), this, exponent];
    while (left > 0n) {
      if (left & 1n) result = result.times(square);
      left >>= 1n;
      if (left > 0n) square = square.times(square);
    }
    return result;
  }

  /** The quotient, or null while the divisor may be zero. */
  over(divisor) {
    if (divisor.low === 0n) return null;
    return new Interval(
      (this.low << this.bits) / divisor.high,
      divideUp(this.high << this.bits, divisor.low),
      this.bits,
    );
  }

  /** The whole part after scaling by 2^64, or null if the enclosure does not settle it. */
  scaledFloor() {
    const shift = this.bits - 64n;
    const low = this.low >> shift;
    return low === this.high >> shift ? low : null;
  }
}

/** `e^x` for a finite `x >= 0`: the Taylor series at `x / 2^j < 1`, then `j` squarings. */
function exponential(x) {
  let [halvings, reduced] = [0, x];
  while (reduced >= 1) {
    reduced *= 0.5;
    halvings += 1;
  }
  const argument = Interval.of(reduced, BITS);
  let [sum, term] = [Interval.one(BITS), Interval.one(BITS)];
  for (let index = 1n; term.high !== 0n && index <= 4n * BITS; index++) {
    term = term.times(argument);
    term.low /= index;
    term.high = (term.high + (index - 1n)) / index;
    sum = new Interval(sum.low + term.low, sum.high + term.high, BITS);
    if (term.high === 1n) break;
  }
  // The terms left out fall at least as fast as 1/2, 1/4, ... of the last one.
  sum = new Interval(sum.low, sum.high + term.high, BITS);
  for (; halvings > 0; halvings--) sum = sum.times(sum);
  return sum;
}

/** Proven bounds of `e^x`. */
class Exponential {
  constructor(x) {
    this.bounds = exponential(x);
  }

  /** At most `floor(e^x factor)`. */
  floorTimes(factor) {
    return (this.bounds.low * factor) >> BITS;
  }

  /** At most `floor(numerator / (e^x + addend))`. */
  floorQuotient(numerator, addend) {
    return (numerator << BITS) / (this.bounds.high + (addend << BITS));
  }

  /** The most words `T` whose odds `T / (2^64 - T)` are certain to be at most `e^x numerator / denominator`. */
  floorOdds(numerator, denominator) {
    const odds = this.bounds.low * numerator;
    const found = (odds << 64n) / (odds + (denominator << BITS));
    return found < TWO_64 ? found : TWO_64 - 1n;
  }

  /** Whether `e^x >= numerator / denominator` is certain. */
  atLeast(numerator, denominator) {
    return this.bounds.low * denominator >= numerator << BITS;
  }
}

/** The smallest integer from 1 to `most` for which something holds that holds from there on, or null. */
function smallest(most, holds) {
  if (!holds(most)) return null;
  let [low, high] = [1n, most];
  while (low < high) {
    const middle = low + (high - low) / 2n;
    if (holds(middle)) high = middle;
    else low = middle + 1n;
  }
  return high;
}

/** The largest prime below a power of two of at most 31 bits. */
function primeBelow(bits) {
  for (let candidate = 2 ** bits - 1; candidate > 3; candidate--) if (isPrime(candidate)) return BigInt(candidate);
  return 3n;
}

/** Whether an integer below 2^32 is prime. */
function isPrime(number) {
  if (number < 4) return number > 1;
  if (number % 2 === 0) return false;
  for (let factor = 3; factor * factor <= number; factor += 2) if (number % factor === 0) return false;
  return true;
}

/** Uniform words of 64 bits from `crypto.getRandomValues`, some at a time. */
class FreshWords {
  #words = new BigUint64Array(64);
  #next = 64;

  next() {
    if (this.#next === this.#words.length) {
      randomSource().getRandomValues(this.#words);
      this.#next = 0;
    }
    const word = this.#words[this.#next];
    this.#words[this.#next] = 0n;
    this.#next += 1;
    return word;
  }
}

function randomSource() {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    throw new TurnoutError("no-randomness", "crypto.getRandomValues is missing: this browser cannot draw noise");
  }
  return globalThis.crypto;
}

/** So many random bytes. */
function randomBytes(length) {
  return randomSource().getRandomValues(new Uint8Array(length));
}

/**
 * Where the words of a message come from. A message is drawn from streams: `participation` decides who
 * takes part, `report` randomizes, `choice` draws a part or an answer in place of the own one. What is
 * drawn beside the first draw is a part of it, which a list of numbers names. All streams are fresh words,
 * unless tests give others: a function of the purpose and that list whose result has `next()`.
 */
class Noise {
  #given;
  #path;

  constructor(given, path = []) {
    this.#given = given ?? null;
    this.#path = path;
  }

  part(...path) {
    return new Noise(this.#given, [...this.#path, ...path]);
  }

  stream(purpose) {
    return this.#given === null ? new FreshWords() : this.#given(purpose, this.#path);
  }
}

/** An integer that is exactly uniform below a bound: Lemire's multiply-and-reject. Zero stands for 2^64. */
function uniformBelow(bound, words) {
  if (bound === 0n) return words.next();
  let product = words.next() * bound;
  if (BigInt.asUintN(64, product) < bound) {
    const floor = (TWO_64 - bound) % bound;
    while (BigInt.asUintN(64, product) < floor) product = words.next() * bound;
  }
  return product >> 64n;
}

/** An index, drawn with probability exactly weight / sum of the weights. */
function choose(weights, words) {
  const sum = weights.reduce((all, weight) => all + weight, 0n);
  const point = uniformBelow(sum, words);
  let [before, found] = [0n, 0];
  for (const weight of weights) {
    before += weight;
    if (before <= point) found += 1;
  }
  return found;
}

/** A trial that succeeds with exactly a floating-point probability above 0 and up to 1. */
function trial(probability, words) {
  // A double is a whole number of 2^-1074: words are compared with its digits until one differs.
  let [rest, places] = [scaledFloor(probability, 1088), 1024n];
  for (;;) {
    const digit = rest >> places;
    const word = words.next();
    if (word !== digit) return word < digit;
    rest -= digit << places;
    if (rest === 0n) return false;
    places -= 64n;
  }
}

/** The low half of a word, as a number. */
function lowHalf(word) {
  return Number(word & LOW_32);
}

/**
 * Fills rows of 64 bits each of which is one with probability exactly `threshold / 2^64`: digit by digit
 * in 64 lanes, and what eight digits leave open is settled by a word each.
 */
class BiasedBits {
  constructor(threshold) {
    this.threshold = threshold;
    let zeros = 0;
    while (zeros < 64 && ((threshold >> BigInt(zeros)) & 1n) === 0n) zeros += 1;
    this.rounds = Math.min(64 - zeros, 8);
    this.digits = Array.from({ length: this.rounds }, (_, round) =>
      (threshold >> BigInt(64 - this.rounds + round)) & 1n ? TWO_64 - 1n : 0n,
    );
    this.rest = BigInt.asUintN(64, threshold << BigInt(this.rounds));
  }

  fill(length, words) {
    const rows = new Array(length).fill(0n);
    if (this.rounds === 0) return rows;
    for (let first = 0; first < length; first += 32) {
      const tile = Math.min(32, length - first);
      const uniform = Array.from({ length: tile * this.rounds }, () => words.next());
      const open = new Array(tile);
      // Eight rows at a time have their words beside each other, and those left over one by one.
      const whole = tile - (tile % 8);
      for (let row = 0; row < tile; row++) {
        const step = row < whole ? 8 : 1;
        const start = row < whole ? (row - (row % 8)) * this.rounds + (row % 8) : row * this.rounds;
        let [below, same] = [0n, TWO_64 - 1n];
        for (let round = 0; round < this.rounds; round++) {
          const agrees = uniform[start + round * step];
          below = (below & agrees) | (this.digits[round] & ~agrees);
          same &= agrees;
        }
        rows[first + row] = below;
        open[row] = same;
      }
      if (this.rest > 0n) {
        for (let row = 0; row < tile; row++) {
          for (let left = open[row]; left !== 0n; left &= left - 1n) {
            if (words.next() < this.rest) rows[first + row] |= left & -left;
          }
        }
      }
    }
    return rows;
  }
}

/** Fractional bits that settle a boundary, but for those that are short binary fractions. */
const FIRST_BITS = 256n;

/** Below this rate a gap is drawn in two digits. */
const TWO_DIGITS_BELOW = 1 / 64;

/** The span of a low digit. */
const SPAN = 256n;

/**
 * Whether a person takes part in a plan in which each does with the same probability. The core draws the
 * gap before the next person who does; of one person alone the gap must be zero.
 */
class Selection {
  constructor(rate) {
    this.rate = rate;
    if (rate === 1) return;
    const stay = (bits) => Interval.of(rate, bits).complement();
    const digit = (stride, span) => {
      const at = (bits) => {
        const step = stay(bits).power(stride);
        if (span === null) return step.complement();
        return step.complement().over(step.power(span).complement());
      };
      return new Zero(at);
    };
    this.digits =
      rate < TWO_DIGITS_BELOW ? [digit(SPAN, null), digit(1n, SPAN)] : [digit(1n, null)];
  }

  /** The integers that decide: a word below each of them, or for one that is equal the next words. */
  get thresholds() {
    return this.rate === 1 ? [] : this.digits.map((digit) => digit.threshold);
  }

  draw(noise) {
    if (this.rate === 1) return true;
    const words = noise.stream("participation");
    const [first, second] = this.digits;
    // So many words are drawn at once, of which one person needs the first.
    const drawn = Array.from({ length: second === undefined ? 8 : 4 }, () => words.next())[0];
    if (second === undefined) return first.draw(drawn & LOW_32, words);
    return first.draw(drawn >> 32n, words) && second.draw(drawn & LOW_32, words);
  }
}

/** Whether a digit is zero, which it is with a probability that can be enclosed as closely as needed. */
class Zero {
  constructor(at) {
    this.at = at;
    let bits = FIRST_BITS;
    for (;;) {
      this.threshold = at(bits)?.scaledFloor() ?? null;
      if (this.threshold !== null) break;
      bits *= 2n;
    }
  }

  /** From the upper half of a word: the lower one is drawn if it decides. */
  draw(half, words) {
    const upper = this.threshold >> 32n;
    if (half !== upper) return half < upper;
    const word = (half << 32n) | (words.next() >> 32n);
    return word === this.threshold ? this.#settle(word, words) : word < this.threshold;
  }

  /** Reads words until the comparison with the true probability is certain. */
  #settle(word, words) {
    let [uniform, read] = [word, 1n];
    for (;;) {
      const bits = 64n * read + FIRST_BITS;
      const probability = this.at(bits);
      if (probability !== null) {
        const shift = bits - 64n * read;
        if ((uniform + 1n) << shift <= probability.low) return true;
        if (uniform << shift >= probability.high) return false;
      }
      uniform = (uniform << 64n) + words.next();
      read += 1n;
    }
  }
}

/** Whether a person takes part whose probability is its own. */
function takesPart(probability, noise) {
  return trial(probability, noise.stream("participation"));
}

/*
 * AES-256 of public keys: of the seeds that stand for hash functions in a plan. Tables are looked up by
 * what is encrypted, which may show in the time that it takes: no secret may pass through here.
 */

const SBOX = new Uint8Array(256);
const TABLE = new Uint32Array(256);

/** Twice a byte, in the field of AES. */
function twice(byte) {
  return ((byte << 1) ^ (byte & 0x80 ? 0x11b : 0)) & 0xff;
}

function fillTables() {
  let [power, inverse] = [1, 1];
  do {
    // All bytes but zero as powers of 3, beside their inverses.
    power ^= twice(power);
    inverse ^= inverse << 1;
    inverse ^= inverse << 2;
    inverse ^= inverse << 4;
    inverse &= 0xff;
    if (inverse & 0x80) inverse ^= 0x09;
    const turn = (by) => ((inverse << by) | (inverse >> (8 - by))) & 0xff;
    SBOX[power] = inverse ^ turn(1) ^ turn(2) ^ turn(3) ^ turn(4) ^ 0x63;
  } while (power !== 1);
  SBOX[0] = 0x63;
  SBOX.forEach((byte, place) => {
    const double = twice(byte);
    TABLE[place] = ((double << 24) | (byte << 16) | (byte << 8) | (double ^ byte)) >>> 0;
  });
}

const ROUNDS = 14;

/** The keys of all rounds of a key of 32 bytes. */
function expanded(key) {
  if (TABLE[0] === 0) fillTables();
  const view = new DataView(key.buffer, key.byteOffset, 32);
  const keys = new Uint32Array(4 * (ROUNDS + 1));
  const sub = (word) =>
    (SBOX[word >>> 24] << 24) | (SBOX[(word >>> 16) & 255] << 16) | (SBOX[(word >>> 8) & 255] << 8) | SBOX[word & 255];
  let constant = 1;
  for (let place = 0; place < keys.length; place++) {
    if (place < 8) {
      keys[place] = view.getUint32(4 * place);
      continue;
    }
    let word = keys[place - 1];
    if (place % 8 === 0) {
      word = sub((word << 8) | (word >>> 24)) ^ (constant << 24);
      constant = twice(constant);
    } else if (place % 8 === 4) {
      word = sub(word);
    }
    keys[place] = keys[place - 8] ^ word;
  }
  return keys;
}

const turned = (word, by) => (word >>> by) | (word << (32 - by));

/** The bytes of a word in the other order. */
const swapped = (word) => ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);

/** One column of a round: a byte of each row, mixed. */
function column(one, two, three, four, key) {
  return (
    TABLE[one >>> 24] ^
    turned(TABLE[(two >>> 16) & 255], 8) ^
    turned(TABLE[(three >>> 8) & 255], 16) ^
    turned(TABLE[four & 255], 24) ^
    key
  );
}

/** One column of the last round, which mixes nothing. */
function lastColumn(one, two, three, four, key) {
  const bytes = (SBOX[one >>> 24] << 24) | (SBOX[(two >>> 16) & 255] << 16) | (SBOX[(three >>> 8) & 255] << 8);
  return (bytes | SBOX[four & 255]) ^ key;
}

/** Encrypts the four words of a block, most significant byte first. */
function encrypt(keys, block) {
  let [a, b, c, d] = block;
  a ^= keys[0];
  b ^= keys[1];
  c ^= keys[2];
  d ^= keys[3];
  let place = 4;
  for (let round = 1; round < ROUNDS; round++, place += 4) {
    const one = column(a, b, c, d, keys[place]);
    const two = column(b, c, d, a, keys[place + 1]);
    const three = column(c, d, a, b, keys[place + 2]);
    d = column(d, a, b, c, keys[place + 3]);
    [a, b, c] = [one, two, three];
  }
  block[0] = lastColumn(a, b, c, d, keys[place]);
  block[1] = lastColumn(b, c, d, a, keys[place + 1]);
  block[2] = lastColumn(c, d, a, b, keys[place + 2]);
  block[3] = lastColumn(d, a, b, c, keys[place + 3]);
}

/** The block of a stream at a position, before it is encrypted: stream and position, little-endian. */
function counterBlock(purpose, index, position) {
  const block = new Uint8Array(16);
  const view = new DataView(block.buffer);
  view.setBigUint64(0, position, true);
  view.setBigUint64(8, (purpose << 56n) | index, true);
  return block;
}

/** The words of the first stream of a purpose, of a public key: the core's `AesStreams`. */
class AesStream {
  #keys;
  #purpose;
  #position = 0;
  #block = new Uint32Array(4);
  #half = 1;

  constructor(key, purpose) {
    this.#keys = expanded(key);
    this.#purpose = purpose;
  }

  /** The upper half of the next word of 64 bits. Streams are read for less than 2^32 blocks. */
  upper() {
    this.#half ^= 1;
    if (this.#half === 0) {
      // The position and the number of the stream, of 64 bits each, little-endian.
      this.#block.set([swapped(this.#position), 0, 0, this.#purpose]);
      this.#position += 1;
      encrypt(this.#keys, this.#block);
    }
    return swapped(this.#block[2 * this.#half + 1]) >>> 0;
  }
}

/** The public key that a seed of 64 bits stands for. */
function seededKey(seed) {
  const key = utf8("turnout: a seed for tests.......");
  new DataView(key.buffer).setBigUint64(24, seed, true);
  return key;
}

/** What reports look like: one integer, or a row of integers of one width. */
class Layout {
  constructor(bytes, signed, width) {
    this.bytes = bytes;
    this.signed = signed;
    this.width = width;
  }

  static one(bytes) {
    return new Layout(bytes, false, null);
  }

  static row(bytes, width, signed = false) {
    return new Layout(bytes, signed, width);
  }

  get integers() {
    return this.width ?? 1;
  }

  /** The report as it stands in a message. */
  text(integers) {
    if (this.width === null) {
      const number = BigInt(integers[0]);
      return String(this.signed ? number : BigInt.asUintN(8 * this.bytes, number));
    }
    const bytes = new Uint8Array(this.integers * this.bytes);
    integers.forEach((integer, place) => writeInteger(BigInt(integer), this.bytes, bytes, place * this.bytes));
    return `"${toHex(bytes)}"`;
  }
}

/** The narrowest width of integers, in bytes, of which so many differ. */
function narrowest(count) {
  const most = BigInt(count);
  if (most < 1n) return 8;
  return most <= 1n << 8n ? 1 : most <= 1n << 16n ? 2 : most <= 1n << 32n ? 4 : 8;
}

/*
 * Elementary functions by additions, multiplications and divisions alone, which IEEE 754 defines to the
 * last bit: those of the browser differ from one to the other. Ports of FreeBSD's msun (e_exp.c,
 * s_expm1.c, e_log.c, s_log1p.c), as the Rust crate `libm` has them, for arguments that turnout has.
 *
 * Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify,
 * and distribute this software is freely granted, provided that this notice is preserved.
 */

const LN2_HIGH = 6.93147180369123816490e-01;
const LN2_LOW = 1.90821492927058770002e-10;
const INVERSE_LN2 = 1.44269504088896338700e+00;

function high(number) {
  return Number(bitsOf(number) >> 32n);
}

function powerOfTwo(exponent) {
  return ofBits(BigInt(0x3ff + exponent) << 52n);
}

/** `e^x` for numbers of a size below 700. */
function exp(x) {
  const word = high(x) & 0x7fffffff;
  const sign = x < 0 ? 1 : 0;
  let [k, head, tail] = [0, x, 0];
  if (word > 0x3fd62e42) {
    k = word >= 0x3ff0a2b2 ? Math.trunc(INVERSE_LN2 * x + (sign ? -0.5 : 0.5)) : 1 - sign - sign;
    head = x - k * LN2_HIGH;
    tail = k * LN2_LOW;
    x = head - tail;
  } else if (word <= 0x3e300000) {
    return 1 + x;
  }
  const xx = x * x;
  const c =
    x -
    xx *
      (1.66666666666666019037e-01 +
        xx *
          (-2.77777777770155933842e-03 +
            xx *
              (6.61375632143793436117e-05 +
                xx * (-1.65339022054652515390e-06 + xx * 4.13813679705723846039e-08))));
  const y = 1 + ((x * c) / (2 - c) - tail + head);
  return k === 0 ? y : y * powerOfTwo(k);
}

/** `e^x - 1` for numbers of a size below 700. */
function expm1(x) {
  const word = high(x) & 0x7fffffff;
  const negative = x < 0;
  if (word >= 0x4043687a && negative) return -1;
  let [k, c] = [0, 0];
  if (word > 0x3fd62e42) {
    let head, tail;
    if (word < 0x3ff0a2b2) {
      [head, tail, k] = negative ? [x + LN2_HIGH, -LN2_LOW, -1] : [x - LN2_HIGH, LN2_LOW, 1];
    } else {
      k = Math.trunc(INVERSE_LN2 * x + (negative ? -0.5 : 0.5));
      head = x - k * LN2_HIGH;
      tail = k * LN2_LOW;
    }
    x = head - tail;
    c = head - x - tail;
  } else if (word < 0x3c900000) {
    return x;
  }
  const half = 0.5 * x;
  const square = x * half;
  const r1 =
    1 +
    square *
      (-3.33333333333331316428e-02 +
        square *
          (1.58730158725481460165e-03 +
            square *
              (-7.93650757867487942473e-05 +
                square * (4.00821782732936239552e-06 + square * -2.01099218183624371326e-07))));
  const t = 3 - r1 * half;
  let e = square * ((r1 - t) / (6 - x * t));
  if (k === 0) return x - (x * e - square);
  e = x * (e - c) - c;
  e -= square;
  if (k === -1) return 0.5 * (x - e) - 0.5;
  if (k === 1) return x < -0.25 ? -2 * (e - (x + 0.5)) : 1 + 2 * (x - e);
  const whole = powerOfTwo(k);
  if (k < 0 || k > 56) return (x - e + 1) * whole - 1;
  const inverse = powerOfTwo(-k);
  return k < 20 ? (x - e + (1 - inverse)) * whole : (x - (e + inverse) + 1) * whole;
}

/** The series that both logarithms have, of 1 + f, with the power of two and a correction. */
function logarithm(f, k, last) {
  const half = 0.5 * f * f;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const t2 =
    z *
    (6.666666666666735130e-01 +
      w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const r = t2 + t1;
  return s * (half + r) + last(k * LN2_LOW) - half + f + k * LN2_HIGH;
}

/** A number near one and a power of two, of which the product is the given one. */
function reduced(number) {
  const bits = bitsOf(number);
  const word = Number(bits >> 32n) + (0x3ff00000 - 0x3fe6a09e);
  const upper = (word & 0x000fffff) + 0x3fe6a09e;
  return [ofBits((BigInt(upper) << 32n) | (bits & 0xffffffffn)), (word >>> 20) - 0x3ff];
}

/** The logarithm of a positive normal number, or of infinity. */
function log(x) {
  if (x === 1) return 0;
  if (x === Infinity) return x;
  const [near, k] = reduced(x);
  return logarithm(near - 1, k, (tail) => tail);
}

/** The logarithm of `1 + x` for `x > -1`. */
function log1p(x) {
  const word = high(x);
  if (word < 0x3fda827a || word >= 0x80000000) {
    if ((word & 0x7fffffff) < 0x3ca00000) return x;
    if (word <= 0xbfd2bec4) return logarithm(x, 0, (tail) => tail + 0);
  }
  const sum = 1 + x;
  const [near, k] = reduced(sum);
  let correction = 0;
  if (k < 54) correction = (k >= 2 ? 1 - (sum - x) : x - (sum - 1)) / sum;
  return logarithm(near - 1, k, (tail) => tail + correction);
}

/** A positive number, rounded to the nearest whole one. */
function round(number) {
  const whole = Math.trunc(number);
  return number - whole >= 0.5 ? whole + 1 : whole;
}

/** The logarithm of `numerator / denominator > 1`, rounded up, and at most a number that is not below it. */
function logarithmAbove(numerator, denominator, most) {
  const gain = numerator > denominator ? Number(numerator - denominator) / Number(denominator) : 0;
  let candidate = log1p(gain) * (1 - 1e-15);
  while (candidate < most) {
    if (new Exponential(candidate).atLeast(numerator, denominator)) return candidate;
    candidate = candidate === 0 ? Number.MIN_VALUE : nextUp(candidate);
  }
  return most;
}

/** The error for an epsilon at which reports say nothing. */
function unrealizable(epsilon, size) {
  return notAQuestion(`epsilon ${epsilon} is too small for ${size} answers`);
}

/** Direct encoding: the own code with `A` words of 2^64, each other one with `W`, and `A <= e^epsilon W`. */
class DirectEncoding {
  constructor(epsilon, size) {
    const bounds = new Exponential(epsilon);
    this.epsilon = epsilon;
    this.size = size;
    this.cell = bounds.floorQuotient(TWO_64, size - 1n);
    this.keep = bounds.floorTimes(this.cell) - this.cell;
    if (this.keep <= this.cell >> 32n) throw unrealizable(epsilon, size);
    this.last = BigInt.asUintN(64, this.keep + size * this.cell - 1n);
    this.layout = Layout.one(narrowest(size));
  }

  get thresholds() {
    return { own: this.keep + this.cell, other: this.cell };
  }

  get realizedEpsilon() {
    return logarithmAbove(this.keep + this.cell, this.cell, this.epsilon);
  }

  /** One code: half a word decides nearly always, then its other half, then words that are accepted. */
  code(own, words) {
    let word = (words.next() & LOW_32) << 32n;
    word |= words.next() >> 32n;
    while (word > this.last) word = words.next();
    return word < this.keep ? own : (word - this.keep) / this.cell;
  }

  report(code, words) {
    return [this.code(code, words)];
  }
}

/** The largest domain of reports that have something for each code. */
const MOST_CODES = 1n << 20n;

const TWO_63 = 9_223_372_036_854_775_808;

function checkRows(size) {
  if (size > MOST_CODES) throw notAQuestion(`the reports of ${size} answers are too long, the most are ${MOST_CODES}`);
}

/** The number of words of a row of bits. */
function rowWords(size) {
  return Number((size + 63n) / 64n);
}

/** The bits of the last word of a row that stand for codes. */
function lastWord(size) {
  return (TWO_64 - 1n) >> ((64n - (size % 64n)) % 64n);
}

/** A bit for each code: one with `own` words of 2^64 for the own code, and with `other` for each other. */
class UnaryEncoding {
  constructor(epsilon, size, [own, other]) {
    checkRows(size);
    if (other <= 0n || own - other < 1n << 32n) throw unrealizable(epsilon, size);
    this.epsilon = epsilon;
    this.size = size;
    this.own = own;
    this.others = new BiasedBits(other);
    this.layout = Layout.row(8, rowWords(size));
  }

  static symmetric(epsilon, size) {
    const own = new Exponential(0.5 * epsilon).floorOdds(1n, 1n);
    return new UnaryEncoding(epsilon, size, [own, TWO_64 - own]);
  }

  static optimized(epsilon, size) {
    const bounds = new Exponential(epsilon);
    const other = bounds.floorQuotient(TWO_64, 1n);
    return new UnaryEncoding(epsilon, size, [bounds.floorOdds(other, TWO_64 - other), other]);
  }

  static thresholdHistogram(epsilon, size) {
    const threshold = histogramThreshold(epsilon);
    const half = 0.5 * epsilon;
    const words = (exponent) => BigInt(Math.ceil(exp(exponent) * TWO_63));
    const [miss, other] = [words(half * (threshold - 1)), words(-half * threshold)];
    const most = new Exponential(epsilon).floorOdds(other, TWO_64 - other);
    const own = TWO_64 - (miss > 1n ? miss : 1n);
    return new UnaryEncoding(epsilon, size, [most < own ? most : own, other]);
  }

  get thresholds() {
    return { own: this.own, other: this.others.threshold };
  }

  get realizedEpsilon() {
    const { own, other } = this.thresholds;
    return logarithmAbove(own * (TWO_64 - other), (TWO_64 - own) * other, this.epsilon);
  }

  report(code, words) {
    const rows = this.others.fill(this.layout.width, words);
    const value = words.next() < this.own ? 1n : 0n;
    const [word, bit] = [Number(code / 64n), code % 64n];
    rows[word] = (rows[word] & ~(1n << bit)) | (value << bit);
    rows[rows.length - 1] &= lastWord(this.size);
    return rows;
  }
}

/** The threshold of least variance: the same search in floating point as in the core. */
function histogramThreshold(epsilon) {
  const half = 0.5 * epsilon;
  const variance = (threshold) => {
    const q = 0.5 * exp(-half * threshold);
    const gap = -0.5 * (expm1(half * (threshold - 1)) + expm1(-half * threshold));
    return (q * (1 - q)) / (gap * gap);
  };
  const ratio = 0.5 * (2.23606797749979 - 1);
  let [low, high] = [0.5, 1];
  for (let step = 0; step < 60; step++) {
    const [left, right] = [high - ratio * (high - low), low + ratio * (high - low)];
    if (variance(left) <= variance(right)) high = right;
    else low = left;
  }
  return 0.5 * (low + high);
}

/** Subset selection: a set of codes, with the own one in it with `own` words of 2^64. */
class SubsetSelection {
  constructor(epsilon, size, chosen) {
    checkRows(size);
    if (chosen < 1n || chosen >= size) throw notAQuestion(`a subset of ${chosen} of ${size} answers`);
    this.epsilon = epsilon;
    this.size = size;
    this.chosen = chosen;
    this.own = new Exponential(epsilon).floorOdds(chosen, size - chosen);
    if (this.own * size - (chosen << 64n) < (size - 1n) << 32n) throw unrealizable(epsilon, size);
    this.layout = Layout.row(8, rowWords(size));
  }

  get thresholds() {
    return { own: this.own };
  }

  get realizedEpsilon() {
    const above = this.own * (this.size - this.chosen);
    return logarithmAbove(above, (TWO_64 - this.own) * this.chosen, this.epsilon);
  }

  report(code, words) {
    const own = words.next() < this.own;
    const others = Number(this.size) - 1;
    const first = others - Number(this.chosen);
    const members = new Uint8Array(others + 1);
    members[uniformHalf(first + 1, words)] = own ? 0 : 1;
    for (let last = first + 1; last < others; last++) {
      const number = uniformHalf(last + 1, words);
      members[members[number] === 1 ? last : number] = 1;
    }
    // The number of the own code stands for the last code.
    const place = Number(code);
    if (place !== others) members[others] = members[place];
    members[place] = own ? 1 : 0;
    return packed(members, this.layout.width);
  }
}

/** The bits of a row, 64 to a word. */
function packed(members, width) {
  const rows = new Array(width).fill(0n);
  members.forEach((member, place) => {
    if (member === 1) rows[place >> 6] |= 1n << BigInt(place & 63);
  });
  return rows;
}

/** An integer that is exactly uniform below a bound of at most 2^20, from half a word. */
function uniformHalf(bound, words) {
  // Products are below 2^52: floating point holds them exactly.
  let product = lowHalf(words.next()) * bound;
  const floor = (2 ** 32 - bound) % bound;
  while (product % 2 ** 32 < floor) product = Number((words.next() >> 32n) & LOW_32) * bound;
  return Math.floor(product / 2 ** 32);
}

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
function memoizedOf(json) {
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

const UNIT = 1n << 63n;
const TWO_TO_64 = 18_446_744_073_709_551_616;

/** A randomizer of numbers as a question: what it is asked within, and how it draws. */
function numbersAsked(asked) {
  asked.rest.finish();
  const members = new Members(asked.domain);
  const bounds = members.takeList("bounds", READ.number);
  const wave = asked.name === "square_wave";
  const count = members.take(wave ? "bins" : "dimensions", READ.integer);
  members.finish();
  const [low, high] = bounds;
  if (bounds.length !== 2 || !(high - low >= 1e-100 && high - low <= 1e100)) {
    throw notAQuestion(`the bounds are ${low} and ${high}`);
  }
  checkEpsilon(asked.epsilon);
  if (wave) {
    if (count < 2n || count > 1024n) throw notAQuestion(`${count} bins, from 2 to 1024 can be`);
    return { domain: new Numbers(low, high, 1), mechanism: new SquareWave(asked.epsilon, low, high, Number(count)) };
  }
  if (count < 1n || count > 1n << 16n) throw notAQuestion(`${count} dimensions, from 1 to 65536 can be`);
  const kinds = { duchi: Duchi, piecewise: Piecewise, hybrid: Hybrid };
  const mechanism = new kinds[asked.name](asked.epsilon, { low, high }, Number(count));
  return { domain: new Numbers(low, high, Number(count)), mechanism };
}

/** Where a value stands between its bounds, from 0 to 2^63. */
function position({ low, high }, value) {
  const share = (value - low) / (high - low);
  const found = BigInt(Math.trunc(share * 9_223_372_036_854_775_808));
  return found < UNIT ? found : UNIT;
}

function tooSmall(epsilon) {
  return notAQuestion(`epsilon ${epsilon} is too small: reports would say next to nothing`);
}

/** The layout of reports of cells, with the places of some coordinates before them. */
function cellsLayout(cells, sampled, dimensions) {
  const places = sampled < dimensions ? sampled : 0;
  const most = places > 0 && BigInt(dimensions) > cells ? BigInt(dimensions) : cells;
  return dimensions > 1 ? Layout.row(narrowest(most), places + sampled) : Layout.one(narrowest(most));
}

/** Duchi's mechanism: one of two cells for each number. */
class Duchi {
  constructor(epsilon, bounds, dimensions) {
    Object.assign(this, { epsilon, bounds, dimensions });
    const exponential = new Exponential(epsilon);
    this.few = smallest(UNIT, (few) => exponential.atLeast(TWO_64 - few, few));
    if (this.few === null || (UNIT - this.few) * 2n < 1n << 32n) throw tooSmall(epsilon);
    this.layout = cellsLayout(2n, dimensions, dimensions);
  }

  get thresholds() {
    return { many: TWO_64 - this.few, few: this.few };
  }

  get realizedEpsilon() {
    return logarithmAbove(TWO_64 - this.few, this.few, this.epsilon);
  }

  /** Of one number: the upper cell with a probability that is linear in it. */
  one(value, words) {
    const more = (position(this.bounds, value) * (TWO_64 - 2n * this.few)) >> 63n;
    return words.next() < this.few + more ? 1 : 0;
  }

  report(values, words) {
    if (values.length === 1) return [this.one(values[0], words)];
    const cells = this.#agreement(words);
    return cells.map((cell, place) => {
      const corner = words.next() >> 1n < position(this.bounds, values[place]) ? 1 : 0;
      return cell === corner ? 1 : 0;
    });
  }

  /** Which coordinates agree with the corner; a tie counts as disagreement. */
  #agreement(words) {
    for (;;) {
      const cells = [];
      while (cells.length < this.dimensions) {
        const word = words.next();
        for (let bit = 0n; bit < 64n && cells.length < this.dimensions; bit++) cells.push(Number((word >> bit) & 1n));
      }
      const twice = 2 * cells.reduce((sum, cell) => sum + cell, 0);
      const word = words.next();
      if (twice !== this.dimensions) {
        const majority = word >= this.few;
        return twice > this.dimensions === majority ? cells : cells.map((cell) => 1 - cell);
      }
      if (word < 2n * this.few) return cells;
    }
  }
}

const GRID = 65_536;
const WINDOW = 32;
const LARGEST_GRID = 4_294_967_296;

/** The piecewise mechanism on a grid: a cell near the value, or with `anywhere` words any cell. */
class Piecewise {
  constructor(epsilon, bounds, dimensions) {
    Object.assign(this, { epsilon, bounds, dimensions });
    this.sampled = Math.min(Math.max(Math.trunc(epsilon / 2.5), 1), dimensions);
    this.share = epsilon / this.sampled;
    // The shares must not add up to more, not by one rounding.
    while (exceeds(this.share, this.sampled, epsilon)) this.share = nextDown(this.share);
    const inverse = exp(this.share / 2) + 1;
    let window = Math.floor(GRID / inverse);
    if (window < WINDOW) window = Math.min(Math.max(Math.floor(LARGEST_GRID / inverse), 1), WINDOW);
    this.cells = BigInt(Math.min(round(window * inverse), LARGEST_GRID));
    this.window = BigInt(window);
    const exponential = new Exponential(this.share);
    this.anywhere = smallest(TWO_64 - 1n, (anywhere) => {
      const { inside, outside } = this.#ratio(anywhere);
      return exponential.atLeast(inside, outside);
    });
    if (this.anywhere === null || TWO_64 - this.anywhere < 1n << 32n) throw tooSmall(epsilon);
    this.layout = cellsLayout(this.cells, this.sampled, dimensions);
  }

  #ratio(anywhere) {
    const outside = anywhere * this.window;
    return { inside: (TWO_64 - anywhere) * this.cells + outside, outside };
  }

  get thresholds() {
    return { ...this.#ratio(this.anywhere), anywhere: this.anywhere, reported: BigInt(this.sampled) };
  }

  get realizedShare() {
    const { inside, outside } = this.#ratio(this.anywhere);
    return logarithmAbove(inside, outside, this.share);
  }

  get realizedEpsilon() {
    return Math.min(this.realizedShare * this.sampled, this.epsilon);
  }

  cell(value, words) {
    const place = position(this.bounds, value) * (this.cells - this.window);
    const rest = place & (UNIT - 1n);
    const start = (place >> 63n) + (words.next() >> 1n < rest ? 1n : 0n);
    const anywhere = words.next() < this.anywhere;
    return anywhere ? uniformBelow(this.cells, words) : start + uniformBelow(this.window, words);
  }

  /** Which coordinates are reported, ascending. */
  choose(words) {
    const chosen = [];
    for (let last = this.dimensions - this.sampled; last < this.dimensions; last++) {
      const drawn = Number(uniformBelow(BigInt(last + 1), words));
      chosen.push(chosen.includes(drawn) ? last : drawn);
    }
    return chosen.sort((one, other) => one - other);
  }

  /** The places that are reported, if not all are, and the cells that another function draws. */
  reported(values, words, cell) {
    if (this.sampled === this.dimensions) return values.map((value) => cell(value));
    const places = this.choose(words);
    return [...places, ...places.map((place) => cell(values[place]))];
  }

  report(values, words) {
    return this.reported(values, words, (value) => this.cell(value, words));
  }
}

/** Whether a product is above a number, exactly. */
function exceeds(share, count, whole) {
  const [[one, power], [other, exponent]] = [decompose(share), decompose(whole)];
  const least = power < exponent ? power : exponent;
  return (one * BigInt(count)) << (power - least) > other << (exponent - least);
}

/** Up to this epsilon Duchi's mechanism alone has the smaller worst-case variance. */
const ALONE = 0.609352493;

/** The hybrid mechanism: the piecewise one most of the time, Duchi's for the rest. */
class Hybrid {
  constructor(epsilon, bounds, dimensions) {
    this.piecewise = new Piecewise(epsilon, bounds, dimensions);
    const { share } = this.piecewise;
    this.alone = share <= ALONE;
    if (this.alone) {
      this.duchi = new Duchi(share, bounds, 1);
      this.ends = [0n, 1n];
    } else {
      this.duchi = new Duchi(this.piecewise.realizedShare * (1 - 1e-14), bounds, 1);
      const last = Number(this.piecewise.cells - 1n);
      const unit = 2 * 9_223_372_036_854_775_808;
      // The scales at which the mechanisms are unbiased, as the core computes them.
      const gap = Number(TWO_64 - 2n * this.duchi.few) / unit;
      const duchiScale = (Number(this.duchi.few) / unit + gap * 0.5) / (gap / 2);
      const near = Number(TWO_64 - this.piecewise.anywhere) / 2 / 9_223_372_036_854_775_808;
      const piecewiseScale = 1 / (near * Number(this.piecewise.cells - this.piecewise.window));
      const offset = duchiScale / piecewiseScale;
      const upper = BigInt(Math.min(round((last + offset) / 2), last));
      this.ends = [this.piecewise.cells - 1n - upper, upper];
    }
    const cells = this.alone ? 2n : this.piecewise.cells;
    this.layout = cellsLayout(cells, this.piecewise.sampled, dimensions);
  }

  get thresholds() {
    return this.alone
      ? { ...this.duchi.thresholds, reported: BigInt(this.piecewise.sampled) }
      : { ...this.piecewise.thresholds, duchi: this.duchi.thresholds };
  }

  get realizedEpsilon() {
    return this.alone ? this.duchi.realizedEpsilon : this.piecewise.realizedEpsilon;
  }

  report(values, words) {
    return this.piecewise.reported(values, words, (value) => {
      const bit = this.alone || words.next() < this.piecewise.anywhere;
      return bit ? this.ends[this.duchi.one(value, words)] : this.piecewise.cell(value, words);
    });
  }
}

/** The square wave: a cell near the bin of the value with `many` words each, and others with `few`. */
class SquareWave {
  constructor(epsilon, low, high, bins) {
    Object.assign(this, { epsilon, low, high, bins });
    const window = waveWindow(epsilon, bins);
    const weight = window * exp(epsilon) + (bins - 1);
    // A hair below the quotient: the sum of all words is checked.
    this.few = BigInt(Math.trunc((TWO_TO_64 / weight) * (1 - 1e-12)));
    this.many = new Exponential(epsilon).floorTimes(this.few);
    const all = BigInt(window) * this.many + BigInt(bins - 1) * this.few;
    const extra = this.many - this.few;
    if (all > TWO_64 || extra <= this.few >> 32n) throw unrealizable(epsilon, bins);
    this.extra = extra;
    this.near = BigInt(window) * extra;
    this.last = all - 1n;
    this.layout = Layout.one(2);
  }

  get thresholds() {
    return { many: this.many, few: this.few };
  }

  get realizedEpsilon() {
    return logarithmAbove(this.many, this.few, this.epsilon);
  }

  report([value], words) {
    const place = Math.trunc(((value - this.low) * this.bins) / (this.high - this.low));
    const bin = BigInt(Math.min(place, this.bins - 1));
    let word = words.next();
    while (word > this.last) word = words.next();
    return [word < this.near ? bin + word / this.extra : (word - this.near) / this.few];
  }
}

/** How many cells are near a bin. */
function waveWindow(epsilon, bins) {
  let half;
  if (epsilon < 1e-2) {
    half = 0.5 - epsilon / 3;
  } else {
    const power = exp(epsilon);
    half = (epsilon * power - expm1(epsilon)) / (2 * power * (expm1(epsilon) - epsilon));
  }
  return Math.min(Math.max(round(2 * half * bins), 1), bins);
}

const MOST_BUCKETS = 1n << 20n;
const MOST_FUNCTIONS = 1n << 20n;
const MOST_POOL_CELLS = 1n << 28n;

/** The bits of a modulus that functions of a pool have. */
const POOL_BITS = 31;

/** The number of streams of hash functions: a part of every plan with a pool. */
const HASH_POOL = 4;

/** Residues below a prime, in intervals of lengths that differ by at most one. */
class Buckets {
  constructor(modulus, count) {
    this.modulus = modulus;
    this.count = count;
    this.scale = (count << 64n) / modulus + 1n;
  }

  of(residue) {
    return (residue * this.scale) >> 64n;
  }
}

/** Local hashing: a line of the person's own choice, and a randomized bucket. */
class LocalHashing {
  constructor(epsilon, size, buckets) {
    checkBuckets(buckets);
    this.bucketBits = BigInt(bitLength(buckets - 1n));
    const bits = Math.min(Math.floor((64 - Number(this.bucketBits)) / 2), POOL_BITS);
    this.bits = BigInt(bits);
    this.buckets = new Buckets(primeBelow(bits), buckets);
    if (size > this.buckets.modulus) throw notAQuestion(`${size} answers are too many for ${buckets} buckets`);
    this.encoding = new DirectEncoding(epsilon, buckets);
    this.layout = Layout.one(8);
  }

  get thresholds() {
    return this.encoding.thresholds;
  }

  get realizedEpsilon() {
    return this.encoding.realizedEpsilon;
  }

  report(code, words) {
    const { modulus } = this.buckets;
    const mask = (1n << this.bits) - 1n;
    let a, b;
    do {
      const word = words.next();
      [a, b] = [word & mask, (word >> this.bits) & mask];
    } while (a >= modulus || b >= modulus);
    const bucket = this.encoding.code(this.buckets.of((a * code + b) % modulus), words);
    return [(a << (this.bits + this.bucketBits)) | (b << this.bucketBits) | bucket];
  }
}

function checkBuckets(buckets) {
  if (buckets < 2n || buckets > MOST_BUCKETS) throw notAQuestion(`${buckets} buckets, from 2 to ${MOST_BUCKETS} can be`);
}

/** Stands for the public functions, which are the same in every collection. */
const FUNCTIONS_SEED = 0n;

/** A fixed, public set of parabolas. */
class HashPool {
  #coefficients = null;

  constructor(functions, buckets, size) {
    if (functions < 1n || functions > MOST_FUNCTIONS || buckets * functions > MOST_POOL_CELLS) {
      throw notAQuestion(`${functions} hash functions with ${buckets} buckets each`);
    }
    const modulus = primeBelow(POOL_BITS);
    if (size > modulus) throw notAQuestion(`${size} answers are too many to be hashed`);
    this.functions = functions;
    this.buckets = new Buckets(modulus, buckets);
  }

  /** Three residues for each function, drawn when the first is needed. */
  get coefficients() {
    if (this.#coefficients === null) {
      const stream = new AesStream(seededKey(FUNCTIONS_SEED), HASH_POOL);
      const modulus = Number(this.buckets.modulus);
      this.#coefficients = new Uint32Array(3 * Number(this.functions));
      for (let place = 0; place < this.#coefficients.length; place++) {
        let residue;
        do residue = stream.upper() >>> (32 - POOL_BITS);
        while (residue >= modulus);
        this.#coefficients[place] = residue;
      }
    }
    return this.#coefficients;
  }

  bucket(number, code) {
    const place = 3 * Number(number);
    const [a, b, c] = Array.from(this.coefficients.subarray(place, place + 3), BigInt);
    return this.buckets.of((((a * code + b) % this.buckets.modulus) * code + c) % this.buckets.modulus);
  }
}

/** Local hashing with a pool of functions. */
class PooledLocalHashing {
  constructor(epsilon, size, buckets, functions) {
    checkBuckets(buckets);
    this.pool = new HashPool(functions, buckets, size);
    this.encoding = new DirectEncoding(epsilon, buckets);
    this.layout = Layout.one(4);
  }

  get thresholds() {
    return this.encoding.thresholds;
  }

  get realizedEpsilon() {
    return this.encoding.realizedEpsilon;
  }

  report(code, words) {
    const number = uniformBelow(this.pool.functions, words);
    const bucket = this.encoding.code(this.pool.bucket(number, code), words);
    return [number * this.pool.buckets.count + bucket];
  }
}

function checkWidth(width) {
  if (width < 2n || width > 1n << 16n) throw notAQuestion(`a sketch of width ${width}, from 2 to 2^16 can be`);
}

/** Count mean sketch: rows of bits that are flipped with `flips` words of 2^64. */
class CountMeanSketch {
  constructor(epsilon, size, hashes, width) {
    checkWidth(width);
    this.pool = new HashPool(hashes, width, size);
    this.half = epsilon * 0.5;
    const bounds = new Exponential(this.half);
    let threshold = bounds.floorQuotient(TWO_64, 1n);
    while (!bounds.atLeast(TWO_64 - threshold, threshold)) threshold += 1n;
    if (TWO_64 - 2n * threshold <= 1n << 32n) throw unrealizable(epsilon, size);
    this.flips = new BiasedBits(threshold);
    this.rows = Number(divideUp(width, 64n));
    this.layout = Layout.row(8, 1 + this.rows);
  }

  get thresholds() {
    return { flips: this.flips.threshold };
  }

  get realizedEpsilon() {
    const { flips } = this.thresholds;
    return 2 * logarithmAbove(TWO_64 - flips, flips, this.half);
  }

  report(code, words) {
    const rows = this.flips.fill(this.rows, words);
    const number = uniformBelow(this.pool.functions, words);
    const own = this.pool.bucket(number, code);
    rows[Number(own / 64n)] ^= 1n << own % 64n;
    rows[rows.length - 1] &= (TWO_64 - 1n) >> (BigInt(this.rows) * 64n - this.pool.buckets.count);
    return [number, ...rows];
  }
}

/** One randomized bit of the Hadamard transform of a row of a sketch. */
class HadamardCountMeanSketch {
  constructor(epsilon, size, hashes, width) {
    checkWidth(width);
    if ((width & (width - 1n)) !== 0n) throw notAQuestion(`the width ${width} is no power of two`);
    this.pool = new HashPool(hashes, width, size);
    this.encoding = new DirectEncoding(epsilon, 2n);
    this.layout = Layout.one(4);
  }

  get thresholds() {
    return this.encoding.thresholds;
  }

  get realizedEpsilon() {
    return this.encoding.realizedEpsilon;
  }

  report(code, words) {
    const width = this.pool.buckets.count;
    const cell = uniformBelow(this.pool.functions * width, words);
    const common = (cell % width) & this.pool.bucket(cell / width, code);
    return [2n * cell + this.encoding.code(parity(common), words)];
  }
}

/** Whether an odd number of bits is set, as 0 or 1. */
function parity(number) {
  let found = 0n;
  for (let left = number; left !== 0n; left &= left - 1n) found ^= 1n;
  return found;
}

/** Hadamard response: a uniform number, moved to the half of the own code with `inside` of `2^bits` words. */
class HadamardResponse {
  constructor(epsilon, size) {
    this.epsilon = epsilon;
    this.bits = BigInt(bitLength(size));
    const words = 1n << (64n - this.bits);
    const bounds = new Exponential(epsilon);
    this.inside = words / 2n;
    for (let step = words / 2n; step > 0n; step /= 2n) {
      const larger = this.inside + step;
      if (larger < words && larger <= bounds.floorTimes(words - larger)) this.inside = larger;
    }
    this.outside = words - this.inside;
    if (this.inside - words / 2n <= this.outside >> 33n) throw unrealizable(epsilon, size);
    this.layout = Layout.one(narrowest(1n << this.bits));
  }

  get thresholds() {
    return { inside: this.inside, outside: this.outside };
  }

  get realizedEpsilon() {
    return logarithmAbove(this.inside, this.outside, this.epsilon);
  }

  report(code, words) {
    const word = words.next();
    const [number, own] = [word & ((1n << this.bits) - 1n), code + 1n];
    const outside = word >> this.bits >= this.inside ? 1n : 0n;
    const flip = parity(own & number) ^ outside;
    return [number ^ (flip === 1n ? own & -own : 0n)];
  }
}

/** The most points of a space. */
const MOST_POINTS = 1n << 31n;

/**
 * Projective geometry response: a point of the projective space over a prime field, of the own code's
 * hyperplane with `own` words each, and each other with `other`. A code is a hyperplane whose lowest
 * coordinate that is not zero, the pivot, is one; a point is a number, as in the core's `geometry.rs`.
 */
class ProjectiveGeometryResponse {
  constructor(epsilon, size, field) {
    if (field >= MOST_POINTS || !isPrime(Number(field))) throw notAQuestion(`the field size ${field} is no prime number`);
    this.epsilon = epsilon;
    this.field = field;
    this.powers = [1n];
    this.heads = [0n];
    let [power, head] = [1n, 0n];
    while (this.heads.length < 3 || head < size) {
      head += power;
      if (head >= MOST_POINTS) throw notAQuestion(`the space over a field of ${field} elements is too large`);
      power *= field;
      this.powers.push(power);
      this.heads.push(head);
    }
    this.dimensions = this.heads.length - 1;
    this.points = this.heads[this.dimensions];
    this.hyperplane = this.heads[this.dimensions - 1];
    const bounds = new Exponential(epsilon);
    const total = (own, other) => this.hyperplane * own + (this.points - this.hyperplane) * other;
    this.other = 0n;
    for (let bit = 63n; bit >= 0n; bit--) {
      const larger = this.other | (1n << bit);
      if (total(bounds.floorTimes(larger), larger) <= TWO_64) this.other = larger;
    }
    this.own = bounds.floorTimes(this.other);
    if (this.other === 0n) throw notAQuestion(`the field size ${field} is too far from e^epsilon`);
    if (this.own - this.other <= this.other >> 32n) throw unrealizable(epsilon, size);
    this.last = total(this.own, this.other) - 1n;
    this.layout = Layout.one(narrowest(this.points));
  }

  get thresholds() {
    return { own: this.own, other: this.other, points: this.points, hyperplane: this.hyperplane };
  }

  get realizedEpsilon() {
    return logarithmAbove(this.own, this.other, this.epsilon);
  }

  report(code, words) {
    let word = words.next();
    while (word > this.last) word = words.next();
    return [this.#point(code, word)];
  }

  #point(code, word) {
    const { field, powers, heads } = this;
    const places = this.dimensions - 1;
    // How many coordinates of the hyperplane stand above its pivot, and these as digits.
    let above = 0;
    while (above < places && code >= heads[above + 1]) above += 1;
    const pivot = places - above;
    const [power, below] = [powers[pivot], heads[pivot]];
    let vector = (code - heads[above]) * power;

    // The number of the point's other coordinates, and the product with the hyperplane.
    const inside = this.hyperplane * this.own;
    let [chosen, product] = [0n, 0n];
    if (word < inside) {
      chosen = word / this.own;
    } else {
      const outside = (word - inside) / this.other;
      if (outside < power) return below + outside;
      const beyond = outside - power;
      chosen = below + beyond / (field - 1n);
      product = (beyond % (field - 1n)) + 1n;
    }
    let [lead, head] = [1n, 0n];
    for (let place = 1; place < places; place++) {
      if (chosen >= heads[place]) [lead, head] = [powers[place], heads[place]];
    }
    const form = chosen - head + lead;

    // The product of the coordinates above the pivot, and what is above it.
    let [left, sum, higher] = [form, 0n, 0n];
    for (let place = 0; place < places; place++) {
      if (place === pivot) higher = left;
      sum += (vector % field) * (left % field);
      vector /= field;
      left /= field;
    }
    const digit = (product + field - (sum % field)) % field;
    const moved = higher * power * (field - 1n);
    if (higher > 0n) [lead, head] = [lead * field, head * field + 1n];
    return form + moved + digit * power + head - lead;
  }
}

/** Fractional bits of the numbers that tables are computed with. */
const FRACTION = 100n;

/** So many terms of the series that those left out are below the last one. */
const TERMS = 128n;

/** Exact Poisson counts of a mean, by inversion of a table that is cut to 64 bits. */
class Poisson {
  constructor(mean, length) {
    this.mean = mean;
    let [low, high] = [1n << FRACTION, 1n << FRACTION];
    let [sumLow, sumHigh] = [0n, 0n];
    const sums = [];
    for (let index = 0n; index <= TERMS; ) {
      sumLow += low;
      sumHigh += high;
      if (sums.length < length) sums.push(sumLow);
      index += 1n;
      low = (low * mean) / index;
      high = divideUp(high * mean, index);
    }
    this.thresholds = sums.map((sum) => (sum << 64n) / (sumHigh + high));
  }

  draw(words) {
    const word = words.next();
    let index = 0;
    while (index < this.thresholds.length && word > this.thresholds[index]) index += 1;
    if (index < this.thresholds.length && word < this.thresholds[index]) return index;
    return this.#settle(BigInt(index), word, words);
  }

  /** The count when the first word falls on an entry: reads words until the comparison is certain. */
  #settle(first, word, words) {
    let [uniform, read, count] = [word, 1n, first];
    for (;;) {
      const bits = 64n * read + 128n;
      const [low, high] = this.#cumulative(count, bits);
      const shift = bits - 64n * read;
      if ((uniform + 1n) << shift <= low) return Number(count);
      if (uniform << shift >= high) {
        count += 1n;
      } else {
        uniform = (uniform << 64n) + words.next();
        read += 1n;
      }
    }
  }

  /** `2^bits P[N <= count]`, enclosed. */
  #cumulative(count, bits) {
    let [low, high] = [1n << bits, 1n << bits];
    let [totalLow, totalHigh] = [0n, 0n];
    let sums = [0n, 0n];
    for (let index = 0n; ; ) {
      totalLow += low;
      totalHigh += high;
      if (index === count) sums = [totalLow, totalHigh];
      index += 1n;
      low = (low * this.mean) / index;
      high = (high * this.mean + (index - 1n)) / index;
      // From here on each term is at most half of the one before: they add up to less than two.
      if (high === 1n && index > count && index >= 2n * this.mean) {
        return [(sums[0] << bits) / (totalHigh + 2n), (sums[1] << bits) / totalLow + 1n];
      }
    }
  }
}

/** The lengths are those at which what is beyond the table is less than 2^-64. */
const ONE = new Poisson(1n, 21);

/** Exact discrete Laplace noise: `P[x]` proportional to `e^(-rate |x|)`, the rate in units of 2^-64. */
class DiscreteLaplace {
  constructor(scale) {
    const [mantissa, exponent] = decompose(scale);
    this.rate = (1n << (64n - exponent)) / mantissa;
  }

  draw(words) {
    for (;;) {
      const magnitude = geometric(words) / this.rate;
      if (words.next() >> 63n === 0n) return magnitude;
      if (magnitude > 0n) return -magnitude;
    }
  }
}

/** A geometric number with `P[X >= x] = e^(-x / 2^64)`. */
function geometric(words) {
  let low;
  do low = words.next();
  while (!never(low, words));
  let high = 0n;
  while (ONE.draw(words) === 0) high += 1n;
  return (high << 64n) + low;
}

/** A trial that succeeds with probability `e^-(digits / 2^64)`. */
function never(digits, words) {
  for (let left = ONE.draw(words); left > 0; left--) {
    const word = words.next();
    // A word that is equal gets another one, and is above: nothing follows the digits.
    if (word === digits) words.next();
    if (word < digits) return false;
  }
  return true;
}

const LARGEST_SCORE = 2n ** 31n - 1n;

/** Summation with histogram encoding: one for the own code and zero for the others, each with noise. */
class SummationHistogram {
  constructor(epsilon, size) {
    checkRows(size);
    const scale = nextUp(2 / epsilon);
    if (!(scale >= 0.02 && scale <= 1e6)) throw unrealizable(epsilon, size);
    this.epsilon = epsilon;
    this.noise = new DiscreteLaplace(scale);
    this.layout = Layout.row(4, Number(size), true);
  }

  get thresholds() {
    return { rate: this.noise.rate };
  }

  get realizedEpsilon() {
    const twice = Number(this.noise.rate) / 2 ** 63;
    return Math.min(this.noise.rate < 1n << 53n ? twice : nextUp(twice), this.epsilon);
  }

  report(code, words) {
    return Array.from({ length: this.layout.width }, (_, place) => {
      const sum = this.noise.draw(words) + (BigInt(place) === code ? 1n : 0n);
      return sum > LARGEST_SCORE ? LARGEST_SCORE : sum < -LARGEST_SCORE - 1n ? -LARGEST_SCORE - 1n : sum;
    });
  }
}

/** How the randomizer of each name is made; it takes the members that it needs. */
const MADE = {
  direct_encoding: (epsilon, size) => new DirectEncoding(epsilon, size),
  symmetric_unary_encoding: (epsilon, size) => UnaryEncoding.symmetric(epsilon, size),
  optimized_unary_encoding: (epsilon, size) => UnaryEncoding.optimized(epsilon, size),
  threshold_histogram_encoding: (epsilon, size) => UnaryEncoding.thresholdHistogram(epsilon, size),
  summation_histogram_encoding: (epsilon, size) => new SummationHistogram(epsilon, size),
  binary_local_hashing: (epsilon, size, rest) => localHashing(epsilon, size, 2n, rest),
  optimized_local_hashing: (epsilon, size, rest) => localHashing(epsilon, size, rest.take("buckets", READ.integer), rest),
  subset_selection: (epsilon, size, rest) => new SubsetSelection(epsilon, size, rest.take("subset_size", READ.integer)),
  hadamard_response: (epsilon, size) => new HadamardResponse(epsilon, size),
  projective_geometry_response: (epsilon, size, rest) =>
    new ProjectiveGeometryResponse(epsilon, size, rest.take("field_size", READ.integer)),
  count_mean_sketch: (epsilon, size, rest) => new CountMeanSketch(epsilon, size, ...sketch(rest)),
  hadamard_count_mean_sketch: (epsilon, size, rest) => new HadamardCountMeanSketch(epsilon, size, ...sketch(rest)),
};

function localHashing(epsilon, size, buckets, rest) {
  const functions = rest.find("hashes", READ.integer);
  if (functions === null) return new LocalHashing(epsilon, size, buckets);
  return new PooledLocalHashing(epsilon, size, buckets, functions);
}

function sketch(rest) {
  return ["hashes", "width"].map((name) => rest.take(name, READ.integer));
}

/** The randomizer of so many codes that a description names. */
function oracleOf(asked, size) {
  if (!Object.hasOwn(MADE, asked.name)) {
    throw new TurnoutError("unknown-kind", `this client does not know the kind of question ${asked.name}: load a newer one`);
  }
  checkEpsilon(asked.epsilon);
  if (size < 2n || size >= 1n << 32n) throw notAQuestion(`${size} answers, from 2 to 2^32 - 1 can be`);
  const oracle = MADE[asked.name](asked.epsilon, size, asked.rest);
  asked.rest.finish();
  oracle.epsilon = asked.epsilon;
  return oracle;
}

/** Whether a domain is that of so many plain codes. */
function areCodes(domain, size) {
  const labels = new Labels(domain);
  return labels.values === null && labels.size === size;
}

/** A randomizer of plain codes, of this epsilon and number of codes. */
function oracleOfCodes(members, epsilon, size) {
  const asked = new Description(members);
  if (!areCodes(asked.domain, size) || asked.epsilon !== epsilon) {
    throw notAQuestion("an oracle is of another epsilon or other codes than what it is for");
  }
  return oracleOf(asked, size);
}

/*
 * A question has a `domain`, whose `find` makes of an answer codes or numbers, a `layout`, the `thresholds`
 * of its randomizers, and `report`, which draws the integers of a report, or null for who is silent.
 */

/** What the plan asks. */
function questionOf(json) {
  const asked = new Description(new Members(json));
  switch (asked.name) {
    case "prefixes":
      return search(asked);
    case "second_round":
      return new SecondRound(asked);
    case "joint_table":
      return jointTable(asked);
    case "padded":
      return new Padded(asked);
    case "hierarchical":
      return hierarchical(asked);
    case "pair_tables":
      return pairTables(asked);
    case "sampled_attribute":
      return sampledAttribute(asked);
    case "split_budget":
      return splitBudget(asked);
    case "duchi":
    case "hybrid":
    case "piecewise":
    case "square_wave": {
      const { domain, mechanism } = numbersAsked(asked);
      return new Asked(asked, domain, mechanism);
    }
    case "memoized":
      return null;
    default: {
      const labels = new Labels(asked.domain);
      return new Asked(asked, labels, oracleOf(asked, labels.size));
    }
  }
}

/** One randomizer, of the answer as it is or of what is made of it. */
class Asked {
  constructor(asked, domain, oracle, made = (found) => found) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, domain, oracle, made });
    this.layout = oracle.layout;
  }

  get thresholds() {
    return this.oracle.thresholds;
  }

  report(found, noise) {
    return this.oracle.report(this.made(found), noise.stream("report"));
  }
}

function jointTable(asked) {
  const columns = new Columns(asked.domain);
  const { sizes } = columns;
  const cells = sizes.reduce((all, size) => all * size, 1n);
  if (cells > MOST_CELLS) throw notAQuestion(`a joint table has at most ${MOST_CELLS} cells`);
  const oracle = oracleOfCodes(asked.rest.take("oracle", READ.object), asked.epsilon, cells);
  asked.rest.finish();
  return new Asked(asked, columns, oracle, (codes) => combined(codes, sizes));
}

function search(asked) {
  const prefixes = new Prefixes(asked.domain);
  const [number, groups] = ["number", "groups"].map((name) => asked.rest.take(name, READ.integer));
  const described = asked.rest.take("oracle", READ.object);
  asked.rest.finish();
  if (number >= groups) throw notAQuestion(`the number of the round is ${number}, of ${groups}`);
  const found = new Asked(asked, prefixes, oracleOfCodes(described, asked.epsilon, prefixes.size));
  found.round = Number(number);
  return found;
}

/** By how much an epsilon, which is a sum of floating-point logarithms here, may be rounded up. */
const ROUNDING = 1e-12;

/** A second round: who takes part depends on the answer. */
class SecondRound {
  constructor(asked) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, round: 1 });
    this.domain = new Labels(asked.domain);
    this.rates = asked.rest.takeList("rates", READ.number);
    const inner = new Description(asked.rest.take("oracle", READ.object));
    asked.rest.finish();
    if (inner.name === "summation_histogram_encoding") throw notAQuestion("the oracle of a second round must count reports");
    const { size } = new Labels(inner.domain);
    if (BigInt(this.rates.length) !== this.domain.size || size !== this.domain.size) {
      throw notAQuestion("the rates or the oracle of the second round are of other codes");
    }
    this.oracle = oracleOf(inner, size);
    this.layout = this.oracle.layout;
    this.#check();
  }

  /** Refuses to say more than the plan states. */
  #check() {
    if (!this.rates.every((rate) => rate >= 2 ** -30 && rate <= 1)) throw notAQuestion("a rate is not from 2^-30 to 1");
    const [least, most] = [Math.min(...this.rates), Math.max(...this.rates)];
    if (most >= 1 && least < 1) throw notAQuestion("who is silent in the second round cannot hold some answer");
    const silence = most > least ? log1p(-least) - log1p(-most) : 0;
    const spent = Math.max(this.oracle.realizedEpsilon + log(most / least), silence);
    if (spent > this.epsilon + ROUNDING) {
      throw notAQuestion(`the second round says ${spent} nats, and states ${this.epsilon}`);
    }
  }

  get thresholds() {
    return { ...this.oracle.thresholds, rates: this.rates.map((rate) => scaledFloor(rate, 64)) };
  }

  report(code, noise) {
    if (!takesPart(this.rates[Number(code)], noise.part(2))) return null;
    return this.oracle.report(code, noise.part(3).stream("report"));
  }
}

/** The denominator of the probability of the own answer, as a power of two. */
const OWN_BITS = 62;

/** An answer that is only sometimes the own one, and otherwise a uniform one. */
class Padded {
  constructor(asked) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon });
    this.domain = new Labels(asked.domain);
    const own = asked.rest.take("own_probability", READ.number);
    const inner = new Description(asked.rest.take("oracle", READ.object));
    asked.rest.finish();
    const same = inner.epsilon === asked.epsilon && inner.domain.raw === asked.domain.raw;
    if (!same || !(own > 0 && own <= 1)) {
      throw notAQuestion("own_probability is no probability, or the oracle is of another epsilon or domain");
    }
    const real = scaledFloor(own, OWN_BITS);
    this.real = real > 1n ? real : 1n;
    this.oracle = oracleOf(inner, this.domain.size);
    this.layout = this.oracle.layout;
  }

  get thresholds() {
    return { ...this.oracle.thresholds, real: this.real };
  }

  report(code, noise) {
    const real = choose([(1n << BigInt(OWN_BITS)) - this.real, this.real], noise.part(0).stream("choice")) === 1;
    return this.oracle.report(padded(code, real, this.domain.size, noise.part(1)), noise.stream("report"));
  }
}

/** The own code where it is real, and a uniform one elsewhere. */
function padded(code, real, size, noise) {
  const fake = uniformBelow(size, noise.stream("choice"));
  return real ? code : fake;
}

/** Questions made of others: a person reports one part that is drawn, whatever the answer, or all. */
class Parts {
  /** `codes` makes of an answer the code of each part; `reported` is "all", "one" or "padded". */
  constructor(asked, { domain, each, codes, reported, weights }) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, domain, each, codes, reported, weights });
    const widths = each.map((part) => part.oracle.layout.integers);
    const bytes = Math.max(...each.map((part) => part.oracle.layout.bytes));
    this.layout =
      reported === "one"
        ? Layout.row(Math.max(bytes, narrowest(each.length)), 1 + Math.max(...widths))
        : Layout.row(bytes, widths.reduce((sum, width) => sum + width, 0));
  }

  get thresholds() {
    return { parts: this.each.map((part) => part.oracle.thresholds) };
  }

  report(found, noise) {
    const codes = this.codes(found);
    const drawn = this.reported === "all" ? null : choose(this.weights, noise.part(0).stream("choice"));
    const row = [];
    this.each.forEach(({ oracle, size }, number) => {
      if (this.reported === "one" && number !== drawn) return;
      let code = codes[number];
      if (this.reported === "padded") code = padded(code, number === drawn, size, noise.part(2, number));
      const report = oracle.report(code, noise.part(1, number).stream("report"));
      if (this.reported === "one") row.push(number);
      // Integers with a sign keep their own width: what is above it is zero.
      row.push(...report.map((word) => BigInt.asUintN(8 * oracle.layout.bytes, BigInt(word))));
    });
    while (row.length < this.layout.integers) row.push(0);
    return row;
  }
}

/** The levels of a tree over ordered answers. */
function hierarchical(asked) {
  const labels = new Labels(asked.domain);
  const fanout = asked.rest.take("fanout", READ.integer);
  const levels = asked.rest.takeList("oracle", READ.object);
  asked.rest.finish();
  if (fanout < 2n) throw notAQuestion(`the fanout is ${fanout}`);
  // How long the runs of each level are: the last has single answers.
  const lengths = [];
  for (let length = 1n; length === 1n || length < labels.size; length *= fanout) lengths.unshift(length);
  if (levels.length !== lengths.length) throw notAQuestion("there is not one oracle for each level");
  const each = levels.map((members, place) => {
    const size = (labels.size + lengths[place] - 1n) / lengths[place];
    const level = new Description(members);
    if (level.epsilon > asked.epsilon) throw notAQuestion("a level has a larger epsilon than the whole");
    if (!areCodes(level.domain, size)) throw notAQuestion("a level is of other runs");
    return { oracle: oracleOf(level, size), size };
  });
  const codes = (code) => lengths.map((length) => code / length);
  return new Parts(asked, { domain: labels, each, codes, reported: "one", weights: each.map(() => 1n) });
}

/** The tables of every two of several questions. */
function pairTables(asked) {
  const columns = new Columns(asked.domain);
  const { pairs, sizes } = columns;
  const tables = asked.rest.takeList("oracle", READ.object);
  asked.rest.finish();
  if (tables.length !== pairs.length) throw notAQuestion("there is not one oracle for each two questions");
  const each = tables.map((members, place) => {
    const [one, other] = pairs[place];
    const size = sizes[one] * sizes[other];
    return { oracle: oracleOfCodes(members, asked.epsilon, size), size };
  });
  const codes = (row) => pairs.map((pair) => combined(pair.map((place) => row[place]), pair.map((place) => sizes[place])));
  return new Parts(asked, { domain: columns, each, codes, reported: "one", weights: each.map(() => 1n) });
}

/** Several questions of which one is drawn; with padding the others get uniform answers. */
function sampledAttribute(asked) {
  const padding = asked.rest.take("padding", READ.any);
  if (padding.kind !== "null" && padding.text !== "fake") throw notAQuestion("the padding is neither null nor fake");
  const { domain, each, weights } = attributes(asked);
  if (each.some((part) => part.oracle.epsilon > asked.epsilon)) {
    throw notAQuestion("a question has a larger epsilon than the whole");
  }
  const reported = padding.kind === "null" ? "one" : "padded";
  return new Parts(asked, { domain, each, codes: (row) => row, reported, weights });
}

/** Several questions that have a part of epsilon each. */
function splitBudget(asked) {
  const { domain, each } = attributes(asked);
  // In units of 2^-1088 doubles are whole numbers.
  const spent = each.reduce((sum, part) => sum + scaledFloor(part.oracle.epsilon, 1088), 0n);
  if (spent > scaledFloor(asked.epsilon, 1088)) {
    throw notAQuestion("the questions have a larger epsilon together than the whole");
  }
  return new Parts(asked, { domain, each, codes: (row) => row, reported: "all", weights: null });
}

/** The largest weight of a part, and the largest sum. */
const MOST_WEIGHT = 1n << 62n;
const MOST_SUM = (1n << 63n) - 1n;

function attributes(asked) {
  const columns = new Columns(asked.domain);
  const oracles = asked.rest.takeList("oracle", READ.object);
  const weights = asked.rest.takeList("weights", READ.integer);
  asked.rest.finish();
  const fits = oracles.length === columns.asked.length && weights.length === oracles.length;
  const sum = weights.reduce((all, weight) => all + weight, 0n);
  if (!fits || sum > MOST_SUM || !weights.every((weight) => weight >= 1n && weight <= MOST_WEIGHT)) {
    throw notAQuestion("there is not an oracle and a weight for each question");
  }
  if (!(asked.epsilon > 0)) throw notAQuestion("epsilon must be a finite number above 0");
  const each = oracles.map((members, place) => {
    const inner = new Description(members);
    const column = columns.asked[place];
    if (inner.domain.raw !== column.domain.raw) throw notAQuestion("an oracle has another domain than its question");
    return { oracle: oracleOf(inner, column.labels.size), size: column.labels.size };
  });
  return { domain: columns, each, weights };
}

/** What is signed comes behind these bytes, so that no other signature of the key can be taken for it. */
const SIGNED = utf8("turnout-plan-file v1\0");

/** Encodings of points of small order, without their sign: one signature would fit many messages. */
const SMALL_ORDER = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]);

function isSmall(point) {
  const bytes = Uint8Array.from(point);
  bytes[31] &= 0x7f;
  return SMALL_ORDER.has(toHex(bytes));
}

/** The 64 digits of a public key that the caller gives: digits or bytes, or null for any. */
function pinned(publicKey) {
  if (publicKey === null) return null;
  const digits = publicKey instanceof Uint8Array ? toHex(publicKey) : String(publicKey).toLowerCase();
  if (publicKey === undefined || fromHex(digits, 32) === null) {
    throw new TurnoutError(
      "argument",
      "publicKey must be the 64 hexadecimal digits of the key that signs the plans of this collection, or null to take a plan of anybody",
    );
  }
  return digits;
}

/** Checks the signature of a plan file, and returns the digits of the key that signed it, or null. */
async function signerOf(signature, fingerprint, wanted) {
  if (signature === null) {
    if (wanted === null) return null;
    throw new TurnoutError("unsigned", `the plan is not signed; expected a signature by ${wanted}`);
  }
  const text = (name) => signature.member(name)?.text ?? null;
  const [digits, key, value] = [text("public_key"), fromHex(text("public_key"), 32), fromHex(text("value"), 64)];
  if (key === null || value === null || signature.members.size !== 3 || text("algorithm") !== "ed25519") {
    throw new TurnoutError("malformed", `not a signature of a plan: ${shown(signature.raw)}`);
  }
  if (wanted !== null && wanted !== digits) {
    throw new TurnoutError("signer", `the plan is signed by ${digits}, expected ${wanted}`);
  }
  const message = new Uint8Array([...SIGNED, ...fingerprint]);
  const fine = !isSmall(key) && !isSmall(value.subarray(0, 32)) && (await verifies(key, value, message));
  if (!fine) throw new TurnoutError("signature", "the signature of the plan is not valid");
  return digits;
}

async function verifies(key, signature, message) {
  const subtle = webCrypto();
  let imported;
  try {
    imported = await subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name !== "NotSupportedError") return false;
    throw new TurnoutError(
      "no-ed25519",
      "this browser cannot check Ed25519 signatures: use Chrome 137, Firefox 129, Safari 17 or later",
    );
  }
  try {
    return await subtle.verify({ name: "Ed25519" }, imported, signature, message);
  } catch {
    return false;
  }
}

const FILE = new DocumentKind("plan file", "turnout-plan-file", 1, ["fingerprint", "plan"], ["signature"]);
const PLAN = new DocumentKind("plan", "turnout-plan", 1, ["oracle", "participation"], ["serial", "expires", "groups"]);

const MOST_SERIAL = BigInt(Number.MAX_SAFE_INTEGER);
const MOST_EXPIRES = 253_402_300_799n;
const NONCE_BYTES = 16;

/** A signed plan: what is asked, who takes part, until when, and how an answer becomes a message. */
export class Plan {
  #question;
  #groups;

  /** Plans are read with `Plan.read`. */
  constructor(json, fingerprint, signer) {
    this.text = json.raw;
    this.fingerprint = fingerprint;
    this.signer = signer;
    this.participation = participationOf(json.member("participation"));
    const number = (name, most) => {
      const found = json.member(name);
      if (found === null) return null;
      if (!(found.integer >= 0n && found.integer <= most)) throw PLAN.value(name, `an integer from 0 to ${most}`, found);
      return Number(found.integer);
    };
    this.serial = number("serial", MOST_SERIAL);
    this.expires = number("expires", MOST_EXPIRES);
    this.#groups = groupsOf(json.member("groups"));
    this.#question = questionOf(json.member("oracle")) ?? memoizedOf(json.member("oracle"));
    this.selection = this.participation.kind === "personalized" ? null : new Selection(this.participation.rate);
    Object.freeze(this);
  }

  /**
   * Reads a plan file and checks all that it says: that it is whole, signed by `publicKey` (null: by
   * anybody or nobody), not expired at `now` (seconds since 1970, or a Date) and not older than `lastSerial`.
   */
  static async read(data, { publicKey, now, lastSerial = null } = {}) {
    const wanted = pinned(publicKey);
    const json = FILE.read(asciiOf(data));
    const stated = json.member("fingerprint");
    const fingerprint = fromHex(stated.text, 32);
    if (fingerprint === null) throw FILE.value("fingerprint", "64 hexadecimal digits", stated);
    const described = json.member("plan");
    const text = canonical(described);
    if (text === null) throw FILE.malformed("it holds half of a surrogate pair");
    if (text !== described.raw) {
      throw new TurnoutError("not-canonical", "the plan is not written in its canonical form: a program formatted the file anew");
    }
    if ((await digestOf(utf8(text))) !== toHex(fingerprint)) {
      throw new TurnoutError("fingerprint", "the plan does not match its fingerprint: the file was altered or reformatted");
    }
    const signer = await signerOf(json.member("signature"), fingerprint, wanted);
    PLAN.check(described);
    const plan = new Plan(described, toHex(fingerprint), signer);
    plan.checkCurrent(now);
    plan.checkSerial(lastSerial);
    return plan;
  }

  /** The name of the kind of question. */
  get kind() {
    return this.#question.name;
  }

  /** What was asked for, in nats. */
  get epsilon() {
    return this.#question.epsilon;
  }

  /** Which round of several this is, from 0, of which a person answers one; null for any other question. */
  get round() {
    return this.#question.round ?? null;
  }

  /** Whether answers are permanent: then `permanent` makes messages, and not `report`. */
  get isPermanent() {
    return this.kind === "memoized";
  }

  /** The public columns that a message carries, unprotected, with the values that they may have. */
  get groups() {
    return this.#groups.map(({ column, plain }) => ({ column, values: plain }));
  }

  /** What can be answered: an entry for each question. */
  get questions() {
    const { domain } = this.#question;
    const choice = (name, labels) => ({ name, kind: "choice", size: Number(labels.size), labels: labels.values });
    if (domain instanceof Columns) return domain.asked.map(({ name, labels }) => choice(name, labels));
    if (domain instanceof Labels) return [choice(null, domain)];
    if (domain instanceof Numbers) {
      const { low, high, dimensions } = domain;
      return [{ name: null, kind: dimensions === 1 ? "number" : "numbers", low, high, dimensions }];
    }
    return [{ name: null, kind: "value", values: String(domain.values) }];
  }

  /** The integers that decide what is reported, for audits: words of 2^64, mostly. */
  get thresholds() {
    return { participation: this.selection?.thresholds ?? null, ...this.#question.thresholds };
  }

  /** What the plan means, in sentences for the person who answers. */
  describe() {
    return describeKind(this);
  }

  /** Refuses a plan that has expired. */
  checkCurrent(now) {
    const moment = now instanceof Date ? now.getTime() / 1000 : (now ?? Date.now() / 1000);
    if (this.expires !== null && !(moment < this.expires)) {
      throw new TurnoutError("expired", `the plan expired ${this.expires} seconds after the start of 1970: ask for the one in force`);
    }
  }

  /** Refuses a plan that is older than one that is known. */
  checkSerial(least) {
    if (least !== null && !(this.serial !== null && this.serial >= least)) {
      const found = this.serial === null ? "no serial" : `serial ${this.serial}`;
      throw new TurnoutError("serial", `the plan has ${found}, expected ${least} or a later one`);
    }
  }

  /**
   * The message of one person's answer, a line of text without its end, or null if this person is not
   * drawn to take part. Each call draws anew: send one message, and where sending fails send it again.
   */
  report(answer, { group, words, nonce, now, coded = false } = {}) {
    if (this.isPermanent) throw new TurnoutError("permanent", "the plan asks for permanent answers: use plan.permanent");
    this.#checkImpersonal();
    this.checkCurrent(now);
    const found = this.#question.domain.find(answer, coded);
    const values = this.groupOf(group);
    const noise = new Noise(words);
    if (!this.selection.draw(noise)) return null;
    const report = this.#question.report(found, noise);
    return report === null ? null : this.message(this.#question.layout, report, values, nonce);
  }

  /**
   * The permanent answers of a person: of a `state` that was stored, or new ones, `most` at most.
   */
  async permanent(state = null, { most = 1, secret } = {}) {
    if (!this.isPermanent) throw new TurnoutError("fresh", `${this.kind} has fresh answers, of which no state is kept: use plan.report`);
    this.#checkImpersonal();
    return PermanentAnswers.of(this, this.#question, { state, most, secret });
  }

  #checkImpersonal() {
    if (this.selection === null) {
      throw new TurnoutError("personal-participation", "participation is personal: this client does not know its probability");
    }
  }

  /** The text of a group as it stands in a message, or null where the plan has none. */
  groupOf(group) {
    const columns = this.#groups;
    if (columns.length === 0) {
      if (group === undefined || group === null) return null;
      throw new TurnoutError("group", "the plan has no groups: leave group out");
    }
    const names = columns.map(({ column }) => column);
    const given = Array.isArray(group)
      ? group
      : group !== null && typeof group === "object"
        ? names.filter((name) => Object.hasOwn(group, name)).map((name) => group[name])
        : [];
    const texts = columns.map(({ values }, place) => {
      const found = given.length === names.length ? textsOf(given[place]).filter((text) => values.includes(text)) : [];
      if (found.length !== 1) {
        throw new TurnoutError("group", `group must have a value that the plan lists for each of: ${names.join(", ")}`);
      }
      return found[0];
    });
    return `[${texts.join(",")}]`;
  }

  /** A message: what the core's `MessageWriter` writes. */
  message(layout, report, group, nonce = randomBytes(NONCE_BYTES)) {
    const digits = nonce instanceof Uint8Array && nonce.length === NONCE_BYTES ? toHex(nonce) : null;
    if (digits === null) throw new TurnoutError("argument", `nonce must be ${NONCE_BYTES} bytes`);
    const column = group === null ? "" : `"group":${group},`;
    return (
      `{"format":"turnout-report","version":1,"plan":"${this.fingerprint}","nonce":"${digits}",` +
      `${column}"report":${layout.text(report)}}`
    );
  }
}

function asciiOf(data) {
  let text = data;
  if (typeof data !== "string") {
    if (!(data instanceof Uint8Array || data instanceof ArrayBuffer)) {
      throw new TurnoutError("argument", "a plan file is given as text or as bytes (Uint8Array)");
    }
    text = new TextDecoder("latin1").decode(data);
  }
  if (/[^\0-\x7f]/.test(text)) throw FILE.malformed("it holds other bytes than ASCII");
  return text;
}

function participationOf(json) {
  const kind = json.member("kind")?.text;
  const rate = json.member("rate");
  const known = json.members !== null && json.members.size === (rate === null ? 1 : 2);
  if (known && rate === null && (kind === "everyone" || kind === "personalized")) {
    return kind === "everyone" ? { kind, rate: 1 } : { kind };
  }
  if (known && kind === "bernoulli" && rate?.number > 0 && rate.number <= 1) return { kind, rate: rate.number };
  throw PLAN.value("participation", "one that is known", json);
}

/** The public columns of a plan, with the canonical texts of their values. */
function groupsOf(json) {
  if (json === null) return [];
  const refused = () => PLAN.value("groups", "a list of different columns with different values", json);
  const columns = (json.list ?? []).map((described) => {
    const column = described.member("column")?.text ?? null;
    const listed = described.member("values")?.list ?? null;
    if (column === null || listed === null || described.members.size !== 2) throw refused();
    const values = listed.map((value) => (isGroupValue(value) ? canonical(value) : null));
    if (values.length === 0 || values.includes(null) || new Set(values).size < values.length) throw refused();
    return { column, values, plain: listed.map((value) => value.plain) };
  });
  const names = new Set(columns.map(({ column }) => column));
  if (columns.length === 0 || names.size < columns.length) throw refused();
  return columns;
}

function isGroupValue(value) {
  if (value.kind === "list") return false;
  if (value.kind !== "object") return true;
  const [[name, held]] = value.members.size === 1 ? value.members : [["", null]];
  return ["date", "time", "datetime"].includes(name) && (held?.text ?? null) !== null;
}

/** A store that forgets when the page is left: for tests, and where nothing may be kept. */
export function memoryStorage() {
  const kept = new Map();
  return {
    get: (key) => kept.get(key) ?? null,
    set: (key, text) => void kept.set(key, text),
    remove: (key) => void kept.delete(key),
  };
}

/**
 * The store of the browser for this origin, a database of IndexedDB. What one page stored every other page
 * reads, and it is on the disk when the promise is kept; `localStorage` promises neither.
 */
export function browserStorage(name = "turnout") {
  const factory = globalThis.indexedDB;
  if (!factory) throw new TurnoutError("storage", "IndexedDB is missing: pass another storage");
  let opened = null;
  const open = () =>
    new Promise((resolve, reject) => {
      const request = factory.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore("texts");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        database.onclose = () => (opened = null);
        database.onversionchange = () => {
          database.close();
          opened = null;
        };
        resolve(database);
      };
    });
  const use = async (mode, work) => {
    opened ??= open();
    const database = await opened.catch((error) => {
      opened = null;
      throw error;
    });
    return new Promise((resolve, reject) => {
      const transaction = database.transaction("texts", mode, { durability: "strict" });
      const request = work(transaction.objectStore("texts"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  };
  // A browser may lose the connection, for example when a phone wakes up: once more with a new one.
  const twice = (mode, work) =>
    use(mode, work).catch(() => {
      opened = null;
      return use(mode, work);
    });
  return {
    get: async (key) => (await twice("readonly", (texts) => texts.get(key))) ?? null,
    set: async (key, text) => void (await twice("readwrite", (texts) => texts.put(text, key))),
    remove: async (key) => void (await twice("readwrite", (texts) => texts.delete(key))),
  };
}

const NOT_SENT = "nothing was sent";

/** The error for a storage that failed, with what is known of the message. */
function failed(error, known) {
  return new TurnoutError("storage", `the storage of this browser failed (${error?.name ?? "unknown"}): ${known}`);
}

/** The answers of a server that will be the same when the message is sent again. */
const FINAL = [400, 401, 403, 409, 410, 413, 415, 422];

/**
 * What a person sent, and what is still to be sent. An answer is drawn once for each plan: whoever answers
 * again, or reloads the page, gets what was drawn, and sends the same message. `storage` has `get`, `set`
 * and `remove` of texts by a key, which may be promises.
 */
export class Outbox {
  #storage;
  #url;
  #fetch;

  constructor({ storage = browserStorage(), url = "reports", fetch = (...request) => globalThis.fetch(...request) } = {}) {
    this.#storage = storage;
    this.#url = url;
    this.#fetch = fetch;
  }

  /** The largest serial that was seen of a collection, or null: pass it to `Plan.read`. */
  async lastSerial(collection) {
    const text = await this.#read(`serial/${collection}`);
    return text !== null && /^[0-9]{1,16}$/.test(text) ? Number(text) : null;
  }

  /** Remembers the serial of a plan that was read. */
  async sawSerial(collection, plan) {
    await this.#alone(`serial/${collection}`, async () => {
      const known = await this.lastSerial(collection);
      if (plan.serial !== null && (known === null || plan.serial > known)) {
        await this.#write(`serial/${collection}`, String(plan.serial));
      }
    });
  }

  /**
   * What became of the answer to a plan: state is "none", "silent", "waiting", "sent" or "refused". Of a later
   * round of a `collection` it is "earlier" for who was asked in a round before: nobody is asked twice.
   */
  async status(plan, { collection = null } = {}) {
    const text = await this.#read(`report/${plan.fingerprint}`);
    if (text === null) {
      const before = plan.round > 0 && collection !== null ? await this.#read(`asked/${collection}`) : null;
      return { state: before === null || before === plan.fingerprint ? "none" : "earlier", message: null };
    }
    try {
      const { state, message } = JSON.parse(text);
      const known = ["silent", "waiting", "sent", "refused"].includes(state);
      if (known && (typeof message === "string" || message === null)) return { state, message };
    } catch {
      // Said below.
    }
    throw new TurnoutError("storage", "what is stored of this plan cannot be read: another program wrote it");
  }

  /**
   * Draws the message of an answer, once for each plan, and stores it before it can leave. Returns the
   * status: "silent" for somebody who is not drawn to take part. `options` are those of `plan.report`;
   * `most` permanent answers at most are used of a person, if answers are permanent. `collection` is the name
   * that the caller gives to plans of which some are rounds: a person answers one round.
   */
  async answer(plan, answer, { most = 1, collection = null, ...options } = {}) {
    const draw = async () => {
      const known = await this.status(plan, { collection });
      if (known.state !== "none") return known;
      const message = plan.isPermanent
        ? await this.#permanent(plan, answer, most, options)
        : plan.report(answer, options);
      const status = { state: message === null ? "silent" : "waiting", message };
      if (collection !== null) {
        await this.#write(`asked/${collection}`, plan.fingerprint);
        const others = await this.#waiting(collection);
        if (message !== null) await this.#write(`waiting/${collection}`, JSON.stringify([...others, plan.fingerprint]));
      }
      await this.#write(`report/${plan.fingerprint}`, JSON.stringify(status));
      return status;
    };
    return this.#alone(`report/${plan.fingerprint}`, () =>
      collection === null ? draw() : this.#alone(`asked/${collection}`, draw),
    );
  }

  /** The state is stored before the message: lost, it would be drawn anew and spend its budget twice. */
  async #permanent(plan, answer, most, options) {
    const { context } = await plan.permanent(null, { most });
    return this.#alone(`permanent/${context}`, async () => {
      const state = await this.#read(`permanent/${context}`);
      const answers = await plan.permanent(state, { most });
      const message = await answers.report(answer, options);
      await this.#write(`permanent/${context}`, await answers.state());
      return message;
    });
  }

  /**
   * Sends the message that waits under a plan, or under that of `earlier`, if one does. Returns the status after it; an error with the code
   * "sending" says that it still waits and can be sent again, one with "refused" that the server does not
   * take it.
   */
  async send(plan) {
    return this.#alone(`send/${plan.fingerprint}`, async () => {
      const waiting = await this.status(plan);
      if (waiting.state !== "waiting") return waiting;
      const taken = await this.#post(waiting.message);
      const status = taken ? { state: "sent", message: null } : { ...waiting, state: "refused" };
      const known = taken ? "the message has arrived, and counts once if it is sent again" : "the server did not take the message";
      await this.#write(`report/${plan.fingerprint}`, JSON.stringify(status), known);
      if (!taken) throw new TurnoutError("refused", "the server did not take the message: the collection may have ended");
      return status;
    });
  }

  /**
   * The messages of a `collection` that wait under other plans than this one, as those of yesterday do where each
   * day has a plan: `fingerprint` and `message` of each. `send` takes them as it takes a plan. Without a plan, all.
   */
  async earlier(plan, { collection }) {
    const found = [];
    for (const fingerprint of await this.#waiting(collection)) {
      if (fingerprint === plan?.fingerprint) continue;
      const { message } = await this.status({ fingerprint });
      found.push({ fingerprint, message });
    }
    return found;
  }

  /** The fingerprints of plans of a collection under which a message waits. */
  async #waiting(collection) {
    let listed = [];
    try {
      listed = JSON.parse((await this.#read(`waiting/${collection}`)) ?? "[]");
    } catch (error) {
      if (error instanceof TurnoutError) throw error;
    }
    const found = [];
    for (const fingerprint of Array.isArray(listed) ? listed : []) {
      if ((await this.status({ fingerprint })).state === "waiting") found.push(fingerprint);
    }
    return found;
  }

  /** Whether the server takes a message; an error where that is not known. */
  async #post(message) {
    const again = (reason) => new TurnoutError("sending", `the message was not sent, and is kept: ${reason}`);
    let response;
    try {
      response = await this.#fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
        body: `${message}\n`,
        cache: "no-store",
        credentials: "omit",
        referrerPolicy: "no-referrer",
        redirect: "error",
      });
    } catch (error) {
      // Those of fetch itself; an error of another kind is of a function that the caller gave.
      if (error instanceof TypeError || error instanceof DOMException) throw again("the server cannot be reached");
      throw error;
    }
    if (FINAL.includes(response.status)) return false;
    if (!response.ok) throw again(`the server answered ${response.status}`);
    const answer = await response.json().catch(() => null);
    if (answer?.accepted >= 1 || answer?.duplicates >= 1) return true;
    if (Object.values(answer?.refused ?? {}).some((count) => count >= 1)) return false;
    throw again("the server did not say what became of it");
  }

  /** Forgets what was sent under a plan, and a message that waits. */
  async forget(plan) {
    await this.#guarded(() => this.#storage.remove(`report/${plan.fingerprint}`));
  }

  #read(key) {
    return this.#guarded(async () => (await this.#storage.get(key)) ?? null);
  }

  #write(key, text, known) {
    return this.#guarded(() => this.#storage.set(key, text), known);
  }

  /** Uses the storage; an error says what is known of the message. */
  async #guarded(use, known = NOT_SENT) {
    try {
      return await use();
    } catch (error) {
      throw error instanceof TurnoutError ? error : failed(error, known);
    }
  }

  /** One page at a time, where the browser has locks: two would draw two messages. */
  async #alone(name, use) {
    const locks = globalThis.navigator?.locks;
    if (locks === undefined) return use();
    let begun = false;
    const locked = () => {
      begun = true;
      return use();
    };
    try {
      return await locks.request(`turnout/${name}`, locked);
    } catch (error) {
      // Browsers refuse locks where they refuse storage.
      throw begun ? error : failed(error, NOT_SENT);
    }
  }
}
