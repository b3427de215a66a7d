// What is told of the window, or the node, that is selected.
import type { Colours } from "./colours";
import { button, el, name, swatch } from "./dom";
import { number, type Scale } from "./scale";
import type { Scene } from "./scene";
import type { Fact, Words } from "./words";

const MOST = 200; // parts that are listed

export interface PanelActions {
  close(): void;
  step(by: number): void;
  show(item: number): void;
  node(row: number): void;
}

export class Panel {
  readonly root = el("section", { class: "panel", "aria-label": "Selection", hidden: "" });

  constructor(
    private readonly scene: Scene,
    private readonly scale: Scale,
    private readonly words: Words,
    private readonly act: PanelActions,
  ) {}

  clear(): void {
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  item(i: number, colours: Colours): void {
    const { scene, act } = this;
    const noun = scene.about.items.noun;
    const colour = colours.windows[scene.colour(i) % colours.windows.length];
    const head = el("h2", {}, swatch(colour, !!scene.items.chosen[i]), name(scene.item(i)));
    const tools = el(
      "div",
      { class: "tools" },
      button("‹", `Previous ${noun}`, () => act.step(-1)),
      button("›", `Next ${noun}`, () => act.step(1)),
      button("Zoom to", `Zoom to this ${noun}`, () => act.show(i)),
    );
    this.put(head, tools, facts(this.words.item(i)), this.parts(i));
  }

  node(row: number, slot: number, taken: number[], jump: (item: number) => void): void {
    const { scene } = this;
    const known: Fact[] = [...this.words.node(row), ...(slot >= 0 ? this.words.slot(slot) : [])];
    const list = el("ul", { class: "list" });
    for (const item of taken.slice(0, MOST)) {
      const go = button(scene.item(item), `Select ${scene.item(item)}`, () => jump(item));
      list.append(el("li", {}, go, ` ${this.scale.text(scene.items.start[item])}`));
    }
    if (taken.length > MOST) list.append(el("li", {}, `and ${number(taken.length - MOST)} more`));
    const count = `${number(taken.length)} ${scene.about.items.noun}${taken.length === 1 ? "" : "s"} here`;
    this.put(el("h2", {}, ...this.words.called(row)), facts(known), el("h3", {}, count), list);
  }

  private put(head: HTMLElement, ...rest: HTMLElement[]): void {
    const close = button("×", "Close the selection", () => this.act.close());
    close.className = "close";
    this.root.replaceChildren(el("div", { class: "head" }, head, close), ...rest);
    this.root.hidden = false;
  }

  private parts(i: number): HTMLElement {
    const { scene, scale, act } = this;
    const { row, count, start, end, cost } = scene.parts;
    const body = el("tbody");
    const mine = scene.partsOf(i);
    const { items } = scene;
    // What is the same of all parts stands above already.
    const starts = mine.some((part) => start[part] !== items.start[i]);
    const ends = mine.some((part) => end[part] !== items.finish[i]);
    const costs = mine.some((part) => !Number.isNaN(cost[part]));
    for (const part of mine.subarray(0, MOST)) {
      const last = row[part] + count[part] - 1;
      const called = scene.node(row[part]) + (count[part] > 1 ? ` – ${scene.node(last)}` : "");
      const go = button(called, `Show ${scene.about.nodes.noun} ${called}`, () => act.node(row[part]));
      const cells = [];
      if (starts) cells.push(scale.text(start[part]));
      if (ends) cells.push(scale.text(end[part]));
      if (costs) cells.push(number(cost[part]));
      body.append(el("tr", {}, el("th", { scope: "row" }, go), ...cells.map((text) => el("td", {}, text))));
    }
    const heads = [scene.about.nodes.noun, ...(starts ? ["start"] : []), ...(ends ? ["end"] : []), ...(costs ? ["cost"] : [])];
    const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)));
    const table = el("table", {}, el("caption", {}, "Parts"), el("thead", {}, head), body);
    const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts" }, table);
    if (mine.length > MOST) scroll.append(el("p", {}, `The first ${MOST} of ${number(mine.length)} parts.`));
    return scroll;
  }
}

export function facts(given: Fact[]): HTMLElement {
  const list = el("dl");
  for (const [key, value] of given) list.append(el("dt", {}, key), el("dd", {}, name(value)));
  return list;
}
