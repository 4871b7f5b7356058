/**
 * Checks a manifest before a secret is generated: the study that the page names, its panel and the members' signed
 * keys.
 */
import { requireAccepted } from "./accepted.js";
import { equal, fromHex, join, sha256, toHex, u8, utf8, verify } from "./bytes.js";
import { refuse, unsupported } from "./errors.js";
import { studyOf } from "./link.js";
import { layoutOf } from "./measure.js";
import { contextOf, label, parametersDigest } from "./seal.js";
import { encapsulate, KEY_BYTES } from "./xwing.js";

const NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;


const wrong = () =>
  refuse("wrong_study", "the study's server shows another study than this page: tell the people who invited you");

/** Checks a manifest, and returns the run: its plan, digests, context, box keys and segments. */
export async function runOf(manifest, pins, now) {
  const [run, roster] = [fromHex(manifest?.run), fromHex(manifest?.roster, 32)];
  if (!run || run.length < 16 || !roster || manifest.version !== 1 || typeof manifest.plan !== "string") wrong();
  if (!(manifest.closes > 0)) wrong();
  const digest = await sha256(utf8(manifest.plan));
  if (manifest.run !== pins.run || toHex(await studyOf(run, digest, roster)) !== pins.study) wrong();
  const plan = parsed(manifest.plan);
  checkPlan(plan);
  const stated = parametersIn(manifest, plan, digest);
  const parameters = await parametersDigest(stated);
  const members = await panelOf(manifest, plan, { ...stated, parameters, roster, now });
  return {
    ...stated,
    plan,
    context: await contextOf(parameters, roster, members),
    boxKeys: members.map(({ boxKey }) => boxKey),
    identities: members.map(({ identity }) => identity),
    run: manifest.run,
    study: pins.study,
    until: Math.min(...members.map(({ until }) => until)),
    closes: manifest.closes,
  };
}

function parsed(text) {
  for (const [token] of text.matchAll(NUMBERS)) {
    if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) unsupported("a number beyond 2^53");
  }
  return JSON.parse(text);
}

function checkPlan(plan) {
  requireAccepted(plan, "plan");
  if (!plan.devices) unsupported("a plan that is not for devices");
  for (const name of ["cohort", "privacy", "aggregation", "devices"]) requireAccepted(plan[name], name);
  const { model, unit } = plan.privacy;
  if (model !== "panel" && !(["none", "central"].includes(model) && plan.devices.exact)) unsupported(`${model} noise`);
  if (model !== "none" && unit !== "client" && plan.devices.words !== "per record") unsupported("a promise per record");
  layoutOf(plan.schema);
}

/**
 * Returns the public parameters of the manifest, which the panel has signed; refuses those that the plan contradicts.
 */
function parametersIn(manifest, { schema, cohort, aggregation, privacy }, plan) {
  const { clients, min_survivors: least, colluders, segments, noisy_helpers: noisyHelpers } = manifest;
  const same = clients === cohort.clients && least === cohort.min_survivors && colluders === cohort.colluders;
  const sizes = layoutOf(schema);
  const fits =
    Array.isArray(segments) &&
    segments.length === sizes.length &&
    segments.every((pair, i) => pair?.[0] === sizes[i] && Number.isInteger(pair[1]) && pair[1] >= 1 && pair[1] <= 62);
  if (!same || !fits || noisyHelpers !== (privacy.model === "panel")) wrong();
  const helpers = aggregation.panel.length - 1;
  return { clients, least, colluders, helpers, segments, plan, noisyHelpers };
}

async function panelOf(manifest, { aggregation, devices }, bound) {
  const { panel } = aggregation;
  const lists = [manifest.panel, manifest.offers, devices.organisations];
  if (panel.length < 2 || lists.some((list) => !Array.isArray(list) || list.length !== panel.length)) wrong();
  const members = await Promise.all(panel.map((identity, place) => memberOf(identity, place, manifest, bound)));
  for (const field of ["identity", "boxKey"]) {
    if (new Set(members.map((member) => toHex(member[field]))).size !== members.length) wrong();
  }
  return members;
}

/** Checks one offer, `place || identity 32 || box key || until u64 || signature 64`, and returns its keys. */
async function memberOf(identity, place, manifest, { parameters, roster, now }) {
  const [named, offer] = [fromHex(identity, 32), fromHex(manifest.offers[place], KEY_BYTES + 105)];
  if (!named || !offer || manifest.panel[place] !== identity) wrong();
  const [boxKey, end] = [offer.subarray(33, -72), offer.subarray(-72, -64)];
  const statement = join(label("offer-xwing"), parameters, roster, u8(place), boxKey, end);
  const signed = offer[0] === place && equal(offer.subarray(1, 33), named) && !isLowOrder(named);
  if (!signed || !(await verify(named, offer.subarray(-64), statement))) wrong();
  await encapsulate(boxKey, () => new Uint8Array(32).fill(1)).catch(wrong);
  const until = end.reduce((seconds, byte) => seconds * 256 + byte, 0);
  if (until <= now / 1000) refuse("ended", "the keys of this study have expired: it accepts no more answers");
  return { identity: named, boxKey, until };
}

const PRIME = 2n ** 255n - 19n;
const EIGHTH = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;

/** Returns whether an Ed25519 key is one of the 14 points of low order, for which any party can sign. */
export function isLowOrder(key) {
  const y = BigInt(`0x${toHex(Uint8Array.from(key).reverse())}`) % 2n ** 255n;
  return [0n, 1n, -1n, EIGHTH, -EIGHTH].some((low) => (y - low) % PRIME === 0n);
}
