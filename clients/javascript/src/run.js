/** One run on a device: it is checked before a secret is generated, sealed once, and sent until it has arrived. */
import { publicOf, sha256, sign, signingKey, toHex, u8, utf8, verify } from "./bytes.js";
import { refuse } from "./errors.js";
import { inBrowser } from "./keep.js";
import { readLink, seedOf } from "./link.js";
import { measure } from "./measure.js";
import { sendKept } from "./outbox.js";
import { requirePerson, watchPerson } from "./person.js";
import { leaderOf } from "./pins.js";
import { runOf } from "./plan.js";
import { requirePrimitives } from "./primitives.js";
import { wordsIn } from "./say.js";
import { contextIn, reportOf } from "./seal.js";
import { manifestOf } from "./send.js";
import { fieldsOf, textsIn, wordsOf } from "./words.js";

/**
 * Opens an invitation on the page that names its study. It generates, stores and sends nothing.
 *
 * @param {string} invitation a link, its fragment, or an invitation typed from paper
 * @param {import("../privstats.js").Pins} pins the page's: never from a link
 * @param {import("../privstats.js").Options} [options] the store of reports, and doubles for tests; a table of
 *   sentences (words.json), and the languages of the plan's texts that a person prefers
 */
export async function open(invitation, pins, options = {}) {
  const { store = inBrowser(), fetch = globalThis.fetch.bind(globalThis), now = Date.now } = options;
  const words = wordsIn(options.words);
  const languages = options.languages ?? globalThis.navigator?.languages ?? [words.lang];
  const leader = leaderOf(pins);
  watchPerson();
  await requirePrimitives();
  const { index, code } = await readLink(invitation);
  const identity = await identityOf(code);
  const run = await runOf(await manifestOf(leader, pins.run, { fetch, now }), pins, now());
  if (index >= run.clients) refuse("stranger", "this invitation is not for this study: ask the people who invited you");
  if (await isMember(identity.key, run.identities)) refuse("wrong_study", "this invitation is a member of the panel");
  const texts = textsIn(run.plan.devices, languages);
  return new Run({ ...run, ...identity, index, leader, store, fetch, now, words, texts });
}

const RECORD = "privstats/devices/1/kept";

/**
 * Returns a code's signing key, and the names of its records in a store: a hash of the seed, and the hash of the public
 * key that earlier versions used, where the browser exports that key.
 */
async function identityOf(code) {
  const seed = await seedOf(code);
  const former = await publicOf(seed);
  const names = [await sha256(utf8(RECORD), u8(0), seed), ...(former ? [await sha256(former)] : [])].map(toHex);
  const key = await signingKey(seed);
  seed.fill(0);
  return { key, names };
}

async function isMember(key, identities) {
  const statement = utf8(RECORD);
  const signature = await sign(key, statement);
  return (await Promise.all(identities.map((each) => verify(each, signature, statement)))).includes(true);
}

class Run {
  #held;
  #measured = new WeakSet();

  constructor(held) {
    this.#held = held;
    this.words = wordsOf(held.plan, held.words, held.texts);
    this.title = held.texts.title;
    this.language = held.texts.lang;
    this.index = held.index;
    this.study = held.study;
    this.closes = held.closes;
    Object.freeze(this);
  }

  /** The questions of a form; refused unless the plan is of counts. */
  get fields() {
    return fieldsOf(this.#held.plan.schema, this.#held.words, this.#held.texts);
  }

  get #ids() {
    return this.#held.names.map((name) => `${this.#held.run}/${name}`);
  }

