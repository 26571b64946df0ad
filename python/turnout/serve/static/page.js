// The page on which a person answers. It asks, shows the message that will leave, and sends it once.
import { browserStorage, Outbox, Plan, TurnoutError } from "./turnout.js";
import { TicketRequest, TicketError } from "./tickets.js";

const main = document.getElementById("page");
const step = document.getElementById("step");
/** What serials and rounds are remembered by: where the page is. */
const COLLECTION = location.pathname;
/** From so many labels on, a list that opens is shorter than buttons side by side. */
const MANY = 12;
const RETRY_SECONDS = [2, 5, 15, 60];
/** What only a person does on a page. */
const SIGNS = ["pointermove", "pointerdown", "keydown", "touchstart", "wheel", "input"];

const passed = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// Elements. Text is always text: nothing of a plan is read as HTML.

function element(name, attributes = {}, ...children) {
  const it = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") it.addEventListener(key, value);
    else if (value === true) it.setAttribute(key, "");
    else if (value !== false && value !== null) it.setAttribute(key, value);
  }
  it.append(...children.filter((child) => child !== null));
  return it;
}

const paragraph = (text, kind = null) => element("p", { class: kind }, text);

function show(...children) {
  step.replaceChildren(...children);
  // The heading of a step is read out, and the keyboard goes on from there.
  const heading = step.querySelector("h2, legend");
  if (heading !== null && document.activeElement === document.body) heading.focus?.();
}

function heading(text) {
  return element("h2", { tabindex: "-1" }, text);
}

function card(...children) {
  return element("section", { class: "card" }, ...children);
}

const shown = (label) => (typeof label === "object" && label !== null ? JSON.stringify(label) : String(label));

// One question: its elements, and how its answer is read. Labels are found by their number, so that texts and
// numbers that look alike stay apart.

function questionOf(question, number, several) {
  const name = question.name ?? (several ? `Question ${number + 1}` : "Your answer");
  const id = `question-${number}`;
  if (question.kind === "choice") {
    const labels = question.labels ?? Array.from({ length: question.size }, (_, code) => code);
    return choiceOf(name, id, labels);
  }
  if (question.kind === "number") return numberOf(name, id, question);
  if (question.kind === "numbers") {
    const each = Array.from({ length: question.dimensions }, (_, at) =>
      numberOf(`${name}, ${at + 1} of ${question.dimensions}`, `${id}-${at}`, question),
    );
    return {
      element: element("div", {}, ...each.map((one) => one.element)),
      read: () => each.map((one) => one.read()),
    };
  }
  const input = element("input", { id, name: id, type: "text", required: true, autocomplete: "off" });
  return {
    element: element("div", { class: "field" }, element("label", { for: id }, name), input),
    read: () => input.value,
  };
}

function choiceOf(name, id, labels) {
  if (labels.length > MANY) {
    const select = element(
      "select",
      { id, name: id, required: true },
      element("option", { value: "" }, "Choose …"),
      ...labels.map((label, code) => element("option", { value: code }, shown(label))),
    );
    return {
      element: element("div", { class: "field" }, element("label", { for: id }, name), select),
      read: () => labels[Number(select.value)],
    };
  }
  const buttons = labels.map((label, code) =>
    element(
      "label",
      { class: "choice" },
      element("input", { type: "radio", name: id, value: code, required: true }),
      element("span", {}, shown(label)),
    ),
  );
  const group = element("fieldset", {}, element("legend", {}, name), ...buttons);
  return {
    element: group,
    read: () => labels[Number(group.querySelector("input:checked").value)],
  };
}

function numberOf(name, id, { low, high }) {
  const input = element("input", {
    id,
    name: id,
    type: "number",
    min: low,
    max: high,
    step: "any",
    required: true,
    inputmode: "decimal",
    autocomplete: "off",
  });
  const label = element("label", { for: id }, `${name} (a number from ${low} to ${high})`);
  return { element: element("div", { class: "field" }, label, input), read: () => input.valueAsNumber };
}

// Invitations: what comes with the message, so that each invited person has one.

