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

/** The bytes of a word in the other order. */
const swapped = (word) => ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);

/** One column of a round: a byte of each row, mixed. */
function column(one, two, three, four, key) {
  return (
    TABLE[one >>> 24] ^
    turned(TABLE[(two >>> 16) & 255], 8) ^
    turned(TABLE[(three >>> 8) & 255], 16) ^
    turned(TABLE[four & 255], 24) ^
    key
  );
}

/** One column of the last round, which mixes nothing. */
function lastColumn(one, two, three, four, key) {
  const bytes = (SBOX[one >>> 24] << 24) | (SBOX[(two >>> 16) & 255] << 16) | (SBOX[(three >>> 8) & 255] << 8);
  return (bytes | SBOX[four & 255]) ^ key;
}

/** Encrypts the four words of a block, most significant byte first. */
function encrypt(keys, block) {
  let [a, b, c, d] = block;
  a ^= keys[0];
  b ^= keys[1];
  c ^= keys[2];
  d ^= keys[3];
  let place = 4;
  for (let round = 1; round < ROUNDS; round++, place += 4) {
    const one = column(a, b, c, d, keys[place]);
    const two = column(b, c, d, a, keys[place + 1]);
    const three = column(c, d, a, b, keys[place + 2]);
    d = column(d, a, b, c, keys[place + 3]);
    [a, b, c] = [one, two, three];
  }
  block[0] = lastColumn(a, b, c, d, keys[place]);
  block[1] = lastColumn(b, c, d, a, keys[place + 1]);
  block[2] = lastColumn(c, d, a, b, keys[place + 2]);
  block[3] = lastColumn(d, a, b, c, keys[place + 3]);
}

/** The block of a stream at a position, before it is encrypted: stream and position, little-endian. */
export function counterBlock(purpose, index, position) {
  const block = new Uint8Array(16);
  const view = new DataView(block.buffer);
  view.setBigUint64(0, position, true);
  view.setBigUint64(8, (purpose << 56n) | index, true);
  return block;
}

/** The words of the first stream of a purpose, of a public key: the core's `AesStreams`. */
export class AesStream {
  #keys;
  #purpose;
  #position = 0;
  #block = new Uint32Array(4);
  #half = 1;

  constructor(key, purpose) {
    this.#keys = expanded(key);
    this.#purpose = purpose;
  }

  /** The upper half of the next word of 64 bits. Streams are read for less than 2^32 blocks. */
  upper() {
    this.#half ^= 1;
    if (this.#half === 0) {
      // The position and the number of the stream, of 64 bits each, little-endian.
      this.#block.set([swapped(this.#position), 0, 0, this.#purpose]);
      this.#position += 1;
      encrypt(this.#keys, this.#block);
    }
    return swapped(this.#block[2 * this.#half + 1]) >>> 0;
  }
}

/** The public key that a seed of 64 bits stands for. */
export function seededKey(seed) {
  const key = utf8("turnout: a seed for tests.......");
  new DataView(key.buffer).setBigUint64(24, seed, true);
  return key;
}
