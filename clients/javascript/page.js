/** The page's form, for your own page: see README.md. */
export { start } from "./src/page.js";
