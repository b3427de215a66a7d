// The application: the elements of the page, the selection, and the scheduling of redraws.
import { type Colours, readColours } from "./colours";
import { button, countText, el, isolated, swatch } from "./dom";
import { InputHandler } from "./input";
import { AXIS_HEIGHT, Painter } from "./paint";
import { Panel, factList } from "./panel";
import { createScale, type Scale } from "./scale";
import { parseRowFilter, type Scene, Viewport } from "./scene";
import { OVERVIEW_HEIGHT, Overview } from "./overview";
import { priceHeight, pricesAt } from "./prices";
import { Table } from "./table";
import { Describer } from "./describer";

const MAX_LEGEND_GROUPS = 6; // groups that have a colour each
const PRINT_SIZE = { width: 1040, height: 540 };

const capital = (text: string) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** The position of a pointer: in pixels, and the time, row and part under it. */
export interface PointerPosition {
  x: number;
  y: number;
  time: number;
  row: number; // -1: none
  part: number; // -1: none
}

/** The viewer. Two canvases lie on each other: `base` is the picture, `overlay` marks the
 * selection and the pointer, so that moving the pointer does not redraw the picture. */
export class App {
  readonly viewport: Viewport;
  readonly painter: Painter;
  readonly overview: Overview;
  readonly scale: Scale;
  readonly overlay = el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "schedule" });
  chosen = -1; // the selected item, or -1
  private readonly base = el("canvas", { "aria-hidden": "true" });
  private readonly stage = el("div", { class: "stage" });
  private readonly card = el("div", { class: "card", hidden: "" });
  private readonly status = el("p", { class: "hidden", role: "status" });
  private readonly legend = el("ul", { class: "legend", "aria-label": "Legend" });
  private readonly describer: Describer;
  private readonly panel: Panel;
  private readonly table: Table;
  private readonly search = el("input", { type: "search", placeholder: "names, or 10–20" });
  private readonly onlyUsed: HTMLButtonElement;
  private readonly alternatives = button("alternatives", "Show alternatives that were not chosen", () =>
    this.showUnchosen(!this.scene.showUnchosen),
  );
  private readonly byStart: number[]; // items by start
  private readonly base2d: CanvasRenderingContext2D;
  private readonly overlay2d: CanvasRenderingContext2D;
  private hover: PointerPosition | null = null;
  private range: [PointerPosition, PointerPosition] | null = null;
  private queued = { base: false, top: false, any: false };
  private isPrinting = false;
  private gutter = 0; // width of the column of names
  /** The canvas width for which the gutter was measured. */
  private gutterFor = 0;

  constructor(
    private readonly root: HTMLElement,
    readonly scene: Scene,
  ) {
    const { about } = scene;
    this.viewport = new Viewport(about.first, about.last, scene.rows);
    this.scale = createScale(about);
    this.describer = new Describer(scene, this.scale);
    this.painter = new Painter(scene, this.scale, this.viewport);
    this.overview = new Overview(scene, about.first, about.last);
    this.base2d = this.base.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.overlay2d = this.overlay.getContext("2d") as CanvasRenderingContext2D;
    const order = Array.from({ length: about.items.count }, (_, i) => i);
    this.byStart = order.sort((i, j) => scene.items.start[i] - scene.items.start[j] || i - j);
    this.panel = new Panel(scene, this.scale, this.describer, {
      close: () => this.select(-1),
      step: (by) => this.step(by),
      show: (item) => this.zoomTo(item),
      node: (row) => this.selectNode(row),
    });
    this.table = new Table(scene, this.describer, (t) => this.scale.text(t), (i) => this.select(i), () => this.colours);
    const noun = about.items.noun;
    this.onlyUsed = button(`only ${about.nodes.noun}s with ${noun}s`, `Show only ${about.nodes.noun}s with ${noun}s (U)`, () => this.toggleUsed());
    this.buildPage();
    this.applyTheme();
    new InputHandler(this, this.overlay);
    new ResizeObserver(() => this.resize()).observe(this.stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme());
    addEventListener("beforeprint", () => this.setPrinting(true));
    addEventListener("afterprint", () => this.setPrinting(false));
    this.resize();
  }

  get colours(): Colours {
    return this.painter.colours;
  }

  // --- elements of the page

  private buildPage(): void {
    const { scene, root } = this;
    const { about } = scene;
    const noun = about.items.noun;
    const chosen = scene.items.chosen.reduce((sum, each) => sum + each, 0);
    const some = chosen < about.items.count ? [`${chosen.toLocaleString("en")} of them chosen`] : [];
    const summary = [
      countText(scene.rows, about.nodes.noun),
      ...(scene.free.size ? [countText(scene.free.size, "free slot")] : []),
      [countText(about.items.count, noun), ...some].join(", "),
      `${this.scale.text(about.first)} to ${this.scale.text(about.last)}`,
      ...(about.clock ? [about.clock.zone] : []),
    ];
    const set = (label: string, ...buttons: HTMLElement[]) =>
      el("span", { class: "set", role: "group", "aria-label": label }, el("span", {}, label), ...buttons);
    this.onlyUsed.setAttribute("aria-pressed", "false");
    this.search.addEventListener("input", () => this.filter());
    const tools = el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "View" },
      set("Time", button("−", "Zoom out in time (−)", () => this.zoom(1.5, 1)), button("+", "Zoom in in time (+)", () => this.zoom(1 / 1.5, 1))),
      set("Rows", button("−", "More rows", () => this.zoom(1, 1.5)), button("+", "Fewer rows", () => this.zoom(1, 1 / 1.5))),
      button("Show all", "Show all (0)", () => this.showAll()),
    );
    if (about.items.count) {
      tools.append(
        set(capital(noun), button("‹", `Previous ${noun} (P)`, () => this.step(-1)), button("›", `Next ${noun} (N)`, () => this.step(1))),
      );
    }
    tools.append(el("label", { class: "set" }, el("span", {}, `${capital(about.nodes.noun)}s`), this.search));
    if (about.items.count) tools.append(this.onlyUsed);
    if (Array.from(scene.items.chosen).some((each) => !each)) {
      this.showUnchosen(scene.showUnchosen);
      tools.append(this.alternatives);
    }
    const key = (text: string) => el("kbd", {}, text);
    const help = el(
      "p",
      { class: "help keys", id: "keys" },
      ...["Drag or ", key("arrows"), ": move; wheel or ", key("+"), " ", key("−"), ": zoom the time (over the names: the rows); ", key("Shift"), " and drag, or ", key("Shift"), " and ", key("arrows"), ": zoom; "],
      ...(about.items.count ? [key("N"), " ", key("P"), `: next and previous ${noun}; `, key("Enter"), ": zoom to it; "] : []),
      ...[key("0"), ": show all; ", key("Esc"), ": clear the selection. The keys work when the picture has the focus: click it, or press ", key("Tab"), " until it has."],
    );
    this.overlay.setAttribute("aria-label", `${about.title}: ${summary.join(", ")}`);
    this.overlay.setAttribute("aria-describedby", "keys");
    this.stage.append(this.base, this.overlay, this.card);
    const body = el("div", { class: "body" }, this.stage, this.panel.root);
    const main = el("main", {}, tools, this.legend, body, help, this.status);
    if (about.items.count) main.append(this.table.root);
    root.append(
      el("header", {}, el("h1", {}, isolated(about.title)), el("p", { class: "summary" }, summary.join(" · "))),
      main,
    );
  }

  private drawLegend(): void {
    const { scene, colours, legend } = this;
    const { about } = scene;
    const entries: [HTMLElement, string][] = [];
    const plain = (kind: string) => el("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
    if (scene.free.size || about.rest === "free") entries.push([plain("free"), "free"]);
    if (scene.busy.size || about.rest === "busy") entries.push([plain("busy"), "busy"]);
    if (scene.disabled.size) entries.push([plain("disabled"), "disabled"]);
    if (about.rest === "blank") entries.push([plain("blank"), "unknown"]);
    const names = about.groups?.names ?? [];
    if (names.length && names.length <= MAX_LEGEND_GROUPS) {
      names.forEach((each, k) => entries.push([swatch(colours.windows[k]), each]));
    } else if (about.items.count) {
      const by = about.groups && about.groups.noun !== about.items.noun ? `, a colour for each ${about.groups.noun} in turn` : "";
      const indices = Array.from(new Set(Array.from(scene.items.group, (k) => k % colours.windows.length))).sort();
      const marks = el("span", { class: "swatches" }, ...indices.map((k) => swatch(colours.windows[k])));
      entries.push([marks, `${countText(about.items.count, about.items.noun)}${by}`]);
    }
    if (Array.from(scene.items.chosen).some((each) => !each)) {
      entries.push([swatch(colours.faint, false), "an alternative that was not chosen"]);
    }
    legend.replaceChildren(...entries.map(([mark, text]) => el("li", {}, mark, isolated(text))));
  }

  private applyTheme(): void {
    this.painter.colours = readColours(document.documentElement);
    this.drawLegend();
    this.updatePanel();
    if (this.table.root.open) this.table.draw();
    if (this.painter.frame) this.redraw();
  }

  private setPrinting(on: boolean): void {
    if (on === this.isPrinting) return;
    this.isPrinting = on;
    document.documentElement.classList.toggle("print", on);
    this.painter.colours = readColours(document.documentElement);
    this.drawLegend();
    if (on) {
      this.table.root.dataset.open = String(this.table.root.open);
      this.table.root.open = true;
      this.table.draw(1000);
    } else {
      this.table.root.open = this.table.root.dataset.open === "true";
    }
    this.resize();
    this.paint();
  }

  private resize(): void {
    const box = this.isPrinting ? PRINT_SIZE : this.stage.getBoundingClientRect();
    const width = Math.max(Math.floor(box.width), 160);
    const height = Math.max(Math.floor(box.height), 160);
    const ratio = this.isPrinting ? 2 : Math.min(Math.max(devicePixelRatio || 1, 1), 2);
    for (const canvas of [this.base, this.overlay]) {
      if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
        canvas.width = width * ratio;
        canvas.height = height * ratio;
      }
    }
    if (this.gutterFor !== width) [this.gutter, this.gutterFor] = [this.painter.gutter(this.base2d, width), width];
    const left = Math.min(this.gutter, Math.round(width * 0.3));
    const axis = height - AXIS_HEIGHT;
    const bottom = axis - priceHeight(this.scene, height);
    this.painter.frame = { width, height, left, right: width - 12, top: OVERVIEW_HEIGHT + 10, bottom, axis, ratio };
    this.overview.invalidate();
    this.viewport.clamp();
    this.redraw();
  }

  // --- drawing

  /** Redraw before the next frame: everything, or only the overlay. */
  redraw(base = true): void {
    this.queued.base ||= base;
    if (this.queued.any) return;
    this.queued.any = true;
    requestAnimationFrame(() => {
      this.queued.any = false;
      this.paint(this.queued.base);
    });
  }

  paint(base = true): void {
    const { painter } = this;
    this.queued.base = false;
    if (base) {
      painter.draw(this.base2d, this.chosen);
      const { frame } = painter;
      this.overview.draw(this.base2d, this.colours, frame.left, frame.right, this.viewport);
      if (this.isPrinting && this.chosen >= 0) this.clipped(this.base2d, () => painter.outline(this.base2d, this.chosen, true));
    }
    this.drawOverlay();
  }

  private clipped(g: CanvasRenderingContext2D, draw: () => void): void {
    const { left, right, top, bottom } = this.painter.frame;
    g.save();
    g.beginPath();
    g.rect(left, top, right - left, bottom - top);
    g.clip();
    draw();
    g.restore();
  }

  private drawOverlay(): void {
    const { painter, overlay2d: g, hover, colours } = this;
    const { frame } = painter;
    g.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
    g.clearRect(0, 0, frame.width, frame.height);
    this.clipped(g, () => {
      if (this.chosen >= 0) painter.outline(g, this.chosen, true);
      const over = hover && hover.part >= 0 ? this.scene.parts.item[hover.part] : -1;
      if (over >= 0 && over !== this.chosen) painter.outline(g, over, false);
      if (hover) {
        g.fillStyle = colours.ink;
        g.globalAlpha = 0.45;
        g.fillRect(Math.round(hover.x), frame.top, 1, frame.bottom - frame.top);
        g.globalAlpha = 0.09;
        if (hover.row >= 0 && painter.pixelsPerRow > 3) {
          g.fillRect(frame.left, painter.y(this.scene.position[hover.row]), frame.right - frame.left, painter.pixelsPerRow);
        }
        g.globalAlpha = 1;
      }
      if (this.range) {
        const [a, b] = this.range;
        g.fillStyle = colours.accent;
        g.globalAlpha = 0.25;
        g.fillRect(Math.min(a.x, b.x), frame.top, Math.abs(b.x - a.x), frame.bottom - frame.top);
        g.globalAlpha = 1;
      }
    });
    if (hover) this.timeLabel(g, hover);
  }

  private timeLabel(g: CanvasRenderingContext2D, at: PointerPosition): void {
    const { frame } = this.painter;
    const text = this.scale.pointerText(at.time, 1 / this.painter.pixelsPerTime);
    g.font = "12px system-ui, sans-serif";
    const wide = g.measureText(text).width + 12;
    const x = Math.min(Math.max(at.x - wide / 2, 2), frame.width - wide - 2);
    g.fillStyle = this.colours.ink;
    g.fillRect(x, frame.axis + 2, wide, 20);
    g.fillStyle = this.colours.back;
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(text, x + 6, frame.axis + 12);
  }

  // --- the pointer

  /** Return the position under a point of the canvas; null outside of the picture. */
  locate(x: number, y: number): PointerPosition | null {
    const { painter, viewport, scene } = this;
    const { frame } = painter;
    if (x < frame.left || x > frame.right || y < frame.top || y > frame.bottom) return null;
    const time = viewport.x0 + (x - frame.left) / painter.pixelsPerTime;
    const k = Math.floor(viewport.y0 + (y - frame.top) / painter.pixelsPerRow);
    const part = painter.partAt(x, y);
    let row = k < scene.order.length ? scene.order[k] : -1;
    if (part >= 0 && painter.pixelsPerRow < 3) row = scene.parts.row[part]; // rows are smaller than pixels
    return { x, y, time, row, part };
  }

  onPointerMove(x: number, y: number): void {
    this.hover = this.locate(x, y);
    this.showCard(x, y);
    this.redraw(false);
  }

  onPointerLeave(): void {
    this.hover = null;
    this.card.hidden = true;
    this.redraw(false);
  }

  private showCard(x: number, y: number): void {
    const { card, hover, scene, painter } = this;
    const { frame } = painter;
    if (!hover && !(y < OVERVIEW_HEIGHT && x >= frame.left && x <= frame.right)) {
      card.hidden = true;
      return;
    }
    if (!hover) this.showOverviewCard(x);
    else if (hover.part >= 0) {
      const item = scene.parts.item[hover.part];
      const colour = this.colours.windows[scene.colourIndex(item) % this.colours.windows.length];
      const node = scene.parts.count[hover.part] > 1 ? hover.row : scene.parts.row[hover.part];
      const mark = swatch(colour, !!scene.items.chosen[item]);
      card.replaceChildren(el("b", {}, mark, isolated(scene.itemName(item))), factList([[scene.about.nodes.noun, scene.nodeName(node)], ...this.describer.disabledFacts(node, hover.time), ...this.describer.itemFacts(item)]));
    } else if (hover.row >= 0) {
      const slot = scene.free.spanAt(hover.row, hover.time);
      const price = pricesAt(scene, hover.time);
      const priced: [string, string][] = price ? [["price at this time", price]] : [];
      const facts = slot >= 0 ? [...this.describer.slotFacts(slot), ...priced] : this.describer.disabledFacts(hover.row, hover.time);
      const state = slot >= 0 ? "free" : this.describer.stateAt(hover.row, hover.time);
      card.replaceChildren(el("b", {}, ...this.describer.nodeLabel(hover.row), `: ${state}`), factList([...facts, ...this.describer.nodeFacts(hover.row)]));
    } else {
      card.hidden = true;
      return;
    }
    card.hidden = false;
    const wide = card.offsetWidth;
    const tall = card.offsetHeight;
    const left = x + 18 + wide > frame.width ? x - 14 - wide : x + 18;
    const top = y + 14 + tall > frame.height ? y - 10 - tall : y + 14;
    card.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(top, 0)}px)`;
  }

  private showOverviewCard(x: number): void {
    const { frame } = this.painter;
    const { free, busy, taken, disabled } = this.overview.shares(x - frame.left);
    const { about } = this.scene;
    const nodes = this.scene.order.length;
    const time = about.first + ((x - frame.left) / (frame.right - frame.left)) * (about.last - about.first);
    const of = (n: number) => `${Math.round(Math.max(n, 0)).toLocaleString("en")} of ${countText(nodes, about.nodes.noun)}`;
    const idle = about.rest === "free" ? nodes - busy - taken : free;
    const list: [string, string][] = [["free", of(idle)]];
    if (about.items.count) list.push([`in ${about.items.noun}s`, of(taken)]);
    if (this.scene.disabled.size) list.push(["disabled", of(disabled)]);
    this.card.replaceChildren(el("b", {}, this.scale.pointerText(time, (about.last - about.first) / (frame.right - frame.left))), factList(list));
  }

  select(item: number): void {
    this.chosen = item;
    this.updatePanel();
    this.table.markChosen(item);
    if (item >= 0) {
      if (!this.scene.isVisible(item)) this.showUnchosen(true);
      this.scrollTo(item);
      const facts = this.describer.itemFacts(item).map(([key, value]) => `${key} ${value}`);
      this.status.textContent = `${this.scene.itemName(item)}: ${facts.join(", ")}`;
    } else {
      this.status.textContent = "Nothing is selected.";
    }
    this.redraw();
  }

  private updatePanel(): void {
    if (this.chosen >= 0) this.panel.showItem(this.chosen, this.colours);
    else this.panel.clear();
  }

  onClick(x: number, y: number): void {
    const { frame } = this.painter;
    const at = this.locate(x, y);
    if (at && at.part >= 0) this.select(this.scene.parts.item[at.part]);
    else if (at && at.row >= 0) this.selectNode(at.row, this.scene.free.spanAt(at.row, at.time), at.time);
    else if (x < frame.left && y > frame.top && y < frame.bottom) {
      const k = Math.floor(this.viewport.y0 + (y - frame.top) / this.painter.pixelsPerRow);
      if (k < this.scene.order.length) this.selectNode(this.scene.order[k]);
    } else this.select(-1);
  }

  selectNode(row: number, slot = -1, time = NaN): void {
    const { scene } = this;
    const { row: rows, count, item } = scene.parts;
    const taken = new Set<number>();
    for (let i = 0; i < rows.length; i++) if (rows[i] <= row && row < rows[i] + count[i]) taken.add(item[i]);
    this.chosen = -1;
    this.table.markChosen(-1);
    this.panel.showNode(row, slot, time, [...taken], (each) => this.select(each));
    const place = scene.position[row];
    if (place >= 0 && (place < this.viewport.y0 || place >= this.viewport.y1)) {
      this.viewport.move(0, place - (this.viewport.y0 + this.viewport.y1) / 2);
    }
    this.status.textContent = `${capital(scene.about.nodes.noun)} ${scene.nodeName(row)}, ${countText(taken.size, scene.about.items.noun)}.`;
    this.redraw();
  }

  /** Select the next or previous visible item by start. */
  step(by: number): void {
    const { byStart, scene } = this;
    if (!byStart.length) return;
    let at = byStart.indexOf(this.chosen);
    if (at < 0) at = by > 0 ? -1 : 0;
    for (let tried = 0; tried < byStart.length; tried++) {
      at = (at + by + byStart.length) % byStart.length;
      if (scene.isVisible(byStart[at])) return this.select(byStart[at]);
    }
  }

  /** Scroll until a part of an item is visible. */
  private scrollTo(item: number): void {
    const { viewport, scene } = this;
    const { start, finish } = scene.items;
    if (finish[item] < viewport.x0 || start[item] > viewport.x1) {
      viewport.move((start[item] + finish[item]) / 2 - (viewport.x0 + viewport.x1) / 2, 0);
    }
    const places = this.positionsOf(item);
    if (places.length && !places.some((k) => k >= viewport.y0 && k < viewport.y1)) {
      viewport.move(0, places[0] + 0.5 - (viewport.y0 + viewport.y1) / 2);
    }
  }

  /** Return the positions of the visible rows of an item, ascending. */
  private positionsOf(item: number): number[] {
    const { scene } = this;
    const found: number[] = [];
    for (const part of scene.partsOf(item)) {
      for (let k = 0; k < scene.parts.count[part]; k++) {
        const place = scene.position[scene.parts.row[part] + k];
        if (place >= 0) found.push(place);
      }
    }
    return found.sort((a, b) => a - b);
  }

  zoomTo(item: number): void {
    const { viewport, scene } = this;
    const { start, finish } = scene.items;
    const span = Math.max(finish[item] - start[item], (viewport.x1 - viewport.x0) * 1e-3);
    [viewport.x0, viewport.x1] = [start[item] - span, finish[item] + span];
    const places = this.positionsOf(item);
    if (places.length) {
      const edge = Math.max(2, (places[places.length - 1] - places[0]) * 0.08);
      [viewport.y0, viewport.y1] = [places[0] - edge, places[places.length - 1] + 1 + edge];
    }
    viewport.clamp();
    this.redraw();
  }

  /** Zoom about the selection if it is visible, else about the centre. */
  zoom(time: number, rows: number): void {
    const { viewport, scene, chosen } = this;
    let x = (viewport.x0 + viewport.x1) / 2;
    let y = (viewport.y0 + viewport.y1) / 2;
    if (chosen >= 0) {
      const middle = (scene.items.start[chosen] + scene.items.finish[chosen]) / 2;
      if (middle > viewport.x0 && middle < viewport.x1) x = middle;
      const seen = this.positionsOf(chosen).filter((k) => k >= viewport.y0 && k < viewport.y1);
      if (seen.length) y = seen[seen.length >> 1] + 0.5;
    }
    if (time !== 1) viewport.zoomTime(time, x);
    if (rows !== 1) viewport.zoomRows(rows, y);
    this.redraw();
  }

  showAll(): void {
    this.viewport.showAll();
    this.redraw();
  }

  /** Zoom to the times between two positions. */
  zoomToRange(a: PointerPosition, b: PointerPosition): void {
    this.range = null;
    if (Math.abs(a.x - b.x) > 4) {
      [this.viewport.x0, this.viewport.x1] = [Math.min(a.time, b.time), Math.max(a.time, b.time)];
      this.viewport.clamp();
    }
    this.redraw();
  }

  /** Highlight the range that is being dragged; null: none. */
  showRange(range: [PointerPosition, PointerPosition] | null): void {
    this.range = range;
    this.redraw(false);
  }

  focusSearch(): void {
    this.search.focus();
  }

  private showUnchosen(on: boolean): void {
    this.alternatives.setAttribute("aria-pressed", String(on));
    if (on === this.scene.showUnchosen) return;
    this.scene.showUnchosen = on;
    this.scene.updateBoxes();
    this.overview.invalidate();
    this.redraw();
  }

  toggleUsed(): void {
    const pressed = this.onlyUsed.getAttribute("aria-pressed") === "true";
    this.onlyUsed.setAttribute("aria-pressed", String(!pressed));
    this.filter();
  }

  private filter(): void {
    const { scene } = this;
    const named = parseRowFilter(scene, this.search.value);
    const used = this.onlyUsed.getAttribute("aria-pressed") === "true";
    const test = used ? (row: number) => !!scene.used[row] && (!named || named(row)) : named;
    scene.showRows(test);
    this.status.textContent = `${countText(scene.order.length, scene.about.nodes.noun)} shown.`;
    this.resetRows();
  }

  /** Show all rows again after the filter of rows has changed. */
  private resetRows(): void {
    this.viewport.rows = this.scene.order.length;
    [this.viewport.y0, this.viewport.y1] = [0, Math.max(this.viewport.rows, 1)];
    this.overview.invalidate();
    this.redraw();
  }
}
