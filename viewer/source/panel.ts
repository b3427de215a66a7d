// The panel with the details of the selected window or node.
import type { Colours } from "./colours";
import { button, el, isolated, swatch } from "./dom";
import { formatNumber, type Scale } from "./scale";
import type { Scene } from "./scene";
import type { Fact, Describer } from "./describer";

const MAX_LISTED = 200; // maximum number of parts or items in a list

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
    private readonly describer: Describer,
    private readonly actions: PanelActions,
  ) {}

  clear(): void {
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  showItem(i: number, colours: Colours): void {
    const { scene, actions } = this;
    const noun = scene.about.items.noun;
    const colour = colours.windows[scene.colourIndex(i) % colours.windows.length];
    const head = el("h2", {}, swatch(colour, !!scene.items.chosen[i]), isolated(scene.itemName(i)));
    const tools = el(
      "div",
      { class: "tools" },
      button("‹", `Previous ${noun}`, () => actions.step(-1)),
      button("›", `Next ${noun}`, () => actions.step(1)),
      button("Zoom to", `Zoom to this ${noun}`, () => actions.show(i)),
    );
    this.show(head, tools, factList(this.describer.itemFacts(i)), this.partsTable(i));
  }

  showNode(row: number, slot: number, time: number, taken: number[], jump: (item: number) => void): void {
    const { scene } = this;
    const facts: Fact[] = [...this.describer.nodeFacts(row), ...(slot >= 0 ? this.describer.slotFacts(slot) : this.describer.disabledFacts(row, time))];
    const list = el("ul", { class: "list" });
    for (const item of taken.slice(0, MAX_LISTED)) {
      const go = button(scene.itemName(item), `Select ${scene.itemName(item)}`, () => jump(item));
      list.append(el("li", {}, go, ` ${this.scale.text(scene.items.start[item])}`));
    }
    if (taken.length > MAX_LISTED) list.append(el("li", {}, `and ${formatNumber(taken.length - MAX_LISTED)} more`));
    const count = `${formatNumber(taken.length)} ${scene.about.items.noun}${taken.length === 1 ? "" : "s"} here`;
    this.show(el("h2", {}, ...this.describer.nodeLabel(row)), factList(facts), el("h3", {}, count), list);
  }

  private show(head: HTMLElement, ...rest: HTMLElement[]): void {
    const close = button("×", "Close the selection", () => this.actions.close());
    close.className = "close";
    this.root.replaceChildren(el("div", { class: "head" }, head, close), ...rest);
    this.root.hidden = false;
  }

  private partsTable(i: number): HTMLElement {
    const { scene, scale, actions } = this;
    const { row, count, start, end, cost } = scene.parts;
    const body = el("tbody");
    const mine = scene.partsOf(i);
    const { items } = scene;
    // Starts and ends that equal those of the item are listed above already.
    const starts = mine.some((part) => start[part] !== items.start[i]);
    const ends = mine.some((part) => end[part] !== items.finish[i]);
    const costs = mine.some((part) => !Number.isNaN(cost[part]));
    for (const part of mine.subarray(0, MAX_LISTED)) {
      const last = row[part] + count[part] - 1;
      const label = scene.nodeName(row[part]) + (count[part] > 1 ? ` – ${scene.nodeName(last)}` : "");
      const go = button(label, `Show ${scene.about.nodes.noun} ${label}`, () => actions.node(row[part]));
      const cells = [];
      if (starts) cells.push(scale.text(start[part]));
      if (ends) cells.push(scale.text(end[part]));
      if (costs) cells.push(formatNumber(cost[part]));
      body.append(el("tr", {}, el("th", { scope: "row" }, go), ...cells.map((text) => el("td", {}, text))));
    }
    const heads = [scene.about.nodes.noun, ...(starts ? ["start"] : []), ...(ends ? ["end"] : []), ...(costs ? ["cost"] : [])];
    const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)));
    const table = el("table", {}, el("caption", {}, "Parts"), el("thead", {}, head), body);
    const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts" }, table);
    if (mine.length > MAX_LISTED) scroll.append(el("p", {}, `The first ${MAX_LISTED} of ${formatNumber(mine.length)} parts.`));
    return scroll;
  }
}

export function factList(given: Fact[]): HTMLElement {
  const list = el("dl");
  for (const [key, value] of given) list.append(el("dt", {}, key), el("dd", {}, isolated(value)));
  return list;
}
