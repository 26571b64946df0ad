import { fromHex, toHex, utf8 } from "./bytes.js";
import { describeKind } from "./describing.js";
import { digestOf, DocumentKind } from "./documents.js";
import { Columns, Labels, Numbers } from "./domains.js";
import { TurnoutError } from "./errors.js";
import { canonical, textsOf } from "./json.js";
import { Selection } from "./participation.js";
import { memoizedOf, PermanentAnswers } from "./permanent.js";
import { questionOf } from "./questions.js";
import { pinned, signerOf } from "./signing.js";
import { Noise, randomBytes } from "./words.js";

const FILE = new DocumentKind("plan file", "turnout-plan-file", 1, ["fingerprint", "plan"], ["signature"]);
const PLAN = new DocumentKind("plan", "turnout-plan", 1, ["oracle", "participation"], ["serial", "expires", "groups"]);

const MOST_SERIAL = BigInt(Number.MAX_SAFE_INTEGER);
const MOST_EXPIRES = 253_402_300_799n;
const NONCE_BYTES = 16;

/** A signed plan: what is asked, who takes part, until when, and how an answer becomes a message. */
export class Plan {
  #question;
  #groups;

  /** Plans are read with `Plan.read`. */
  constructor(json, fingerprint, signer) {
    this.text = json.raw;
    this.fingerprint = fingerprint;
    this.signer = signer;
    this.participation = participationOf(json.member("participation"));
    const number = (name, most) => {
      const found = json.member(name);
      if (found === null) return null;
      if (!(found.integer >= 0n && found.integer <= most)) throw PLAN.value(name, `an integer from 0 to ${most}`, found);
      return Number(found.integer);
    };
    this.serial = number("serial", MOST_SERIAL);
    this.expires = number("expires", MOST_EXPIRES);
    this.#groups = groupsOf(json.member("groups"));
    this.#question = questionOf(json.member("oracle")) ?? memoizedOf(json.member("oracle"));
    this.selection = this.participation.kind === "personalized" ? null : new Selection(this.participation.rate);
    Object.freeze(this);
  }

  /**
   * Reads a plan file and checks all that it says: that it is whole, signed by `publicKey` (null: by
   * anybody or nobody), not expired at `now` (seconds since 1970, or a Date) and not older than `lastSerial`.
   */
  static async read(data, { publicKey, now, lastSerial = null } = {}) {
    const wanted = pinned(publicKey);
    const json = FILE.read(asciiOf(data));
    const stated = json.member("fingerprint");
    const fingerprint = fromHex(stated.text, 32);
    if (fingerprint === null) throw FILE.value("fingerprint", "64 hexadecimal digits", stated);
    const described = json.member("plan");
    const text = canonical(described);
    if (text === null) throw FILE.malformed("it holds half of a surrogate pair");
    if (text !== described.raw) {
      throw new TurnoutError("not-canonical", "the plan is not written in its canonical form: a program formatted the file anew");
    }
    if ((await digestOf(utf8(text))) !== toHex(fingerprint)) {
      throw new TurnoutError("fingerprint", "the plan does not match its fingerprint: the file was altered or reformatted");
    }
    const signer = await signerOf(json.member("signature"), fingerprint, wanted);
    PLAN.check(described);
    const plan = new Plan(described, toHex(fingerprint), signer);
    plan.checkCurrent(now);
    plan.checkSerial(lastSerial);
    return plan;
  }

  /** The name of the kind of question. */
  get kind() {
    return this.#question.name;
  }

  /** What was asked for, in nats. */
  get epsilon() {
    return this.#question.epsilon;
  }

  /** Which round of several this is, from 0, of which a person answers one; null for any other question. */
  get round() {
    return this.#question.round ?? null;
  }

  /** Whether answers are permanent: then `permanent` makes messages, and not `report`. */
  get isPermanent() {
    return this.kind === "memoized";
  }

  /** The public columns that a message carries, unprotected, with the values that they may have. */
  get groups() {
    return this.#groups.map(({ column, plain }) => ({ column, values: plain }));
  }

  /** What can be answered: an entry for each question. */
  get questions() {
    const { domain } = this.#question;
    const choice = (name, labels) => ({ name, kind: "choice", size: Number(labels.size), labels: labels.values });
    if (domain instanceof Columns) return domain.asked.map(({ name, labels }) => choice(name, labels));
    if (domain instanceof Labels) return [choice(null, domain)];
    if (domain instanceof Numbers) {
      const { low, high, dimensions } = domain;
      return [{ name: null, kind: dimensions === 1 ? "number" : "numbers", low, high, dimensions }];
    }
    return [{ name: null, kind: "value", values: String(domain.values) }];
  }

