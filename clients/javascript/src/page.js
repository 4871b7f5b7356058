/**
 * The page on which people answer: native fields with labels, each error as text next to its field, one status region.
 * It writes text and never markup. No secret is generated before the person presses "Send".
 */
import { refuse } from "./errors.js";
import { outbox } from "./outbox.js";
import { open } from "./run.js";
import { say, sayError, sentenceOf, wordsIn } from "./say.js";

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, any>} [how] attributes, and handlers by event under `on`
 * @param {...(Node | string)} children
 */
function make(name, { on, ...attributes } = {}, ...children) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) found.setAttribute(key, value === true ? "" : value);
  }
  for (const [event, handler] of Object.entries(on ?? {})) found.addEventListener(event, handler);
  found.append(...children);
  return found;
}

/** Returns the words in the document's own data block, in the first of this browser's languages that they have. */
function shipped() {
  const tables = JSON.parse(document.querySelector("script#privstats-words")?.textContent ?? "{}");
  const wanted = navigator.languages.map((tag) => tag.split("-")[0]);
  return tables[wanted.find((lang) => Object.hasOwn(tables, lang)) ?? "en"];
}

/**
 * Fills a `main` that names a study, from the link in the address bar, and removes the link from there at once.
 *
 * @param {HTMLElement | null} [main] has data-leader, data-run and data-study, and contains a region of role "status"
 * @param {{ words?: import("../privstats.js").Words }} [options] the sentences in one language, as in words.json; by
 *   default the document's own
 */
export function start(main = document.querySelector("main[data-study]"), { words = shipped() } = {}) {
  const status = main?.querySelector("[role=status]");
  if (!status || !words?.send)
    refuse("wrong_type", "a page needs words.json, and an element of role status");
  const page = new Page(main, status, wordsIn(words));
  const read = () => {
    const link = location.hash;
    if (!link) return;
    history.replaceState(null, "", location.pathname + location.search);
    page.show(link);
  };
  if (!location.hash) page.ask();
  read();
  // a next person's link in the same tab does not reload the page
  addEventListener("hashchange", read);
}

class Page {
  constructor(main, status, words) {
    this.main = main;
    this.pins = { ...main.dataset };
    this.words = words;
    this.status = status;
    this.heard = new Map();
    document.documentElement.lang = words.lang;
    this.head(words.title);
    // reports that wait from an earlier visit need no link
    this.outbox = outbox(this.pins, { onState: (state) => this.hear(state) });
  }

  head(title, lang = "") {
    document.title = title;
    Object.assign(this.main.querySelector("h1") ?? {}, { textContent: title, lang });
  }

  tell(text, focus = false) {
    this.status.textContent = text;
    if (focus) this.status.focus();
  }

  /** Shows the state of a report: this person's or, before a link is opened, one that waited. */
  hear(told) {
    const { hash, state, code } = told;
    this.heard.set(hash, told);
    if (hash !== this.hash && (this.hash || this.run)) return;
    const form = this.run && this.main.querySelector("form");
    if (form) form.querySelector("button").disabled = ["sending", "waiting"].includes(state);
    const text = Object.hasOwn(this.words, state) ? this.words[state] : sentenceOf(code ?? state, this.words);
    if (this.run && ["sent", "already_here"].includes(state)) this.done(text);
    else this.tell(this.standing(text), this.run && state !== "waiting");
    if (state === "stopped" && !this.run) this.offer(this.words.send, () => this.outbox.resume());
  }

  standing(text) {
    return this.stands ? `${this.words.stands} ${text}` : text;
  }

  clear(selector) {
    for (const each of this.main.querySelectorAll(selector)) each.remove();
  }

  place(form) {
    this.clear("form, [data-after]");
    this.main.insertBefore(form, this.status);
  }

  /** Puts a button under the status, below the elements that explain it. */
  offer(text, work, ...about) {
    const click = () => {
      this.clear("[data-after]");
      work();
    };
    const button = make("button", { type: "button", "data-after": true, on: { click } }, text);
    this.status.after(...about, button);
  }

  /** Asks for an invitation, because the address has none or the page was reloaded. */
  ask(link = "") {
    const input = make("input", {
      id: "invitation",
      type: "text",
      autocomplete: "off",
      autocapitalize: "characters",
      spellcheck: "false",
      value: link,
    });
    const label = make("label", { for: "invitation" }, this.words.invitation);
    const submit = (event) => {
      event.preventDefault();
      this.show(input.value);
    };
    const button = make("button", {}, this.words.continue);
    this.place(make("form", { on: { submit }, novalidate: true }, label, input, button));
  }

  async show(link) {
    this.run = this.hash = null;
    this.stands = false;
    this.tell(this.words.opening);
    try {
      const run = await open(link, this.pins, { words: this.words });
      const state = await run.state().catch(() => "new");
      const fields = state === "new" ? run.fields.map((field, place) => fieldOf(field, place, this.words)) : [];
      const submit = (event) => {
        event.preventDefault();
        if (event.isTrusted) this.answer(fields);
      };
      const boxes = make("div", { lang: run.language }, ...fields.map(({ box }) => box));
      const inside = [wordsBox(run, this.words), boxes, make("button", {}, this.words.send)];
      this.run = run;
      this.hash = state === "sealed" ? (await run.kept()).hash : null;
      if (run.title) this.head(run.title, run.language);
      this.place(make("form", { on: { submit }, novalidate: true, autocomplete: "off" }, ...inside));
      this.tell("");
      if (state === "sent") this.done(this.words.sentBefore);
      if (state === "sealed") await this.fly();
    } catch (error) {
      this.run = null;
      this.ask(error.retry || error.code === "clock" ? link : "");
      this.tell(sayError(error, this.words), true);
    }
  }

