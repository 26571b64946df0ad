/** Each kind of question in plain words. */
const WORDS = {
  binary_local_hashing: "a choice, sent as one bit of a random hash of it",
  count_mean_sketch: "a choice, sent as a row of random bits",
  direct_encoding: "a choice, sometimes replaced by a random one",
  duchi: "a number, sent as one of two ends of its range, drawn at random",
  hadamard_count_mean_sketch: "a choice, sent as one random bit",
  hadamard_response: "a choice, sent as a random number",
  hierarchical: "a choice on a scale, sent as a coarser or finer step, with noise",
  hybrid: "a number, sent as a random one",
  joint_table: "several choices, sent together, with noise",
  memoized: "a choice that is asked repeatedly, with noise that stays the same",
  optimized_local_hashing: "a choice, sent as a random hash of it",
  optimized_unary_encoding: "a choice, sent as a row of random bits",
  padded: "a choice, often replaced by a random one",
  pair_tables: "several choices; two of them are sent, with noise",
  piecewise: "a number, sent as a random one",
  prefixes: "a value; all of it or only its beginning is sent, with noise",
  projective_geometry_response: "a choice, sent as a random number",
  sampled_attribute: "several choices; one of them is sent, with noise",
  second_round: "a choice, sent by a random part of the people, with noise; the chance of sending depends on the choice",
  split_budget: "several choices; all of them are sent, with noise",
  square_wave: "a number, usually sent as one close to it",
  subset_selection: "a choice, sent as a random set of choices",
  summation_histogram_encoding: "a choice, sent as a row of random numbers",
  symmetric_unary_encoding: "a choice, sent as a row of random bits",
  threshold_histogram_encoding: "a choice, sent as a row of random bits",
};

/** The odds that epsilon stands for, rounded up to what a person reads. */
function bet(epsilon) {
  const ratio = Math.exp(epsilon);
  if (!(ratio < 1e6)) return "more than a million";
  const digits = ratio < 10 ? 10 : 1;
  return String(Math.ceil(ratio * digits - 1e-9) / digits);
}

/** What a plan means, in sentences for the person who answers. */
export function describeKind(plan) {
  const sentences = [`What is asked: ${WORDS[plan.kind]}.`];
  const told = plan.isPermanent ? "all messages about one answer of yours" : "your message";
  sentences.push(
    `Your answer is hidden before it leaves this device. Suppose that somebody would bet 1 to 1 on your answer. ` +
      `After reading ${told}, their odds are at most ${bet(plan.epsilon)} to 1 (epsilon ${plan.epsilon}).`,
  );
  const { kind, rate } = plan.participation;
  if (kind === "bernoulli" && rate < 1) {
    const share = rate >= 0.01 ? `${Number((100 * rate).toPrecision(3))} of 100` : `${Number((1e6 * rate).toPrecision(3))} of a million`;
    sentences.push(`About ${share} people are selected at random to take part. Nothing is sent from the others.`);
  }
  if (plan.groups.length > 0) {
    sentences.push(`The message also holds this, not hidden: ${plan.groups.map(({ column }) => column).join(", ")}.`);
  }
  return sentences;
}
