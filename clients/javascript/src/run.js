/** One run as a device sees it: checked before a secret is drawn, sealed once, sent as often as it takes. */
import { sha256, signingKey, toHex } from "./bytes.js";
import { refuse } from "./errors.js";
import { inBrowser } from "./keep.js";
import { readLink, seedOf } from "./link.js";
import { measure } from "./measure.js";
import { runOf } from "./plan.js";
import { reportOf } from "./seal.js";
import { deliver, manifestOf } from "./send.js";
import { fieldsOf, wordsOf } from "./words.js";

/**
 * Opens an invitation on the page that knows its study. Nothing is drawn, kept or sent.
 *
 * @param invitation a link, its fragment, or what was typed from paper
 * @param pins the page's own { leader, run, study }: never from a link
 * @param options { store, fetch, now }: where reports are kept, and doubles for tests
 */
export async function open(invitation, pins, options = {}) {
  const { store = inBrowser(), fetch = globalThis.fetch.bind(globalThis), now = Date.now } = options;
  await requireWebCrypto();
  const { index, code } = await readLink(invitation);
  const leader = String(pins.leader).replace(/\/$/, "");
  const identity = await identityOf(code);
  const run = await runOf(await manifestOf(leader, pins.run, { fetch, now }), pins, now());
  if (index >= run.clients) refuse("stranger", "this invitation is not for this study: ask who invited you");
  const mine = toHex(identity.public);
  if (run.identities.some((each) => toHex(each) === mine))
    refuse("wrong_study", "this invitation is a member of the panel");
  const key = toHex(await sha256(identity.public));
  return new Run({ ...run, index, key, identity, leader, store, fetch, now });
}

async function identityOf(code) {
  const seed = await seedOf(code);
  const identity = await signingKey(seed);
  seed.fill(0);
  return identity;
}

async function requireWebCrypto() {
  try {
    await signingKey(new Uint8Array(32));
    await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
  } catch {
    refuse("too_old", "This browser is too old to send an answer safely: use a newer one, or another device.");
  }
}

class Run {
  #held;
  #measured = new WeakSet();

  constructor(held) {
    this.#held = held;
    this.words = wordsOf(held.plan);
    this.index = held.index;
    this.study = held.study;
    this.closes = held.closes;
    Object.freeze(this);
  }

  /** What a form asks; refused where the plan is not of counts. */
  get fields() {
    return fieldsOf(this.#held.plan.schema);
  }

  get #id() {
    return `${this.#held.run}/${this.#held.key}`;
  }

  /** "new", "sealed" (kept and perhaps not sent) or "sent". */
  async state() {
    return (await this.#held.store.get(this.#id))?.state ?? "new";
  }

  /** The whole numbers of some records; the same as ps.measure in Python. */
  measure(records) {
    const { schema, cohort, privacy } = this.#held.plan;
    const found = measure(schema, records);
    const most = Math.min(cohort.max_records, privacy.max_records_per_client ?? Infinity);
    if (found.records > most) refuse("too_many_records", `the plan allows ${most} records of one device`);
    this.#measured.add(found);
    return found;
  }

  /** The report, on disk before this returns; a second call gives the first one's bytes. */
  async seal(measured) {
    requirePerson();
    if (!this.#measured.delete(measured))
      refuse("measured_again", "each report is sealed of a fresh run.measure(records)");
    const { store } = this.#held;
    return store.exclusive(this.#id, async () => {
      const kept = await store.get(this.#id);
      if (kept) return this.#again(kept);
      if ((await store.runsOf(this.#held.key)) >= this.#held.plan.devices.most_runs) {
        refuse("most_runs", "this invitation has been used as often as its study promised: no further answer is sent");
      }
      if (this.#held.until <= this.#held.now() / 1000) refuse("ended", "the keys of this study have ended");
      const root = crypto.getRandomValues(new Uint8Array(32));
      const report = await reportOf(
        this.#held,
        { index: this.#held.index, key: this.#held.identity.key },
        measured.vector,
        root,
      );
      measured.vector.fill(0);
      const { run, study, key, index } = this.#held;
      const record = {
        id: this.#id,
        run,
        study,
        key,
        index,
        state: "sealed",
        hash: toHex(await sha256(report)),
        report,
      };
      return this.#added(record);
    });
  }

  /** The report that is kept: this one, or the one of another process that came first. */
  async #added(record) {
    try {
      await this.#held.store.add(record);
      return this.#again(record);
    } catch (error) {
      const first = await this.#held.store.get(record.id);
      if (!first) throw error;
      return this.#again(first);
    }
  }

  #again(kept) {
    if (kept.study !== this.#held.study)
      refuse("wrong_study", "an answer to another study is kept under this run: ask who invited you");
    if (kept.index !== this.#held.index)
      refuse("other_index", "this invitation was used with another number: ask who invited you");
    if (kept.state === "sent")
      refuse("already_sent", "An answer was already sent from this browser with this invitation.");
    return Object.freeze({ hash: kept.hash, bytes: kept.report });
  }

  /** The report that is kept and perhaps not sent, from an earlier visit; null where there is none. */
  async kept() {
    const kept = await this.#held.store.get(this.#id);
    return kept?.state === "sealed" ? this.#again(kept) : null;
  }

  /** "sent", or "already_here" where another report of this invitation came first; the same bytes until then. */
  async send(report, options = {}) {
    const { leader, run, index, fetch, store } = this.#held;
    const url = `${leader}/v1/runs/${run}/reports/${index}`;
    const found = await deliver(url, report.bytes, { fetch, ...options });
    const note = async () => {
      const kept = await store.get(this.#id);
      if (kept) await store.update({ ...kept, state: "sent", report: null });
    };
    // it has arrived: a store that fails now keeps the bytes, and they may be sent again
    await store.exclusive(this.#id, note).catch(() => {});
    return found;
  }

  /** Removes what this browser keeps of the answer. A sent answer stays sent. */
  forget() {
    return this.#held.store.exclusive(this.#id, () => this.#held.store.remove(this.#id));
  }
}

/** In a page nothing is sealed before a person acts: a scanner or a prerender may run the script. */
function requirePerson() {
  const page = globalThis.document;
  if (page && (page.prerendering || !globalThis.navigator?.userActivation?.isActive)) {
    refuse("no_person", "nothing is sent before a person presses “Send”");
  }
}
