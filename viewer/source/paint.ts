// The picture: rows downwards, times across. Few boxes are drawn separately, with edges and
// names; of many boxes the covered share of each pixel is computed, so that a picture of 20,000
// rows is exact.
import { type Colours, luminance, textColourOn, parseRgb, shade } from "./colours";
import { Coverage } from "./coverage";
import { drawPrices } from "./prices";
import type { Scale } from "./scale";
import type { Boxes, Scene, Viewport, Spans } from "./scene";

export const AXIS_HEIGHT = 46; // pixels
const MAX_SEPARATE_BOXES = 4000; // more are drawn by their coverage
const MIN_PART_HEIGHT = 3; // pixels, so that parts are visible at any zoom
const FONT = "12px system-ui, sans-serif";
const SMALL = "11px system-ui, sans-serif";

/** The size of the canvas and the rectangle of the rows, in pixels. */
export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number; // of the rows, as left, right and top
  axis: number; // the top of the axis; prices are drawn between the rows and it
  ratio: number; // device pixels per pixel
}

/** Draws the rows, boxes, names and the axis for the current viewport. */
export class Painter {
  colours!: Colours;
  frame!: Frame;
  private ground: Coverage | null = null;
  private parts: Coverage | null = null;
  private image: ImageData | null = null;
  private layer: HTMLCanvasElement | null = null;
  private readonly visible = {
    ...{ source: null as Boxes | null, x0: 0, x1: 0, y0: 0, y1: 0 },
    ...{ buffer: new Int32Array(0), found: new Int32Array(0) },
  };

  constructor(
    private readonly scene: Scene,
    private readonly scale: Scale,
    private readonly viewport: Viewport,
  ) {}

  get pixelsPerTime(): number {
    return (this.frame.right - this.frame.left) / (this.viewport.x1 - this.viewport.x0);
  }

  get pixelsPerRow(): number {
    return (this.frame.bottom - this.frame.top) / (this.viewport.y1 - this.viewport.y0);
  }

  x(time: number): number {
    return this.frame.left + (time - this.viewport.x0) * this.pixelsPerTime;
  }

  y(row: number): number {
    return this.frame.top + (row - this.viewport.y0) * this.pixelsPerRow;
  }

  /** Return the width of the column of node names, limited to a share of the width. */
  gutter(g: CanvasRenderingContext2D, width: number): number {
    const { scene } = this;
    g.font = FONT;
    let longest = "";
    for (let row = 0; row < scene.rows; row++) {
      const name = scene.nodeName(row);
      if (name.length > longest.length) longest = name;
    }
    return Math.round(Math.min(Math.max(g.measureText(longest).width + 18, 76), width * 0.28, 200));
  }

  draw(g: CanvasRenderingContext2D, chosen: number): void {
    const { frame, colours, viewport, scene } = this;
    g.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
    g.fillStyle = colours.back;
    g.fillRect(0, 0, frame.width, frame.height);
    const first = Math.max(0, Math.floor(viewport.y0));
    const last = Math.min(scene.order.length, Math.ceil(viewport.y1));
    g.save();
    g.beginPath();
    g.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    g.clip();
    const boxes = this.boxesInView();
    if (boxes.length > MAX_SEPARATE_BOXES || this.hasManySpans(first, last)) this.drawCoverage(g, first, last, boxes.length > MAX_SEPARATE_BOXES ? boxes : null, chosen);
    else this.drawRows(g, first, last);
    this.drawGrid(g);
    if (boxes.length <= MAX_SEPARATE_BOXES) this.drawBoxes(g, boxes, chosen);
    this.drawMarks(g);
    g.restore();
    this.drawNames(g, first, last);
    drawPrices(g, this, scene, viewport, colours);
    this.drawAxis(g);
  }

  // --- many boxes: coverage of pixels

