// Starts the schedule viewer: reads the data of the page and creates the application.
import { App } from "./app";
import { type Description, unpack } from "./data";
import { Scene } from "./scene";

async function start(): Promise<void> {
  const text = (id: string) => document.getElementById(id)?.textContent ?? "";
  const about = JSON.parse(text("about")) as Description;
  const columns = await unpack(about.columns, text("columns"));
  const app = new App(document.body, new Scene(about, columns));
  Object.assign(globalThis, { viewer: app });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error: unknown) => {
  const said = document.createElement("p");
  said.setAttribute("role", "alert");
  said.textContent = `This schedule cannot be shown: ${error instanceof Error ? error.message : error}`;
  document.body.prepend(said);
  document.documentElement.dataset.ready = "failed";
});
