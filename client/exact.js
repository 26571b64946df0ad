/*
 * Enclosures of real numbers by integers, for setting up exact decisions; the same arithmetic as
 * turnout's core, so that every threshold is the same integer.
 */

/** Fractional bits of the working precision. */
const BITS = 256n;

export const TWO_64 = 1n << 64n;
export const LOW_32 = (1n << 32n) - 1n;

const VIEW = new DataView(new ArrayBuffer(8));

/** The 64 bits of a floating-point number. */
export function bitsOf(number) {
  VIEW.setFloat64(0, number);
  return VIEW.getBigUint64(0);
}

/** The floating-point number of 64 bits. */
export function ofBits(bits) {
  VIEW.setBigUint64(0, bits);
  return VIEW.getFloat64(0);
}

/** The next larger number after a positive one. */
export function nextUp(number) {
  return ofBits(bitsOf(number) + 1n);
}

/** The next smaller number before a positive one. */
export function nextDown(number) {
  return ofBits(bitsOf(number) - 1n);
}

/** A positive number as a mantissa and a power of two, exactly. */
export function decompose(number) {
  const bits = bitsOf(number);
  const fraction = bits & ((1n << 52n) - 1n);
  const biased = (bits >> 52n) & 0x7ffn;
  return biased === 0n ? [fraction, -1074n] : [fraction | (1n << 52n), biased - 1075n];
}

/** A positive number times a power of two, cut to a whole number, exactly. */
export function scaledFloor(number, power) {
  const [mantissa, exponent] = decompose(number);
  const shift = exponent + BigInt(power);
  return shift >= 0n ? mantissa << shift : mantissa >> -shift;
}

/** How many binary digits a positive integer has. */
export function bitLength(number) {
  return number.toString(2).length;
}

export function divideUp(numerator, denominator) {
  return (numerator + denominator - 1n) / denominator;
}

function shiftUp(value, shift) {
  const floor = value >> shift;
  return floor << shift === value ? floor : floor + 1n;
}

/** A real number in [low, high] / 2^bits. */
export class Interval {
  constructor(low, high, bits) {
    this.low = low;
    this.high = high;
    this.bits = bits;
  }

  static one(bits) {
    return new Interval(1n << bits, 1n << bits, bits);
  }

  /** A positive floating-point number. */
  static of(number, bits) {
    const [mantissa, exponent] = decompose(number);
    const shift = exponent + bits;
    return shift >= 0n
      ? new Interval(mantissa << shift, mantissa << shift, bits)
      : new Interval(mantissa >> -shift, shiftUp(mantissa, -shift), bits);
  }

  /** One less this, for a number in [0, 1]. */
  complement() {
    const unit = 1n << this.bits;
    return new Interval(this.high > unit ? 0n : unit - this.high, unit - this.low, this.bits);
  }

  times(other) {
    return new Interval(
      (this.low * other.low) >> this.bits,
      shiftUp(this.high * other.high, this.bits),
      this.bits,
    );
  }

  power(exponent) {
    let [result, square, left] = [Interval.one(this.bits), this, exponent];
    while (left > 0n) {
      if (left & 1n) result = result.times(square);
      left >>= 1n;
      if (left > 0n) square = square.times(square);
    }
    return result;
  }

  /** The quotient, or null while the divisor may be zero. */
  over(divisor) {
    if (divisor.low === 0n) return null;
    return new Interval(
      (this.low << this.bits) / divisor.high,
      divideUp(this.high << this.bits, divisor.low),
      this.bits,
    );
  }

  /** The whole part after scaling by 2^64, or null if the enclosure does not settle it. */
  scaledFloor() {
    const shift = this.bits - 64n;
    const low = this.low >> shift;
    return low === this.high >> shift ? low : null;
  }
}

/** `e^x` for a finite `x >= 0`: the Taylor series at `x / 2^j < 1`, then `j` squarings. */
function exponential(x) {
  let [halvings, reduced] = [0, x];
  while (reduced >= 1) {
    reduced *= 0.5;
    halvings += 1;
  }
  const argument = Interval.of(reduced, BITS);
  let [sum, term] = [Interval.one(BITS), Interval.one(BITS)];
  for (let index = 1n; term.high !== 0n && index <= 4n * BITS; index++) {
    term = term.times(argument);
    term.low /= index;
    term.high = (term.high + (index - 1n)) / index;
    sum = new Interval(sum.low + term.low, sum.high + term.high, BITS);
    if (term.high === 1n) break;
  }
  // The terms left out fall at least as fast as 1/2, 1/4, ... of the last one.
  sum = new Interval(sum.low, sum.high + term.high, BITS);
  for (; halvings > 0; halvings--) sum = sum.times(sum);
  return sum;
}

/** Proven bounds of `e^x`. */
export class Exponential {
  constructor(x) {
    this.bounds = exponential(x);
  }

  /** At most `floor(e^x factor)`. */
  floorTimes(factor) {
    return (this.bounds.low * factor) >> BITS;
  }

  /** At most `floor(numerator / (e^x + addend))`. */
  floorQuotient(numerator, addend) {
    return (numerator << BITS) / (this.bounds.high + (addend << BITS));
  }

  /** The most words `T` whose odds `T / (2^64 - T)` are certain to be at most `e^x numerator / denominator`. */
  floorOdds(numerator, denominator) {
    const odds = this.bounds.low * numerator;
    const found = (odds << 64n) / (odds + (denominator << BITS));
    return found < TWO_64 ? found : TWO_64 - 1n;
  }

  /** Whether `e^x >= numerator / denominator` is certain. */
  atLeast(numerator, denominator) {
    return this.bounds.low * denominator >= numerator << BITS;
  }
}

/** The smallest integer from 1 to `most` for which something holds that holds from there on, or null. */
export function smallest(most, holds) {
  if (!holds(most)) return null;
  let [low, high] = [1n, most];
  while (low < high) {
    const middle = low + (high - low) / 2n;
    if (holds(middle)) high = middle;
    else low = middle + 1n;
  }
  return high;
}

/** The largest prime below a power of two of at most 31 bits. */
export function primeBelow(bits) {
  for (let candidate = 2 ** bits - 1; candidate > 3; candidate--) if (isPrime(candidate)) return BigInt(candidate);
  return 3n;
}

/** Whether an integer below 2^32 is prime. */
export function isPrime(number) {
  if (number < 4) return number > 1;
  if (number % 2 === 0) return false;
  for (let factor = 3; factor * factor <= number; factor += 2) if (number % factor === 0) return false;
  return true;
}