  /**
   * Returns the stored record of this run and code, under its name of today or of an earlier version.
   *
   * @returns {Promise<import("../privstats.js").Kept | undefined>}
   */
  async #record() {
    for (const id of this.#ids) {
      const found = await this.#held.store.get(id);
      if (found) return found;
    }
  }

  /** Returns "new", "sealed" (stored, and perhaps not sent) or "sent". */
  async state() {
    return (await this.#record())?.state ?? "new";
  }

  /** Returns the integers of some records, equal to those of ps.measure in Python. */
  measure(records) {
    const { schema, cohort, privacy } = this.#held.plan;
    const found = measure(schema, records);
    const most = Math.min(cohort.max_records, privacy.max_records_per_client ?? Infinity);
    if (found.records > most) refuse("too_many_records", `too many records: send at most ${most}`);
    this.#measured.add(found);
    return found;
  }

  /**
   * Returns the report, stored before this returns. A later call returns the first report's bytes, with `own` false.
   */
  async seal(measured) {
    requirePerson();
    if (!this.#measured.delete(measured))
      refuse("measured_again", "seal each measure() once");
    return this.#held.store.exclusive(this.#held.names[0], async () => {
      const kept = await this.#record();
      if (kept) return this.#again(kept);
      await this.#limit(1);
      if (this.#held.until <= this.#held.now() / 1000)
        refuse("ended", "the keys of this study have expired: it accepts no more answers");
      const root = crypto.getRandomValues(new Uint8Array(32));
      const { run, study, names, index, key } = this.#held;
      const report = await reportOf(this.#held, { index, key }, measured.vector, root);
      measured.vector.fill(0);
      const hash = toHex(await sha256(report));
      const sealed = { state: "sealed", hash, report, context: contextIn(report) };
      return this.#added({ id: this.#ids[0], run, study, key: names[0], index, ...sealed });
    });
  }

  /** Refuses more runs of this code than its study allows, if `more` are stored. */
  async #limit(more) {
    for (const name of this.#held.names) more += await this.#held.store.runsOf(name);
    if (more > this.#held.plan.devices.most_runs)
      refuse("most_runs", "this invitation was used as often as its study allows");
  }

  /**
   * Stores a report. Returns the stored one: this report, or that of another process that was first. Processes that
   * store reports of several runs at once may each refuse, because a folder's lock is of one process.
   */
  async #added(record) {
    const { store } = this.#held;
    try {
      await store.add(record);
      await this.#limit(0);
      return this.#again(record, true);
    } catch (error) {
      if (error.code === "most_runs") await store.remove(record.id);
      const first = await store.get(record.id);
      if (!first) throw error;
      return this.#again(first, first.hash === record.hash);
    }
  }

  #again(kept, own = false) {
    if (kept.study !== this.#held.study)
      refuse("wrong_study", "this browser stores an answer to another study: ask the people who invited you");
    if (kept.index !== this.#held.index)
      refuse("other_index", "this invitation was used with another number: ask the people who invited you");
    if (kept.state === "sent")
      refuse("already_sent", "An answer was already sent from this browser with this invitation.");
    // an earlier version's answer to this run may be sealed under X25519 alone
    if (contextIn(kept.report) !== toHex(this.#held.context))
      refuse("wrong_study", "this browser stores an answer under other keys: ask the people who invited you");
    return Object.freeze({ hash: kept.hash, bytes: kept.report, own });
  }

  /** Returns the report of an earlier visit that is stored, and perhaps not sent; null if there is none. */
  async kept() {
    const kept = await this.#record();
    return kept?.state === "sealed" ? this.#again(kept) : null;
  }

  /**
   * Sends the report's bytes until they arrive. Returns "sent", or "already_here" if another report of this invitation
   * was first. Refuses a report that is not the stored one: a second answer would be a second release.
   */
  async send(report, options = {}) {
    const { leader, run, index, fetch, store } = this.#held;
    const kept = await this.#record();
    if (kept?.hash !== report.hash) refuse("other_report", "nothing was sent");
    return sendKept({ id: kept.id, run, index, report: report.bytes }, { leader, fetch, store, ...options });
  }

  /** Removes the answer and its note from this browser. A sent answer stays sent. */
  forget() {
    const { store } = this.#held;
    return store.exclusive(this.#ids[0], () => Promise.all(this.#ids.map((id) => store.remove(id))));
  }
}
