/** Sends the reports that are sealed and stored, but not sent. A sealed report needs no code, and so no link. */
import { inBrowser } from "./keep.js";
import { leaderOf } from "./pins.js";
import { deliver, whenBack } from "./send.js";

/**
 * Sends one stored report until it has arrived. Then only a note is stored that it was sent.
 *
 * @param {Pick<import("../privstats.js").Kept, "id" | "run" | "index" | "report">} record
 * @param {{ leader: string, store: import("../privstats.js").Store, fetch: typeof globalThis.fetch } &
 *   import("../privstats.js").Sending} options
 */
export async function sendKept({ id, run, index, report }, { leader, store, ...options }) {
  const found = await deliver(`${leader}/v1/runs/${run}/reports/${index}`, report, options);
  const note = async () => {
    const kept = await store.get(id);
    if (kept) await store.update({ ...kept, state: "sent", report: null });
  };
  // the report has arrived: if the store fails now, the bytes stay and may be sent again
  await store.exclusive(id, note).catch(() => {});
  return found;
}

/**
 * Sends every sealed report of one run: at once, when `resume` is called, when the browser is online again, and when a
 * person returns to the page. An earlier version's report, which has no context in its record, needs its link: only
 * with it the page knows the run's keys, and the report may be sealed under X25519 alone.
 *
 * @param {import("../privstats.js").Pins} pins the page's: reports of other studies are not sent
 * @param {Parameters<typeof import("../privstats.js").outbox>[1]} [options] `onState` is called with each report's
 *   state: "sending", "waiting" (for the next try), "stopped" (until `resume` is called), "refused", "sent" or
 *   "already_here"
 */
export function outbox(pins, options = {}) {
  const { store = inBrowser(), fetch = globalThis.fetch.bind(globalThis), patience, onState = () => {} } = options;
  const leader = leaderOf(pins);
  const pending = new Map();

  const push = async (record) => {
    const report = (state, code) => onState({ hash: record.hash, index: record.index, state, code });
    const onWaiting = ({ code }) => report("waiting", code);
    report("sending");
    try {
      report(await sendKept(record, { leader, store, fetch, patience, onWaiting }));
    } catch (error) {
      report(error.retry ? "stopped" : "refused", error.code);
    }
    pending.delete(record.id);
  };

  const resume = async () => {
    if (globalThis.document?.prerendering) return;
    for (const record of await store.sealed(pins.run)) {
      if (record.context && record.study === pins.study && !pending.has(record.id))
        pending.set(record.id, push(record));
    }
    await Promise.all(pending.values());
  };

  // a store that cannot be read is reported once a person acts
  const again = () => void resume().catch(() => {});
  again();
  return { resume, close: whenBack(again) };
}
