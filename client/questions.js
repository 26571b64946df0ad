import { Columns, combined, Labels, MOST_CELLS, Prefixes } from "./domains.js";
import { notAQuestion } from "./errors.js";
import { scaledFloor } from "./exact.js";
import { Layout, narrowest } from "./layout.js";
import { log, log1p } from "./libm.js";
import { numbersAsked } from "./means.js";
import { Description, Members, READ } from "./members.js";
import { areCodes, oracleOf, oracleOfCodes } from "./oracles.js";
import { takesPart } from "./participation.js";
import { choose, uniformBelow } from "./words.js";

/*
 * A question has a `domain`, whose `find` makes of an answer codes or numbers, a `layout`, the `thresholds`
 * of its randomizers, and `report`, which draws the integers of a report, or null for who is silent.
 */

/** What the plan asks. */
export function questionOf(json) {
  const asked = new Description(new Members(json));
  switch (asked.name) {
    case "prefixes":
      return search(asked);
    case "second_round":
      return new SecondRound(asked);
    case "joint_table":
      return jointTable(asked);
    case "padded":
      return new Padded(asked);
    case "hierarchical":
      return hierarchical(asked);
    case "pair_tables":
      return pairTables(asked);
    case "sampled_attribute":
      return sampledAttribute(asked);
    case "split_budget":
      return splitBudget(asked);
    case "duchi":
    case "hybrid":
    case "piecewise":
    case "square_wave": {
      const { domain, mechanism } = numbersAsked(asked);
      return new Asked(asked, domain, mechanism);
    }
    case "memoized":
      return null;
    default: {
      const labels = new Labels(asked.domain);
      return new Asked(asked, labels, oracleOf(asked, labels.size));
    }
  }
}

/** One randomizer, of the answer as it is or of what is made of it. */
class Asked {
  constructor(asked, domain, oracle, made = (found) => found) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, domain, oracle, made });
    this.layout = oracle.layout;
  }

  get thresholds() {
    return this.oracle.thresholds;
  }

  report(found, noise) {
    return this.oracle.report(this.made(found), noise.stream("report"));
  }
}

function jointTable(asked) {
  const columns = new Columns(asked.domain);
  const { sizes } = columns;
  const cells = sizes.reduce((all, size) => all * size, 1n);
  if (cells > MOST_CELLS) throw notAQuestion(`a joint table has at most ${MOST_CELLS} cells`);
  const oracle = oracleOfCodes(asked.rest.take("oracle", READ.object), asked.epsilon, cells);
  asked.rest.finish();
  return new Asked(asked, columns, oracle, (codes) => combined(codes, sizes));
}

function search(asked) {
  const prefixes = new Prefixes(asked.domain);
  const [number, groups] = ["number", "groups"].map((name) => asked.rest.take(name, READ.integer));
  const described = asked.rest.take("oracle", READ.object);
  asked.rest.finish();
  if (number >= groups) throw notAQuestion(`the number of the round is ${number}, of ${groups}`);
  const found = new Asked(asked, prefixes, oracleOfCodes(described, asked.epsilon, prefixes.size));
  found.round = Number(number);
  return found;
}

/** By how much an epsilon, which is a sum of floating-point logarithms here, may be rounded up. */
const ROUNDING = 1e-12;

