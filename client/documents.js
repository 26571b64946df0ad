import { toHex } from "./bytes.js";
import { TurnoutError, shown } from "./errors.js";
import { readJson } from "./json.js";

/** WebCrypto, or the error that says what is missing. */
export function webCrypto() {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) {
    throw new TurnoutError("no-webcrypto", "crypto.subtle is missing: browsers have it on https:// and on localhost only");
  }
  return subtle;
}

/** SHA-256 of bytes. */
export async function sha256(bytes) {
  return new Uint8Array(await webCrypto().digest("SHA-256", bytes));
}

/** SHA-256 of bytes in hexadecimal digits. */
export async function digestOf(bytes) {
  return toHex(await sha256(bytes));
}

/** A kind of documents: a format, a version, and the members that are known. */
export class DocumentKind {
  constructor(word, format, version, members, optional = []) {
    Object.assign(this, { word, format, version, members, optional });
  }

  malformed(reason) {
    return new TurnoutError("malformed", `not a ${this.word} of turnout: ${reason}`);
  }

  read(text) {
    const json = readJson(text);
    this.check(json);
    return json;
  }

  /** Checks format, version and the names of all members, in this order: a later version may have others. */
  check(json) {
    if (json.member("format")?.text !== this.format) throw this.malformed(`its format is not '${this.format}'`);
    const version = json.member("version");
    if (version?.integer !== BigInt(this.version)) {
      const found = version === null ? "none" : shown(version.raw);
      throw new TurnoutError("version", `the ${this.word} has version ${found}; this client reads ${this.version}`);
    }
    const names = Array.from(json.members.keys());
    const known = ["format", "version", ...this.members, ...this.optional];
    const missing = this.members.filter((name) => !json.members.has(name));
    const unknown = names.filter((name) => !known.includes(name));
    for (const [problem, wrong] of [["lacks", missing], ["has unknown members", unknown]]) {
      if (wrong.length > 0) {
        const list = shown(wrong.map((name) => `'${name}'`).join(", "));
        throw new TurnoutError("members", `the ${this.word} ${problem} ${list}`);
      }
    }
  }

  /** The error for a member that is something else. */
  value(name, expected, found) {
    const text = found === null ? "nothing" : shown(found.raw);
    return new TurnoutError("value", `the ${name} of a ${this.word} must be ${expected}, got ${text}`);
  }
}