function fragment() {
  return new URLSearchParams(location.hash.slice(1));
}

class Invitation {
  static async of(plan, storage) {
    const kind = main.dataset.invitations;
    if (!kind) return new Invitation(null, null, plan, storage);
    const token = fragment().get("invitation");
    // A link of which a mail program cut off the end asks nothing.
    if (token === null || !/^[\w-]{22}$/.test(token)) return null;
    const invitation = new Invitation(kind, token, plan, storage);
    invitation.refusal = await storage.get(invitation.refusalKey);
    const used = await storage.get(invitation.usedKey);
    invitation.another = (used ?? token) !== token;
    return invitation;
  }

  constructor(kind, token, plan, storage) {
    this.kind = kind;
    this.token = token;
    this.key = `ticket/${plan.fingerprint}`;
    this.plan = plan;
    this.storage = storage;
    this.ticket = null;
    this.refusalKey = `refusal/${plan.fingerprint}/${token}`;
    /** Why the server did not let the message in, if it said so. */
    this.refusal = null;
    this.usedKey = `invitation/${plan.fingerprint}`;
    /** Whether the message of this browser went with another invitation. */
    this.another = false;
  }

  /** Says what leaves beside the message, if anything does. */
  get words() {
    if (this.kind === "open")
      return (
        "Your invitation is sent with the message. The server does not store which invitation came with which message. " +
        "But the people who run it could see this when the message arrives."
      );
    if (this.kind === "blind")
      return "A ticket is sent with the message. The ticket does not reveal which invitation it was made for.";
    return null;
  }

  /** Sends a request as `fetch` does, with what lets its message in. */
  async fetch(url, request) {
    if (this.kind === null) return fetch(url, request);
    const headers = { ...request.headers };
    if (this.kind === "blind") headers["turnout-ticket"] = this.ticket;
    else headers["turnout-invitation"] = this.token;
    const response = await fetch(url, { ...request, headers });
    this.refusal = await refusalOf(response.clone());
    if (this.refusal === null) {
      if (response.ok) await this.storage.set(this.usedKey, this.token);
      return response;
    }
    await this.storage.set(this.refusalKey, this.refusal);
    if (this.kind === "blind") await this.storage.remove(this.key);
    // The outbox keeps the message: with a valid invitation it can still be sent.
    throw new TicketError("invitation", this.refusal);
  }

  /**
   * Exchanges a blind invitation for its ticket as soon as somebody is there, and not when they send: so the
   * two requests do not follow each other, and who was invited and opened the page may have sent nothing.
   * Programs that open links to check them give no sign of a person, and use up no invitation.
   */
  prepare(refused) {
    if (this.kind !== "blind") return;
    const stop = () => SIGNS.forEach((sign) => removeEventListener(sign, begin, true));
    const begin = async (event) => {
      if (!event.isTrusted) return;
      stop();
      for (const seconds of RETRY_SECONDS) {
        try {
          return await this.ready();
        } catch (error) {
          if (error instanceof TicketError) return refused(error);
          await passed(seconds);
        }
      }
    };
    SIGNS.forEach((sign) => addEventListener(sign, begin, { capture: true, passive: true }));
  }

  /** Exchanges a blind invitation for its ticket, unless it already exists. */
  async ready() {
    if (this.kind !== "blind" || this.ticket) return;
    // One page at a time: the server signs one number for an invitation.
    const locks = navigator.locks ?? { request: (_, use) => use() };
    this.ticket = await locks.request(`turnout/${this.key}`, () => this.exchange());
  }

  /** The ticket; what it takes to finish it is kept until the answer is there. */
  async exchange() {
    const kept = JSON.parse((await this.storage.get(this.key)) ?? "null");
    if (kept?.ticket) return kept.ticket;
    const request = kept
      ? await TicketRequest.fromJSON(kept)
      : await TicketRequest.create(main.dataset.ticketKey);
    await this.storage.set(this.key, JSON.stringify(request));
    const response = await fetch("tickets", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        plan: this.plan.fingerprint,
        invitation: this.token,
        blinded: request.blinded,
      }),
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      redirect: "error",
    });
    if (!response.ok) {
      if (response.status >= 500 || response.status === 429) throw new TypeError("not now");
      throw new TicketError("invitation", (await response.text()).trim());
    }
    const ticket = await request.finish((await response.json()).signed);
    await this.storage.set(this.key, JSON.stringify({ ticket }));
    return ticket;
  }
}

