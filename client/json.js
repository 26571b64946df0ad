import { TurnoutError } from "./errors.js";

/** How deep lists and objects may stand within each other. */
const MOST_DEPTH = 64;

/** The most characters of a number. */
const MOST_DIGITS = 1000;

/**
 * Reads a text that is one value of JSON, as turnout's core does: no member twice, numbers that floating
 * point can hold, bounded depth. Each value keeps the text that it was read from, `raw`.
 */
export function readJson(text) {
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
export function isUnicode(text) {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

/**
 * The one text of a value: members in the order of code points, no spaces, ASCII only, numbers as Python
 * writes them; null where a text is no Unicode. One member may be left out.
 */
export function canonical(value, leftOut) {
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
export function quoted(text) {
  const escaped = text.replace(
    /[^ -~]|["\\]/g,
    (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `"${escaped}"`;
}

/** A floating-point number with the fewest digits that give it back, as Python writes it. */
export function numberText(number) {
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
export function textsOf(value) {
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
