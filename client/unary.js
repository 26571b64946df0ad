import { unrealizable } from "./direct.js";
import { notAQuestion } from "./errors.js";
import { Exponential, LOW_32, TWO_64 } from "./exact.js";
import { Layout } from "./layout.js";
import { exp, expm1, logarithmAbove } from "./libm.js";
import { BiasedBits, lowHalf } from "./words.js";

/** The largest domain of reports that have something for each code. */
const MOST_CODES = 1n << 20n;

const TWO_63 = 9_223_372_036_854_775_808;

export function checkRows(size) {
  if (size > MOST_CODES) throw notAQuestion(`the reports of ${size} answers are too long, the most are ${MOST_CODES}`);
}

/** The number of words of a row of bits. */
export function rowWords(size) {
  return Number((size + 63n) / 64n);
}

/** The bits of the last word of a row that stand for codes. */
function lastWord(size) {
  return (TWO_64 - 1n) >> ((64n - (size % 64n)) % 64n);
}

/** A bit for each code: one with `own` words of 2^64 for the own code, and with `other` for each other. */
export class UnaryEncoding {
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
export class SubsetSelection {
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