/** What is wrong with the invitation that a message came with, or null. */
async function refusalOf(response) {
  if (response.status === 403) return "this link is not a valid invitation";
  const answer = await response.json().catch(() => null);
  return answer?.refused?.invitation >= 1 ? "this invitation has already been used" : null;
}

// The steps.

class Page {
  constructor(plan, outbox, invitation) {
    this.plan = plan;
    this.outbox = outbox;
    this.invitation = invitation;
    this.retries = 0;
  }

  static async open() {
    const response = await fetch("plan.json", { cache: "no-cache", credentials: "omit" });
    if (response.status === 404) throw new TurnoutError("ended", await ended());
    if (!response.ok) throw new TypeError(`the server answered ${response.status}`);
    const text = await response.text();
    const publicKey = fragment().get("key") ?? (main.dataset.publicKey || null);
    const storage = browserStorage();
    const outbox = new Outbox({ storage, fetch: (url, request) => page.invitation.fetch(url, request) });
    const lastSerial = await outbox.lastSerial(COLLECTION);
    const plan = await Plan.read(text, { publicKey, lastSerial });
    await outbox.sawSerial(COLLECTION, plan);
    const page = new Page(plan, outbox, null);
    const earlier = await outbox.earlier(plan, { collection: COLLECTION });
    const begin = async () => {
      page.invitation = await Invitation.of(plan, storage);
      const status = await outbox.status(plan, { collection: COLLECTION });
      if (page.invitation === null && ["none", "waiting"].includes(status.state)) return page.uninvited();
      if (status.state === "waiting" && page.invitation.refusal !== null) return page.refused();
      if (["none", "waiting"].includes(status.state)) page.invitation?.prepare((error) => page.refused(error));
      return page.after(status);
    };
    const next = async () => {
      const waits = earlier.shift();
      page.invitation = waits === undefined ? null : await Invitation.of(waits, storage);
      if (page.invitation !== null && page.invitation.refusal !== null) return next();
      return page.invitation === null ? begin() : page.waited(waits, () => next().catch(fail));
    };
    return next();
  }

  /** A message under a plan of another day, which never left: it still counts for that day. */
  waited(waits, next) {
    const trouble = element("p", { class: "wrong", role: "alert" });
    const go = element("button", { type: "button", click: next }, "Continue without sending");
    const send = element("button", { class: "main", type: "button" }, "Send the earlier message");
    send.addEventListener("click", async () => {
      send.disabled = true;
      trouble.textContent = "";
      try {
        await this.invitation.ready();
        await this.outbox.send(waits);
        return next();
      } catch (error) {
        if (error instanceof TicketError || error.code === "refused") {
          trouble.textContent = "The server no longer accepts answers to the earlier question. Your message was not counted.";
          go.textContent = "Continue";
          return send.remove();
        }
        trouble.textContent = error instanceof TypeError ? KEPT : wordsOf(error);
        send.disabled = false;
      }
    });
    show(
      card(
        heading("An earlier message was not sent"),
        paragraph("You answered an earlier question here, but this message was never sent from your browser:"),
        element("pre", { tabindex: "0", role: "group", "aria-label": "The message" }, waits.message),
        trouble,
        element("div", { class: "buttons" }, send, go),
      ),
    );
  }

  uninvited() {
    show(
      card(
        heading("Use your invitation"),
        paragraph(
          "Only invited people can answer. Open the whole link in your invitation, or scan its code. If you copied " +
            "the link, check that its end is not missing.",
        ),
      ),
    );
  }

  after(status) {
    if (status.state === "none") return this.ask();
    if (status.state === "silent") return this.silent();
    if (status.state === "earlier") return this.earlier();
    if (status.state === "waiting") return this.confirm(status.message);
    if (status.state === "sent") return this.thank();
    return this.refused();
  }

