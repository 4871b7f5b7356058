/** Checks that a person has acted: a mail scanner or a prerender may run the script, and must not seal an answer. */
import { refuse } from "./errors.js";

let [watching, submitted] = [false, false];
const isActive = () => globalThis.navigator?.userActivation?.isActive === true;

/** Notes that a person submits a form, because the browser's activation may expire before the page seals. */
export function watchPerson() {
  if (watching || !globalThis.document) return;
  watching = true;
  // isTrusted is true for a script's submit too, so the activation is checked as well
  document.addEventListener("submit", ({ isTrusted }) => (submitted ||= isTrusted && isActive()), true);
}

/** Refuses unless a person has just tapped, or has submitted a form since the last call: one submit allows one seal. */
export function requirePerson() {
  if (!globalThis.document) return;
  const acted = submitted || isActive();
  submitted = false;
  if (document.prerendering || !acted) refuse("no_person", "nothing is sent before a person presses “Send”");
}
