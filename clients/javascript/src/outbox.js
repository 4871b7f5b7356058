/** What this browser keeps and has not sent: a sealed report needs no code, so no link, to be sent. */
import { inBrowser } from "./keep.js";
import { leaderOf } from "./pins.js";
import { deliver, whenBack } from "./send.js";

/**
 * Sends one report that is kept, until it is there; then only the note stays that it was sent.
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
  // it has arrived: a store that fails now keeps the bytes, and they may be sent again
  await store.exclusive(id, note).catch(() => {});
  return found;
}

/**
 * Sends every sealed report of one run: now, when `resume` is called, when the browser is online again, and when a
 * person comes back to the page.
 *
 * @param {import("../privstats.js").Pins} pins the page's own: a report of another study stays where it is
 * @param {Parameters<typeof import("../privstats.js").outbox>[1]} [options] `onState` hears of each report whether it is
 *   "sending", "waiting" (tried again by itself), "stopped" (`resume` tries again), "refused", "sent" or "already_here"
 */
export function outbox(pins, options = {}) {
  const { store = inBrowser(), fetch = globalThis.fetch.bind(globalThis), patience, onState = () => {} } = options;
  const leader = leaderOf(pins);
  const flying = new Map();

  const fly = async (record) => {
    const tell = (state, code) => onState({ hash: record.hash, index: record.index, state, code });
    const onWaiting = ({ code }) => tell("waiting", code);
    tell("sending");
    try {
      tell(await sendKept(record, { leader, store, fetch, patience, onWaiting }));
    } catch (error) {
      tell(error.retry ? "stopped" : "refused", error.code);
    }
    flying.delete(record.id);
  };

  const resume = async () => {
    if (globalThis.document?.prerendering) return;
    for (const record of await store.sealed(pins.run)) {
      if (record.study === pins.study && !flying.has(record.id)) flying.set(record.id, fly(record));
    }
    await Promise.all(flying.values());
  };

  // a store that cannot be read is told of where a person acts
  const again = () => void resume().catch(() => {});
  again();
  return { resume, close: whenBack(again) };
}
