import { notAQuestion } from "./errors.js";

/** What a member can be read as: a word for messages, and a function that gives null for anything else. */
export const READ = {
  any: ["anything", (json) => json],
  number: ["a number", (json) => json.number],
  text: ["a text", (json) => json.text],
  integer: ["an integer from 0 to 2^64 - 1", (json) => (json.integer >= 0n && json.integer < 1n << 64n ? json.integer : null)],
  object: ["an object", (json) => (json.members === null ? null : new Members(json))],
  list: ["a list", (json) => json.list],
};

/** The members of a description, taken one by one, so that none is left unread. */
export class Members {
  #left;

  constructor(json) {
    if (json.members === null) throw notAQuestion("a description is no object");
    this.#left = new Map(json.members);
  }

  /** Takes a member that may be missing: then null. */
  find(name, [word, read]) {
    const json = this.#left.get(name);
    if (json === undefined) return null;
    this.#left.delete(name);
    const found = read(json);
    if (found === null) throw notAQuestion(`the member ${name} is not ${word}`);
    return found;
  }

  take(name, reader) {
    const found = this.find(name, reader);
    if (found === null) throw notAQuestion(`there is no member ${name}`);
    return found;
  }

  /** Takes a list whose items are all read alike. */
  takeList(name, reader) {
    const [word, read] = reader;
    return this.take(name, READ.list).map((json) => {
      const found = read(json);
      if (found === null) throw notAQuestion(`an item of ${name} is not ${word}`);
      return found;
    });
  }

  has(name) {
    return this.#left.has(name);
  }

  finish() {
    for (const name of this.#left.keys()) throw notAQuestion(`there is an unknown member ${name}`);
  }
}

/** What a plan says of its question: its kind, epsilon and domain, and what its kind alone has. */
export class Description {
  constructor(members) {
    this.name = members.take("name", READ.text);
    this.epsilon = members.take("epsilon", READ.number);
    this.domain = members.take("domain", READ.any);
    this.rest = members;
  }
}

/** Refuses an epsilon that no randomizer has. */
export function checkEpsilon(epsilon) {
  if (!(epsilon > 0 && epsilon <= 42)) throw notAQuestion(`epsilon is ${epsilon}, and must be above 0 and at most 42`);
  return epsilon;
}