  /** Return the visible boxes, cached until the viewport or the boxes change. */
  private boxesInView(): Int32Array {
    const { scene, viewport, visible } = this;
    const { x0, x1, y0, y1 } = viewport;
    if (visible.source === scene.boxes && visible.x0 === x0 && visible.x1 === x1 && visible.y0 === y0 && visible.y1 === y1) {
      return visible.found;
    }
    const { top, bottom, part } = scene.boxes;
    const { start, end } = scene.parts;
    if (visible.buffer.length < part.length) visible.buffer = new Int32Array(part.length);
    const { buffer } = visible;
    let count = 0;
    for (let i = 0; i < part.length; i++) {
      if (bottom[i] <= y0 || top[i] >= y1) continue;
      const p = part[i];
      if (end[p] > x0 && start[p] < x1) buffer[count++] = i;
    }
    Object.assign(visible, { source: scene.boxes, x0, x1, y0, y1, found: buffer.subarray(0, count) });
    return visible.found;
  }

  /** Return true if the rows are too narrow, or the spans too many, to be drawn separately. */
  private hasManySpans(first: number, last: number): boolean {
    if (this.pixelsPerRow < 2) return true;
    let count = 0;
    for (let k = first; k < last && count <= MAX_SEPARATE_BOXES; k++) {
      const row = this.scene.order[k];
      for (const spans of [this.scene.free, this.scene.busy, this.scene.disabled]) {
        count += spans.firstStartingAt(row, this.viewport.x1) - spans.firstEndingAfter(row, this.viewport.x0);
      }
    }
    return count > MAX_SEPARATE_BOXES;
  }

  /** Draw by coverage. The colour of a pixel is mixed from the rest of a row, free and busy time
   * by their shares; the colours of disabled time and of parts are blended over it. */
  private drawCoverage(
    g: CanvasRenderingContext2D,
    first: number,
    last: number,
    boxes: Int32Array | null,
    chosen: number,
  ): void {
    const { frame, colours, scene, viewport } = this;
    const width = Math.max(1, Math.round((frame.right - frame.left) * frame.ratio));
    const height = Math.max(1, Math.round((frame.bottom - frame.top) * frame.ratio));
    if (this.ground?.width !== width || this.ground.height !== height) {
      this.ground = new Coverage(width, height, scene.disabled.size ? 3 : 2);
      this.parts = null;
      this.image = g.createImageData(width, height);
    }
    const ground = this.ground;
    const pixelsPerTime = width / (viewport.x1 - viewport.x0);
    const pixelsPerRow = height / (viewport.y1 - viewport.y0);
    ground.clear();
    const addSpans = (spans: Spans, weights: number[]) => {
      for (let k = first; k < last; k++) {
        const row = scene.order[k];
        const top = (k - viewport.y0) * pixelsPerRow;
        const end = spans.first[row + 1];
        for (let i = spans.firstEndingAfter(row, viewport.x0); i < end && spans.start[i] < viewport.x1; i++) {
          const left = (spans.start[i] - viewport.x0) * pixelsPerTime;
          ground.add(left, (spans.end[i] - viewport.x0) * pixelsPerTime, top, top + pixelsPerRow, weights);
        }
      }
    };
    addSpans(scene.free, [1, 0, 0]);
    if (scene.busy.size) addSpans(scene.busy, [0, 1, 0]);
    if (scene.disabled.size) addSpans(scene.disabled, [0, 0, 1]);
    ground.finish();
    const parts = boxes && this.coverageOfParts(width, height, pixelsPerTime, pixelsPerRow, boxes, chosen);
    const rest = { busy: colours.busy, free: colours.free, blank: colours.back }[scene.about.rest];
    const [r0, g0, b0] = parseRgb(rest);
    const [rf, gf, bf] = parseRgb(colours.free).map((c, i) => c - [r0, g0, b0][i]);
    const [rb, gb, bb] = parseRgb(colours.busy).map((c, i) => c - [r0, g0, b0][i]);
    const [rd, gd, bd] = parseRgb(colours.disabled);
    const { channels } = ground;
    const image = this.image as ImageData;
    const pixels = new Uint32Array(image.data.buffer);
    // Pixels below the last row have the background colour.
    const filled = Math.min(height, Math.ceil((scene.order.length - viewport.y0) * pixelsPerRow));
    const [rn, gn, bn] = parseRgb(colours.back);
    const { sums } = ground;
    for (let y = 0; y < height; y++) {
      let p = ground.index(0, y);
      let q = parts ? parts.index(0, y) : 0;
      const o = y * width;
      if (y >= filled) {
        pixels.fill(0xff000000 | (bn << 16) | (gn << 8) | rn, o, o + width);
        continue;
      }
      for (let x = 0; x < width; x++, p += channels, q += 4) {
        const free = sums[p];
        const busy = sums[p + 1];
        let red = r0 + 0.5 + rf * free + rb * busy;
        let green = g0 + 0.5 + gf * free + gb * busy;
        let blue = b0 + 0.5 + bf * free + bb * busy;
        if (channels > 2) {
          const off = sums[p + 2];
          red += (rd - red) * off;
          green += (gd - green) * off;
          blue += (bd - blue) * off;
        }
        if (parts) {
          const clear = 1 - parts.sums[q + 3];
          red = red * clear + parts.sums[q];
          green = green * clear + parts.sums[q + 1];
          blue = blue * clear + parts.sums[q + 2];
        }
        pixels[o + x] =
          0xff000000 |
          ((blue < 0 ? 0 : blue > 255 ? 255 : blue) << 16) |
          ((green < 0 ? 0 : green > 255 ? 255 : green) << 8) |
          (red < 0 ? 0 : red > 255 ? 255 : red);
      }
    }
    this.drawPixels(g, image);
  }

