// A program that uses the client as its users do. It is checked, not run.

import {
  browserStorage,
  memoryStorage,
  Outbox,
  Plan,
  TurnoutError,
  type Answer,
  type Question,
  type Status,
  type Storage,
  type Thresholds,
} from "./turnout.js";

const publicKey = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";

class Kept implements Storage {
  #texts = new Map<string, string>();
  async get(key: string): Promise<string | null> {
    return this.#texts.get(key) ?? null;
  }
  set(key: string, text: string): void {
    this.#texts.set(key, text);
  }
  async remove(key: string): Promise<void> {
    this.#texts.delete(key);
  }
}

function labelled(question: Question): string {
  switch (question.kind) {
    case "choice":
      return `${question.name ?? "which"}: ${question.labels?.join(", ") ?? question.size}`;
    case "number":
    case "numbers":
      return `${question.low} to ${question.high}, ${question.dimensions}`;
    case "value":
      return question.values;
  }
}

export async function ask(answer: Answer, storage: Storage = browserStorage("survey")): Promise<Status> {
  const outbox = new Outbox({ storage, url: new URL("https://survey.example.org/reports"), fetch });
  const text = await (await fetch("/plan.json")).text();
  const lastSerial = await outbox.lastSerial(publicKey);
  const plan = await Plan.read(text, { publicKey, lastSerial });
  await outbox.sawSerial(publicKey, plan);
  const sentences: string = [...plan.describe(), ...plan.questions.map(labelled)].join("\n");
  const facts: [string, string, number, boolean, string | null] =
    [plan.fingerprint, plan.kind, plan.epsilon, plan.isPermanent, plan.signer];
  const rate = plan.participation.kind === "personalized" ? null : plan.participation.rate;
  const decides: Thresholds = plan.thresholds;
  const round: number | null = plan.round;
  console.log(sentences, facts, round, rate, decides, plan.groups.map(({ column, values }) => [column, values.length]));
  const status = await outbox.answer(plan, answer, {
    group: { region: "north" },
    now: new Date(),
    collection: "/survey",
  });
  if (status.state !== "waiting") return status;
  try {
    return await outbox.send(plan);
  } catch (error) {
    if (!(error instanceof TurnoutError && error.code === "sending")) throw error;
    await outbox.forget(plan);
    return outbox.status(plan);
  }
}

export async function daily(plan: Plan, answer: Answer): Promise<string | null> {
  const person = await plan.permanent(null, { most: 3 });
  const message = await person.report(answer, { coded: true });
  console.log(person.context, person.valuesGiven > person.mostValues, (await person.state()).length);
  return message;
}

export async function refused(data: Uint8Array): Promise<void> {
  const plan = await Plan.read(data, { publicKey: null });
  const outbox = new Outbox({ storage: memoryStorage() });
  await outbox.answer(plan, { sex: "f", age: 3 });
  await outbox.answer(plan, [1, "b", 2n ** 60n], { most: 2 });
  await ask(3, new Kept());
  // @ts-expect-error: a plan is read, not made.
  new Plan();
  // @ts-expect-error: whose plan it is must be said, or that it may be anybody's.
  await Plan.read(data);
  // @ts-expect-error: nobody is drawn with a message that may be missing.
  plan.report("often").length;
  // @ts-expect-error: what was read is not changed.
  plan.epsilon = 3;
  // @ts-expect-error: there is no such state.
  (await outbox.status(plan)).state === "lost";
  // @ts-expect-error: a place for texts has three functions.
  new Outbox({ storage: { get: () => null } });
}
