/** The client of privstats studies, with X-Wing for plans with `key_agreement = "mlkem768-x25519"`: see README.md. */
import "./src/xwing.js";
export * from "./privstats.js";