/** A second round: who takes part depends on the answer. */
class SecondRound {
  constructor(asked) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, round: 1 });
    this.domain = new Labels(asked.domain);
    this.rates = asked.rest.takeList("rates", READ.number);
    const inner = new Description(asked.rest.take("oracle", READ.object));
    asked.rest.finish();
    if (inner.name === "summation_histogram_encoding") throw notAQuestion("the oracle of a second round must count reports");
    const { size } = new Labels(inner.domain);
    if (BigInt(this.rates.length) !== this.domain.size || size !== this.domain.size) {
      throw notAQuestion("the rates or the oracle of the second round are of other codes");
    }
    this.oracle = oracleOf(inner, size);
    this.layout = this.oracle.layout;
    this.#check();
  }

  /** Refuses to say more than the plan states. */
  #check() {
    if (!this.rates.every((rate) => rate >= 2 ** -30 && rate <= 1)) throw notAQuestion("a rate is not from 2^-30 to 1");
    const [least, most] = [Math.min(...this.rates), Math.max(...this.rates)];
    if (most >= 1 && least < 1) throw notAQuestion("who is silent in the second round cannot hold some answer");
    const silence = most > least ? log1p(-least) - log1p(-most) : 0;
    const spent = Math.max(this.oracle.realizedEpsilon + log(most / least), silence);
    if (spent > this.epsilon + ROUNDING) {
      throw notAQuestion(`the second round says ${spent} nats, and states ${this.epsilon}`);
    }
  }

  get thresholds() {
    return { ...this.oracle.thresholds, rates: this.rates.map((rate) => scaledFloor(rate, 64)) };
  }

  report(code, noise) {
    if (!takesPart(this.rates[Number(code)], noise.part(2))) return null;
    return this.oracle.report(code, noise.part(3).stream("report"));
  }
}

/** The denominator of the probability of the own answer, as a power of two. */
const OWN_BITS = 62;

/** An answer that is only sometimes the own one, and otherwise a uniform one. */
class Padded {
  constructor(asked) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon });
    this.domain = new Labels(asked.domain);
    const own = asked.rest.take("own_probability", READ.number);
    const inner = new Description(asked.rest.take("oracle", READ.object));
    asked.rest.finish();
    const same = inner.epsilon === asked.epsilon && inner.domain.raw === asked.domain.raw;
    if (!same || !(own > 0 && own <= 1)) {
      throw notAQuestion("own_probability is no probability, or the oracle is of another epsilon or domain");
    }
    const real = scaledFloor(own, OWN_BITS);
    this.real = real > 1n ? real : 1n;
    this.oracle = oracleOf(inner, this.domain.size);
    this.layout = this.oracle.layout;
  }

  get thresholds() {
    return { ...this.oracle.thresholds, real: this.real };
  }

  report(code, noise) {
    const real = choose([(1n << BigInt(OWN_BITS)) - this.real, this.real], noise.part(0).stream("choice")) === 1;
    return this.oracle.report(padded(code, real, this.domain.size, noise.part(1)), noise.stream("report"));
  }
}

/** The own code where it is real, and a uniform one elsewhere. */
function padded(code, real, size, noise) {
  const fake = uniformBelow(size, noise.stream("choice"));
  return real ? code : fake;
}

/** Questions made of others: a person reports one part that is drawn, whatever the answer, or all. */
class Parts {
  /** `codes` makes of an answer the code of each part; `reported` is "all", "one" or "padded". */
  constructor(asked, { domain, each, codes, reported, weights }) {
    Object.assign(this, { name: asked.name, epsilon: asked.epsilon, domain, each, codes, reported, weights });
    const widths = each.map((part) => part.oracle.layout.integers);
    const bytes = Math.max(...each.map((part) => part.oracle.layout.bytes));
    this.layout =
      reported === "one"
        ? Layout.row(Math.max(bytes, narrowest(each.length)), 1 + Math.max(...widths))
        : Layout.row(bytes, widths.reduce((sum, width) => sum + width, 0));
  }

  get thresholds() {
    return { parts: this.each.map((part) => part.oracle.thresholds) };
  }

  report(found, noise) {
    const codes = this.codes(found);
    const drawn = this.reported === "all" ? null : choose(this.weights, noise.part(0).stream("choice"));
    const row = [];
    this.each.forEach(({ oracle, size }, number) => {
      if (this.reported === "one" && number !== drawn) return;
      let code = codes[number];
      if (this.reported === "padded") code = padded(code, number === drawn, size, noise.part(2, number));
      const report = oracle.report(code, noise.part(1, number).stream("report"));
      if (this.reported === "one") row.push(number);
      // Integers with a sign keep their own width: what is above it is zero.
      row.push(...report.map((word) => BigInt.asUintN(8 * oracle.layout.bytes, BigInt(word))));
    });
    while (row.length < this.layout.integers) row.push(0);
    return row;
  }
}

