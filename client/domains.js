import { noAnswer, notAQuestion } from "./errors.js";
import { isUnicode, textsOf } from "./json.js";
import { Members, READ } from "./members.js";

/** The most combinations of answers, and the most cells of all tables of two. */
export const MOST_CELLS = 1n << 20n;

/** The labels of one question: codes that are their own labels, or values that the plan lists. */
export class Labels {
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
export class Columns {
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
export function combined(codes, sizes) {
  return codes.reduce((all, code, place) => all * sizes[place] + code, 0n);
}

/** Numbers within bounds: one, or a list of so many. */
export class Numbers {
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
export class Prefixes {
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
