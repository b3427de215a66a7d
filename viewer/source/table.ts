// All windows as a table that can be filtered and sorted, split into pages.
import type { Colours } from "./colours";
import { button, countText, el, isolated, swatch } from "./dom";
import type { Scene } from "./scene";
import type { Describer } from "./describer";

const ROWS_PER_PAGE = 100;

interface Heading {
  text: string;
  numeric: boolean;
  value(item: number): number | string;
  format(item: number): string;
}

export class Table {
  readonly root = el("details", { class: "table" });
  private readonly body = el("tbody");
  private readonly head = el("tr");
  private readonly pages = el("div", { class: "tools pages" });
  private readonly filter = el("input", { type: "search" });
  private readonly headings: Heading[];
  private found: number[] = [];
  private sorted = -1; // index of the heading, or -1 for the original order
  private descending = false;
  private page = 0;
  private chosen = -1;

  constructor(
    private readonly scene: Scene,
    private readonly describer: Describer,
    text: (time: number) => string,
    private readonly select: (item: number) => void,
    private readonly colours: () => Colours,
  ) {
    const { items, about } = scene;
    const column = (text: string, value: (i: number) => number | string, format: (i: number) => string, numeric = true) =>
      ({ text, value, format, numeric }) satisfies Heading;
    this.headings = [
      column(about.items.noun, (i) => (about.items.names ? scene.itemName(i) : i), (i) => scene.itemName(i), false),
      column("start", (i) => items.start[i], (i) => text(items.start[i])),
      column("finish", (i) => items.finish[i], (i) => text(items.finish[i])),
      column(`${about.nodes.noun}s`, (i) => scene.nodeCount(i), (i) => String(scene.nodeCount(i))),
      ...about.items.fields.map((field) =>
        column(describer.heading(field), (i) => scene.columns[field.column][i], (i) => describer.fieldText(field, i)),
      ),
    ];
    const { groups } = about;
    if (groups && groups.noun !== about.items.noun) {
      const of = (i: number) => groups.names[items.group[i]];
      this.headings.splice(1, 0, column(groups.noun, of, of, false));
    }
    if (Array.from(items.chosen).some((each) => !each)) {
      const of = (i: number) => (items.chosen[i] ? "yes" : "no");
      this.headings.splice(1, 0, column("chosen", of, of, false));
    }
    this.filter.addEventListener("input", () => this.search());
    const noun = about.items.noun;
    this.root.append(
      el("summary", {}, countText(about.items.count, noun), " as a table"),
      el("div", { class: "tools" }, el("label", {}, `Find a ${noun} `, this.filter)),
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${noun}s` },
        el("table", {}, el("thead", {}, this.head), this.body),
      ),
      this.pages,
    );
    this.root.addEventListener("toggle", () => this.root.open && this.draw());
    this.search();
  }

  markChosen(item: number): void {
    this.chosen = item;
    const at = this.found.indexOf(item);
    if (at >= 0) this.page = Math.floor(at / ROWS_PER_PAGE);
    if (this.root.open) this.draw();
  }

  /** Draw the current page, or the first `rows` rows for printing. */
  draw(rows = ROWS_PER_PAGE): void {
    const { scene } = this;
    this.head.replaceChildren(...this.headings.map((heading, k) => this.headCell(heading, k)));
    const from = rows === ROWS_PER_PAGE ? this.page * ROWS_PER_PAGE : 0;
    const fills = this.colours().windows;
    this.body.replaceChildren(
      ...this.found.slice(from, from + rows).map((item) => {
        const [first, ...rest] = this.headings;
        const go = el("button", { type: "button" }, swatch(fills[scene.colourIndex(item) % fills.length], !!scene.items.chosen[item]), isolated(first.format(item)));
        go.addEventListener("click", () => this.select(item));
        const row = el(
          "tr",
          {},
          el("th", { scope: "row" }, go),
          ...rest.map((each) => el("td", each.numeric ? { class: "number" } : {}, isolated(each.format(item)))),
        );
        if (item === this.chosen) row.setAttribute("aria-current", "true");
        return row;
      }),
    );
    const pages = Math.max(1, Math.ceil(this.found.length / ROWS_PER_PAGE));
    const turn = (by: number) => () => {
      this.page = Math.min(Math.max(this.page + by, 0), pages - 1);
      this.draw();
    };
    const back = button("‹", "Previous page", turn(-1));
    const on = button("›", "Next page", turn(1));
    back.disabled = this.page === 0;
    on.disabled = this.page >= pages - 1;
    const summary = `${countText(this.found.length, scene.about.items.noun)}, page ${this.page + 1} of ${pages}`;
    this.pages.replaceChildren(...(pages > 1 ? [back, on] : []), el("span", { role: "status" }, summary));
  }

  private headCell(heading: Heading, k: number): HTMLElement {
    const arrow = k === this.sorted ? (this.descending ? " ↓" : " ↑") : "";
    const sort = el("button", { type: "button" }, heading.text + arrow);
    sort.addEventListener("click", () => {
      this.descending = k === this.sorted && !this.descending;
      this.sorted = k;
      this.search();
      this.head.querySelectorAll("button")[k].focus();
    });
    const cell = el("th", heading.numeric ? { scope: "col", class: "number" } : { scope: "col" }, sort);
    if (k === this.sorted) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
    return cell;
  }

  private search(): void {
    const { scene } = this;
    const wanted = this.filter.value.trim().toLowerCase();
    const group = (i: number) => this.describer.groupFact(i)?.[1] ?? "";
    this.found = [];
    for (let i = 0; i < scene.about.items.count; i++) {
      if (!wanted || scene.itemName(i).toLowerCase().includes(wanted) || group(i).toLowerCase().includes(wanted)) this.found.push(i);
    }
    const heading = this.headings[this.sorted];
    if (heading) {
      const sign = this.descending ? -1 : 1;
      const compare = (a: number | string, b: number | string) =>
        typeof a === "number" && typeof b === "number" ? a - b || 0 : String(a).localeCompare(String(b), "en", { numeric: true });
      this.found.sort((i, j) => sign * compare(heading.value(i), heading.value(j)) || i - j);
    }
    this.page = 0;
    if (this.root.open) this.draw();
  }
}
