/**
 * The page for everybody: native fields with labels, errors beside their field and in words, one status region. It
 * writes text and never markup, and does nothing for a person before that person presses "Send".
 */
import { sentenceOf } from "./problems.js";
import { open } from "./run.js";

const TITLES = {
  asked: "What is asked",
  sent: "What leaves this device",
  made: "What comes of it",
  promise: "What it can tell of you",
  known: "What others see",
  final: "No way back",
  here: "On this device",
  page: "Who made this page",
};
const DONE = {
  sent: "Thank you. Your answer has arrived. You can close this page.",
  already_here: sentenceOf("already_here"),
};
const SENT_BEFORE = "An answer was already sent from this browser with this invitation.";
const KEPT =
  "Your answer from your last visit is kept here and was not sent yet. It cannot be changed: press “Send” to send it.";
const SENDING = "Your answer is being sent. Please keep this page open.";

function make(name, { on, ...attributes } = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) found.setAttribute(key, value === true ? "" : value);
  }
  for (const [event, handler] of Object.entries(on ?? {})) found.addEventListener(event, handler);
  found.append(...children);
  return found;
}

/** Fills each `main` that names a study, from the link in the address bar, which is removed from it at once. */
export function start() {
  const main = globalThis.document?.querySelector("main[data-study]");
  if (!main) return;
  const page = new Page(main, { ...main.dataset });
  const read = () => {
    const link = location.hash;
    if (!link) return;
    history.replaceState(null, "", location.pathname + location.search);
    page.show(link);
  };
  if (!location.hash) page.ask();
  read();
  // the next person's link in the same tab loads nothing anew
  addEventListener("hashchange", read);
}

class Page {
  constructor(main, pins) {
    this.main = main;
    this.pins = pins;
    this.status = main.querySelector("[role=status]");
  }

  tell(text, focus = false) {
    this.status.textContent = text;
    if (focus) this.status.focus();
  }

  place(form) {
    for (const each of this.main.querySelectorAll("form, [data-after]")) each.remove();
    this.main.insertBefore(form, this.status);
  }

  /** Asks for an invitation: there was none in the address, or the page was loaded again. */
  ask(link = "") {
    const input = make("input", {
      id: "invitation",
      type: "text",
      autocomplete: "off",
      autocapitalize: "characters",
      spellcheck: "false",
      value: link,
    });
    const label = make(
      "label",
      { for: "invitation" },
      "Your invitation: paste its link here, or type what stands on your letter",
    );
    const submit = (event) => {
      event.preventDefault();
      this.show(input.value);
    };
    this.place(make("form", { on: { submit }, novalidate: true }, label, input, make("button", {}, "Continue")));
    this.tell("");
  }

  async show(link) {
    this.tell("One moment, please.");
    try {
      this.run = await open(link, this.pins);
      const state = await this.run.state().catch(() => "new");
      const fields = state === "new" ? this.run.fields.map((field, place) => fieldOf(field, place)) : [];
      const submit = (event) => {
        event.preventDefault();
        if (event.isTrusted) this.answer(fields);
      };
      const inside = [wordsOf(this.run), ...fields.map(({ box }) => box), make("button", {}, "Send")];
      this.place(make("form", { on: { submit }, novalidate: true, autocomplete: "off" }, ...inside));
      if (state === "sent") this.done("already_sent", SENT_BEFORE);
      else this.tell(state === "sealed" ? KEPT : "", state === "sealed");
    } catch (error) {
      this.ask(error.retry || error.code === "clock" ? link : "");
      this.tell(error.message, true);
    }
  }

  async answer(fields) {
    const records = readAll(fields);
    if (!records) return;
    const button = this.main.querySelector("form button");
    button.disabled = true;
    this.tell(SENDING, true);
    try {
      const report = (await this.run.kept()) ?? (await this.run.seal(this.run.measure(records)));
      this.done(await this.run.send(report, { onWaiting: (text) => this.tell(text) }));
    } catch (error) {
      if (error.code === "already_sent") this.done("already_sent", error.message);
      else {
        button.disabled = false;
        this.tell(error.message, true);
      }
    }
  }