  private coverageOfParts(
    width: number,
    height: number,
    pixelsPerTime: number,
    pixelsPerRow: number,
    boxes: Int32Array,
    chosen: number,
  ): Coverage {
    const { scene, viewport, colours } = this;
    this.parts ??= new Coverage(width, height, 4);
    const cover = this.parts;
    cover.clear();
    const fills = colours.windows.map((colour) => [...parseRgb(colour), 1]);
    const faded = fills.map((fill) => fill.map((c) => c * 0.35));
    const { top, bottom, part } = scene.boxes;
    for (const i of boxes) {
      const p = part[i];
      const item = scene.parts.item[p];
      const from = chosen >= 0 && chosen !== item ? faded : fills;
      const tall = ((bottom[i] - top[i]) * pixelsPerRow) / scene.lanes[p];
      const y = (top[i] - viewport.y0) * pixelsPerRow + tall * scene.lane[p];
      const left = (scene.parts.start[p] - viewport.x0) * pixelsPerTime;
      const right = (scene.parts.end[p] - viewport.x0) * pixelsPerTime;
      cover.add(left, right, y, y + tall, from[scene.colourIndex(item) % from.length]);
    }
    cover.finish();
    return cover;
  }

  private drawPixels(g: CanvasRenderingContext2D, image: ImageData): void {
    const { frame } = this;
    if (!this.layer || this.layer.width !== image.width || this.layer.height !== image.height) {
      this.layer = document.createElement("canvas");
      this.layer.width = image.width;
      this.layer.height = image.height;
    }
    this.layer.getContext("2d")?.putImageData(image, 0, 0);
    g.drawImage(this.layer, frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
  }

  // --- few boxes: drawn separately

  private drawRows(g: CanvasRenderingContext2D, first: number, last: number): void {
    const { scene, viewport, colours, frame } = this;
    const gap = this.pixelsPerRow > 8 ? 2 : this.pixelsPerRow > 4 ? 1 : 0;
    const rest = { busy: colours.busy, free: colours.free, blank: colours.back }[scene.about.rest];
    const hatch = this.hatch(g);
    for (let k = first; k < last; k++) {
      const row = scene.order[k];
      const y = Math.round(this.y(k) * frame.ratio) / frame.ratio;
      const tall = Math.round(this.y(k + 1) * frame.ratio) / frame.ratio - y - gap;
      g.fillStyle = rest;
      g.fillRect(frame.left, y, frame.right - frame.left, tall);
      for (const spans of [scene.free, scene.busy, scene.disabled]) {
        g.fillStyle = spans === scene.free ? colours.free : spans === scene.busy ? colours.busy : hatch;
        const end = spans.first[row + 1];
        for (let i = spans.firstEndingAfter(row, viewport.x0); i < end && spans.start[i] < viewport.x1; i++) {
          const left = Math.max(this.x(spans.start[i]), frame.left - 1);
          const right = Math.min(this.x(spans.end[i]), frame.right + 1);
          g.fillRect(left, y, Math.max(right - left, 0.6), tall);
        }
      }
    }
    if (scene.about.rest !== "busy" || this.pixelsPerRow < 6) return;
    // Separate adjacent slots, which differ in price or owner, by a line.
    g.fillStyle = colours.back;
    for (let k = first; k < last; k++) {
      const row = scene.order[k];
      const { free } = scene;
      for (let i = free.firstEndingAfter(row, viewport.x0) + 1; i < free.first[row + 1] && free.start[i] < viewport.x1; i++) {
        if (free.end[i - 1] === free.start[i]) g.fillRect(this.x(free.start[i]) - 0.5, this.y(k), 1, this.pixelsPerRow - gap);
      }
    }
  }

  /** Return the fill of disabled time: diagonal lines of the background on its colour. */
  private hatch(g: CanvasRenderingContext2D): CanvasPattern | string {
    const { colours } = this;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const t = tile.getContext("2d") as CanvasRenderingContext2D;
    t.fillStyle = colours.disabled;
    t.fillRect(0, 0, 8, 8);
    t.strokeStyle = colours.back;
    t.lineWidth = 1.2;
    t.beginPath();
    for (const x of [-8, 0, 8]) {
      t.moveTo(x - 1, 9);
      t.lineTo(x + 9, -1);
    }
    t.stroke();
    return g.createPattern(tile, "repeat") ?? colours.disabled;
  }

  /** Return the rectangle of a box in pixels, enlarged to be visible. */
  private boxRect(i: number): { x: number; y: number; wide: number; tall: number } {
    const { scene, frame } = this;
    const { top, bottom, part } = scene.boxes;
    const p = part[i];
    const gap = this.pixelsPerRow > 8 ? 2 : this.pixelsPerRow > 4 ? 1 : 0;
    const whole = (bottom[i] - top[i]) * this.pixelsPerRow - gap;
    const tall = whole / scene.lanes[p];
    const left = Math.max(this.x(scene.parts.start[p]), frame.left - 4);
    const right = Math.min(this.x(scene.parts.end[p]), frame.right + 4);
    const shown = Math.max(tall, MIN_PART_HEIGHT);
    const y = this.y(top[i]) + tall * scene.lane[p] - (shown - Math.max(tall, 0)) / 2;
    return { x: left, y, wide: Math.max(right - left, 2), tall: shown };
  }

  private drawBoxes(g: CanvasRenderingContext2D, boxes: Int32Array, chosen: number): void {
    const { scene, colours } = this;
    const { part } = scene.boxes;
    const { item } = scene.parts;
    const rank = (i: number) => (item[part[i]] === chosen ? 2 : scene.items.chosen[item[part[i]]] ? 1 : 0);
    const order = [0, 1, 2].flatMap((want) => Array.from(boxes.filter((i) => rank(i) === want)));
    const dark = luminance(colours.back) < 0.2;
    for (const i of order) {
      const p = part[i];
      const mine = item[p];
      const { x, y, wide, tall } = this.boxRect(i);
      const colour = colours.windows[scene.colourIndex(mine) % colours.windows.length];
      const full = !!scene.items.chosen[mine];
      const edged = tall > 5 && wide > 3;
      g.globalAlpha = (chosen >= 0 && chosen !== mine ? 0.4 : 1) * (full || chosen === mine ? 1 : 0.7);
      if (full || !edged) {
        g.fillStyle = colour;
        g.fillRect(x, y, wide, tall);
      }
      if (edged) {
        g.strokeStyle = full ? shade(colour, dark ? 0.45 : -0.35) : shade(colour, dark ? 0 : -0.2);
        g.lineWidth = 1;
        g.setLineDash(full ? [] : [4, 2]);
        g.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
        g.setLineDash([]);
      }
      if (tall >= 13 && wide > 26) {
        const words = fitText(g, scene.itemName(mine), wide - 8, SMALL);
        if (words) {
          g.fillStyle = full ? textColourOn(colour) : colours.ink;
          g.textAlign = "left";
          g.textBaseline = "middle";
          g.fillText(words, Math.max(x, this.frame.left) + 4, y + tall / 2 + 0.5);
        }
      }
    }
    g.globalAlpha = 1;
  }

  /** Outline the visible parts of an item. */
  outline(g: CanvasRenderingContext2D, item: number, strong: boolean): void {
    const { colours } = this;
    for (const i of this.boxesInView()) {
      if (this.scene.parts.item[this.scene.boxes.part[i]] !== item) continue;
      const { x, y, wide, tall } = this.boxRect(i);
      g.lineWidth = strong ? 4 : 3;
      g.strokeStyle = colours.back;
      g.strokeRect(x - 0.5, y - 0.5, wide + 1, tall + 1);
      g.lineWidth = strong ? 2 : 1;
      g.strokeStyle = colours.ink;
      g.strokeRect(x - 0.5, y - 0.5, wide + 1, tall + 1);
    }
  }

  /** Return the part at a point, the topmost if several overlap; -1 for none. */
  partAt(x: number, y: number): number {
    const { scene } = this;
    const boxes = this.boxesInView();
    const reach = boxes.length > MAX_SEPARATE_BOXES ? 0.5 : 2;
    const slack = MIN_PART_HEIGHT + reach; // pixels by which a drawn box may exceed its span
    const early = (x - slack - this.frame.left) / this.pixelsPerTime + this.viewport.x0;
    const late = (x + slack - this.frame.left) / this.pixelsPerTime + this.viewport.x0;
    const above = (y - slack - this.frame.top) / this.pixelsPerRow + this.viewport.y0;
    const below = (y + slack - this.frame.top) / this.pixelsPerRow + this.viewport.y0;
    const { top, bottom, part } = scene.boxes;
    const { start, end } = scene.parts;
    let best = -1;
    let chosen = -1;
    for (const i of boxes) {
      if (top[i] > below || bottom[i] < above || start[part[i]] > late || end[part[i]] < early) continue;
      const at = this.boxRect(i);
      if (x < at.x - reach || x > at.x + at.wide + reach || y < at.y - reach || y > at.y + at.tall + reach) continue;
      const rank = scene.items.chosen[scene.parts.item[scene.boxes.part[i]]];
      if (rank >= chosen) [best, chosen] = [i, rank];
    }
    return best < 0 ? -1 : scene.boxes.part[best];
  }

  // --- names, ticks and marks

  private drawGrid(g: CanvasRenderingContext2D): void {
    g.fillStyle = this.colours.ink;
    g.globalAlpha = 0.1;
    for (const { at } of this.ticks()) g.fillRect(Math.round(this.x(at)), this.frame.top, 1, this.frame.bottom - this.frame.top);
    g.globalAlpha = 1;
  }

  private drawMarks(g: CanvasRenderingContext2D): void {
    const { colours, frame } = this;
    let nextFree = -Infinity;
    for (const { time, text } of this.scene.about.marks) {
      const x = Math.round(this.x(time)) + 0.5;
      if (x < frame.left || x > frame.right) continue;
      g.strokeStyle = colours.ink;
      g.setLineDash([3, 3]);
      g.beginPath();
      g.moveTo(x, frame.top);
      g.lineTo(x, frame.bottom);
      g.stroke();
      g.setLineDash([]);
      g.font = SMALL;
      const wide = g.measureText(text).width;
      if (x < nextFree || x + wide + 8 > frame.right) continue;
      g.fillStyle = colours.back;
      g.fillRect(x + 2, frame.top + 2, wide + 6, 15);
      g.fillStyle = colours.ink;
      g.textAlign = "left";
      g.textBaseline = "middle";
      g.fillText(text, x + 5, frame.top + 10);
      nextFree = x + wide + 10;
    }
  }

  private ticks() {
    const { frame, viewport } = this;
    return this.scale.ticks(viewport.x0, viewport.x1, Math.max(2, Math.floor((frame.right - frame.left) / 78)));
  }

  private drawNames(g: CanvasRenderingContext2D, first: number, last: number): void {
    const { frame, colours, scene } = this;
    const raw = Math.max(1, 15 / this.pixelsPerRow);
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= raw - 1e-9) ?? 10 * ten;
    g.font = FONT;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (let k = Math.ceil(first / step) * step; k < last; k += step) {
      const y = this.y(k + 0.5);
      if (y < frame.top + 4 || y > frame.bottom - 4) continue;
      const row = scene.order[k];
      g.fillStyle = scene.used[row] || step > 1 ? colours.ink : colours.faint;
      g.fillText(fitText(g, scene.nodeName(row), frame.left - 12, FONT), frame.left - 8, y);
    }
  }

