// The strip above the rows: how many nodes are free and taken over all the time there is, and
// which stretch of it is in sight.
import type { Colours } from "./colours";
import { Cover } from "./cover";
import type { Scene } from "./scene";

export const STRIP = 40;

export class Strip {
  private cover: Cover | null = null;
  private looks = 1;

  constructor(
    private readonly scene: Scene,
    private readonly first: number,
    private readonly last: number,
  ) {}

  /** Count anew: after another width, or other rows. */
  forget(): void {
    this.cover = null;
  }

  /** How many of the nodes shown are free, busy, in windows at a place of the strip. */
  shares(x: number): { free: number; busy: number; taken: number } {
    const sums = this.cover?.sums;
    const at = Math.min(Math.max(Math.floor(x), 0), (this.cover?.width ?? 1) - 1) * this.channels;
    if (!sums) return { free: 0, busy: 0, taken: 0 };
    return { free: sums[at], busy: sums[at + 1], taken: sums[at + 2] };
  }

  /** Free, busy and taken nodes, and the taken ones of each colour. */
  private get channels(): number {
    return 3 + this.looks;
  }

  count(width: number): void {
    if (this.cover?.width === width) return;
    const { scene, first, last, channels } = this;
    const cover = new Cover(width, 1, channels);
    const weights = (channel: number): number[] => Array.from({ length: channels }, (_, k) => (k === channel ? 1 : 0));
    const per = width / (last - first);
    for (const [spans, weight] of [
      [scene.free, weights(0)],
      [scene.busy, weights(1)],
    ] as const) {
      for (let i = 0; i < spans.size; i++) {
        if (scene.place[spans.row[i]] < 0) continue;
        cover.add((spans.start[i] - first) * per, (spans.end[i] - first) * per, 0, 1, weight);
      }
    }
    // Boxes come by row and start; where windows overlap on a row it is taken once.
    const { top, bottom, part } = scene.boxes;
    const { item, start, end } = scene.parts;
    let [row, latest] = [-1, first];
    for (let i = 0; i < part.length; i++) {
      const p = part[i];
      if (!scene.items.chosen[item[p]]) continue;
      if (top[i] !== row) [row, latest] = [top[i], first];
      const from = Math.max(start[p], latest);
      const weight = weights(2).fill(0);
      weight[2] = weight[3 + (scene.colour(item[p]) % this.looks)] = bottom[i] - top[i];
      cover.add((from - first) * per, (end[p] - first) * per, 0, 1, weight);
      latest = Math.max(latest, end[p]);
    }
    cover.finish();
    this.cover = cover;
  }

  draw(
    g: CanvasRenderingContext2D,
    colours: Colours,
    left: number,
    right: number,
    sight: { x0: number; x1: number },
  ): void {
    const width = Math.max(1, Math.round(right - left));
    if (this.looks !== colours.windows.length) {
      this.looks = colours.windows.length;
      this.forget();
    }
    this.count(width);
    const { scene, first, last } = this;
    const rows = Math.max(scene.order.length, 1);
    const { rest } = scene.about;
    g.fillStyle = rest === "busy" ? colours.busy : rest === "free" ? colours.free : colours.back;
    g.fillRect(left, 0, width, STRIP);
    for (let x = 0; x < width; x++) {
      const { free, busy } = this.shares(x);
      const draw = (colour: string, nodes: number, below: number, fromTop = false) => {
        const tall = (Math.min((below + nodes) / rows, 1) - Math.min(below / rows, 1)) * STRIP;
        if (tall <= 0) return;
        g.fillStyle = colour;
        g.fillRect(left + x, fromTop ? 0 : STRIP - (below / rows) * STRIP - tall, 1, tall);
      };
      draw(colours.free, free, 0);
      draw(colours.busy, busy, 0, true);
      // The colours of the windows, one on another.
      let below = 0;
      for (let k = 0; k < this.looks; k++) {
        const nodes = this.cover?.sums[x * this.channels + 3 + k] ?? 0;
        draw(colours.windows[k], nodes, below);
        below += Math.max(nodes, 0);
      }
    }
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillStyle = colours.faint;
    g.fillText("share of", left - 8, STRIP / 2 - 7);
    g.fillText(`${scene.about.nodes.noun}s`, left - 8, STRIP / 2 + 7);
    const per = width / (last - first);
    const a = left + (sight.x0 - first) * per;
    const b = Math.max(left + (sight.x1 - first) * per, a + 3);
    g.fillStyle = colours.back;
    g.globalAlpha = 0.65;
    g.fillRect(left, 0, Math.max(a - left, 0), STRIP);
    g.fillRect(b, 0, Math.max(right - b, 0), STRIP);
    g.globalAlpha = 1;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1;
    g.strokeRect(a + 0.5, 0.5, b - a - 1, STRIP - 1);
  }
}
