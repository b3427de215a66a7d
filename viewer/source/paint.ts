// The picture: rows downwards, times across. Few boxes are drawn one by one, with edges and
// names; of many the share of each pixel is, so that 20,000 rows are as true as 20.
import { type Colours, luminance, onto, rgb, shade } from "./colours";
import { Cover } from "./cover";
import type { Scale } from "./scale";
import type { Boxes, Scene, Sight, Spans } from "./scene";

export const AXIS = 46; // pixels below the rows
const FEW = 4000; // boxes that are drawn one by one
const LEAST = 3; // pixels: parts of windows are seen at any zoom
const FONT = "12px system-ui, sans-serif";
const SMALL = "11px system-ui, sans-serif";

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number; // edges of the rows
  ratio: number; // device pixels
}

export class Painter {
  colours!: Colours;
  frame!: Frame;
  private ground: Cover | null = null;
  private parts: Cover | null = null;
  private image: ImageData | null = null;
  private layer: HTMLCanvasElement | null = null;
  private readonly seen = {
    ...{ of: null as Boxes | null, x0: 0, x1: 0, y0: 0, y1: 0 },
    ...{ room: new Int32Array(0), found: new Int32Array(0) },
  };

  constructor(
    private readonly scene: Scene,
    private readonly scale: Scale,
    private readonly sight: Sight,
  ) {}

  get perTime(): number {
    return (this.frame.right - this.frame.left) / (this.sight.x1 - this.sight.x0);
  }

  get perRow(): number {
    return (this.frame.bottom - this.frame.top) / (this.sight.y1 - this.sight.y0);
  }

  x(time: number): number {
    return this.frame.left + (time - this.sight.x0) * this.perTime;
  }

  y(row: number): number {
    return this.frame.top + (row - this.sight.y0) * this.perRow;
  }

  /** How wide node names are, up to a share of the width. */
  gutter(g: CanvasRenderingContext2D, width: number): number {
    const { scene } = this;
    g.font = FONT;
    let longest = "";
    for (let row = 0; row < scene.rows; row++) {
      const name = scene.node(row);
      if (name.length > longest.length) longest = name;
    }
    return Math.round(Math.min(Math.max(g.measureText(longest).width + 18, 76), width * 0.28, 200));
  }

  draw(g: CanvasRenderingContext2D, chosen: number): void {
    const { frame, colours, sight, scene } = this;
    g.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
    g.fillStyle = colours.back;
    g.fillRect(0, 0, frame.width, frame.height);
    const first = Math.max(0, Math.floor(sight.y0));
    const last = Math.min(scene.order.length, Math.ceil(sight.y1));
    g.save();
    g.beginPath();
    g.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    g.clip();
    const boxes = this.inSight();
    if (boxes.length > FEW || this.tooMany(first, last)) this.cover(g, first, last, boxes.length > FEW ? boxes : null, chosen);
    else this.rows(g, first, last);
    this.grid(g);
    if (boxes.length <= FEW) this.boxes(g, boxes, chosen);
    this.marks(g);
    g.restore();
    this.names(g, first, last);
    this.axis(g);
  }

  // --- many

  /** The boxes in sight; looked for anew only after it, or they, have changed. */
  private inSight(): Int32Array {
    const { scene, sight, seen } = this;
    const { x0, x1, y0, y1 } = sight;
    if (seen.of === scene.boxes && seen.x0 === x0 && seen.x1 === x1 && seen.y0 === y0 && seen.y1 === y1) {
      return seen.found;
    }
    const { top, bottom, part } = scene.boxes;
    const { start, end } = scene.parts;
    if (seen.room.length < part.length) seen.room = new Int32Array(part.length);
    const { room } = seen;
    let count = 0;
    for (let i = 0; i < part.length; i++) {
      if (bottom[i] <= y0 || top[i] >= y1) continue;
      const p = part[i];
      if (end[p] > x0 && start[p] < x1) room[count++] = i;
    }
    Object.assign(seen, { of: scene.boxes, x0, x1, y0, y1, found: room.subarray(0, count) });
    return seen.found;
  }

  private tooMany(first: number, last: number): boolean {
    if (this.perRow < 2) return true;
    let count = 0;
    for (let k = first; k < last && count <= FEW; k++) {
      const row = this.scene.order[k];
      for (const spans of [this.scene.free, this.scene.busy]) {
        count += spans.until(row, this.sight.x1) - spans.from(row, this.sight.x0);
      }
    }
    return count > FEW;
  }

