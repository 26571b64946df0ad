// Words of a seed as turnout's core draws them, by Node's own AES: what the client is given in tests.

import { createCipheriv, createHash } from "node:crypto";

const PURPOSES = { participation: 1n, report: 2n, choice: 50n };

/** Blocks that are encrypted at once. */
const BLOCKS = 32;

/** The words of one stream. */
class Stream {
  constructor(seed, purpose) {
    const key = Buffer.from("turnout: a seed for tests.......");
    key.writeBigUInt64LE(seed, 24);
    this.cipher = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false);
    this.stream = PURPOSES[purpose] << 56n;
    this.position = 0n;
    this.words = [];
    this.place = 0;
  }

  next() {
    if (this.place === this.words.length) {
      const blocks = Buffer.alloc(16 * BLOCKS);
      for (let block = 0; block < BLOCKS; block++) {
        blocks.writeBigUInt64LE(this.position++, 16 * block);
        blocks.writeBigUInt64LE(this.stream, 16 * block + 8);
      }
      const made = this.cipher.update(blocks);
      this.words = Array.from({ length: 2 * BLOCKS }, (_, word) => made.readBigUInt64LE(8 * word));
      this.place = 0;
    }
    return this.words[this.place++];
  }
}

/** The source of words of a seed: that of a part is the digest of the seed and the numbers of the part. */
export function seeded(seed) {
  return (purpose, path) => {
    if (path.length === 0) return new Stream(BigInt(seed), purpose);
    const digest = createHash("sha256").update([seed, ...path].join("/")).digest();
    return new Stream(digest.readBigUInt64LE(0), purpose);
  };
}
