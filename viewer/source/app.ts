// The page: what stands where, what the selection is, and when what is drawn anew.
import { type Colours, coloursOf } from "./colours";
import { button, counted, el, name, swatch } from "./dom";
import { Hands } from "./hands";
import { AXIS, Painter } from "./paint";
import { Panel, facts } from "./panel";
import { scaleOf, type Scale } from "./scale";
import { rowTest, type Scene, Sight } from "./scene";
import { STRIP, Strip } from "./strip";
import { Table } from "./table";
import { Words } from "./words";

const LEGEND = 6; // groups that are told by colour
const PAPER = { width: 1040, height: 540 };

const capital = (text: string) => `${text[0].toUpperCase()}${text.slice(1)}`;

/** Where a pointer is: over a part, a row, a time, or none. */
export interface Place {
  x: number;
  y: number;
  time: number;
  row: number; // -1 outside
  part: number; // -1: none
}

export class App {
  readonly sight: Sight;
  readonly painter: Painter;
  readonly strip: Strip;
  readonly scale: Scale;
  readonly top = el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "schedule" });
  chosen = -1;
  private readonly base = el("canvas", { "aria-hidden": "true" });
  private readonly stage = el("div", { class: "stage" });
  private readonly card = el("div", { class: "card", hidden: "" });
  private readonly status = el("p", { class: "hidden", role: "status" });
  private readonly legend = el("ul", { class: "legend", "aria-label": "Legend" });
  private readonly words: Words;
  private readonly panel: Panel;
  private readonly table: Table;
  private readonly search = el("input", { type: "search", placeholder: "names, or 10–20" });
  private readonly onlyUsed: HTMLButtonElement;
  private readonly alternatives = button("alternatives", "Show alternatives that were not chosen", () =>
    this.showRest(!this.scene.showRest),
  );
  private readonly byStart: number[];
  private readonly base2d: CanvasRenderingContext2D;
  private readonly top2d: CanvasRenderingContext2D;
  private hover: Place | null = null;
  private band: [Place, Place] | null = null;
  private queued = { base: false, top: false, any: false };
  private paper = false;
  private gutter = 0;
  /** The width that the gutter was measured for. */
  private gutterFor = 0;

  constructor(
    private readonly root: HTMLElement,
    readonly scene: Scene,
  ) {
    const { about } = scene;
    this.sight = new Sight(about.first, about.last, scene.rows);
    this.scale = scaleOf(about);
    this.words = new Words(scene, this.scale);
    this.painter = new Painter(scene, this.scale, this.sight);
    this.strip = new Strip(scene, about.first, about.last);
    this.base2d = this.base.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.top2d = this.top.getContext("2d") as CanvasRenderingContext2D;
    const order = Array.from({ length: about.items.count }, (_, i) => i);
    this.byStart = order.sort((i, j) => scene.items.start[i] - scene.items.start[j] || i - j);
    this.panel = new Panel(scene, this.scale, this.words, {
      close: () => this.select(-1),
      step: (by) => this.step(by),
      show: (item) => this.zoomTo(item),
      node: (row) => this.selectNode(row),
    });
    this.table = new Table(scene, this.words, (t) => this.scale.text(t), (i) => this.select(i), () => this.colours);
    const noun = about.items.noun;
    this.onlyUsed = button(`only ${about.nodes.noun}s with ${noun}s`, `Show only ${about.nodes.noun}s with ${noun}s (U)`, () => this.toggleUsed());
    this.build();
    this.theme();
    new Hands(this, this.top);
    new ResizeObserver(() => this.resize()).observe(this.stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
    addEventListener("beforeprint", () => this.onPaper(true));
    addEventListener("afterprint", () => this.onPaper(false));
    this.resize();
  }

  get colours(): Colours {
    return this.painter.colours;
  }

  // --- the page

  private build(): void {
    const { scene, root } = this;
    const { about } = scene;
    const noun = about.items.noun;
    const chosen = scene.items.chosen.reduce((sum, each) => sum + each, 0);
    const some = chosen < about.items.count ? [`${chosen.toLocaleString("en")} of them chosen`] : [];
    const summary = [
      counted(scene.rows, about.nodes.noun),
      ...(scene.free.size ? [counted(scene.free.size, "free slot")] : []),
      [counted(about.items.count, noun), ...some].join(", "),
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
      button("Show all", "Show all (0)", () => this.all()),
    );
    if (about.items.count) {
      tools.append(
        set(capital(noun), button("‹", `Previous ${noun} (P)`, () => this.step(-1)), button("›", `Next ${noun} (N)`, () => this.step(1))),
      );
    }
    tools.append(el("label", { class: "set" }, el("span", {}, `${capital(about.nodes.noun)}s`), this.search));
    if (about.items.count) tools.append(this.onlyUsed);
    if (Array.from(scene.items.chosen).some((each) => !each)) {
      this.showRest(scene.showRest);
      tools.append(this.alternatives);
    }
    const key = (text: string) => el("kbd", {}, text);
    const help = el(
      "p",
      { class: "help keys", id: "keys" },
      ...["Drag or ", key("arrows"), " move; wheel or ", key("+"), " ", key("−"), " zoom the time, over the names the rows; ", key("Shift"), " and drag, or ", key("Shift"), " and ", key("arrows"), " zoom; "],
      ...(about.items.count ? [key("N"), " ", key("P"), ` next and previous ${noun}, `, key("Enter"), " zoom to it, "] : []),
      ...[key("0"), " all, ", key("Esc"), " nothing selected. Keys are for the picture: click it first, or reach it by ", key("Tab"), "."],
    );
    this.top.setAttribute("aria-label", `${about.title}: ${summary.join(", ")}`);
    this.top.setAttribute("aria-describedby", "keys");
    this.stage.append(this.base, this.top, this.card);
    const body = el("div", { class: "body" }, this.stage, this.panel.root);
    const main = el("main", {}, tools, this.legend, body, help, this.status);
    if (about.items.count) main.append(this.table.root);
    root.append(
      el("header", {}, el("h1", {}, name(about.title)), el("p", { class: "summary" }, summary.join(" · "))),
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
    if (about.rest === "blank") entries.push([plain("blank"), "not known"]);
    const names = about.groups?.names ?? [];
    if (names.length && names.length <= LEGEND) {
      names.forEach((each, k) => entries.push([swatch(colours.windows[k]), each]));
    } else if (about.items.count) {
      const by = about.groups && about.groups.noun !== about.items.noun ? `, a colour for each ${about.groups.noun} in turn` : "";
      const looks = Array.from(new Set(Array.from(scene.items.group, (k) => k % colours.windows.length))).sort();
      const marks = el("span", { class: "swatches" }, ...looks.map((k) => swatch(colours.windows[k])));
      entries.push([marks, `${counted(about.items.count, about.items.noun)}${by}`]);
    }
    if (Array.from(scene.items.chosen).some((each) => !each)) {
      entries.push([swatch(colours.faint, false), "an alternative that was not chosen"]);
    }
    legend.replaceChildren(...entries.map(([mark, text]) => el("li", {}, mark, name(text))));
  }

  private theme(): void {
    this.painter.colours = coloursOf(document.documentElement);
    this.drawLegend();
    this.panelAgain();
    if (this.table.root.open) this.table.draw();
    if (this.painter.frame) this.redraw();
  }

  private onPaper(on: boolean): void {
    if (on === this.paper) return;
    this.paper = on;
    document.documentElement.classList.toggle("print", on);
    this.painter.colours = coloursOf(document.documentElement);
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
    const box = this.paper ? PAPER : this.stage.getBoundingClientRect();
    const width = Math.max(Math.floor(box.width), 160);
    const height = Math.max(Math.floor(box.height), 160);
    const ratio = this.paper ? 2 : Math.min(Math.max(devicePixelRatio || 1, 1), 2);
    for (const canvas of [this.base, this.top]) {
      if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
        canvas.width = width * ratio;
        canvas.height = height * ratio;
      }
    }
    if (this.gutterFor !== width) [this.gutter, this.gutterFor] = [this.painter.gutter(this.base2d, width), width];
    const left = Math.min(this.gutter, Math.round(width * 0.3));
    this.painter.frame = { width, height, left, right: width - 12, top: STRIP + 10, bottom: height - AXIS, ratio };
    this.strip.forget();
    this.sight.clamp();
    this.redraw();
  }

  // --- drawing

  /** Draw everything before the next frame; or only what lies over the picture. */
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
      this.strip.draw(this.base2d, this.colours, frame.left, frame.right, this.sight);
      if (this.paper && this.chosen >= 0) this.clipped(this.base2d, () => painter.outline(this.base2d, this.chosen, true));
    }
    this.over();
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

  private over(): void {
    const { painter, top2d: g, hover, colours } = this;
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
        if (hover.row >= 0 && painter.perRow > 3) {
          g.fillRect(frame.left, painter.y(this.scene.place[hover.row]), frame.right - frame.left, painter.perRow);
        }
        g.globalAlpha = 1;
      }
      if (this.band) {
        const [a, b] = this.band;
        g.fillStyle = colours.accent;
        g.globalAlpha = 0.25;
        g.fillRect(Math.min(a.x, b.x), frame.top, Math.abs(b.x - a.x), frame.bottom - frame.top);
        g.globalAlpha = 1;
      }
    });
    if (hover) this.timeLabel(g, hover);
  }

  private timeLabel(g: CanvasRenderingContext2D, at: Place): void {
    const { frame } = this.painter;
    const text = this.scale.near(at.time, 1 / this.painter.perTime);
    g.font = "12px system-ui, sans-serif";
    const wide = g.measureText(text).width + 12;
    const x = Math.min(Math.max(at.x - wide / 2, 2), frame.width - wide - 2);
    g.fillStyle = this.colours.ink;
    g.fillRect(x, frame.bottom + 2, wide, 20);
    g.fillStyle = this.colours.back;
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(text, x + 6, frame.bottom + 12);
  }

  // --- where the pointer is

  place(x: number, y: number): Place | null {
    const { painter, sight, scene } = this;
    const { frame } = painter;
    if (x < frame.left || x > frame.right || y < frame.top || y > frame.bottom) return null;
    const time = sight.x0 + (x - frame.left) / painter.perTime;
    const k = Math.floor(sight.y0 + (y - frame.top) / painter.perRow);
    const part = painter.hit(x, y);
    let row = k < scene.order.length ? scene.order[k] : -1;
    if (part >= 0 && painter.perRow < 3) row = scene.parts.row[part]; // rows are finer than pixels
    return { x, y, time, row, part };
  }

  point(x: number, y: number): void {
    this.hover = this.place(x, y);
    this.showCard(x, y);
    this.redraw(false);
  }

  leave(): void {
    this.hover = null;
    this.card.hidden = true;
    this.redraw(false);
  }

  private showCard(x: number, y: number): void {
    const { card, hover, scene, painter } = this;
    const { frame } = painter;
    if (!hover && !(y < STRIP && x >= frame.left && x <= frame.right)) {
      card.hidden = true;
      return;
    }
    if (!hover) this.stripCard(x);
    else if (hover.part >= 0) {
      const item = scene.parts.item[hover.part];
      const colour = this.colours.windows[scene.colour(item) % this.colours.windows.length];
      const node = scene.parts.count[hover.part] > 1 ? hover.row : scene.parts.row[hover.part];
      const mark = swatch(colour, !!scene.items.chosen[item]);
      card.replaceChildren(el("b", {}, mark, name(scene.item(item))), facts([[scene.about.nodes.noun, scene.node(node)], ...this.words.item(item)]));
    } else if (hover.row >= 0) {
      const slot = scene.free.at(hover.row, hover.time);
      const told = slot >= 0 ? this.words.slot(slot) : [];
      const state = slot >= 0 ? "free" : this.words.otherwise(hover.row, hover.time);
      card.replaceChildren(el("b", {}, ...this.words.called(hover.row), `: ${state}`), facts([...told, ...this.words.node(hover.row)]));
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

  private stripCard(x: number): void {
    const { frame } = this.painter;
    const { free, busy, taken } = this.strip.shares(x - frame.left);
    const { about } = this.scene;
    const nodes = this.scene.order.length;
    const time = about.first + ((x - frame.left) / (frame.right - frame.left)) * (about.last - about.first);
    const of = (n: number) => `${Math.round(n).toLocaleString("en")} of ${counted(nodes, about.nodes.noun)}`;
    const idle = about.rest === "free" ? nodes - busy - taken : free;
    const list: [string, string][] = [["free", of(idle)]];
    if (about.items.count) list.push([`in ${about.items.noun}s`, of(taken)]);
    this.card.replaceChildren(el("b", {}, this.scale.near(time, (about.last - about.first) / (frame.right - frame.left))), facts(list));
  }

  select(item: number): void {
    this.chosen = item;
    this.panelAgain();
    this.table.mark(item);
    if (item >= 0) {
      if (!this.scene.visible(item)) this.showRest(true);
      this.bring(item);
      const told = this.words.item(item).map(([key, value]) => `${key} ${value}`);
      this.status.textContent = `${this.scene.item(item)}: ${told.join(", ")}`;
    } else {
      this.status.textContent = "Nothing is selected.";
    }
    this.redraw();
  }

  private panelAgain(): void {
    if (this.chosen >= 0) this.panel.item(this.chosen, this.colours);
    else this.panel.clear();
  }

  click(x: number, y: number): void {
    const { frame } = this.painter;
    const at = this.place(x, y);
    if (at && at.part >= 0) this.select(this.scene.parts.item[at.part]);
    else if (at && at.row >= 0) this.selectNode(at.row, this.scene.free.at(at.row, at.time));
    else if (x < frame.left && y > frame.top && y < frame.bottom) {
      const k = Math.floor(this.sight.y0 + (y - frame.top) / this.painter.perRow);
      if (k < this.scene.order.length) this.selectNode(this.scene.order[k]);
    } else this.select(-1);
  }

  selectNode(row: number, slot = -1): void {
    const { scene } = this;
    const { row: rows, count, item } = scene.parts;
    const taken = new Set<number>();
    for (let i = 0; i < rows.length; i++) if (rows[i] <= row && row < rows[i] + count[i]) taken.add(item[i]);
    this.chosen = -1;
    this.table.mark(-1);
    this.panel.node(row, slot, [...taken], (each) => this.select(each));
    const place = scene.place[row];
    if (place >= 0 && (place < this.sight.y0 || place >= this.sight.y1)) {
      this.sight.move(0, place - (this.sight.y0 + this.sight.y1) / 2);
    }
    this.status.textContent = `${capital(scene.about.nodes.noun)} ${scene.node(row)}, ${counted(taken.size, scene.about.items.noun)}.`;
    this.redraw();
  }

  /** The next or previous item by start, of those that are shown. */
  step(by: number): void {
    const { byStart, scene } = this;
    if (!byStart.length) return;
    let at = byStart.indexOf(this.chosen);
    if (at < 0) at = by > 0 ? -1 : 0;
    for (let tried = 0; tried < byStart.length; tried++) {
      at = (at + by + byStart.length) % byStart.length;
      if (scene.visible(byStart[at])) return this.select(byStart[at]);
    }
  }

  /** Move until something of an item is in sight. */
  private bring(item: number): void {
    const { sight, scene } = this;
    const { start, finish } = scene.items;
    if (finish[item] < sight.x0 || start[item] > sight.x1) {
      sight.move((start[item] + finish[item]) / 2 - (sight.x0 + sight.x1) / 2, 0);
    }
    const places = this.places(item);
    if (places.length && !places.some((k) => k >= sight.y0 && k < sight.y1)) {
      sight.move(0, places[0] + 0.5 - (sight.y0 + sight.y1) / 2);
    }
  }

  private places(item: number): number[] {
    const { scene } = this;
    const found: number[] = [];
    for (const part of scene.partsOf(item)) {
      for (let k = 0; k < scene.parts.count[part]; k++) {
        const place = scene.place[scene.parts.row[part] + k];
        if (place >= 0) found.push(place);
      }
    }
    return found.sort((a, b) => a - b);
  }

  zoomTo(item: number): void {
    const { sight, scene } = this;
    const { start, finish } = scene.items;
    const span = Math.max(finish[item] - start[item], (sight.x1 - sight.x0) * 1e-3);
    [sight.x0, sight.x1] = [start[item] - span, finish[item] + span];
    const places = this.places(item);
    if (places.length) {
      const edge = Math.max(2, (places[places.length - 1] - places[0]) * 0.08);
      [sight.y0, sight.y1] = [places[0] - edge, places[places.length - 1] + 1 + edge];
    }
    sight.clamp();
    this.redraw();
  }

  /** Zoom about the selection where it is in sight, else about the middle. */
  zoom(time: number, rows: number): void {
    const { sight, scene, chosen } = this;
    let x = (sight.x0 + sight.x1) / 2;
    let y = (sight.y0 + sight.y1) / 2;
    if (chosen >= 0) {
      const middle = (scene.items.start[chosen] + scene.items.finish[chosen]) / 2;
      if (middle > sight.x0 && middle < sight.x1) x = middle;
      const seen = this.places(chosen).filter((k) => k >= sight.y0 && k < sight.y1);
      if (seen.length) y = seen[seen.length >> 1] + 0.5;
    }
    if (time !== 1) sight.zoomTime(time, x);
    if (rows !== 1) sight.zoomRows(rows, y);
    this.redraw();
  }

  all(): void {
    this.sight.all();
    this.redraw();
  }

  /** Show the range of time between two places. */
  range(a: Place, b: Place): void {
    this.band = null;
    if (Math.abs(a.x - b.x) > 4) {
      [this.sight.x0, this.sight.x1] = [Math.min(a.time, b.time), Math.max(a.time, b.time)];
      this.sight.clamp();
    }
    this.redraw();
  }

  draft(band: [Place, Place] | null): void {
    this.band = band;
    this.redraw(false);
  }

  focusSearch(): void {
    this.search.focus();
  }

  private showRest(on: boolean): void {
    this.alternatives.setAttribute("aria-pressed", String(on));
    if (on === this.scene.showRest) return;
    this.scene.showRest = on;
    this.scene.box();
    this.strip.forget();
    this.redraw();
  }

  toggleUsed(): void {
    const pressed = this.onlyUsed.getAttribute("aria-pressed") === "true";
    this.onlyUsed.setAttribute("aria-pressed", String(!pressed));
    this.filter();
  }

  private filter(): void {
    const { scene } = this;
    const named = rowTest(scene, this.search.value);
    const used = this.onlyUsed.getAttribute("aria-pressed") === "true";
    const test = used ? (row: number) => !!scene.used[row] && (!named || named(row)) : named;
    scene.show(test);
    this.status.textContent = `${counted(scene.order.length, scene.about.nodes.noun)} shown.`;
    this.again();
  }

  /** After the rows or the parts that are shown have changed. */
  private again(): void {
    this.sight.rows = this.scene.order.length;
    [this.sight.y0, this.sight.y1] = [0, Math.max(this.sight.rows, 1)];
    this.strip.forget();
    this.redraw();
  }
}
