// What there is to see: spans by row, parts of windows, and which rows are shown.
import type { Description, Numbers } from "./data";

const CLEAR = 300; // of more alternatives, those not chosen are shown when asked for

/** Spans of one kind, sorted by (row, start): what is in sight is found by bisection. */
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

  /** The first span of a row that ends after a time. */
  from(row: number, time: number): number {
    let low = this.first[row];
    let high = this.first[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first span of a row that begins at a time or later. */
  until(row: number, time: number): number {
    let low = this.first[row];
    let high = this.first[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  at(row: number, time: number): number {
    const i = this.from(row, time);
    return i < this.first[row + 1] && this.start[i] <= time ? i : -1;
  }
}

/** A box: rows from `top` to before `bottom` in the order shown, and a part. */
export interface Boxes {
  top: Int32Array;
  bottom: Int32Array;
  part: Int32Array;
}

export class Scene {
  readonly free: Spans;
  readonly busy: Spans;
  readonly rows: number;
  readonly parts: { row: Numbers; count: Numbers; start: Numbers; end: Numbers; cost: Numbers; item: Numbers };
  readonly items: { start: Numbers; finish: Numbers; group: Numbers; chosen: Uint8Array };
  /** Of each item its parts: `part[firstPart[i]]` and the following. */
  readonly firstPart: Int32Array;
  readonly partOf: Int32Array;
  readonly lane: Uint8Array;
  readonly lanes: Uint8Array;
  readonly used: Uint8Array;
  readonly performance: Numbers;
  private readonly ids: Numbers;

  // What is shown of it.
  order: Int32Array;
  place: Int32Array; // of each row in the order, or -1
  boxes!: Boxes;
  showRest: boolean; // also what was not chosen

  constructor(
    readonly about: Description,
    readonly columns: Record<string, Numbers>,
  ) {
    const c = columns;
    this.rows = about.nodes.count;
    this.free = new Spans(this.rows, c.free_row, c.free_start, c.free_end, c.free_price);
    this.busy = new Spans(this.rows, c.busy_row, c.busy_start, c.busy_end, null);
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
    const size = this.parts.row.length;
    this.firstPart = new Int32Array(about.items.count + 1);
    for (let i = 0; i < size; i++) this.firstPart[this.parts.item[i] + 1]++;
    for (let k = 0; k < about.items.count; k++) this.firstPart[k + 1] += this.firstPart[k];
    this.partOf = new Int32Array(size);
    const next = this.firstPart.slice();
    for (let i = 0; i < size; i++) this.partOf[next[this.parts.item[i]]++] = i;
    this.lane = new Uint8Array(size);
    this.lanes = new Uint8Array(size).fill(1);
    this.used = new Uint8Array(this.rows);
    for (let i = 0; i < size; i++) this.used.fill(1, this.parts.row[i], this.parts.row[i] + this.parts.count[i]);
    this.order = Int32Array.from({ length: this.rows }, (_, row) => row);
    this.place = this.order.slice();
    this.showRest = this.items.chosen.reduce((sum, each) => sum + Number(!each), 0) <= CLEAR;
    this.show(null);
  }

  /** Parts shown that overlap on a row share it out: each in the first lane that is empty. */
  private arrange(): void {
    const { row, start, end, count, item } = this.parts; // sorted by (row, start)
    let last = -1; // the part shown before
    let from = 0;
    let latest = -Infinity;
    let ends: number[] = [];
    const close = (until: number) => {
      for (let i = from; i < until; i++) this.lanes[i] = Math.min(ends.length, 255);
    };
    for (let i = 0; i < row.length; i++) {
      if (!this.visible(item[i])) {
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

  /** Show the rows that a test lets through, or all. */
  show(test: ((row: number) => boolean) | null): void {
    const kept: number[] = [];
    for (let row = 0; row < this.rows; row++) if (!test || test(row)) kept.push(row);
    this.order = Int32Array.from(kept);
    this.place = new Int32Array(this.rows).fill(-1);
    kept.forEach((row, k) => (this.place[row] = k));
    this.box();
  }

  /** Boxes of all parts in the rows shown; rows that stand together make one. */
  box(): void {
    this.arrange();
    const top: number[] = [];
    const bottom: number[] = [];
    const part: number[] = [];
    const { row, count, item } = this.parts;
    const whole = this.order.length === this.rows;
    for (let i = 0; i < row.length; i++) {
      if (!this.visible(item[i])) continue;
      const end = row[i] + count[i];
      for (let r = row[i]; r < end; ) {
        if (this.place[r] < 0) {
          r++;
          continue;
        }
        const begin = this.place[r];
        r = whole ? end : r + 1;
        while (r < end && this.place[r] >= 0) r++;
        top.push(begin);
        bottom.push(this.place[r - 1] + 1);
        part.push(i);
      }
    }
    this.boxes = { top: Int32Array.from(top), bottom: Int32Array.from(bottom), part: Int32Array.from(part) };
  }

  node(row: number): string {
    return this.about.nodes.names?.[row] ?? String(this.ids[row]);
  }

  item(i: number): string {
    return this.about.items.names?.[i] ?? `${this.about.items.noun} ${this.columns.item_number[i]}`;
  }

  partsOf(item: number): Int32Array {
    return this.partOf.subarray(this.firstPart[item], this.firstPart[item + 1]);
  }

  /** The nodes of an item. */
  width(item: number): number {
    let sum = 0;
    for (const part of this.partsOf(item)) sum += this.parts.count[part];
    return sum;
  }

  colour(item: number): number {
    return this.items.group[item];
  }

  visible(item: number): boolean {
    return this.showRest || !!this.items.chosen[item];
  }
}

/** A test of rows by what a reader types: names, parts of names, ranges of ids. */
export function rowTest(scene: Scene, text: string): ((row: number) => boolean) | null {
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
    if (named) return (row: number) => scene.node(row).toLowerCase().includes(each);
    return (row: number) => scene.node(row) === each;
  });
  return (row) => tests.some((test) => test(row));
}

/** What is in sight: times across, rows downwards. */
export class Sight {
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

  all(): void {
    [this.x0, this.x1, this.y0, this.y1] = [this.first, this.last, 0, Math.max(this.rows, 1)];
  }

  /** Bring it back to where something is. */
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
