/** A frozen run of the library's tests, as a device knows it. */
import { fromHex, sha256, u32, utf8 } from "../src/bytes.js";
import { contextOf, parametersDigest } from "../src/seal.js";
import { boxKeyOf, signerOf } from "./double.js";

/** The run and its clients' signing keys. */
export async function runOf(frozen) {
  const signers = await Promise.all(frozen.identities.map((raw) => signerOf(fromHex(raw))));
  const seats = await Promise.all(frozen.members.map((raw) => signerOf(fromHex(raw))));
  const segments = frozen.ring;
  const parameters = await parametersDigest({
    clients: frozen.clients,
    least: frozen.min_survivors,
    colluders: frozen.colluders,
    helpers: frozen.helpers,
    segments,
    plan: fromHex(frozen.plan_digest),
    noisyHelpers: false,
  });
  const named = (purpose) => utf8(`privstats/secagg/2/${purpose}\0`);
  const keys = signers.map((signer) => signer.public);
  const members = await sha256(named("members"), u32(keys.length), ...keys, seats[0].public);
  const roster = await sha256(named("roster"), members, fromHex(frozen.run));
  const boxKeys = await Promise.all(frozen.box_keys.map((raw) => boxKeyOf(fromHex(raw))));
  const panel = boxKeys.map((boxKey, place) => ({ identity: seats[place].public, boxKey }));
  return { run: { context: await contextOf(parameters, roster, panel), boxKeys, segments }, signers };
}
