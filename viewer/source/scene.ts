// The content of the picture: spans by row, parts of items, the visible rows, and the viewport.
import type { Description, Numbers } from "./data";

const MAX_SHOWN_ALTERNATIVES = 300; // if there are more, those not chosen are hidden at first

/** Spans of one kind (free, busy or disabled), sorted by (row, start) and searched by bisection. */
export class Spans {
  readonly first: Int32Array;

  constructor(
    rows: number,
    readonly row: Numbers,
    readonly start: Numbers,
    readonly end: Numbers,
    readonly price: Numbers | null,
  ) {
    this.first = new Int32Array(rows + 1);
    for (let i = 0; i < row.length; i++) this.first[row[i] + 1]++;
    for (let r = 0; r < rows; r++) this.first[r + 1] += this.first[r];
  }

  get size(): number {
    return this.row.length;
  }

  /** Return the index of the first span of a row that ends after a time, or the row's end. */
  firstEndingAfter(row: number, time: number): number {
    let low = this.first[row];
    let high = this.first[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the index of the first span of a row that starts at a time or later, or the row's end. */
  firstStartingAt(row: number, time: number): number {
    let low = this.first[row];
    let high = this.first[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the index of the span of a row that contains a time, or -1. */
  spanAt(row: number, time: number): number {
    const i = this.firstEndingAfter(row, time);
    return i < this.first[row + 1] && this.start[i] <= time ? i : -1;
  }
}

/** Boxes as columns: a part, and the positions [top, bottom) of its rows. */
export interface Boxes {
  top: Int32Array;
  bottom: Int32Array;
  part: Int32Array;
}

/** The lowest and the highest price of the nodes of a tariff between consecutive edges. */
export interface Price {
  name: string;
  edge: Float64Array;
  low: Float32Array;
  high: Float32Array;
}

/** The data of the page, and which rows and items of it are visible. */
export class Scene {
  readonly free: Spans;
  readonly busy: Spans;
  readonly disabled: Spans;
  readonly rows: number;
  readonly parts: { row: Numbers; count: Numbers; start: Numbers; end: Numbers; cost: Numbers; item: Numbers };
  readonly items: { start: Numbers; finish: Numbers; group: Numbers; chosen: Uint8Array };
  /** The parts of item i are `partsByItem[firstPart[i]]` to `partsByItem[firstPart[i + 1] - 1]`. */
  readonly firstPart: Int32Array;
  readonly partsByItem: Int32Array;
  // By part: its lane, from 0, and the number of lanes that its row is divided into there. Both are
  // fractions if parts have heights: a part of half a row has two lanes.
  readonly hasHeights: boolean;
  readonly lane: Numbers;
  readonly lanes: Numbers;
  readonly used: Uint8Array; // by row: 1 if it has a part, visible or not
  readonly performance: Numbers;
  readonly prices: Price[];
  private readonly ids: Numbers;

  // The visible rows and boxes.
  order: Int32Array;
  position: Int32Array; // index of each row in `order`, or -1 if it is hidden
  boxes!: Boxes;
  showUnchosen: boolean; // if true, also items that were not chosen

  constructor(
    readonly about: Description,
    readonly columns: Record<string, Numbers>,
  ) {
    const c = columns;
    this.rows = about.nodes.count;
    this.free = new Spans(this.rows, c.free_row, c.free_start, c.free_end, c.free_price);
    this.busy = new Spans(this.rows, c.busy_row, c.busy_start, c.busy_end, null);
    const none = new Int32Array(0);
    this.disabled = new Spans(this.rows, c.disabled_row ?? none, c.disabled_start ?? none, c.disabled_end ?? none, null);
    this.parts = {
      row: c.part_row,
      count: c.part_count,
      start: c.part_start,
      end: c.part_end,
      cost: c.part_cost,
      item: c.part_item,
    };
    this.items = { start: c.item_start, finish: c.item_finish, group: c.item_group, chosen: c.item_chosen as Uint8Array };
    this.ids = c.node_id;
    this.performance = c.node_performance;
    this.prices = about.prices.map(({ name, column }) => ({
      name,
      edge: c[`${column}_edge`] as Float64Array,
      low: c[`${column}_low`] as Float32Array,
      high: c[`${column}_high`] as Float32Array,
    }));
    const size = this.parts.row.length;
    this.firstPart = new Int32Array(about.items.count + 1);
    for (let i = 0; i < size; i++) this.firstPart[this.parts.item[i] + 1]++;
    for (let k = 0; k < about.items.count; k++) this.firstPart[k + 1] += this.firstPart[k];
    this.partsByItem = new Int32Array(size);
    const next = this.firstPart.slice();
    for (let i = 0; i < size; i++) this.partsByItem[next[this.parts.item[i]]++] = i;
    this.hasHeights = !!c.part_lane;
    this.lane = c.part_lane ?? new Uint8Array(size);
    this.lanes = c.part_lanes ?? new Uint8Array(size).fill(1);
    this.used = new Uint8Array(this.rows);
    for (let i = 0; i < size; i++) this.used.fill(1, this.parts.row[i], this.parts.row[i] + this.parts.count[i]);
    this.order = Int32Array.from({ length: this.rows }, (_, row) => row);
    this.position = this.order.slice();
    this.showUnchosen = this.items.chosen.reduce((sum, each) => sum + Number(!each), 0) <= MAX_SHOWN_ALTERNATIVES;
    this.showRows(null);
  }

  /**
   * Assign lanes to visible parts that overlap on a row: each gets the first free lane.
   * A part of several rows starts at lane 0 again; overlaps with earlier parts are not resolved.
   */
  private assignLanes(): void {
    if (this.hasHeights) return;
    const { row, start, end, count, item } = this.parts; // sorted by (row, start)
    let last = -1; // the previous visible part
    let from = 0;
    let latest = -Infinity;
    let ends: number[] = [];
    const close = (until: number) => {
      for (let i = from; i < until; i++) this.lanes[i] = Math.min(ends.length, 255);
    };
    for (let i = 0; i < row.length; i++) {
      if (!this.isVisible(item[i])) {
        this.lane[i] = 0;
        continue;
      }
      const apart = last < 0 || row[i] !== row[last] || start[i] >= latest || count[i] > 1;
      last = i;
      if (apart) {
        close(i);
        [from, latest, ends] = [i, -Infinity, []];
      }
      let lane = ends.findIndex((each) => each <= start[i]);
      if (lane < 0) lane = ends.length;
      ends[lane] = end[i];
      this.lane[i] = Math.min(lane, 254);
      latest = Math.max(latest, end[i]);
    }
    close(row.length);
  }

  /** Show the rows that pass a test; null: all rows. */
  showRows(test: ((row: number) => boolean) | null): void {
    const kept: number[] = [];
    for (let row = 0; row < this.rows; row++) if (!test || test(row)) kept.push(row);
    this.order = Int32Array.from(kept);
    this.position = new Int32Array(this.rows).fill(-1);
    kept.forEach((row, k) => (this.position[row] = k));
    this.updateBoxes();
  }

  /** Recompute the boxes of all visible parts; adjacent rows of a part form one box. */
  updateBoxes(): void {
    this.assignLanes();
    const top: number[] = [];
    const bottom: number[] = [];
    const part: number[] = [];
    const { row, count, item } = this.parts;
    const whole = this.order.length === this.rows;
    for (let i = 0; i < row.length; i++) {
      if (!this.isVisible(item[i])) continue;
      const end = row[i] + count[i];
      for (let r = row[i]; r < end; ) {
        if (this.position[r] < 0) {
          r++;
          continue;
        }
        const begin = this.position[r];
        r = whole ? end : r + 1;
        while (r < end && this.position[r] >= 0) r++;
        top.push(begin);
        bottom.push(this.position[r - 1] + 1);
        part.push(i);
      }
    }
    this.boxes = { top: Int32Array.from(top), bottom: Int32Array.from(bottom), part: Int32Array.from(part) };
  }

  /** Return the reason for which a node is disabled at a time, or null if it is not. */
  reasonAt(row: number, time: number): string | null {
    const i = this.disabled.spanAt(row, time);
    return i < 0 ? null : this.about.reasons[this.columns.disabled_reason[i]];
  }

  nodeName(row: number): string {
    return this.about.nodes.names?.[row] ?? String(this.ids[row]);
  }

  itemName(i: number): string {
    return this.about.items.names?.[i] ?? `${this.about.items.noun} ${this.columns.item_number[i]}`;
  }

  partsOf(item: number): Int32Array {
    return this.partsByItem.subarray(this.firstPart[item], this.firstPart[item + 1]);
  }

  /** Return the number of nodes of an item. */
  nodeCount(item: number): number {
    let sum = 0;
    for (const part of this.partsOf(item)) sum += this.parts.count[part];
    return sum;
  }

  colourIndex(item: number): number {
    return this.items.group[item];
  }

  isVisible(item: number): boolean {
    return this.showUnchosen || !!this.items.chosen[item];
  }
}

/** Parse a filter of rows: names, parts of names or ranges of ids, separated by commas. */
export function parseRowFilter(scene: Scene, text: string): ((row: number) => boolean) | null {
  const wanted = text
    .split(",")
    .map((each) => each.trim().toLowerCase())
    .filter(Boolean);
  if (!wanted.length) return null;
  const named = scene.about.nodes.names !== null;
  const tests = wanted.map((each) => {
    const range = /^(\d+)\s*[-\u2013]\s*(\d+)$/.exec(each);
    if (range) {
      const [low, high] = [Number(range[1]), Number(range[2])];
      return (row: number) => {
        const id = scene.columns.node_id[row];
        return low <= id && id <= high;
      };
    }
    if (named) return (row: number) => scene.nodeName(row).toLowerCase().includes(each);
    return (row: number) => scene.nodeName(row) === each;
  });
  return (row) => tests.some((test) => test(row));
}

/** The visible range of times [x0, x1] and of row positions [y0, y1]. */
export class Viewport {
  x0: number;
  x1: number;
  y0 = 0;
  y1: number;

  constructor(
    private readonly first: number,
    private readonly last: number,
    public rows: number,
  ) {
    this.x0 = first;
    this.x1 = last;
    this.y1 = Math.max(rows, 1);
  }

  showAll(): void {
    [this.x0, this.x1, this.y0, this.y1] = [this.first, this.last, 0, Math.max(this.rows, 1)];
  }

  /**
   * Move and limit the ranges so that they lie within the content. The shortest range of times is
   * still well above the rounding error of its ends; the smallest range of rows is three.
   */
  clamp(): void {
    const span = this.last - this.first;
    const least = Math.max(span * 1e-7, Math.max(Math.abs(this.first), Math.abs(this.last)) * 1e-13);
    const wide = Math.min(Math.max(this.x1 - this.x0, least), span);
    this.x0 = Math.min(Math.max(this.x0, this.first), this.last - wide);
    this.x1 = this.x0 + wide;
    const rows = Math.max(this.rows, 1);
    const tall = Math.min(Math.max(this.y1 - this.y0, Math.min(3, rows)), rows);
    this.y0 = Math.min(Math.max(this.y0, 0), rows - tall);
    this.y1 = this.y0 + tall;
  }

  zoomTime(factor: number, about: number): void {
    this.x0 = about - (about - this.x0) * factor;
    this.x1 = about + (this.x1 - about) * factor;
    this.clamp();
  }

  zoomRows(factor: number, about: number): void {
    this.y0 = about - (about - this.y0) * factor;
    this.y1 = about + (this.y1 - about) * factor;
    this.clamp();
  }

  move(time: number, rows: number): void {
    const [wide, tall] = [this.x1 - this.x0, this.y1 - this.y0];
    this.x0 = Math.min(Math.max(this.x0 + time, this.first), this.last - wide);
    this.y0 = Math.min(Math.max(this.y0 + rows, 0), Math.max(this.rows, 1) - tall);
    this.x1 = this.x0 + wide;
    this.y1 = this.y0 + tall;
    this.clamp();
  }
}