  async answer(fields) {
    const records = readAll(fields);
    if (!records) return;
    const button = this.main.querySelector("form button");
    button.disabled = true;
    this.tell(this.words.sending, true);
    try {
      const report = (await this.run.kept()) ?? (await this.run.seal(this.run.measure(records)));
      this.stands ||= this.hash !== report.hash && !report.own;
      this.hash = report.hash;
      await this.fly();
    } catch (error) {
      if (error.code === "already_sent") {
        this.stands = true;
        this.done(this.words.sentBefore);
      } else {
        button.disabled = false;
        this.tell(sayError(error, this.words), true);
      }
    }
  }

  /** Sends the stored report. If it is being sent already, shows its last state again. */
  async fly() {
    const told = this.heard.get(this.hash);
    if (told) this.hear(told);
    else this.tell(this.words.sending, true);
    await this.outbox.resume();
    // another tab may have sent it in the meantime
    if (this.main.querySelector("form") && (await this.run.state()) === "sent") this.done(this.words.sentBefore);
  }

  done(text) {
    const forget = async () => {
      await this.run.forget();
      this.tell(this.words.forgotten, true);
    };
    this.clear("form, [data-after]");
    this.tell(this.standing(text), true);
    this.offer(this.words.forget, forget, make("p", { "data-after": true }, this.words.remembers));
  }
}

function wordsBox({ words: all, study }, words) {
  const brief = all.filter((each) => each.brief).map(({ text }) => make("p", {}, text));
  const list = all
    .filter((each) => !each.brief)
    .flatMap(({ about, text }) => [make("dt", {}, words[`about.${about}`]), make("dd", {}, text)]);
  const number = study.match(/.{8}/g).join(" ");
  const behind = (summary, ...inside) => make("details", {}, make("summary", {}, summary), ...inside);
  return make(
    "section",
    { "aria-labelledby": "before" },
    make("h2", { id: "before" }, words.before),
    ...brief,
    behind(words.more, make("dl", {}, ...list)),
    behind(words.right, make("p", {}, words.compare), make("p", { class: "number" }, number)),
  );
}

/** Returns all answers, or null if one is invalid. Shows an error next to each invalid field and focuses the first. */
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

const fieldOf = (field, ...more) => (field.kind === "number" ? numberField : choiceField)(field, ...more);

/** Returns the explanation under a question, and the ids of the elements that describe its field. */
function helpOf(help, place) {
  const told = `error-${place}`;
  if (!help) return [[], told];
  return [[make("p", { id: `help-${place}` }, help)], `help-${place} ${told}`];
}

function numberField({ name, question, min, max, optional, help: about }, place, words) {
  const [id, told, silent] = [`field-${place}`, `error-${place}`, `silent-${place}`];
  const [help, described] = helpOf(about, place);
  const error = make("p", { id: told, class: "error" });
  const input = make("input", {
    id,
    type: "number",
    step: "any",
    autocomplete: "off",
    inputmode: "decimal",
    "aria-describedby": described,
    min,
    max,
  });
  const change = () => {
    input.disabled = box.checked;
    error.textContent = "";
  };
  const box = make("input", { id: silent, type: "checkbox", on: { change } });
  const side = min === undefined ? "upTo" : max === undefined ? "more" : "between";
  const range = (min ?? max) === undefined ? "" : say(words, `cell.${side}`, { low: String(min), high: String(max) });
  const rather = optional
    ? [make("div", { class: "choice" }, box, make("label", { for: silent }, words["cell.missing"]))]
    : [];
  const read = () => {
    const wrong = (text) => {
      input.setAttribute("aria-invalid", "true");
      return { error: text };
    };
    input.removeAttribute("aria-invalid");
    if (box.checked) return { value: null };
    if (input.validity.badInput) return wrong(words["wrong.number"]);
    if (Number.isNaN(input.valueAsNumber)) return wrong(words[optional ? "wrong.silent" : "wrong.blank"]);
    if (input.validity.rangeUnderflow || input.validity.rangeOverflow)
      return wrong(say(words, "wrong.range", { range }));
    return { value: input.valueAsNumber };
  };
  const whole = make(
    "div",
    { class: "field" },
    make("label", { for: id }, question + (range && ` (${range})`)),
    ...help,
    input,
    ...rather,
    error,
  );
  return { name, box: whole, read, error, focus: () => input.focus() };
}

function choiceField({ name, question, choices, optional, help: about }, place, words) {
  const told = `error-${place}`;
  const [help, described] = helpOf(about, place);
  const all = [...choices, ...(optional ? [{ label: words["cell.missing"], value: null }] : [])];
  const inputs = all.map((_, i) =>
    make("input", { id: `field-${place}-${i}`, type: "radio", name: `field-${place}`, value: String(i) }),
  );
  const lines = all.map(({ label }, i) =>
    make("div", { class: "choice" }, inputs[i], make("label", { for: inputs[i].id }, label)),
  );
  const error = make("p", { id: told, class: "error" });
  const box = make(
    "fieldset",
    { class: "field", "aria-describedby": described },
    make("legend", {}, question),
    ...help,
    ...lines,
    error,
  );
  const read = () => {
    const at = inputs.findIndex((input) => input.checked);
    return at < 0 ? { error: words["wrong.choice"] } : { value: all[at].value };
  };
  return { name, box, read, error, focus: () => inputs[0].focus() };
}
