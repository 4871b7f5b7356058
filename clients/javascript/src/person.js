/** Whether a person has acted: a scanner or a prerender may run the script, and nothing is sealed for them. */
import { refuse } from "./errors.js";

let [watching, submitted] = [false, false];
const isActive = () => globalThis.navigator?.userActivation?.isActive === true;

/** Notes a form that a person submits: what a page does then may outlast the moment in which a browser vouches for it. */
export function watchPerson() {
  if (watching || !globalThis.document) return;
  watching = true;
  // a script's submit is trusted too, so the activation is asked for as well
  document.addEventListener("submit", ({ isTrusted }) => (submitted ||= isTrusted && isActive()), true);
}

/** One submit by a person, or a tap just now, is good for one seal. */
export function requirePerson() {
  if (!globalThis.document) return;
  const acted = submitted || isActive();
  submitted = false;
  if (document.prerendering || !acted) refuse("no_person", "nothing is sent before a person presses “Send”");
}
