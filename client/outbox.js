import { TurnoutError } from "./errors.js";

/** A store that forgets when the page is left: for tests, and where nothing may be kept. */
export function memoryStorage() {
  const kept = new Map();
  return {
    get: (key) => kept.get(key) ?? null,
    set: (key, text) => void kept.set(key, text),
    remove: (key) => void kept.delete(key),
  };
}

/**
 * The store of the browser for this origin, a database of IndexedDB. What one page stored every other page
 * reads, and it is on the disk when the promise is kept; `localStorage` promises neither.
 */
export function browserStorage(name = "turnout") {
  const factory = globalThis.indexedDB;
  if (!factory) throw new TurnoutError("storage", "IndexedDB is missing: pass another storage");
  let opened = null;
  const open = () =>
    new Promise((resolve, reject) => {
      const request = factory.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore("texts");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        database.onclose = () => (opened = null);
        database.onversionchange = () => {
          database.close();
          opened = null;
        };
        resolve(database);
      };
    });
  const use = async (mode, work) => {
    opened ??= open();
    const database = await opened.catch((error) => {
      opened = null;
      throw error;
    });
    return new Promise((resolve, reject) => {
      const transaction = database.transaction("texts", mode, { durability: "strict" });
      const request = work(transaction.objectStore("texts"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  };
  // A browser may lose the connection, for example when a phone wakes up: once more with a new one.
  const twice = (mode, work) =>
    use(mode, work).catch(() => {
      opened = null;
      return use(mode, work);
    });
  return {
    get: async (key) => (await twice("readonly", (texts) => texts.get(key))) ?? null,
    set: async (key, text) => void (await twice("readwrite", (texts) => texts.put(text, key))),
    remove: async (key) => void (await twice("readwrite", (texts) => texts.delete(key))),
  };
}

const NOT_SENT = "nothing was sent";

/** The error for a storage that failed, with what is known of the message. */
function failed(error, known) {
  return new TurnoutError("storage", `the storage of this browser failed (${error?.name ?? "unknown"}): ${known}`);
}

/** The answers of a server that will be the same when the message is sent again. */
const FINAL = [400, 401, 403, 409, 410, 413, 415, 422];

/**
 * What a person sent, and what is still to be sent. An answer is drawn once for each plan: whoever answers
 * again, or reloads the page, gets what was drawn, and sends the same message. `storage` has `get`, `set`
 * and `remove` of texts by a key, which may be promises.
 */
export class Outbox {
  #storage;
  #url;
  #fetch;

  constructor({ storage = browserStorage(), url = "reports", fetch = (...request) => globalThis.fetch(...request) } = {}) {
    this.#storage = storage;
    this.#url = url;
    this.#fetch = fetch;
  }

  /** The largest serial that was seen of a collection, or null: pass it to `Plan.read`. */
  async lastSerial(collection) {
    const text = await this.#read(`serial/${collection}`);
    return text !== null && /^[0-9]{1,16}$/.test(text) ? Number(text) : null;
  }

  /** Remembers the serial of a plan that was read. */
  async sawSerial(collection, plan) {
    await this.#alone(`serial/${collection}`, async () => {
      const known = await this.lastSerial(collection);
      if (plan.serial !== null && (known === null || plan.serial > known)) {
        await this.#write(`serial/${collection}`, String(plan.serial));
      }
    });
  }

  /**
   * What became of the answer to a plan: state is "none", "silent", "waiting", "sent" or "refused". Of a later
   * round of a `collection` it is "earlier" for who was asked in a round before: nobody is asked twice.
   */
  async status(plan, { collection = null } = {}) {
    const text = await this.#read(`report/${plan.fingerprint}`);
    if (text === null) {
      const before = plan.round > 0 && collection !== null ? await this.#read(`asked/${collection}`) : null;
      return { state: before === null || before === plan.fingerprint ? "none" : "earlier", message: null };
    }
    try {
      const { state, message } = JSON.parse(text);
      const known = ["silent", "waiting", "sent", "refused"].includes(state);
      if (known && (typeof message === "string" || message === null)) return { state, message };
    } catch {
      // Said below.
    }
    throw new TurnoutError("storage", "what is stored of this plan cannot be read: another program wrote it");
  }

  /**
   * Draws the message of an answer, once for each plan, and stores it before it can leave. Returns the
   * status: "silent" for somebody who is not drawn to take part. `options` are those of `plan.report`;
   * `most` permanent answers at most are used of a person, if answers are permanent. `collection` is the name
   * that the caller gives to plans of which some are rounds: a person answers one round.
   */
  async answer(plan, answer, { most = 1, collection = null, ...options } = {}) {
    const draw = async () => {
      const known = await this.status(plan, { collection });
      if (known.state !== "none") return known;
      const message = plan.isPermanent
        ? await this.#permanent(plan, answer, most, options)
        : plan.report(answer, options);
      const status = { state: message === null ? "silent" : "waiting", message };
      if (collection !== null) {
        await this.#write(`asked/${collection}`, plan.fingerprint);
        const others = await this.#waiting(collection);
        if (message !== null) await this.#write(`waiting/${collection}`, JSON.stringify([...others, plan.fingerprint]));
      }
      await this.#write(`report/${plan.fingerprint}`, JSON.stringify(status));
      return status;
    };
    return this.#alone(`report/${plan.fingerprint}`, () =>
      collection === null ? draw() : this.#alone(`asked/${collection}`, draw),
    );
  }

  /** The state is stored before the message: lost, it would be drawn anew and spend its budget twice. */
  async #permanent(plan, answer, most, options) {
    const { context } = await plan.permanent(null, { most });
    return this.#alone(`permanent/${context}`, async () => {
      const state = await this.#read(`permanent/${context}`);
      const answers = await plan.permanent(state, { most });
      const message = await answers.report(answer, options);
      await this.#write(`permanent/${context}`, await answers.state());
      return message;
    });
  }

  /**
   * Sends the message that waits under a plan, or under that of `earlier`, if one does. Returns the status after it; an error with the code
   * "sending" says that it still waits and can be sent again, one with "refused" that the server does not
   * take it.
   */
  async send(plan) {
    return this.#alone(`send/${plan.fingerprint}`, async () => {
      const waiting = await this.status(plan);
      if (waiting.state !== "waiting") return waiting;
      const taken = await this.#post(waiting.message);
      const status = taken ? { state: "sent", message: null } : { ...waiting, state: "refused" };
      const known = taken ? "the message has arrived, and counts once if it is sent again" : "the server did not take the message";
      await this.#write(`report/${plan.fingerprint}`, JSON.stringify(status), known);
      if (!taken) throw new TurnoutError("refused", "the server did not take the message: the collection may have ended");
      return status;
    });
  }

  /**
   * The messages of a `collection` that wait under other plans than this one, as those of yesterday do where each
   * day has a plan: `fingerprint` and `message` of each. `send` takes them as it takes a plan. Without a plan, all.
   */
  async earlier(plan, { collection }) {
    const found = [];
    for (const fingerprint of await this.#waiting(collection)) {
      if (fingerprint === plan?.fingerprint) continue;
      const { message } = await this.status({ fingerprint });
      found.push({ fingerprint, message });
    }
    return found;
  }

  /** The fingerprints of plans of a collection under which a message waits. */
  async #waiting(collection) {
    let listed = [];
    try {
      listed = JSON.parse((await this.#read(`waiting/${collection}`)) ?? "[]");
    } catch (error) {
      if (error instanceof TurnoutError) throw error;
    }
    const found = [];
    for (const fingerprint of Array.isArray(listed) ? listed : []) {
      if ((await this.status({ fingerprint })).state === "waiting") found.push(fingerprint);
    }
    return found;
  }

  /** Whether the server takes a message; an error where that is not known. */
  async #post(message) {
    const again = (reason) => new TurnoutError("sending", `the message was not sent, and is kept: ${reason}`);
    let response;
    try {
      response = await this.#fetch(this.#url, {
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
        body: `${message}\n`,
        cache: "no-store",
        credentials: "omit",
        referrerPolicy: "no-referrer",
        redirect: "error",
      });
    } catch (error) {
      // Those of fetch itself; an error of another kind is of a function that the caller gave.
      if (error instanceof TypeError || error instanceof DOMException) throw again("the server cannot be reached");
      throw error;
    }
    if (FINAL.includes(response.status)) return false;
    if (!response.ok) throw again(`the server answered ${response.status}`);
    const answer = await response.json().catch(() => null);
    if (answer?.accepted >= 1 || answer?.duplicates >= 1) return true;
    if (Object.values(answer?.refused ?? {}).some((count) => count >= 1)) return false;
    throw again("the server did not say what became of it");
  }

  /** Forgets what was sent under a plan, and a message that waits. */
  async forget(plan) {
    await this.#guarded(() => this.#storage.remove(`report/${plan.fingerprint}`));
  }

  #read(key) {
    return this.#guarded(async () => (await this.#storage.get(key)) ?? null);
  }

  #write(key, text, known) {
    return this.#guarded(() => this.#storage.set(key, text), known);
  }

  /** Uses the storage; an error says what is known of the message. */
  async #guarded(use, known = NOT_SENT) {
    try {
      return await use();
    } catch (error) {
      throw error instanceof TurnoutError ? error : failed(error, known);
    }
  }

  /** One page at a time, where the browser has locks: two would draw two messages. */
  async #alone(name, use) {
    const locks = globalThis.navigator?.locks;
    if (locks === undefined) return use();
    let begun = false;
    const locked = () => {
      begun = true;
      return use();
    };
    try {
      return await locks.request(`turnout/${name}`, locked);
    } catch (error) {
      // Browsers refuse locks where they refuse storage.
      throw begun ? error : failed(error, NOT_SENT);
    }
  }
}
