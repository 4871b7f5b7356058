/** Sends requests to the leader, with limits on size and time; sends one report until it has arrived. */
import { toHex } from "./bytes.js";
import { ENGLISH } from "./english.js";
import { PrivstatsError, refuse } from "./errors.js";
import { sentenceOf } from "./say.js";

// as many bytes as the client in Python reads
const [MAX_BYTES, MAX_PROBLEM] = [1 << 24, 1 << 16];
const HOUR = 3_600_000;
const [FIRST_MS, LONGEST_MS, PATIENCE_MS, REQUEST_MS] = [500, 30_000, 2 * HOUR, 30_000];
const KEEPALIVE = 60_000;
const PLAIN = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };

async function textOf(response, most) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, size] = ["", 0];
  for (let read; reader && !(read = await reader.read()).done;) {
    size += read.value.length;
    if (size > most) {
      await reader.cancel();
      refuse("too_large", "the study's server sends too much");
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

async function problemOf(response) {
  let problem = {};
  try {
    problem = JSON.parse(await textOf(response, MAX_PROBLEM));
  } catch {
    // a proxy's page, not the leader's answer: only its status counts
  }
  const named = typeof problem?.code === "string" && /^[a-z_]{1,40}$/.test(problem.code);
  const code = named ? problem.code : `http_${response.status}`;
  const retry = named ? problem.retry === true : response.status >= 500 || [408, 429].includes(response.status);
  return { code, retry, after: Math.min(+response.headers.get("Retry-After") * 1000 || 0, HOUR) };
}

/** Returns the result of `work`, whose signal aborts after some milliseconds, or together with the `outer` signal. */
async function within(ms, outer, work) {
  const inner = new AbortController();
  const timer = setTimeout(() => inner.abort(), ms);
  try {
    return await work(outer ? AbortSignal.any([outer, inner.signal]) : inner.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the manifest of a run; refuses a device whose clock differs from the server's by more than an hour. */
export async function manifestOf(leader, run, { fetch, now }) {
  const asked = async (signal) => {
    const response = await fetch(`${leader}/v1/runs/${run}`, { ...PLAIN, signal });
    if (response.ok) return { date: response.headers.get("Date"), text: await textOf(response, MAX_BYTES) };
    const { code, retry } = await problemOf(response);
    throw new PrivstatsError(code, sentenceOf(code), { retry });
  };
  let found;
  try {
    found = await within(REQUEST_MS, undefined, asked);
  } catch (error) {
    if (error instanceof PrivstatsError) throw error;
    throw new PrivstatsError("unreachable", sentenceOf("unreachable"), { retry: true });
  }
  if (Math.abs(Date.parse(found.date) - now()) > HOUR) refuse("clock", sentenceOf("clock"));
  try {
    return JSON.parse(found.text);
  } catch {
    return refuse(
      "wrong_study",
      "the study's server shows another study than this page: tell the people who invited you",
    );
  }
}

/**
 * Tries once. Returns "sent", "already_here", or the milliseconds to wait and why; throws for other refusals.
 *
 * @returns {Promise<"sent" | "already_here" | { after: number, code: string }>}
 */
async function attempt(url, bytes, { fetch, signal: outer }) {
  const headers = {
    "Content-Type": "application/vnd.privstats.report",
    "Privstats-Signature": toHex(bytes.subarray(-64)),
  };
  const keepalive = bytes.length < KEEPALIVE;
  // as long as the leader waits for a body: one more second for each 64 kB
  const limit = REQUEST_MS + bytes.length / 64;
  try {
    return await within(limit, outer, async (signal) => {
      const response = await fetch(url, { method: "PUT", body: bytes, headers, ...PLAIN, keepalive, signal });
      if (response.ok) return "sent";
      const { code, retry, after } = await problemOf(response);
      if (code === "already_here") return code;
      if (!retry) throw new PrivstatsError(code, sentenceOf(code));
      return { after, code };
    });
  } catch (error) {
    if (error instanceof PrivstatsError || outer?.aborted) throw error;
    return { after: 0, code: "unreachable" };
  }
}

/**
 * Sends identical bytes until they have arrived, with random pauses that grow. A pause ends early if the browser is
 * online again or a person returns to the page. After `patience` milliseconds it stops, until the next call.
 *
 * @param {string} url
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {{ fetch: typeof globalThis.fetch } & import("../privstats.js").Sending} options
 */
export async function deliver(url, bytes, { fetch, signal, onWaiting = () => {}, patience = PATIENCE_MS }) {
  const end = Date.now() + patience;
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    const found = await attempt(url, bytes, { fetch, signal });
    if (typeof found === "string") return found;
    const wait = Math.max(found.after, pause * (0.5 + Math.random()));
    if (Date.now() + wait > end) throw new PrivstatsError(found.code, ENGLISH.stopped, { retry: true });
    onWaiting({ code: found.code, text: ENGLISH.waiting });
    await paused(wait, signal);
  }
}

/** Calls `work` when the browser is online again or the page is visible again; returns a function that ends this. */
export function whenBack(work) {
  const seen = () => globalThis.document?.visibilityState !== "hidden" && work();
  const listen = (how) => {
    globalThis[how]?.("online", work);
    globalThis[how]?.("visibilitychange", seen);
  };
  listen("addEventListener");
  return () => listen("removeEventListener");
}

function paused(ms, signal) {
  return new Promise((resolve, reject) => {
    const over = (ended) => () => {
      clearTimeout(timer);
      unheard();
      signal?.removeEventListener("abort", stop);
      ended(signal?.reason);
    };
    const [awake, stop] = [over(resolve), over(reject)];
    const timer = setTimeout(awake, ms);
    const unheard = whenBack(awake);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
  });
}
