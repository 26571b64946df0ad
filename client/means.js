import { Numbers } from "./domains.js";
import { unrealizable } from "./direct.js";
import { notAQuestion } from "./errors.js";
import { decompose, Exponential, nextDown, smallest, TWO_64 } from "./exact.js";
import { Layout, narrowest } from "./layout.js";
import { exp, expm1, logarithmAbove, round } from "./libm.js";
import { checkEpsilon, Members, READ } from "./members.js";
import { uniformBelow } from "./words.js";

const UNIT = 1n << 63n;
const TWO_TO_64 = 18_446_744_073_709_551_616;

/** A randomizer of numbers as a question: what it is asked within, and how it draws. */
export function numbersAsked(asked) {
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
