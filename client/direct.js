import { notAQuestion } from "./errors.js";
import { Exponential, LOW_32, TWO_64 } from "./exact.js";
import { Layout, narrowest } from "./layout.js";
import { logarithmAbove } from "./libm.js";

/** The error for an epsilon at which reports say nothing. */
export function unrealizable(epsilon, size) {
  return notAQuestion(`epsilon ${epsilon} is too small for ${size} answers`);
}

/** Direct encoding: the own code with `A` words of 2^64, each other one with `W`, and `A <= e^epsilon W`. */
export class DirectEncoding {
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
