import { TurnoutError } from "./errors.js";
import { LOW_32, scaledFloor, TWO_64 } from "./exact.js";

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
export function randomBytes(length) {
  return randomSource().getRandomValues(new Uint8Array(length));
}

/**
 * Where the words of a message come from. A message is drawn from streams: `participation` decides who
 * takes part, `report` randomizes, `choice` draws a part or an answer in place of the own one. What is
 * drawn beside the first draw is a part of it, which a list of numbers names. All streams are fresh words,
 * unless tests give others: a function of the purpose and that list whose result has `next()`.
 */
export class Noise {
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
export function uniformBelow(bound, words) {
  if (bound === 0n) return words.next();
  let product = words.next() * bound;
  if (BigInt.asUintN(64, product) < bound) {
    const floor = (TWO_64 - bound) % bound;
    while (BigInt.asUintN(64, product) < floor) product = words.next() * bound;
  }
  return product >> 64n;
}

/** An index, drawn with probability exactly weight / sum of the weights. */
export function choose(weights, words) {
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
export function trial(probability, words) {
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
export function lowHalf(word) {
  return Number(word & LOW_32);
}

/**
 * Fills rows of 64 bits each of which is one with probability exactly `threshold / 2^64`: digit by digit
 * in 64 lanes, and what eight digits leave open is settled by a word each.
 */
export class BiasedBits {
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
