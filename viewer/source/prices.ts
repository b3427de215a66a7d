// The strip of prices below the rows: the price of each tariff over time as steps. Nodes of one
// tariff with different base prices have an area from the lowest to the highest.
import type { Colours } from "./colours";
import { fitText, type Painter } from "./paint";
import { formatNumber } from "./scale";
import type { Price, Scene, Viewport } from "./scene";

const FONT = "11px system-ui, sans-serif";
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
const LEGEND_HEIGHT = 14; // pixels, above the steps

/** Return the height of the strip in pixels; 0 without prices. */
export function priceHeight(scene: Scene, height: number): number {
  if (!scene.prices.length) return 0;
  return height < 300 ? 52 : 72;
}

/** Return the index of the last edge at or before a time, at least 0. */
function segmentAt(edges: Float64Array, time: number): number {
  let low = 0;
  let high = edges.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return the prices at a time, such as "0.12" or "spot 0.3 to 0.4"; empty: none is known. */
export function pricesAt(scene: Scene, time: number): string {
  const named = scene.prices.length > 1;
  const texts = scene.prices.flatMap(({ name, edge, low, high }) => {
    if (time < edge[0] || time >= edge[edge.length - 1]) return [];
    const k = segmentAt(edge, time);
    const text = formatNumber(low[k]) + (low[k] < high[k] ? ` to ${formatNumber(high[k])}` : "");
    return [named ? `${name} ${text}` : text];
  });
  return texts.join(", ");
}

/** Draw the strip between the rows and the axis. */
export function drawPrices(g: CanvasRenderingContext2D, painter: Painter, scene: Scene, viewport: Viewport, colours: Colours): void {
  const { frame } = painter;
  const { prices } = scene;
  if (!prices.length) return;
  const bottom = frame.axis - 3;
  const top = frame.bottom + LEGEND_HEIGHT + 8;
  const most = Math.max(...prices.map(({ high }) => high.reduce((a, b) => Math.max(a, b), 0)));
  const y = (price: number) => bottom - (most > 0 ? price / most : 0) * (bottom - top);
  g.fillStyle = colours.line;
  for (const at of [top, bottom]) g.fillRect(frame.left, Math.round(at), frame.right - frame.left, 1);
  g.save();
  g.beginPath();
  g.rect(frame.left, top - 2, frame.right - frame.left, bottom - top + 4);
  g.clip();
  prices.forEach((price, k) => {
    const { edge, low, high } = price;
    const first = segmentAt(edge, viewport.x0);
    const steps = (values: Float32Array, back: boolean) => {
      const last = segmentAt(edge, viewport.x1);
      for (let n = 0; n <= last - first; n++) {
        const i = back ? last - n : first + n;
        const [from, to] = back ? [edge[i + 1], edge[i]] : [edge[i], edge[i + 1]];
        g.lineTo(painter.x(from), y(values[i]));
        g.lineTo(painter.x(to), y(values[i]));
      }
    };
    g.fillStyle = colours.accent;
    g.globalAlpha = prices.length > 1 ? 0.14 : 0.22;
    g.beginPath();
    steps(high, false);
    if (hasArea(price)) {
      steps(low, true);
    } else {
      g.lineTo(painter.x(edge[segmentAt(edge, viewport.x1) + 1]), bottom);
      g.lineTo(painter.x(edge[first]), bottom);
    }
    g.fill();
    g.globalAlpha = 1;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1.2;
    g.setLineDash(DASHES[k % DASHES.length]);
    g.beginPath();
    steps(high, false);
    g.stroke();
  });
  g.restore();
  g.setLineDash([]);
  // the scale
  g.font = FONT;
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.fillStyle = colours.faint;
  const width = frame.left - 12;
  g.fillText(fitText(g, most > 0 ? formatNumber(most) : "", width, FONT), frame.left - 8, top + 1);
  g.fillText("0", frame.left - 8, bottom - 3);
  // the legend
  g.textAlign = "left";
  g.fillStyle = colours.ink;
  const row = frame.bottom + LEGEND_HEIGHT / 2 + 3;
  const lone = prices.length === 1;
  let x = frame.left;
  g.strokeStyle = colours.ink;
  for (const [k, { name }] of prices.entries()) {
    const text = lone ? (name === "price" ? name : `price: ${name}`) : name;
    const shown = fitText(g, text, frame.right - x - (lone ? 0 : 28), FONT);
    if (!shown) break;
    if (!lone) {
      g.setLineDash(DASHES[k % DASHES.length]);
      g.beginPath();
      g.moveTo(x, row);
      g.lineTo(x + 22, row);
      g.stroke();
      x += 28;
    }
    g.fillText(shown, x, row);
    x += g.measureText(shown).width + 14;
  }
  g.setLineDash([]);
}

const hasArea = ({ low, high }: Price) => low.some((price, i) => price < high[i]);
