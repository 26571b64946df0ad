import { fromHex, toHex, utf8 } from "./bytes.js";
import { shown, TurnoutError } from "./errors.js";
import { webCrypto } from "./documents.js";

/** What is signed comes behind these bytes, so that no other signature of the key can be taken for it. */
const SIGNED = utf8("turnout-plan-file v1\0");

/** Encodings of points of small order, without their sign: one signature would fit many messages. */
const SMALL_ORDER = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]);

function isSmall(point) {
  const bytes = Uint8Array.from(point);
  bytes[31] &= 0x7f;
  return SMALL_ORDER.has(toHex(bytes));
}

/** The 64 digits of a public key that the caller gives: digits or bytes, or null for any. */
export function pinned(publicKey) {
  if (publicKey === null) return null;
  const digits = publicKey instanceof Uint8Array ? toHex(publicKey) : String(publicKey).toLowerCase();
  if (publicKey === undefined || fromHex(digits, 32) === null) {
    throw new TurnoutError(
      "argument",
      "publicKey must be the 64 hexadecimal digits of the key that signs the plans of this collection, or null to take a plan of anybody",
    );
  }
  return digits;
}

/** Checks the signature of a plan file, and returns the digits of the key that signed it, or null. */
export async function signerOf(signature, fingerprint, wanted) {
  if (signature === null) {
    if (wanted === null) return null;
    throw new TurnoutError("unsigned", `the plan is not signed; expected a signature by ${wanted}`);
  }
  const text = (name) => signature.member(name)?.text ?? null;
  const [digits, key, value] = [text("public_key"), fromHex(text("public_key"), 32), fromHex(text("value"), 64)];
  if (key === null || value === null || signature.members.size !== 3 || text("algorithm") !== "ed25519") {
    throw new TurnoutError("malformed", `not a signature of a plan: ${shown(signature.raw)}`);
  }
  if (wanted !== null && wanted !== digits) {
    throw new TurnoutError("signer", `the plan is signed by ${digits}, expected ${wanted}`);
  }
  const message = new Uint8Array([...SIGNED, ...fingerprint]);
  const fine = !isSmall(key) && !isSmall(value.subarray(0, 32)) && (await verifies(key, value, message));
  if (!fine) throw new TurnoutError("signature", "the signature of the plan is not valid");
  return digits;
}

async function verifies(key, signature, message) {
  const subtle = webCrypto();
  let imported;
  try {
    imported = await subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name !== "NotSupportedError") return false;
    throw new TurnoutError(
      "no-ed25519",
      "this browser cannot check Ed25519 signatures: use Chrome 137, Firefox 129, Safari 17 or later",
    );
  }
  try {
    return await subtle.verify({ name: "Ed25519" }, imported, signature, message);
  } catch {
    return false;
  }
}
