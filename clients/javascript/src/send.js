/** Asking the leader: bounded answers, refusals by their code, and one report sent until it is there. */
import { toHex } from "./bytes.js";
import { PrivstatsError, refuse } from "./errors.js";
import { sentenceOf, WAITING } from "./problems.js";

const [MOST_BYTES, MOST_PROBLEM] = [1 << 22, 1 << 16];
const [FIRST_MS, LONGEST_MS, PATIENCE_MS] = [500, 30_000, 15 * 60_000];
const KEEPALIVE = 60_000;
const HOUR = 3_600_000;
const PLAIN = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };

async function textOf(response, most) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, size] = ["", 0];
  for (let read; reader && !(read = await reader.read()).done;) {
    size += read.value.length;
    if (size > most) {
      await reader.cancel();
      refuse("too_large", "the study's server answers with more than this client reads");
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

async function problemOf(response) {
  let told = {};
  try {
    told = JSON.parse(await textOf(response, MOST_PROBLEM));
  } catch {
    // a proxy's page, not the leader's answer: its status alone counts
  }
  const named = typeof told?.code === "string" && /^[a-z_]{1,40}$/.test(told.code);
  const code = named ? told.code : `http_${response.status}`;
  const retry = named ? told.retry === true : response.status >= 500 || [408, 429].includes(response.status);
  return { code, retry, after: Number(response.headers.get("Retry-After")) * 1000 || 0 };
}

/** The manifest of a run; a device whose clock is an hour off the server's is told so. */
export async function manifestOf(leader, run, { fetch, now }) {
  let response;
  try {
    response = await fetch(`${leader}/v1/runs/${run}`, { ...PLAIN });
  } catch {
    throw new PrivstatsError("unreachable", "The study's server cannot be reached: are you online?", { retry: true });
  }
  if (!response.ok) {
    const { code, retry } = await problemOf(response);
    throw new PrivstatsError(code, sentenceOf(code), { retry });
  }
  const date = Date.parse(response.headers.get("Date"));
  if (Math.abs(date - now()) > HOUR)
    refuse("clock", "The clock of this device is wrong by more than an hour: set it, then come back.");
  try {
    return JSON.parse(await textOf(response, MOST_BYTES));
  } catch {
    return refuse("wrong_study", "the study's server does not answer as it should");
  }
}

/** One attempt: "sent", "already_here", or a wait in milliseconds; other refusals are thrown. */
async function attempt(url, bytes, { fetch, signal }) {
  let response;
  try {
    response = await fetch(url, {
      method: "PUT",
      body: bytes,
      headers: {
        "Content-Type": "application/vnd.privstats.report",
        "Privstats-Signature": toHex(bytes.subarray(-64)),
      },
      ...PLAIN,
      keepalive: bytes.length < KEEPALIVE,
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    return { after: 0, code: "unreachable" };
  }
  if (response.ok) return "sent";
  const { code, retry, after } = await problemOf(response);
  if (code === "already_here") return code;
  if (!retry) throw new PrivstatsError(code, sentenceOf(code));
  return { after, code };
}

/** Sends the same bytes until they are there, with pauses that grow and jitter, ending when a browser is online. */
export async function deliver(url, bytes, { fetch, signal, onWaiting = () => {}, patience = PATIENCE_MS }) {
  const end = Date.now() + patience;
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    const found = await attempt(url, bytes, { fetch, signal });
    if (typeof found === "string") return found;
    const wait = Math.max(found.after, pause * (0.5 + Math.random()));
    if (Date.now() + wait > end) throw new PrivstatsError(found.code, WAITING, { retry: true });
    onWaiting(WAITING);
    await paused(wait, signal);
  }
}

function paused(ms, signal) {
  return new Promise((resolve, reject) => {
    const over = (ended) => () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.("online", awake);
      ended(signal?.reason);
    };
    const awake = over(resolve);
    const timer = setTimeout(awake, ms);
    globalThis.addEventListener?.("online", awake);
    signal?.addEventListener("abort", over(reject), { once: true });
  });
}
