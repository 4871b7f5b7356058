/**
 * Runs before `npm pack`: checks that the bundle is built from the sources, and adds the licence to the package. If
 * PRIVSTATS_PROJECT_URL has the project's address, as for the wheel, it adds the repository too. `--undo` removes both.
 */
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { bundled } from "./build.js";

const at = (name) => new URL(name, import.meta.url);
const { repository: _, ...named } = JSON.parse(readFileSync(at("package.json"), "utf8"));
const undo = process.argv.includes("--undo");
const address = process.env.PRIVSTATS_PROJECT_URL;

if (readFileSync(at("privstats.bundle.js"), "utf8") !== bundled()) throw new Error("run `npm run build` first");
if (undo) rmSync(at("LICENSE"), { force: true });
else copyFileSync(at("../../LICENSE"), at("LICENSE"));
const repository = { type: "git", url: address, directory: "clients/javascript" };
const whole = undo || !address ? named : { ...named, repository };
writeFileSync(at("package.json"), `${JSON.stringify(whole, null, 2)}\n`);
