import { unrealizable } from "./direct.js";
import { checkRows } from "./unary.js";
import { decompose, divideUp, nextUp } from "./exact.js";
import { Layout } from "./layout.js";

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
export class SummationHistogram {
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
