import { AesStream, seededKey } from "./aes.js";
import { DirectEncoding, unrealizable } from "./direct.js";
import { notAQuestion } from "./errors.js";
import { bitLength, divideUp, Exponential, primeBelow, TWO_64 } from "./exact.js";
import { Layout } from "./layout.js";
import { logarithmAbove } from "./libm.js";
import { BiasedBits, uniformBelow } from "./words.js";

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
export class LocalHashing {
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
export class PooledLocalHashing {
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
export class CountMeanSketch {
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
export class HadamardCountMeanSketch {
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
export function parity(number) {
  let found = 0n;
  for (let left = number; left !== 0n; left &= left - 1n) found ^= 1n;
  return found;
}
