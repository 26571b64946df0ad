import { unrealizable } from "./direct.js";
import { notAQuestion } from "./errors.js";
import { bitLength, Exponential, isPrime, TWO_64 } from "./exact.js";
import { parity } from "./hashing.js";
import { Layout, narrowest } from "./layout.js";
import { logarithmAbove } from "./libm.js";

/** Hadamard response: a uniform number, moved to the half of the own code with `inside` of `2^bits` words. */
export class HadamardResponse {
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
export class ProjectiveGeometryResponse {
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
