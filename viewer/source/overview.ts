// The strip above the rows: the shares of nodes that are free, busy, disabled and in windows over all time,
// and the visible range of time.
import type { Colours } from "./colours";
import { Coverage } from "./coverage";
import type { Scene } from "./scene";

export const OVERVIEW_HEIGHT = 40;

export class Overview {
  private cover: Coverage | null = null;
  private numColours = 1;

  constructor(
    private readonly scene: Scene,
    private readonly first: number,
    private readonly last: number,
  ) {}

  /** Discard the counts, after a change of the width or of the rows. */
  invalidate(): void {
    this.cover = null;
  }

  /** Return the numbers of visible nodes that are free and in no window, busy, disabled and in windows
   * at a pixel. */
  shares(x: number): { free: number; busy: number; taken: number; disabled: number } {
    const sums = this.cover?.sums;
    const at = Math.min(Math.max(Math.floor(x), 0), (this.cover?.width ?? 1) - 1) * this.channels;
    if (!sums) return { free: 0, busy: 0, taken: 0, disabled: 0 };
    return { free: sums[at], busy: sums[at + 1], taken: sums[at + 2], disabled: sums[at + 3] };
  }

  /** The number of channels: free, busy, taken and disabled nodes, and taken nodes of each colour. */
  private get channels(): number {
    return 4 + this.numColours;
  }

  accumulate(width: number): void {
    if (this.cover?.width === width) return;
    const { scene, first, last, channels } = this;
    const cover = new Coverage(width, 1, channels);
    const weights = (channel: number): number[] => Array.from({ length: channels }, (_, k) => (k === channel ? 1 : 0));
    const per = width / (last - first);
    for (const [spans, weight] of [
      [scene.free, weights(0)],
      [scene.busy, weights(1)],
      [scene.disabled, weights(3)],
    ] as const) {
      for (let i = 0; i < spans.size; i++) {
        if (scene.position[spans.row[i]] < 0) continue;
        cover.add((spans.start[i] - first) * per, (spans.end[i] - first) * per, 0, 1, weight);
      }
    }
    // Boxes are sorted by row and start; a row with overlapping windows counts once, one with heights by
    // their sum.
    const { top, bottom, part } = scene.boxes;
    const { item, start, end } = scene.parts;
    let [row, latest] = [-1, first];
    for (let i = 0; i < part.length; i++) {
      const p = part[i];
      if (!scene.items.chosen[item[p]]) continue;
      if (top[i] !== row) [row, latest] = [top[i], first];
      const from = scene.hasHeights ? start[p] : Math.max(start[p], latest);
      const height = scene.hasHeights ? 1 / scene.lanes[p] : 1;
      const taken = weights(0).map((weight) => -weight * height);
      const weight = weights(2).fill(0);
      weight[2] = weight[4 + (scene.colourIndex(item[p]) % this.numColours)] = (bottom[i] - top[i]) * height;
      cover.add((from - first) * per, (end[p] - first) * per, 0, 1, weight);
      // Found windows are part of the free time, bookings of a pool are not.
      for (let k = top[i]; k < bottom[i] && scene.free.size; k++) {
        const stop = scene.free.firstStartingAt(scene.order[k], end[p]);
        for (let j = scene.free.firstEndingAfter(scene.order[k], from); j < stop; j++) {
          const [a, b] = [Math.max(from, scene.free.start[j]), Math.min(end[p], scene.free.end[j])];
          cover.add((a - first) * per, (b - first) * per, 0, 1, taken);
        }
      }
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
    viewport: { x0: number; x1: number },
  ): void {
    const width = Math.max(1, Math.round(right - left));
    if (this.numColours !== colours.windows.length) {
      this.numColours = colours.windows.length;
      this.invalidate();
    }
    this.accumulate(width);
    const { scene, first, last } = this;
    const rows = Math.max(scene.order.length, 1);
    const { rest } = scene.about;
    g.fillStyle = rest === "busy" ? colours.busy : rest === "free" ? colours.free : colours.back;
    g.fillRect(left, 0, width, OVERVIEW_HEIGHT);
    for (let x = 0; x < width; x++) {
      const { free, busy, disabled } = this.shares(x);
      const draw = (colour: string, nodes: number, below: number, fromTop = false) => {
        const tall = (Math.min((below + nodes) / rows, 1) - Math.min(below / rows, 1)) * OVERVIEW_HEIGHT;
        if (tall <= 0) return;
        g.fillStyle = colour;
        g.fillRect(left + x, fromTop ? 0 : OVERVIEW_HEIGHT - (below / rows) * OVERVIEW_HEIGHT - tall, 1, tall);
      };
      draw(colours.busy, busy, 0, true);
      draw(colours.disabled, disabled, 0, true);
      // Stack the colours of the windows, and the nodes that are still free on them.
      let below = 0;
      for (let k = 0; k < this.numColours; k++) {
        const nodes = this.cover?.sums[x * this.channels + 4 + k] ?? 0;
        draw(colours.windows[k], nodes, below);
        below += Math.max(nodes, 0);
      }
      draw(colours.free, free, below);
    }
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillStyle = colours.faint;
    g.fillText("share of", left - 8, OVERVIEW_HEIGHT / 2 - 7);
    g.fillText(`${scene.about.nodes.noun}s`, left - 8, OVERVIEW_HEIGHT / 2 + 7);
    const per = width / (last - first);
    const a = left + (viewport.x0 - first) * per;
    const b = Math.max(left + (viewport.x1 - first) * per, a + 3);
    g.fillStyle = colours.back;
    g.globalAlpha = 0.65;
    g.fillRect(left, 0, Math.max(a - left, 0), OVERVIEW_HEIGHT);
    g.fillRect(b, 0, Math.max(right - b, 0), OVERVIEW_HEIGHT);
    g.globalAlpha = 1;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1;
    g.strokeRect(a + 0.5, 0.5, b - a - 1, OVERVIEW_HEIGHT - 1);
  }
}
