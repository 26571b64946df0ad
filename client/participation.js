import { Interval, LOW_32 } from "./exact.js";
import { trial } from "./words.js";

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
export class Selection {
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
export function takesPart(probability, noise) {
  return trial(probability, noise.stream("participation"));
}
