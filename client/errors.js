/** What turnout refuses: `code` says which kind of refusal it is, the message says what to do. */
export class TurnoutError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "TurnoutError";
    this.code = code;
  }
}

/** The error for a plan that asks what cannot be asked. */
export function notAQuestion(reason) {
  return new TurnoutError("question", `the plan asks no question that exists: ${reason}`);
}

/** The error for an answer. What was answered is not shown: it may end in a log. */
export function noAnswer(reason) {
  return new TurnoutError("answer", `the answer ${reason}`);
}

/** The beginning of a long text. */
export function shown(text) {
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
