/** Checks the pins: the leader, run and study that a page names, and a link must not. */
import { fromHex } from "./bytes.js";
import { refuse } from "./errors.js";

/** Returns the leader's address without a final slash; refuses pins of another form. */
export function leaderOf(pins) {
  const { leader, run, study } = pins ?? {};
  const size = fromHex(run)?.length;
  const checked = {
    leader: /^https?:\/\/[\w.:[\]-]+\/?$/.test(String(leader)),
    run: size >= 16 && size <= 32,
    study: fromHex(study, 32),
  };
  for (const [field, good] of Object.entries(checked)) {
    if (!good) refuse("bad_pins", `the page's "${field}" is not as in study.json: copy it again`);
  }
  return leader.replace(/\/$/, "");
}
