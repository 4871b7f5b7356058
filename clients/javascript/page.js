/** The page's form, for a page of one's own: see README.md. */
export { start } from "./src/page.js";
