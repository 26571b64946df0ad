/** What turnout refuses. */
export class TurnoutError extends Error {
  /**
   * Which kind of refusal it is. Of a plan: "malformed", "version", "members", "value", "not-canonical",
   * "fingerprint", "unsigned", "signer", "signature", "expired", "serial", "question", "unknown-kind",
   * "personal-participation". Of an answer: "answer", "group", "budget". Of a state: "other-state", "fingerprint",
   * "malformed". Of a call: "argument", "permanent", "fresh". Of the browser: "no-webcrypto", "no-ed25519",
   * "no-randomness", "storage". Of sending: "sending" (it can be sent again), "refused".
   */
  readonly code: string;
}

/** Uniform words of 64 bits. */
export interface Words {
  next(): bigint;
}

/** For tests only: the words of a stream, by its purpose and by the part of the draw that it is for. */
export type WordSource = (
  purpose: "participation" | "report" | "choice",
  path: readonly number[],
) => Words;

/** A label or a value of a group, as it stands in the plan: integers beyond 2^53 are bigint. */
export type Label = string | number | bigint | boolean | null | object;

/** One question: a choice of labels (null: the codes from 0 to size - 1), a number, or a value. */
export type Question =
  | { name: string | null; kind: "choice"; size: number; labels: Label[] | null }
  | { name: null; kind: "number" | "numbers"; low: number; high: number; dimensions: number }
  | { name: null; kind: "value"; values: string };

/**
 * An answer: to one question a label, a number or a value; to several an object by their names, or a list
 * in their order; for several numbers a list.
 */
export type Answer = Label | number[] | Label[] | Record<string, Label>;

export interface ReportOptions {
  /** A value for each public column of the plan, by its name or in their order. */
  group?: Record<string, Label> | Label[];
  /** Whether the answer is given by codes: 0 for the first label. */
  coded?: boolean;
  /** The moment at which the plan must be in force: seconds since 1970, or a Date; the present. */
  now?: number | Date;
  /** For tests only: where words come from. */
  words?: WordSource;
  /** For tests only: the sixteen bytes that the message has of its own. */
  nonce?: Uint8Array;
}

export interface ReadOptions {
  /** The 64 hexadecimal digits (or 32 bytes) of the key that signs; null takes a plan of anybody. */
  publicKey: string | Uint8Array | null;
  /** The moment at which the plan must be in force: seconds since 1970, or a Date; the present. */
  now?: number | Date;
  /** The largest serial that was seen: a plan with a smaller one, or none, is refused. */
  lastSerial?: number | null;
}

/** Integers that decide, by name: words of 2^64, mostly. */
export interface Thresholds {
  readonly [name: string]: bigint | readonly bigint[] | Thresholds | readonly Thresholds[] | null;
}

/** A plan that was read and checked. */
export class Plan {
  private constructor();

  /** Reads a plan file, as text or bytes, and checks all that it says. */
  static read(data: string | Uint8Array | ArrayBuffer, options: ReadOptions): Promise<Plan>;

  /** The canonical text of the plan. */
  readonly text: string;
  /** SHA-256 of the text: messages name the plan by it. */
  readonly fingerprint: string;
  /** The key that signed the file, or null. */
  readonly signer: string | null;
  readonly participation:
    | { readonly kind: "everyone" | "bernoulli"; readonly rate: number }
    | { readonly kind: "personalized" };
  readonly serial: number | null;
  /** When it expires, in seconds since 1970. */
  readonly expires: number | null;
  /** The name of the kind of question, as it stands in the plan. */
  readonly kind: string;
  readonly epsilon: number;
  /** Which round of several this is, from 0, of which a person answers one; null for any other question. */
  readonly round: number | null;
  /** Whether answers are permanent: then `permanent` makes messages, and not `report`. */
  readonly isPermanent: boolean;
  readonly groups: { column: string; values: Label[] }[];
  readonly questions: Question[];
  /** The integers that decide what is reported, for audits. */
  readonly thresholds: Thresholds;

  /** What the plan means, in sentences for the person who answers. */
  describe(): string[];

  /**
   * The message of one answer, a line of text without its end, or null if the person is not drawn to take
   * part. Each call draws anew: send one message.
   */
  report(answer: Answer, options?: ReportOptions): string | null;

  /** The permanent answers of a person: of a stored state, or new ones, of which `most` may be used. */
  permanent(state?: string | null, options?: { most?: number; secret?: Uint8Array }): Promise<PermanentAnswers>;
}

/** A person's side of a collection that is repeated. */
export class PermanentAnswers {
  private constructor();

  /** By what a state is known to be of these permanent answers. */
  readonly context: string;
  readonly mostValues: number;
  readonly valuesGiven: number;

  /** The secret and the answers given: store it, as secret as the answers, before a message leaves. */
  state(): Promise<string>;

  /** The message of this round, or null if the person does not take part. */
  report(answer: Answer, options?: ReportOptions): Promise<string | null>;
}

/** Where texts are kept by a key. */
export interface Storage {
  get(key: string): string | null | Promise<string | null>;
  set(key: string, text: string): void | Promise<void>;
  remove(key: string): void | Promise<void>;
}

/** Forgets when the page is left. */
export function memoryStorage(): Storage;

/** A database of IndexedDB, by its name: shared by all pages of an origin, and on the disk once it is stored. */
export function browserStorage(name?: string): Storage;

/** "silent": not drawn to take part; "waiting": drawn, and not acknowledged yet. */
export interface Status {
  /** "earlier": was asked in an earlier round of the collection, and is not asked again. */
  state: "none" | "silent" | "waiting" | "sent" | "refused" | "earlier";
  message: string | null;
}

/** A message that waits under another plan than the one in force. */
export interface Earlier {
  readonly fingerprint: string;
  readonly message: string;
}

/** What a person sent, and what is still to be sent. */
export class Outbox {
  /**
   * `url` is where messages are posted; `fetch` the function that does. What it throws beside errors of
   * fetch, TypeError and DOMException, comes out of `send`, and the message waits.
   */
  constructor(options?: { storage?: Storage; url?: string | URL; fetch?: typeof fetch });

  /** The largest serial that was seen of a collection, by the name that the caller gives it. */
  lastSerial(collection: string): Promise<number | null>;
  sawSerial(collection: string, plan: Plan): Promise<void>;

  status(plan: Plan, options?: { collection?: string | null }): Promise<Status>;

  /**
   * Draws the message of an answer, once for each plan, and stores it before it can leave. Of the rounds of
   * a `collection`, by the name that the caller gives it, a person answers one.
   */
  answer(
    plan: Plan,
    answer: Answer,
    options?: ReportOptions & { most?: number; collection?: string | null },
  ): Promise<Status>;

  /** Sends the message that waits under a plan, the same one after a failure. */
  send(plan: Plan | Earlier): Promise<Status>;

  /**
   * The messages of a `collection` that wait under other plans than this one, as those of yesterday do where
   * each day has a plan. Without a plan, all that wait.
   */
  earlier(plan: Plan | null, options: { collection: string }): Promise<Earlier[]>;

  /** Forgets what was sent under a plan, and a message that waits. */
  forget(plan: Plan): Promise<void>;
}