/** The levels of a tree over ordered answers. */
function hierarchical(asked) {
  const labels = new Labels(asked.domain);
  const fanout = asked.rest.take("fanout", READ.integer);
  const levels = asked.rest.takeList("oracle", READ.object);
  asked.rest.finish();
  if (fanout < 2n) throw notAQuestion(`the fanout is ${fanout}`);
  // How long the runs of each level are: the last has single answers.
  const lengths = [];
  for (let length = 1n; length === 1n || length < labels.size; length *= fanout) lengths.unshift(length);
  if (levels.length !== lengths.length) throw notAQuestion("there is not one oracle for each level");
  const each = levels.map((members, place) => {
    const size = (labels.size + lengths[place] - 1n) / lengths[place];
    const level = new Description(members);
    if (level.epsilon > asked.epsilon) throw notAQuestion("a level has a larger epsilon than the whole");
    if (!areCodes(level.domain, size)) throw notAQuestion("a level is of other runs");
    return { oracle: oracleOf(level, size), size };
  });
  const codes = (code) => lengths.map((length) => code / length);
  return new Parts(asked, { domain: labels, each, codes, reported: "one", weights: each.map(() => 1n) });
}

/** The tables of every two of several questions. */
function pairTables(asked) {
  const columns = new Columns(asked.domain);
  const { pairs, sizes } = columns;
  const tables = asked.rest.takeList("oracle", READ.object);
  asked.rest.finish();
  if (tables.length !== pairs.length) throw notAQuestion("there is not one oracle for each two questions");
  const each = tables.map((members, place) => {
    const [one, other] = pairs[place];
    const size = sizes[one] * sizes[other];
    return { oracle: oracleOfCodes(members, asked.epsilon, size), size };
  });
  const codes = (row) => pairs.map((pair) => combined(pair.map((place) => row[place]), pair.map((place) => sizes[place])));
  return new Parts(asked, { domain: columns, each, codes, reported: "one", weights: each.map(() => 1n) });
}

/** Several questions of which one is drawn; with padding the others get uniform answers. */
function sampledAttribute(asked) {
  const padding = asked.rest.take("padding", READ.any);
  if (padding.kind !== "null" && padding.text !== "fake") throw notAQuestion("the padding is neither null nor fake");
  const { domain, each, weights } = attributes(asked);
  if (each.some((part) => part.oracle.epsilon > asked.epsilon)) {
    throw notAQuestion("a question has a larger epsilon than the whole");
  }
  const reported = padding.kind === "null" ? "one" : "padded";
  return new Parts(asked, { domain, each, codes: (row) => row, reported, weights });
}

/** Several questions that have a part of epsilon each. */
function splitBudget(asked) {
  const { domain, each } = attributes(asked);
  // In units of 2^-1088 doubles are whole numbers.
  const spent = each.reduce((sum, part) => sum + scaledFloor(part.oracle.epsilon, 1088), 0n);
  if (spent > scaledFloor(asked.epsilon, 1088)) {
    throw notAQuestion("the questions have a larger epsilon together than the whole");
  }
  return new Parts(asked, { domain, each, codes: (row) => row, reported: "all", weights: null });
}

/** The largest weight of a part, and the largest sum. */
const MOST_WEIGHT = 1n << 62n;
const MOST_SUM = (1n << 63n) - 1n;

function attributes(asked) {
  const columns = new Columns(asked.domain);
  const oracles = asked.rest.takeList("oracle", READ.object);
  const weights = asked.rest.takeList("weights", READ.integer);
  asked.rest.finish();
  const fits = oracles.length === columns.asked.length && weights.length === oracles.length;
  const sum = weights.reduce((all, weight) => all + weight, 0n);
  if (!fits || sum > MOST_SUM || !weights.every((weight) => weight >= 1n && weight <= MOST_WEIGHT)) {
    throw notAQuestion("there is not an oracle and a weight for each question");
  }
  if (!(asked.epsilon > 0)) throw notAQuestion("epsilon must be a finite number above 0");
  const each = oracles.map((members, place) => {
    const inner = new Description(members);
    const column = columns.asked[place];
    if (inner.domain.raw !== column.domain.raw) throw notAQuestion("an oracle has another domain than its question");
    return { oracle: oracleOf(inner, column.labels.size), size: column.labels.size };
  });
  return { domain: columns, each, weights };
}