  /** The integers that decide what is reported, for audits: words of 2^64, mostly. */
  get thresholds() {
    return { participation: this.selection?.thresholds ?? null, ...this.#question.thresholds };
  }

  /** What the plan means, in sentences for the person who answers. */
  describe() {
    return describeKind(this);
  }

  /** Refuses a plan that has expired. */
  checkCurrent(now) {
    const moment = now instanceof Date ? now.getTime() / 1000 : (now ?? Date.now() / 1000);
    if (this.expires !== null && !(moment < this.expires)) {
      throw new TurnoutError("expired", `the plan expired ${this.expires} seconds after the start of 1970: ask for the one in force`);
    }
  }

  /** Refuses a plan that is older than one that is known. */
  checkSerial(least) {
    if (least !== null && !(this.serial !== null && this.serial >= least)) {
      const found = this.serial === null ? "no serial" : `serial ${this.serial}`;
      throw new TurnoutError("serial", `the plan has ${found}, expected ${least} or a later one`);
    }
  }

  /**
   * The message of one person's answer, a line of text without its end, or null if this person is not
   * drawn to take part. Each call draws anew: send one message, and where sending fails send it again.
   */
  report(answer, { group, words, nonce, now, coded = false } = {}) {
    if (this.isPermanent) throw new TurnoutError("permanent", "the plan asks for permanent answers: use plan.permanent");
    this.#checkImpersonal();
    this.checkCurrent(now);
    const found = this.#question.domain.find(answer, coded);
    const values = this.groupOf(group);
    const noise = new Noise(words);
    if (!this.selection.draw(noise)) return null;
    const report = this.#question.report(found, noise);
    return report === null ? null : this.message(this.#question.layout, report, values, nonce);
  }

  /**
   * The permanent answers of a person: of a `state` that was stored, or new ones, `most` at most.
   */
  async permanent(state = null, { most = 1, secret } = {}) {
    if (!this.isPermanent) throw new TurnoutError("fresh", `${this.kind} has fresh answers, of which no state is kept: use plan.report`);
    this.#checkImpersonal();
    return PermanentAnswers.of(this, this.#question, { state, most, secret });
  }

  #checkImpersonal() {
    if (this.selection === null) {
      throw new TurnoutError("personal-participation", "participation is personal: this client does not know its probability");
    }
  }

  /** The text of a group as it stands in a message, or null where the plan has none. */
  groupOf(group) {
    const columns = this.#groups;
    if (columns.length === 0) {
      if (group === undefined || group === null) return null;
      throw new TurnoutError("group", "the plan has no groups: leave group out");
    }
    const names = columns.map(({ column }) => column);
    const given = Array.isArray(group)
      ? group
      : group !== null && typeof group === "object"
        ? names.filter((name) => Object.hasOwn(group, name)).map((name) => group[name])
        : [];
    const texts = columns.map(({ values }, place) => {
      const found = given.length === names.length ? textsOf(given[place]).filter((text) => values.includes(text)) : [];
      if (found.length !== 1) {
        throw new TurnoutError("group", `group must have a value that the plan lists for each of: ${names.join(", ")}`);
      }
      return found[0];
    });
    return `[${texts.join(",")}]`;
  }

  /** A message: what the core's `MessageWriter` writes. */
  message(layout, report, group, nonce = randomBytes(NONCE_BYTES)) {
    const digits = nonce instanceof Uint8Array && nonce.length === NONCE_BYTES ? toHex(nonce) : null;
    if (digits === null) throw new TurnoutError("argument", `nonce must be ${NONCE_BYTES} bytes`);
    const column = group === null ? "" : `"group":${group},`;
    return (
      `{"format":"turnout-report","version":1,"plan":"${this.fingerprint}","nonce":"${digits}",` +
      `${column}"report":${layout.text(report)}}`
    );
  }
}

function asciiOf(data) {
  let text = data;
  if (typeof data !== "string") {
    if (!(data instanceof Uint8Array || data instanceof ArrayBuffer)) {
      throw new TurnoutError("argument", "a plan file is given as text or as bytes (Uint8Array)");
    }
    text = new TextDecoder("latin1").decode(data);
  }
  if (/[^\0-\x7f]/.test(text)) throw FILE.malformed("it holds other bytes than ASCII");
  return text;
}

function participationOf(json) {
  const kind = json.member("kind")?.text;
  const rate = json.member("rate");
  const known = json.members !== null && json.members.size === (rate === null ? 1 : 2);
  if (known && rate === null && (kind === "everyone" || kind === "personalized")) {
    return kind === "everyone" ? { kind, rate: 1 } : { kind };
  }
  if (known && kind === "bernoulli" && rate?.number > 0 && rate.number <= 1) return { kind, rate: rate.number };
  throw PLAN.value("participation", "one that is known", json);
}

/** The public columns of a plan, with the canonical texts of their values. */
function groupsOf(json) {
  if (json === null) return [];
  const refused = () => PLAN.value("groups", "a list of different columns with different values", json);
  const columns = (json.list ?? []).map((described) => {
    const column = described.member("column")?.text ?? null;
    const listed = described.member("values")?.list ?? null;
    if (column === null || listed === null || described.members.size !== 2) throw refused();
    const values = listed.map((value) => (isGroupValue(value) ? canonical(value) : null));
    if (values.length === 0 || values.includes(null) || new Set(values).size < values.length) throw refused();
    return { column, values, plain: listed.map((value) => value.plain) };
  });
  const names = new Set(columns.map(({ column }) => column));
  if (columns.length === 0 || names.size < columns.length) throw refused();
  return columns;
}

function isGroupValue(value) {
  if (value.kind === "list") return false;
  if (value.kind !== "object") return true;
  const [[name, held]] = value.members.size === 1 ? value.members : [["", null]];
  return ["date", "time", "datetime"].includes(name) && (held?.text ?? null) !== null;
}
