// Reads lines of JSON and answers each with one: the client of tickets, for tests in Python.
import { createInterface } from "node:readline";
import { TicketRequest, fromBase64, steps, toBase64 } from "../../python/turnout/serve/static/tickets.js";

const hex = (digits) => Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));

const calls = {
  async request({ publicKey }) {
    return (await TicketRequest.create(publicKey)).toJSON();
  },
  async finish({ state, answer }) {
    return (await TicketRequest.fromJSON(state)).finish(answer);
  },
  async vector({ publicKey, message, salt, factor }) {
    const key = await steps.PublicKey.read(publicKey);
    const found = await steps.blind(key, hex(message), hex(salt), steps.toNumber(hex(factor)));
    return toBase64(steps.toBytes(found.blinded, key.length));
  },
  async echo({ bytes }) {
    return toBase64(fromBase64(bytes));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { call, ...given } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ given: await calls[call](given) }));
  } catch (error) {
    console.log(JSON.stringify({ code: error.code ?? String(error), message: error.message }));
  }
}
