import { bitsOf, Exponential, nextUp, ofBits } from "./exact.js";

/*
 * Elementary functions by additions, multiplications and divisions alone, which IEEE 754 defines to the
 * last bit: those of the browser differ from one to the other. Ports of FreeBSD's msun (e_exp.c,
 * s_expm1.c, e_log.c, s_log1p.c), as the Rust crate `libm` has them, for arguments that turnout has.
 *
 * Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify,
 * and distribute this software is freely granted, provided that this notice is preserved.
 */

const LN2_HIGH = 6.93147180369123816490e-01;
const LN2_LOW = 1.90821492927058770002e-10;
const INVERSE_LN2 = 1.44269504088896338700e+00;

function high(number) {
  return Number(bitsOf(number) >> 32n);
}

function powerOfTwo(exponent) {
  return ofBits(BigInt(0x3ff + exponent) << 52n);
}

/** `e^x` for numbers of a size below 700. */
export function exp(x) {
  const word = high(x) & 0x7fffffff;
  const sign = x < 0 ? 1 : 0;
  let [k, head, tail] = [0, x, 0];
  if (word > 0x3fd62e42) {
    k = word >= 0x3ff0a2b2 ? Math.trunc(INVERSE_LN2 * x + (sign ? -0.5 : 0.5)) : 1 - sign - sign;
    head = x - k * LN2_HIGH;
    tail = k * LN2_LOW;
    x = head - tail;
  } else if (word <= 0x3e300000) {
    return 1 + x;
  }
  const xx = x * x;
  const c =
    x -
    xx *
      (1.66666666666666019037e-01 +
        xx *
          (-2.77777777770155933842e-03 +
            xx *
              (6.61375632143793436117e-05 +
                xx * (-1.65339022054652515390e-06 + xx * 4.13813679705723846039e-08))));
  const y = 1 + ((x * c) / (2 - c) - tail + head);
  return k === 0 ? y : y * powerOfTwo(k);
}

/** `e^x - 1` for numbers of a size below 700. */
export function expm1(x) {
  const word = high(x) & 0x7fffffff;
  const negative = x < 0;
  if (word >= 0x4043687a && negative) return -1;
  let [k, c] = [0, 0];
  if (word > 0x3fd62e42) {
    let head, tail;
    if (word < 0x3ff0a2b2) {
      [head, tail, k] = negative ? [x + LN2_HIGH, -LN2_LOW, -1] : [x - LN2_HIGH, LN2_LOW, 1];
    } else {
      k = Math.trunc(INVERSE_LN2 * x + (negative ? -0.5 : 0.5));
      head = x - k * LN2_HIGH;
      tail = k * LN2_LOW;
    }
    x = head - tail;
    c = head - x - tail;
  } else if (word < 0x3c900000) {
    return x;
  }
  const half = 0.5 * x;
  const square = x * half;
  const r1 =
    1 +
    square *
      (-3.33333333333331316428e-02 +
        square *
          (1.58730158725481460165e-03 +
            square *
              (-7.93650757867487942473e-05 +
                square * (4.00821782732936239552e-06 + square * -2.01099218183624371326e-07))));
  const t = 3 - r1 * half;
  let e = square * ((r1 - t) / (6 - x * t));
  if (k === 0) return x - (x * e - square);
  e = x * (e - c) - c;
  e -= square;
  if (k === -1) return 0.5 * (x - e) - 0.5;
  if (k === 1) return x < -0.25 ? -2 * (e - (x + 0.5)) : 1 + 2 * (x - e);
  const whole = powerOfTwo(k);
  if (k < 0 || k > 56) return (x - e + 1) * whole - 1;
  const inverse = powerOfTwo(-k);
  return k < 20 ? (x - e + (1 - inverse)) * whole : (x - (e + inverse) + 1) * whole;
}

/** The series that both logarithms have, of 1 + f, with the power of two and a correction. */
function logarithm(f, k, last) {
  const half = 0.5 * f * f;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const t2 =
    z *
    (6.666666666666735130e-01 +
      w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const r = t2 + t1;
  return s * (half + r) + last(k * LN2_LOW) - half + f + k * LN2_HIGH;
}

/** A number near one and a power of two, of which the product is the given one. */
function reduced(number) {
  const bits = bitsOf(number);
  const word = Number(bits >> 32n) + (0x3ff00000 - 0x3fe6a09e);
  const upper = (word & 0x000fffff) + 0x3fe6a09e;
  return [ofBits((BigInt(upper) << 32n) | (bits & 0xffffffffn)), (word >>> 20) - 0x3ff];
}

/** The logarithm of a positive normal number, or of infinity. */
export function log(x) {
  if (x === 1) return 0;
  if (x === Infinity) return x;
  const [near, k] = reduced(x);
  return logarithm(near - 1, k, (tail) => tail);
}

/** The logarithm of `1 + x` for `x > -1`. */
export function log1p(x) {
  const word = high(x);
  if (word < 0x3fda827a || word >= 0x80000000) {
    if ((word & 0x7fffffff) < 0x3ca00000) return x;
    if (word <= 0xbfd2bec4) return logarithm(x, 0, (tail) => tail + 0);
  }
  const sum = 1 + x;
  const [near, k] = reduced(sum);
  let correction = 0;
  if (k < 54) correction = (k >= 2 ? 1 - (sum - x) : x - (sum - 1)) / sum;
  return logarithm(near - 1, k, (tail) => tail + correction);
}

/** A positive number, rounded to the nearest whole one. */
export function round(number) {
  const whole = Math.trunc(number);
  return number - whole >= 0.5 ? whole + 1 : whole;
}

/** The logarithm of `numerator / denominator > 1`, rounded up, and at most a number that is not below it. */
export function logarithmAbove(numerator, denominator, most) {
  const gain = numerator > denominator ? Number(numerator - denominator) / Number(denominator) : 0;
  let candidate = log1p(gain) * (1 - 1e-15);
  while (candidate < most) {
    if (new Exponential(candidate).atLeast(numerator, denominator)) return candidate;
    candidate = candidate === 0 ? Number.MIN_VALUE : nextUp(candidate);
  }
  return most;
}
