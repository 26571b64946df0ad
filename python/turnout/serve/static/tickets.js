// Tickets: blind signatures (RFC 9474, RSABSSA-SHA384-PSS-Randomized). A person who was invited asks the
// server to sign a blinded number, and sends a message with the signed one: the server knows that somebody
// who was invited sent it, and cannot tell who.
//
//   const request = await TicketRequest.create(publicKey);     // keep request.toJSON() until it is answered
//   const answer = await ask(request.blinded);                 // what the server signed
//   const ticket = await request.finish(answer);               // goes with the message
//
// Numbers are BigInt, and WebCrypto hashes and checks the signature. What is secret here is secret from the
// server only, and never leaves the device.

const HASH_BYTES = 48;
const NUMBER_BYTES = 32;
const PSS = { name: "RSA-PSS", hash: "SHA-384" };

/** What tickets refuse: `code` says which of "key", "answer", "state" it is. */
export class TicketError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "TicketError";
    this.code = code;
  }
}

/** Bytes as base64url without padding. */
export function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of base64 or base64url. */
export function fromBase64(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function toNumber(bytes) {
  let digits = "0x0";
  for (const byte of bytes) digits += byte.toString(16).padStart(2, "0");
  return BigInt(digits);
}

function toBytes(number, length) {
  const digits = number.toString(16).padStart(2 * length, "0");
  return Uint8Array.from({ length }, (_, at) => parseInt(digits.slice(2 * at, 2 * at + 2), 16));
}

function joined(...parts) {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

async function sha384(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", joined(...parts)));
}

function power(base, exponent, modulus) {
  let result = 1n;
  for (let square = base % modulus; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

/** The inverse, or null if there is none. */
function inverseOf(number, modulus) {
  let [rest, next] = [modulus, number % modulus];
  let [factor, following] = [0n, 1n];
  while (next > 0n) {
    const times = rest / next;
    [rest, next] = [next, rest - times * next];
    [factor, following] = [following, factor - times * following];
  }
  return rest === 1n ? ((factor % modulus) + modulus) % modulus : null;
}

/** EMSA-PSS-ENCODE of RFC 8017, section 9.1.1, with SHA-384 and MGF1. */
async function encoded(messageHash, salt, bits) {
  const length = Math.ceil(bits / 8);
  const second = await sha384(new Uint8Array(8), messageHash, salt);
  const block = new Uint8Array(length - HASH_BYTES - 1);
  block[block.length - HASH_BYTES - 1] = 1;
  block.set(salt, block.length - HASH_BYTES);
  for (let counter = 0; counter * HASH_BYTES < block.length; counter++) {
    const mask = await sha384(second, toBytes(BigInt(counter), 4));
    for (let at = counter * HASH_BYTES; at < Math.min(block.length, (counter + 1) * HASH_BYTES); at++) {
      block[at] ^= mask[at - counter * HASH_BYTES];
    }
  }
  block[0] &= 0xff >> (8 * length - bits);
  return joined(block, second, Uint8Array.of(0xbc));
}

class PublicKey {
  static async read(spki) {
    let key, parts;
    try {
      key = await crypto.subtle.importKey("spki", fromBase64(spki), PSS, true, ["verify"]);
      parts = await crypto.subtle.exportKey("jwk", key);
    } catch {
      throw new TicketError("key", "the key of tickets is not an RSA key that this browser can read");
    }
    const modulus = fromBase64(parts.n);
    if (modulus.length < 256 || modulus.length > 512 || modulus[0] < 128) {
      throw new TicketError("key", "the key of tickets must have 2048 to 4096 bits");
    }
    const it = new PublicKey();
    it.key = key;
    it.length = modulus.length;
    it.modulus = toNumber(modulus);
    it.exponent = toNumber(fromBase64(parts.e));
    return it;
  }

  async verifies(signature, message) {
    return crypto.subtle.verify({ ...PSS, saltLength: HASH_BYTES }, this.key, signature, message);
  }
}

/** The blinded number of a prepared message, and what undoes the factor; null if the factor has no inverse. */
async function blind(key, message, salt, factor) {
  const inverse = inverseOf(factor, key.modulus);
  if (inverse === null) return null;
  const block = await encoded(await sha384(message), salt, 8 * key.length - 1);
  const blinded = (toNumber(block) * power(factor, key.exponent, key.modulus)) % key.modulus;
  return { blinded, inverse };
}

/** A ticket that waits for its signature. Keep `toJSON()` until then: the server signs only once. */
export class TicketRequest {
  #spki;
  #key;
  #message;
  #blinded;
  #inverse;

  constructor(spki, key, message, blinded, inverse) {
    this.#spki = spki;
    this.#key = key;
    this.#message = message;
    this.#blinded = blinded;
    this.#inverse = inverse;
  }

  /** A new one, for the public key of a collection (SPKI, base64). */
  static async create(publicKey) {
    const key = await PublicKey.read(publicKey);
    const number = crypto.getRandomValues(new Uint8Array(NUMBER_BYTES));
    const randomizer = crypto.getRandomValues(new Uint8Array(NUMBER_BYTES));
    const salt = crypto.getRandomValues(new Uint8Array(HASH_BYTES));
    const message = joined(randomizer, number);
    for (;;) {
      const factor = toNumber(crypto.getRandomValues(new Uint8Array(key.length)));
      const found = factor < key.modulus ? await blind(key, message, salt, factor) : null;
      if (found) return new TicketRequest(publicKey, key, message, found.blinded, found.inverse);
    }
  }

  /** The one whose state was kept. */
  static async fromJSON(state) {
    try {
      const key = await PublicKey.read(state.publicKey);
      const [message, blinded, inverse] = [state.message, state.blinded, state.inverse].map(fromBase64);
      if (message.length === 2 * NUMBER_BYTES) {
        return new TicketRequest(state.publicKey, key, message, toNumber(blinded), toNumber(inverse));
      }
    } catch (error) {
      if (error instanceof TicketError) throw error;
    }
    throw new TicketError("state", "the kept state of a ticket cannot be read");
  }

  /** What to keep until the answer is there. It is secret: with it the server could link the ticket. */
  toJSON() {
    return {
      publicKey: this.#spki,
      message: toBase64(this.#message),
      blinded: this.blinded,
      inverse: toBase64(toBytes(this.#inverse, this.#key.length)),
    };
  }

  /** What the server signs, base64url: it says nothing about the ticket. */
  get blinded() {
    return toBase64(toBytes(this.#blinded, this.#key.length));
  }

  /** The ticket, base64url, from the server's answer (base64 or base64url). */
  async finish(answer) {
    let signed = null;
    try {
      signed = fromBase64(answer);
    } catch {
      // Not base64: refused below.
    }
    if (signed?.length === this.#key.length) {
      const number = (toNumber(signed) * this.#inverse) % this.#key.modulus;
      const signature = toBytes(number, this.#key.length);
      if (await this.#key.verifies(signature, this.#message)) {
        const number = this.#message.subarray(NUMBER_BYTES);
        const randomizer = this.#message.subarray(0, NUMBER_BYTES);
        return toBase64(joined(number, randomizer, signature));
      }
    }
    throw new TicketError("answer", "the answer of the server is not a signature of this ticket");
  }
}

/** For tests: the steps with given numbers. */
export const steps = { PublicKey, blind, toNumber, toBytes };
