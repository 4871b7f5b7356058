/**
 * The settings of a plan that this client can answer, table by table: its keys, and after `=` the only values of a key.
 * Python reads this object from the bundle as JSON (privstats/contrib/http/browsers.py), so that a study whose plan
 * every browser refuses is refused before people are invited. Write no comment and no expression into it.
 */
import { unsupported } from "./errors.js";

export const ACCEPTED = {
  "plan": "version=1 schema cohort privacy aggregation devices",
  "cohort": "clients min_survivors max_records colluders",
  "privacy": "model unit adjacency epsilon delta shares max_records_per_client",
  "aggregation": "graph min_count protocol=split panel key_agreement=mlkem768-x25519",
  "devices": "organisations registrar registrar_key page most_runs stated_epsilon words exact texts",
  "devices.texts": "title questions",
  "devices.texts.questions": "question help answers",
  "counts": "task transform= variables tables numbers",
  "schema.variables": "name values edges closed open other missing",
  "schema.numbers": "name low high by missing",
  "classes":
    "task transform= classes features statistics=NA|NAB clip_norm grid_bits nonnegative class_names feature_names",
  "ridge": "task transform= features targets clip_norm target_bound grid_bits folds=1 nonnegative feature_names"
};

/** Refuses a table, or a table in it, that has a key or a value outside `ACCEPTED[listed]`. */
export function requireAccepted(table, name, listed = name) {
  const rows = new Map(ACCEPTED[listed].split(" ").map((row) => row.split("=")));
  for (const [key, value] of Object.entries(table)) {
    const path = `${name}.${key}`;
    if (!rows.has(key) || rows.get(key)?.split("|").includes(String(value)) === false) unsupported(path);
    if (ACCEPTED[path]) Object.values(value).forEach((each) => requireAccepted(each, path));
  }
}