  done(state, text = DONE[state]) {
    const click = async () => {
      await this.run.forget();
      for (const each of this.main.querySelectorAll("[data-after]")) each.remove();
      this.tell("This browser has forgotten it. What was sent stays sent.", true);
    };
    const forget = make("button", { type: "button", "data-after": true, on: { click } }, "Forget");
    this.main.querySelector("form").remove();
    this.tell(text, true);
    this.status.after(make("p", { "data-after": true }, "This browser remembers that an answer was sent. "), forget);
  }
}

function wordsOf({ words, study }) {
  const list = words.flatMap(({ about, text }) => [make("dt", {}, TITLES[about]), make("dd", {}, text)]);
  const number = study.match(/.{8}/g).join(" ");
  return make(
    "section",
    { "aria-labelledby": "before" },
    make("h2", { id: "before" }, "Before you answer"),
    make("dl", {}, ...list),
    make(
      "details",
      {},
      make("summary", {}, "Is this the right study?"),
      make("p", {}, "Compare this number with the one on your letter:"),
      make("p", { class: "number" }, number),
    ),
  );
}

/** Every answer, or nothing where one is not one: its error stands beside it, and the first takes the focus. */
function readAll(fields) {
  const records = {};
  let first = null;
  for (const { name, read, error, focus } of fields) {
    const found = read();
    error.textContent = found.error ?? "";
    if (found.error) first ??= focus;
    else records[name] = [found.value];
  }
  first?.();
  return first ? null : records;
}

const fieldOf = (field, place) => (field.kind === "number" ? numberField : choiceField)(field, place);

function numberField({ name, min, max, optional }, place) {
  const [id, told, silent] = [`field-${place}`, `error-${place}`, `silent-${place}`];
  const error = make("p", { id: told, class: "error" });
  const input = make("input", {
    id,
    type: "number",
    step: "any",
    autocomplete: "off",
    inputmode: "decimal",
    "aria-describedby": told,
    min,
    max,
  });
  const change = () => {
    input.disabled = box.checked;
    error.textContent = "";
  };
  const box = make("input", { id: silent, type: "checkbox", on: { change } });
  const bounds = [min, max].some((bound) => bound !== undefined) ? ` (${[min ?? "", max ?? ""].join(" to ")})` : "";
  const rather = optional
    ? [make("div", { class: "choice" }, box, make("label", { for: silent }, "rather not say"))]
    : [];
  const read = () => {
    const wrong = (text) => {
      input.setAttribute("aria-invalid", "true");
      return { error: text };
    };
    input.removeAttribute("aria-invalid");
    if (box.checked) return { value: null };
    if (input.validity.badInput) return wrong("This must be a number, in digits.");
    if (Number.isNaN(input.valueAsNumber))
      return wrong(optional ? "Give a number, or choose “rather not say”." : "Give a number.");
    if (input.validity.rangeUnderflow || input.validity.rangeOverflow) return wrong(`This must be a number${bounds}.`);
    return { value: input.valueAsNumber };
  };
  const whole = make("div", { class: "field" }, make("label", { for: id }, name + bounds), input, ...rather, error);
  return { name, box: whole, read, error, focus: () => input.focus() };
}

function choiceField({ name, choices, optional }, place) {
  const told = `error-${place}`;
  const all = [...choices, ...(optional ? [{ label: "rather not say", value: null }] : [])];
  const inputs = all.map((_, i) =>
    make("input", { id: `field-${place}-${i}`, type: "radio", name: `field-${place}`, value: String(i) }),
  );
  const lines = all.map(({ label }, i) => {
    return make("div", { class: "choice" }, inputs[i], make("label", { for: inputs[i].id }, label));
  });
  const error = make("p", { id: told, class: "error" });
  const box = make("fieldset", { class: "field", "aria-describedby": told }, make("legend", {}, name), ...lines, error);
  const read = () => {
    const at = inputs.findIndex((input) => input.checked);
    return at < 0 ? { error: "Choose one of these." } : { value: all[at].value };
  };
  return { name, box, read, error, focus: () => inputs[0].focus() };
}