  /** One pixel of the screen after another: back, then the rest of a row, free, busy, parts. */
  private cover(
    g: CanvasRenderingContext2D,
    first: number,
    last: number,
    boxes: Int32Array | null,
    chosen: number,
  ): void {
    const { frame, colours, scene, sight } = this;
    const width = Math.max(1, Math.round((frame.right - frame.left) * frame.ratio));
    const height = Math.max(1, Math.round((frame.bottom - frame.top) * frame.ratio));
    if (this.ground?.width !== width || this.ground.height !== height) {
      this.ground = new Cover(width, height, 2);
      this.parts = null;
      this.image = g.createImageData(width, height);
    }
    const ground = this.ground;
    const perTime = width / (sight.x1 - sight.x0);
    const perRow = height / (sight.y1 - sight.y0);
    ground.clear();
    const lay = (spans: Spans, weights: number[]) => {
      for (let k = first; k < last; k++) {
        const row = scene.order[k];
        const top = (k - sight.y0) * perRow;
        const end = spans.first[row + 1];
        for (let i = spans.from(row, sight.x0); i < end && spans.start[i] < sight.x1; i++) {
          const left = (spans.start[i] - sight.x0) * perTime;
          ground.add(left, (spans.end[i] - sight.x0) * perTime, top, top + perRow, weights);
        }
      }
    };
    lay(scene.free, [1, 0]);
    if (scene.busy.size) lay(scene.busy, [0, 1]);
    ground.finish();
    const parts = boxes && this.coverParts(width, height, perTime, perRow, boxes, chosen);
    const rest = { busy: colours.busy, free: colours.free, blank: colours.back }[scene.about.rest];
    const [r0, g0, b0] = rgb(rest);
    const [rf, gf, bf] = rgb(colours.free).map((c, i) => c - [r0, g0, b0][i]);
    const [rb, gb, bb] = rgb(colours.busy).map((c, i) => c - [r0, g0, b0][i]);
    const image = this.image as ImageData;
    const pixels = new Uint32Array(image.data.buffer);
    // Below the last row there is nothing.
    const filled = Math.min(height, Math.ceil((scene.order.length - sight.y0) * perRow));
    const [rn, gn, bn] = rgb(colours.back);
    const { sums } = ground;
    for (let y = 0; y < height; y++) {
      let p = ground.index(0, y);
      let q = parts ? parts.index(0, y) : 0;
      const o = y * width;
      if (y >= filled) {
        pixels.fill(0xff000000 | (bn << 16) | (gn << 8) | rn, o, o + width);
        continue;
      }
      for (let x = 0; x < width; x++, p += 2, q += 4) {
        const free = sums[p];
        const busy = sums[p + 1];
        let red = r0 + 0.5 + rf * free + rb * busy;
        let green = g0 + 0.5 + gf * free + gb * busy;
        let blue = b0 + 0.5 + bf * free + bb * busy;
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
    this.put(g, image);
  }

  private coverParts(
    width: number,
    height: number,
    perTime: number,
    perRow: number,
    boxes: Int32Array,
    chosen: number,
  ): Cover {
    const { scene, sight, colours } = this;
    this.parts ??= new Cover(width, height, 4);
    const cover = this.parts;
    cover.clear();
    const looks = colours.windows.map((colour) => [...rgb(colour), 1]);
    const weak = looks.map((look) => look.map((c) => c * 0.35));
    const { top, bottom, part } = scene.boxes;
    for (const i of boxes) {
      const p = part[i];
      const item = scene.parts.item[p];
      const from = chosen >= 0 && chosen !== item ? weak : looks;
      const tall = ((bottom[i] - top[i]) * perRow) / scene.lanes[p];
      const y = (top[i] - sight.y0) * perRow + tall * scene.lane[p];
      const left = (scene.parts.start[p] - sight.x0) * perTime;
      const right = (scene.parts.end[p] - sight.x0) * perTime;
      cover.add(left, right, y, y + tall, from[scene.colour(item) % from.length]);
    }
    cover.finish();
    return cover;
  }

  private put(g: CanvasRenderingContext2D, image: ImageData): void {
    const { frame } = this;
    if (!this.layer || this.layer.width !== image.width || this.layer.height !== image.height) {
      this.layer = document.createElement("canvas");
      this.layer.width = image.width;
      this.layer.height = image.height;
    }
    this.layer.getContext("2d")?.putImageData(image, 0, 0);
    g.drawImage(this.layer, frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
  }

  // --- few

  private rows(g: CanvasRenderingContext2D, first: number, last: number): void {
    const { scene, sight, colours, frame } = this;
    const gap = this.perRow > 8 ? 2 : this.perRow > 4 ? 1 : 0;
    const rest = { busy: colours.busy, free: colours.free, blank: colours.back }[scene.about.rest];
    for (let k = first; k < last; k++) {
      const row = scene.order[k];
      const y = Math.round(this.y(k) * frame.ratio) / frame.ratio;
      const tall = Math.round(this.y(k + 1) * frame.ratio) / frame.ratio - y - gap;
      g.fillStyle = rest;
      g.fillRect(frame.left, y, frame.right - frame.left, tall);
      for (const spans of [scene.free, scene.busy]) {
        g.fillStyle = spans === scene.free ? colours.free : colours.busy;
        const end = spans.first[row + 1];
        for (let i = spans.from(row, sight.x0); i < end && spans.start[i] < sight.x1; i++) {
          const left = Math.max(this.x(spans.start[i]), frame.left - 1);
          const right = Math.min(this.x(spans.end[i]), frame.right + 1);
          g.fillRect(left, y, Math.max(right - left, 0.6), tall);
        }
      }
    }
    if (scene.about.rest !== "busy" || this.perRow < 6) return;
    // Slots that touch, of two prices or of two owners, are still two.
    g.fillStyle = colours.back;
    for (let k = first; k < last; k++) {
      const row = scene.order[k];
      const { free } = scene;
      for (let i = free.from(row, sight.x0) + 1; i < free.first[row + 1] && free.start[i] < sight.x1; i++) {
        if (free.end[i - 1] === free.start[i]) g.fillRect(this.x(free.start[i]) - 0.5, this.y(k), 1, this.perRow - gap);
      }
    }
  }

  /** Where a box is, at least as tall and wide as can be seen. */
  private place(i: number): { x: number; y: number; wide: number; tall: number } {
    const { scene, frame } = this;
    const { top, bottom, part } = scene.boxes;
    const p = part[i];
    const gap = this.perRow > 8 ? 2 : this.perRow > 4 ? 1 : 0;
    const whole = (bottom[i] - top[i]) * this.perRow - gap;
    const tall = whole / scene.lanes[p];
    const left = Math.max(this.x(scene.parts.start[p]), frame.left - 4);
    const right = Math.min(this.x(scene.parts.end[p]), frame.right + 4);
    const shown = Math.max(tall, LEAST);
    const y = this.y(top[i]) + tall * scene.lane[p] - (shown - Math.max(tall, 0)) / 2;
    return { x: left, y, wide: Math.max(right - left, 2), tall: shown };
  }

  private boxes(g: CanvasRenderingContext2D, boxes: Int32Array, chosen: number): void {
    const { scene, colours } = this;
    const { part } = scene.boxes;
    const { item } = scene.parts;
    const rank = (i: number) => (item[part[i]] === chosen ? 2 : scene.items.chosen[item[part[i]]] ? 1 : 0);
    const order = [0, 1, 2].flatMap((want) => Array.from(boxes.filter((i) => rank(i) === want)));
    const dark = luminance(colours.back) < 0.2;
    for (const i of order) {
      const p = part[i];
      const mine = item[p];
      const { x, y, wide, tall } = this.place(i);
      const colour = colours.windows[scene.colour(mine) % colours.windows.length];
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
        const words = fitted(g, scene.item(mine), wide - 8, SMALL);
        if (words) {
          g.fillStyle = full ? onto(colour) : colours.ink;
          g.textAlign = "left";
          g.textBaseline = "middle";
          g.fillText(words, Math.max(x, this.frame.left) + 4, y + tall / 2 + 0.5);
        }
      }
    }
    g.globalAlpha = 1;
  }

  /** Outlines over the picture, of an item's parts. */
  outline(g: CanvasRenderingContext2D, item: number, strong: boolean): void {
    const { colours } = this;
    for (const i of this.inSight()) {
      if (this.scene.parts.item[this.scene.boxes.part[i]] !== item) continue;
      const { x, y, wide, tall } = this.place(i);
      g.lineWidth = strong ? 4 : 3;
      g.strokeStyle = colours.back;
      g.strokeRect(x - 0.5, y - 0.5, wide + 1, tall + 1);
      g.lineWidth = strong ? 2 : 1;
      g.strokeStyle = colours.ink;
      g.strokeRect(x - 0.5, y - 0.5, wide + 1, tall + 1);
    }
  }

  /** The box at a point: the one that was drawn last there. */
  hit(x: number, y: number): number {
    const { scene } = this;
    const boxes = this.inSight();
    const reach = boxes.length > FEW ? 0.5 : 2;
    const slack = LEAST + reach; // pixels that a box may be larger than its span
    const early = (x - slack - this.frame.left) / this.perTime + this.sight.x0;
    const late = (x + slack - this.frame.left) / this.perTime + this.sight.x0;
    const above = (y - slack - this.frame.top) / this.perRow + this.sight.y0;
    const below = (y + slack - this.frame.top) / this.perRow + this.sight.y0;
    const { top, bottom, part } = scene.boxes;
    const { start, end } = scene.parts;
    let best = -1;
    let chosen = -1;
    for (const i of boxes) {
      if (top[i] > below || bottom[i] < above || start[part[i]] > late || end[part[i]] < early) continue;
      const at = this.place(i);
      if (x < at.x - reach || x > at.x + at.wide + reach || y < at.y - reach || y > at.y + at.tall + reach) continue;
      const rank = scene.items.chosen[scene.parts.item[scene.boxes.part[i]]];
      if (rank >= chosen) [best, chosen] = [i, rank];
    }
    return best < 0 ? -1 : scene.boxes.part[best];
  }

  // --- around

  private grid(g: CanvasRenderingContext2D): void {
    g.fillStyle = this.colours.ink;
    g.globalAlpha = 0.1;
    for (const { at } of this.ticks()) g.fillRect(Math.round(this.x(at)), this.frame.top, 1, this.frame.bottom - this.frame.top);
    g.globalAlpha = 1;
  }

  private marks(g: CanvasRenderingContext2D): void {
    const { colours, frame } = this;
    let free = -Infinity;
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
      if (x < free || x + wide + 8 > frame.right) continue;
      g.fillStyle = colours.back;
      g.fillRect(x + 2, frame.top + 2, wide + 6, 15);
      g.fillStyle = colours.ink;
      g.textAlign = "left";
      g.textBaseline = "middle";
      g.fillText(text, x + 5, frame.top + 10);
      free = x + wide + 10;
    }
  }

  private ticks() {
    const { frame, sight } = this;
    return this.scale.ticks(sight.x0, sight.x1, Math.max(2, Math.floor((frame.right - frame.left) / 78)));
  }

  private names(g: CanvasRenderingContext2D, first: number, last: number): void {
    const { frame, colours, scene } = this;
    const raw = Math.max(1, 15 / this.perRow);
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
      g.fillText(fitted(g, scene.node(row), frame.left - 12, FONT), frame.left - 8, y);
    }
  }

