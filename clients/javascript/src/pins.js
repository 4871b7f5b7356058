/** What a page must name of its study, and a link must not. */
import { fromHex } from "./bytes.js";
import { refuse } from "./errors.js";

/** The leader's address, of pins that are checked. */
export function leaderOf(pins) {
  const { leader, run, study } = pins ?? {};
  const size = fromHex(run)?.length;
  const checked = {
    leader: /^https?:\/\/[\w.:[\]-]+\/?$/.test(String(leader)),
    run: size >= 16 && size <= 32,
    study: fromHex(study, 32),
  };
  for (const [field, good] of Object.entries(checked)) {
    if (!good) refuse("bad_pins", `the page's "${field}" is not as study.json has it: copy it again`);
  }
  return leader.replace(/\/$/, "");
}
