/** A study and its leader's resources, as docs of the engine define them, in memory: for tests without Python. */
import { createHash } from "node:crypto";

import {
  fromHex,
  join,
  publicOf,
  sha256,
  sign,
  signingKey,
  toHex,
  u8,
  u32,
  utf8,
  x25519Private,
  x25519Public,
} from "../src/bytes.js";
import { studyOf } from "../src/link.js";
import { layoutOf } from "../src/measure.js";
import { label, parametersDigest } from "../src/seal.js";
import { noble } from "../vendor/noble.js";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const filled = (byte) => new Uint8Array(32).fill(byte);

export const SCHEMA = {
  task: "counts",
  tables: [["age", "smokes"]],
  transform: [],
  variables: [
    { name: "age", edges: [0, 40, 60, 120], missing: true, open: "none" },
    { name: "smokes", values: ["yes", "no"], missing: true },
  ],
};

export function base32(bytes) {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits
    .match(/.{1,5}/g)
    .map((five) => LETTERS[parseInt(five.padEnd(5, "0"), 2)])
    .join("");
}

export async function linkOf(index, code) {
  const plain = `1.${index}.${base32(code)}`;
  const check = base32(await sha256(utf8("privstats/devices/1/link"), u8(0), utf8(plain))).slice(0, 4);
  return `https://page.example/#${plain}.${check}`;
}

export const codeOf = (index) => Uint8Array.from({ length: 16 }, (_, i) => index * 16 + i);

export function planOf(panel, changes = {}) {
  return {
    aggregation: { graph: "auto", min_count: 0, panel, protocol: "split" },
    cohort: { clients: 6, colluders: 1, max_records: 6, min_survivors: 4 },
    devices: {
      organisations: ["University of Ulm", "Bonn Clinic"],
      registrar: "Study Office Trier",
      registrar_key: "ab".repeat(32),
      page: "Library of Kiel",
      most_runs: 2,
      stated_epsilon: 2.95,
    },
    privacy: {
      adjacency: "add-remove",
      delta: 1e-6,
      epsilon: 1,
      max_records_per_client: 1,
      model: "panel",
      unit: "client",
    },
    schema: SCHEMA,
    version: 1,
    ...changes,
  };
}

/** A signing key and its public half. */
export async function signerOf(seed) {
  return { key: await signingKey(seed), public: await publicOf(seed) };
}

/** The box key, of X-Wing, that 32 secret bytes expand to. */
export async function boxKeyOf(seed) {
  const halves = createHash("shake256", { outputLength: 96 }).update(seed).digest();
  const { publicKey } = noble.ml_kem768.keygen(Uint8Array.from(halves.subarray(0, 64)));
  return join(publicKey, await x25519Public(await x25519Private(halves.subarray(64))));
}

/** A study of six people: manifest, pins, links, and a `fetch` that answers as the leader does. */
export async function studyIn(how = {}) {
  const seeds = how.seeds ?? (how.members ?? [1, 2]).map(filled);
  const members = await Promise.all(seeds.map(signerOf));
  const panel = members.map((member) => toHex(member.public));
  const plan = planOf(panel, how.plan);
  const text = how.text ?? JSON.stringify(plan);
  const run = fromHex(how.run ?? "11".repeat(16));
  const roster = filled(9);
  const bits = how.bits ?? 24;
  const segments = how.segments ?? layoutOf(plan.schema).map((size) => [size, bits]);
  const noisyHelpers = plan.privacy.model === "panel";
  const digest = await sha256(utf8(text));
  const { clients, min_survivors: least, colluders } = plan.cohort;
  const stated = { clients, least, colluders, helpers: 1, segments, plan: digest, noisyHelpers };
  const parameters = await parametersDigest(stated);
  const until = u64(how.until ?? Math.floor(Date.now() / 1000) + 86400);
  const boxKeys = await Promise.all([3, 4].map((byte) => boxKeyOf(filled(byte))));
  const offers = await Promise.all(
    members.map(async ({ key, public: identity }, place) => {
      const boxKey = how.boxKeys?.[place] ?? boxKeys[place];
      const statement = join(label("offer-xwing"), parameters, roster, u8(place), boxKey, until);
      return toHex(join(u8(place), identity, boxKey, until, await sign(key, statement)));
    }),
  );
  const manifest = {
    version: 1,
    run: toHex(run),
    plan: text,
    roster: toHex(roster),
    panel,
    offers,
    clients,
    min_survivors: least,
    colluders,
    segments,
    noisy_helpers: noisyHelpers,
    closes: 2_000_000_000,
    report_bytes: 1000,
  };
  const pins = { leader: "https://leader.example", run: toHex(run), study: toHex(await studyOf(run, digest, roster)) };
  const links = await Promise.all(Array.from({ length: clients }, (_, index) => linkOf(index, codeOf(index))));
  return { manifest, pins, links, boxKeys: [3, 4].map(filled), leader: leaderOf(manifest) };
}

function u64(seconds) {
  return join(u32(Math.floor(seconds / 4294967296)), u32(seconds % 4294967296));
}

export function problem(code, status, { retry = false, after } = {}) {
  const headers = {
    "Content-Type": "application/problem+json",
    ...(after === undefined ? {} : { "Retry-After": String(after) }),
  };
  return new Response(JSON.stringify({ type: `urn:privstats:http:${code}`, title: "", status, code, retry }), {
    status,
    headers,
  });
}

/** The resources of section 3, as far as a device meets them; `before` may answer in their place. */
export function leaderOf(manifest, reports = new Map()) {
  const asked = [];
  const state = { manifest, reports, asked, before: () => null, date: new Date() };
  state.fetch = async (url, options = {}) => {
    const { pathname } = new URL(url);
    asked.push({
      url,
      method: options.method ?? "GET",
      headers: options.headers,
      body: options.body,
      keepalive: options.keepalive,
    });
    const early = await state.before(pathname, options);
    if (early) return early;
    if (!options.method)
      return new Response(JSON.stringify(state.manifest), { headers: { Date: state.date.toUTCString() } });
    const sender = pathname.split("/").at(-1);
    const [hex, there] = [toHex(options.body), reports.get(sender)];
    if (there !== undefined && there !== hex) return problem("already_here", 409);
    reports.set(sender, hex);
    return new Response(null, { status: there === undefined ? 201 : 200 });
  };
  return state;
}