  private drawAxis(g: CanvasRenderingContext2D): void {
    const { frame, colours, viewport } = this;
    const y = frame.axis;
    g.fillStyle = colours.faint;
    g.fillRect(frame.left, y, frame.right - frame.left, 1);
    g.font = FONT;
    g.textBaseline = "top";
    g.textAlign = "center";
    let nextFree = frame.left - 20;
    for (const { at, text } of this.ticks()) {
      const x = this.x(at);
      g.fillStyle = colours.faint;
      g.fillRect(Math.round(x), y, 1, 5);
      const half = g.measureText(text).width / 2;
      if (x - half < nextFree || x + half > frame.width - 2) continue;
      g.fillStyle = colours.ink;
      g.fillText(text, x, y + 8);
      nextFree = x + half + 6;
    }
    // Draw the context of the ticks (such as the day) at the times from which it holds.
    const most = Math.max(2, Math.floor((frame.right - frame.left) / 78));
    const context = this.scale.context(viewport.x0, viewport.x1, most);
    g.textAlign = "left";
    g.font = `600 ${FONT}`;
    let taken = frame.left;
    context.forEach(({ at, text }, i) => {
      const x = Math.max(this.x(at), frame.left);
      const next = i + 1 < context.length ? this.x(context[i + 1].at) : Infinity;
      const end = x + g.measureText(text).width;
      if ((end + 8 > next || end > frame.width - 2) && !(i === 0 && context.length === 1)) return;
      if (x < taken) return;
      g.fillStyle = colours.ink;
      g.fillText(text, x, y + 26);
      taken = end + 10;
    });
    // The label is drawn at the right if there is space, else left of the axis, else not at all;
    // the summary above contains the zone too.
    g.font = SMALL;
    const labelWidth = g.measureText(this.scale.label).width;
    g.fillStyle = colours.faint;
    g.textAlign = "right";
    if (taken === frame.left || labelWidth <= frame.right - taken) {
      g.fillText(fitText(g, this.scale.label, frame.right - frame.left, SMALL), frame.right, y + 27);
    } else if (labelWidth <= frame.left - 8) {
      g.fillText(this.scale.label, frame.left - 8, y + 27);
    }
  }
}

/** Return a text, shortened with an ellipsis to a width in pixels. */
export function fitText(g: CanvasRenderingContext2D, text: string, maxWidth: number, font: string): string {
  g.font = font;
  if (g.measureText(text).width <= maxWidth) return text;
  let [low, high] = [0, Math.min(text.length, 200)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(`${text.slice(0, middle)}…`).width <= maxWidth) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}
