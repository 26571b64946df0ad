import { DirectEncoding } from "./direct.js";
import { notAQuestion, TurnoutError } from "./errors.js";
import { HadamardResponse, ProjectiveGeometryResponse } from "./hadamard.js";
import { CountMeanSketch, HadamardCountMeanSketch, LocalHashing, PooledLocalHashing } from "./hashing.js";
import { Labels } from "./domains.js";
import { checkEpsilon, Description, READ } from "./members.js";
import { SummationHistogram } from "./noise.js";
import { SubsetSelection, UnaryEncoding } from "./unary.js";

/** How the randomizer of each name is made; it takes the members that it needs. */
const MADE = {
  direct_encoding: (epsilon, size) => new DirectEncoding(epsilon, size),
  symmetric_unary_encoding: (epsilon, size) => UnaryEncoding.symmetric(epsilon, size),
  optimized_unary_encoding: (epsilon, size) => UnaryEncoding.optimized(epsilon, size),
  threshold_histogram_encoding: (epsilon, size) => UnaryEncoding.thresholdHistogram(epsilon, size),
  summation_histogram_encoding: (epsilon, size) => new SummationHistogram(epsilon, size),
  binary_local_hashing: (epsilon, size, rest) => localHashing(epsilon, size, 2n, rest),
  optimized_local_hashing: (epsilon, size, rest) => localHashing(epsilon, size, rest.take("buckets", READ.integer), rest),
  subset_selection: (epsilon, size, rest) => new SubsetSelection(epsilon, size, rest.take("subset_size", READ.integer)),
  hadamard_response: (epsilon, size) => new HadamardResponse(epsilon, size),
  projective_geometry_response: (epsilon, size, rest) =>
    new ProjectiveGeometryResponse(epsilon, size, rest.take("field_size", READ.integer)),
  count_mean_sketch: (epsilon, size, rest) => new CountMeanSketch(epsilon, size, ...sketch(rest)),
  hadamard_count_mean_sketch: (epsilon, size, rest) => new HadamardCountMeanSketch(epsilon, size, ...sketch(rest)),
};

function localHashing(epsilon, size, buckets, rest) {
  const functions = rest.find("hashes", READ.integer);
  if (functions === null) return new LocalHashing(epsilon, size, buckets);
  return new PooledLocalHashing(epsilon, size, buckets, functions);
}

function sketch(rest) {
  return ["hashes", "width"].map((name) => rest.take(name, READ.integer));
}

/** The randomizer of so many codes that a description names. */
export function oracleOf(asked, size) {
  if (!Object.hasOwn(MADE, asked.name)) {
    throw new TurnoutError("unknown-kind", `this client does not know the kind of question ${asked.name}: load a newer one`);
  }
  checkEpsilon(asked.epsilon);
  if (size < 2n || size >= 1n << 32n) throw notAQuestion(`${size} answers, from 2 to 2^32 - 1 can be`);
  const oracle = MADE[asked.name](asked.epsilon, size, asked.rest);
  asked.rest.finish();
  oracle.epsilon = asked.epsilon;
  return oracle;
}

/** Whether a domain is that of so many plain codes. */
export function areCodes(domain, size) {
  const labels = new Labels(domain);
  return labels.values === null && labels.size === size;
}

/** A randomizer of plain codes, of this epsilon and number of codes. */
export function oracleOfCodes(members, epsilon, size) {
  const asked = new Description(members);
  if (!areCodes(asked.domain, size) || asked.epsilon !== epsilon) {
    throw notAQuestion("an oracle is of another epsilon or other codes than what it is for");
  }
  return oracleOf(asked, size);
}