  private axis(g: CanvasRenderingContext2D): void {
    const { frame, colours, sight } = this;
    const y = frame.bottom;
    g.fillStyle = colours.faint;
    g.fillRect(frame.left, y, frame.right - frame.left, 1);
    g.font = FONT;
    g.textBaseline = "top";
    g.textAlign = "center";
    let free = frame.left - 20;
    for (const { at, text } of this.ticks()) {
      const x = this.x(at);
      g.fillStyle = colours.faint;
      g.fillRect(Math.round(x), y, 1, 5);
      const half = g.measureText(text).width / 2;
      if (x - half < free || x + half > frame.width - 2) continue;
      g.fillStyle = colours.ink;
      g.fillText(text, x, y + 8);
      free = x + half + 6;
    }
    // What ticks leave out stands where it begins.
    const most = Math.max(2, Math.floor((frame.right - frame.left) / 78));
    const context = this.scale.context(sight.x0, sight.x1, most);
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
    // The label stands at the right where that is empty, else left of the axis, else nowhere:
    // a zone is told above as well.
    g.font = SMALL;
    const room = g.measureText(this.scale.label).width;
    g.fillStyle = colours.faint;
    g.textAlign = "right";
    if (taken === frame.left || room <= frame.right - taken) {
      g.fillText(fitted(g, this.scale.label, frame.right - frame.left, SMALL), frame.right, y + 27);
    } else if (room <= frame.left - 8) {
      g.fillText(this.scale.label, frame.left - 8, y + 27);
    }
  }
}

/** As much of a text as there is room for. */
export function fitted(g: CanvasRenderingContext2D, text: string, room: number, font: string): string {
  g.font = font;
  if (g.measureText(text).width <= room) return text;
  let [low, high] = [0, Math.min(text.length, 200)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}
