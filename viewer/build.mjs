// Bundles the viewer into the package: `node build.mjs [folder]`.
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, "..", "src", "slotkern", "viewer");
const common = { bundle: true, minify: true, charset: "ascii", legalComments: "none", logLevel: "warning" };

await build({
  ...common,
  entryPoints: [join(here, "source", "main.ts")],
  outfile: join(folder, "viewer.js"),
  format: "iife",
  target: "es2022",
});
await build({
  ...common,
  entryPoints: [join(here, "source", "viewer.css")],
  outfile: join(folder, "viewer.css"),
  target: ["chrome110", "firefox115", "safari16.4"],
});