  ask() {
    const questions = this.plan.questions;
    const asked = questions.map((question, number) => questionOf(question, number, questions.length > 1));
    const groups = this.plan.groups.map(({ column, values }, number) =>
      choiceOf(column, `group-${number}`, values),
    );
    const trouble = element("p", { class: "wrong", role: "alert" });
    const form = element(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          this.draw(asked, groups, trouble, form.querySelector("button"));
        },
        input: () => (trouble.textContent = ""),
      },
      ...asked.map((one) => one.element),
      groups.length === 0
        ? null
        : element(
            "section",
            {},
            paragraph("The following is sent unchanged. It is not made private:", "soft"),
            ...groups.map((one) => one.element),
          ),
      trouble,
      element(
        "div",
        { class: "buttons" },
        element("button", { class: "main", type: "submit" }, "Make my answer private"),
      ),
      paragraph("Nothing is sent yet. You will see the message before it is sent.", "soft"),
    );
    // Not every browser shows its own words in a way that everybody sees or hears. An "invalid" event does not bubble.
    const invalid = ({ target }) => (trouble.textContent = target.validity.valueMissing ? MISSING : OUTSIDE);
    form.addEventListener("invalid", invalid, true);
    show(card(form), this.meaning());
  }

  meaning() {
    const [first, ...more] = this.plan.describe();
    const expires = this.plan.expires;
    const invited = [this.invitation?.words ?? []].flat();
    const until = expires === null ? [] : [`You can answer until ${new Date(1000 * expires).toLocaleString()}.`];
    return element(
      "details",
      { class: "card", open: true },
      element("summary", {}, "What happens to your answer"),
      element("ul", {}, ...[first, ...more, ...invited, ...until].map((text) => element("li", {}, text))),
    );
  }

  async draw(asked, groups, trouble, button) {
    button.disabled = true;
    trouble.textContent = "";
    try {
      const read = asked.map((one) => one.read());
      const answer = read.length === 1 ? read[0] : read;
      const group = groups.length === 0 ? undefined : groups.map((one) => one.read());
      this.after(await this.outbox.answer(this.plan, answer, { group, collection: COLLECTION }));
    } catch (error) {
      trouble.textContent = wordsOf(error);
      button.disabled = false;
    }
  }

  silent() {
    show(
      card(
        heading("You were not selected this time"),
        paragraph(
          "Only some people take part. Your browser decided at random, and you were not selected. Nothing was " +
            "sent, and nothing will be sent. Thank you for answering.",
        ),
      ),
    );
  }

  earlier() {
    show(
      card(
        heading("You have already taken part"),
        paragraph(
          "This collection asks some people first and others later. You were asked earlier, and nobody is asked " +
            "twice. Nothing is sent now. Thank you.",
        ),
      ),
    );
  }

  confirm(message) {
    const trouble = element("p", { class: "wrong", role: "alert" });
    const send = element(
      "button",
      { class: "main", type: "button", click: () => this.send(send, trouble) },
      "Send this message",
    );
    show(
      card(
        heading("Your browser will send this message"),
        element("pre", { tabindex: "0", role: "group", "aria-label": "The message" }, message),
        paragraph(
          "Your answer is already randomized. The message holds the randomized answer, the name of the " +
            "question, and a random number that makes sure it counts only once." +
            (this.plan.groups.length > 0 ? " It also holds the group that you chose, unchanged." : ""),
        ),
        trouble,
        element("div", { class: "buttons" }, send),
      ),
      this.meaning(),
    );
  }

  async send(button, trouble) {
    button.disabled = true;
    trouble.textContent = "";
    try {
      if (this.invitation === null) return this.uninvited();
      await this.invitation.ready();
      this.after(await this.outbox.send(this.plan));
    } catch (error) {
      if (error instanceof TicketError || error.code === "refused") return this.refused(error);
      trouble.textContent = error instanceof TypeError ? KEPT : wordsOf(error);
      button.disabled = false;
      button.textContent = "Send again";
      this.later(button, trouble);
    }
  }

  /** Tries again by itself: after a while, and when the browser is on line again. */
  later(button, trouble) {
    const seconds = RETRY_SECONDS[Math.min(this.retries, RETRY_SECONDS.length - 1)];
    this.retries += 1;
    const again = () => {
      clearTimeout(timer);
      removeEventListener("online", again);
      if (button.isConnected && !button.disabled) this.send(button, trouble);
    };
    const timer = setTimeout(again, 1000 * seconds);
    addEventListener("online", again);
  }

  thank() {
    if (this.invitation?.another) {
      return show(
        card(
          heading("Another invitation was used in this browser"),
          paragraph(
            "An answer was already sent from this browser, with another invitation. Your invitation has not been " +
              "used. To answer with it, open its link in another browser, or on another device.",
          ),
        ),
      );
    }
    show(
      card(
        heading("Your answer has arrived"),
        paragraph(
          this.plan.isPermanent
            ? "Thank you. Your answer counts once. This browser keeps what it needs to randomize the same answer in the same way."
            : "Thank you. Your answer counts once, and this browser keeps no copy of it.",
        ),
        main.dataset.results === "public"
          ? element("p", {}, element("a", { href: "results" }, "See the results so far"))
          : null,
      ),
    );
  }

  refused(error = null) {
    const reason = error instanceof TicketError ? error.message : (this.invitation?.refusal ?? null);
    show(
      card(
        heading("The server did not accept your answer"),
        paragraph(sentence(reason ?? "the collection may have ended")),
      ),
    );
  }
}

