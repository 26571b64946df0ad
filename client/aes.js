import { utf8 } from "./bytes.js";

/*
 * AES-256 of public keys: of the seeds that stand for hash functions in a plan. Tables are looked up by
 * what is encrypted, which may show in the time that it takes: no secret may pass through here.
 */

const SBOX = new Uint8Array(256);
const TABLE = new Uint32Array(256);

/** Twice a byte, in the field of AES. */
function twice(byte) {
  return ((byte << 1) ^ (byte & 0x80 ? 0x11b : 0)) & 0xff;
}

function fillTables() {
  let [power, inverse] = [1, 1];
  do {
    // All bytes but zero as powers of 3, beside their inverses.
    power ^= twice(power);
    inverse ^= inverse << 1;
    inverse ^= inverse << 2;
    inverse ^= inverse << 4;
    inverse &= 0xff;
    if (inverse & 0x80) inverse ^= 0x09;
    const turn = (by) => ((inverse << by) | (inverse >> (8 - by))) & 0xff;
    SBOX[power] = inverse ^ turn(1) ^ turn(2) ^ turn(3) ^ turn(4) ^ 0x63;
  } while (power !== 1);
  SBOX[0] = 0x63;
  SBOX.forEach((byte, place) => {
    const double = twice(byte);
    TABLE[place] = ((double << 24) | (byte << 16) | (byte << 8) | (double ^ byte)) >>> 0;
  });
}

const ROUNDS = 14;

/** The keys of all rounds of a key of 32 bytes. */
function expanded(key) {
  if (TABLE[0] === 0) fillTables();
  const view = new DataView(key.buffer, key.byteOffset, 32);
  const keys = new Uint32Array(4 * (ROUNDS + 1));
  const sub = (word) =>
    (SBOX[word >>> 24] << 24) | (SBOX[(word >>> 16) & 255] << 16) | (SBOX[(word >>> 8) & 255] << 8) | SBOX[word & 255];
  let constant = 1;
  for (let place = 0; place < keys.length; place++) {
    if (place < 8) {
      keys[place] = view.getUint32(4 * place);
      continue;
    }
    let word = keys[place - 1];
    if (place % 8 === 0) {
      word = sub((word << 8) | (word >>> 24)) ^ (constant << 24);
      constant = twice(constant);
    } else if (place % 8 === 4) {
      word = sub(word);
    }
    keys[place] = keys[place - 8] ^ word;
  }
  return keys;
}

const turned = (word, by) => (word >>> by) | (word << (32 - by));

function encrypt(keys, block) {
  const view = new DataView(block.buffer);
  let state = [0, 1, 2, 3].map((place) => view.getUint32(4 * place) ^ keys[place]);
  const byte = (place, row) => (state[(place + row) % 4] >>> (24 - 8 * row)) & 255;
  for (let round = 1; round <= ROUNDS; round++) {
    state = [0, 1, 2, 3].map((place) => {
      const key = keys[4 * round + place];
      if (round === ROUNDS) {
        return (
          ((SBOX[byte(place, 0)] << 24) | (SBOX[byte(place, 1)] << 16) | (SBOX[byte(place, 2)] << 8) | SBOX[byte(place, 3)]) ^ key
        );
      }
      return (
        TABLE[byte(place, 0)] ^
        turned(TABLE[byte(place, 1)], 8) ^
        turned(TABLE[byte(place, 2)], 16) ^
        turned(TABLE[byte(place, 3)], 24) ^
        key
      );
    });
  }
  state.forEach((word, place) => view.setUint32(4 * place, word));
}

/** The block of a stream at a position, before it is encrypted: stream and position, little-endian. */
export function counterBlock(purpose, index, position) {
  const block = new Uint8Array(16);
  const view = new DataView(block.buffer);
  view.setBigUint64(0, position, true);
  view.setBigUint64(8, (purpose << 56n) | index, true);
  return block;
}

/** The words of a stream of a public key, the core's `AesStreams`. */
export class AesStream {
  #keys;
  #position = 0n;
  #words = [];

  constructor(key, purpose, index) {
    this.#keys = expanded(key);
    this.purpose = purpose;
    this.index = index;
  }

  next() {
    if (this.#words.length === 0) {
      const block = counterBlock(this.purpose, this.index, this.#position);
      this.#position += 1n;
      encrypt(this.#keys, block);
      const view = new DataView(block.buffer);
      this.#words = [view.getBigUint64(8, true), view.getBigUint64(0, true)];
    }
    return this.#words.pop();
  }
}

/** The public key that a seed of 64 bits stands for. */
export function seededKey(seed) {
  const key = utf8("turnout: a seed for tests.......");
  new DataView(key.buffer).setBigUint64(24, seed, true);
  return key;
}
