import { toHex, writeInteger } from "./bytes.js";

/** What reports look like: one integer, or a row of integers of one width. */
export class Layout {
  constructor(bytes, signed, width) {
    this.bytes = bytes;
    this.signed = signed;
    this.width = width;
  }

  static one(bytes) {
    return new Layout(bytes, false, null);
  }

  static row(bytes, width, signed = false) {
    return new Layout(bytes, signed, width);
  }

  get integers() {
    return this.width ?? 1;
  }

  /** The report as it stands in a message. */
  text(integers) {
    if (this.width === null) {
      const number = BigInt(integers[0]);
      return String(this.signed ? number : BigInt.asUintN(8 * this.bytes, number));
    }
    const bytes = new Uint8Array(this.integers * this.bytes);
    integers.forEach((integer, place) => writeInteger(BigInt(integer), this.bytes, bytes, place * this.bytes));
    return `"${toHex(bytes)}"`;
  }
}

/** The narrowest width of integers, in bytes, of which so many differ. */
export function narrowest(count) {
  const most = BigInt(count);
  if (most < 1n) return 8;
  return most <= 1n << 8n ? 1 : most <= 1n << 16n ? 2 : most <= 1n << 32n ? 4 : 8;
}