/** What is said when no plan is in force any more. */
async function ended() {
  const waits = await new Outbox({ storage: browserStorage() }).earlier(null, { collection: COLLECTION });
  const said = "This collection has ended.";
  return waits.length === 0 ? said : `${said} A message was still waiting in this browser. It was not sent, and is not counted.`;
}

const KEPT =
  "The message could not be sent. It is kept in this browser, and will be sent again when the " +
  "connection is back. You can also return to this page later.";

const MISSING = "Answer every question first.";
const OUTSIDE = "Type a number within its limits.";
const UNREACHABLE = "The server cannot be reached. Check your connection and reload the page.";
const FOREIGN = "This question does not come from the people whom this page belongs to. Do not answer it, and tell them.";

/** What people are told where the words of an error are for those who run the page. */
const PLAIN = {
  "no-webcrypto": "Open this page at an address that begins with https://, in a current browser. Only there can it make your answer private.",
  "no-randomness": "This browser cannot draw random numbers, so it cannot make your answer private. Use another browser.",
  expired: "By the clock of this device, this question is closed. If its date or time is wrong, correct it and reload the page.",
  serial: "This browser has already seen a newer question here. Do not answer this one, and tell the people who asked you.",
  unsigned: FOREIGN,
  signer: FOREIGN,
  signature: FOREIGN,
};

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

function wordsOf(error) {
  if (error instanceof TurnoutError) {
    if (error.code === "sending") return KEPT;
    if (error.code === "storage") return `${sentence(error.message)} Allow this site to store data, or use another browser.`;
    return PLAIN[error.code] ?? sentence(error.message);
  }
  if (error instanceof TicketError) return sentence(error.message);
  // Those of `fetch`, and of an answer that is no JSON: another program answered, as of a network that asks to log in.
  if (error instanceof TypeError || error instanceof SyntaxError) return UNREACHABLE;
  return `This page failed (${error?.name ?? "unknown"}). Reload it, or use another browser.`;
}

function fail(error) {
  if (!(error instanceof TurnoutError) && !(error instanceof TypeError)) console.error(error);
  const detail = error instanceof TurnoutError && error.code in PLAIN ? paragraph(`For those who run this page: ${error.message}.`, "soft") : null;
  show(card(heading("The question cannot be shown"), paragraph(wordsOf(error), "wrong"), detail));
}

Page.open().catch(fail);
// A link with another invitation is another page.
addEventListener("hashchange", () => location.reload());
