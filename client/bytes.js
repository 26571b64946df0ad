/** Bytes as lower-case hexadecimal digits. */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of so many pairs of lower-case digits, or null. */
export function fromHex(digits, length) {
  if (typeof digits !== "string" || digits.length !== 2 * length || !/^[0-9a-f]*$/.test(digits)) return null;
  return Uint8Array.from({ length }, (_, place) => parseInt(digits.slice(2 * place, 2 * place + 2), 16));
}

/** The bytes of a text in UTF-8. */
export function utf8(text) {
  return new TextEncoder().encode(text);
}

/** Writes a non-negative integer as so many bytes, the least significant first. */
export function writeInteger(number, width, into, start) {
  let rest = BigInt.asUintN(8 * width, number);
  for (let place = 0; place < width; place++) {
    into[start + place] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}
