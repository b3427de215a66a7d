// Times in words, and ticks at round ones: dates of a zone, days and hours, or plain numbers.
import type { Clock, Description } from "./data";

export interface Tick {
  at: number;
  text: string;
}

export interface Scale {
  label: string; // what stands beside the axis
  ticks(first: number, last: number, most: number): Tick[];
  /** What ticks leave out, such as the day: from when on it holds. */
  context(first: number, last: number, most: number): Tick[];
  text(time: number): string;
  /** A time as it is pointed at: no finer than what a pixel is. */
  near(time: number, pixel: number): string;
  length(span: number): string;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30.4 * DAY;
const YEAR = 365.25 * DAY;
// Lengths of steps; from MONTH on they are counted in the calendar.
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 3, 4, 7, 14].map((n) => n * DAY),
  ...[1, 3, 6].map((n) => n * MONTH),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((n) => n * YEAR),
];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

const two = (n: number) => String(n).padStart(2, "0");

export function number(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  const digits = size >= 1e6 ? 0 : size >= 1000 ? 2 : 6;
  const shown = size && (size < 1e-4 || size >= 1e15)
    ? value.toPrecision(4)
    : value.toLocaleString("en", digits === 6 ? { maximumSignificantDigits: 6 } : { maximumFractionDigits: digits });
  return shown.replace("-", "−");
}

/** A clock's part of a day: as fine as a step asks. */
function clockText(local: number, step: number): string {
  const within = ((local % DAY) + DAY) % DAY;
  const text = `${two(Math.floor(within / HOUR))}:${two(Math.floor(within / MINUTE) % 60)}`;
  if (step >= MINUTE) return text;
  const whole = `${text}:${two(Math.floor(within / SECOND) % 60)}`;
  return step >= SECOND ? whole : `${whole}.${String(Math.floor(within % SECOND)).padStart(3, "0")}`;
}

const dateText = (local: number) => new Date(local).toISOString().replace(/T.*/, "");

/** A duration in words: 1 d 04:30, 00:20:05. */
function lengthText(ms: number): string {
  if (!Number.isFinite(ms)) return number(ms);
  if (ms && Math.abs(ms) < SECOND) return `${number(ms)} ms`;
  const days = Math.floor(Math.abs(ms) / DAY);
  const rest = Math.abs(ms) % DAY;
  const fine = rest % MINUTE ? (rest % SECOND ? 1 : SECOND) : MINUTE;
  return `${ms < 0 ? "−" : ""}${days ? `${days} d ` : ""}${clockText(rest, fine)}${fine === MINUTE ? " h" : ""}`;
}

/** Round moments of local time in [low, high): those of the calendar, or multiples of a step. */
function rounds(step: number, low: number, high: number): number[] {
  const found: number[] = [];
  if (step >= MONTH) {
    const months = step >= YEAR ? 12 * Math.round(step / YEAR) : Math.round(step / MONTH);
    const start = new Date(low);
    let month = start.getUTCFullYear() * 12 + start.getUTCMonth();
    month = Math.floor(month / months) * months;
    for (;; month += months) {
      const at = Date.UTC(2000, month - 24000, 1);
      if (!(at < high)) return found;
      if (at >= low) found.push(at);
    }
  }
  const shift = step % (7 * DAY) === 0 ? 4 * DAY : 0; // weeks begin on Mondays
  for (let at = Math.ceil((low - shift) / step) * step + shift; at < high; at += step) found.push(at);
  return found;
}

const stepFor = (span: number, most: number) =>
  STEPS.find((step) => step * most >= span) ?? STEPS[STEPS.length - 1];

/** The nearest whole minute, second or millisecond, as fine as a pixel asks. */
function pointed(ms: number, pixel: number): number {
  const fine = pixel >= MINUTE ? MINUTE : pixel >= SECOND ? SECOND : 1;
  return Math.round(ms / fine) * fine;
}

/** Dates in a zone. */
class Dates implements Scale {
  label: string;
  private readonly from: number[];
  private readonly offset: number[];

  constructor(private readonly clock: Clock) {
    this.from = clock.offsets.map(([at]) => at);
    this.offset = clock.offsets.map(([, seconds]) => seconds * SECOND);
    this.label = clock.zone;
  }

  private ms(time: number): number {
    return this.clock.origin + time * this.clock.unit;
  }

  private time(ms: number): number {
    return (ms - this.clock.origin) / this.clock.unit;
  }

  private segment(ms: number): number {
    let low = 0;
    for (let high = this.from.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (this.from[middle] <= ms) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Round local moments as times: in each stretch of one offset by itself, so that an hour
   * which comes twice has two, and one which is left out none. */
  private rounds(step: number, first: number, last: number): { at: number; local: number }[] {
    const [low, high] = [this.ms(first), this.ms(last)];
    const found = [];
    for (let k = this.segment(low); k < this.from.length && this.from[k] <= high; k++) {
      const offset = this.offset[k];
      const begin = k ? Math.max(low, this.from[k]) : low;
      const end = Math.min(high, this.from[k + 1] ?? Infinity);
      for (const local of rounds(step, begin + offset, end + offset)) {
        found.push({ at: this.time(local - offset), local });
      }
    }
    return found;
  }

  private step(first: number, last: number, most: number): number {
    return stepFor((last - first) * this.clock.unit, most);
  }

  ticks(first: number, last: number, most: number): Tick[] {
    const step = this.step(first, last, most);
    const words = (local: number) => {
      if (step < DAY) return clockText(local, step);
      const date = dateText(local);
      return step < MONTH ? date.slice(-5) : step < YEAR ? date.slice(0, -3) : date.slice(0, -6);
    };
    return this.rounds(step, first, last).map(({ at, local }) => ({ at, text: words(local) }));
  }

  context(first: number, last: number, most: number): Tick[] {
    const step = this.step(first, last, most);
    if (step >= MONTH) return [];
    const unit = step < DAY ? DAY : YEAR;
    const words = (local: number) => {
      const date = dateText(local);
      return unit === DAY ? `${WEEKDAYS[new Date(local).getUTCDay()]} ${date}` : date.slice(0, -6);
    };
    const begin = this.ms(first) + this.offset[this.segment(this.ms(first))];
    return [
      { at: first, text: words(begin) },
      ...this.rounds(unit, first, last).map(({ at, local }) => ({ at, text: words(local) })),
    ];
  }

  text(time: number): string {
    if (!Number.isFinite(time)) return time > 0 ? "no end" : "–";
    const ms = Math.round(this.ms(time) * 1000) / 1000;
    const offset = this.offset[this.segment(ms)];
    const local = ms + offset;
    const fine = local % MINUTE ? (local % SECOND ? 1 : SECOND) : MINUTE;
    const size = Math.abs(offset);
    const odd = size % MINUTE ? `:${two(Math.floor(size / SECOND) % 60)}` : ""; // long ago
    const zone = `${offset < 0 ? "−" : "+"}${clockText(size, MINUTE)}${odd}`;
    return `${dateText(local)} ${clockText(local, fine)} ${zone}`;
  }

  near(time: number, pixel: number): string {
    return this.text(this.time(pointed(this.ms(time), pixel * this.clock.unit)));
  }

  length(span: number): string {
    return lengthText(span * this.clock.unit);
  }
}

/** Days and hours since time 0. */
class Elapsed implements Scale {
  label = "days and hours since time 0";

  constructor(private readonly unit: number) {}

  ticks(first: number, last: number, most: number): Tick[] {
    const step = Math.min(stepFor((last - first) * this.unit, most), 10 * YEAR);
    const length = step >= YEAR ? 1000 * DAY : step >= MONTH ? 100 * DAY : step;
    const found = [];
    for (let at = Math.ceil((first * this.unit) / length) * length; at < last * this.unit; at += length) {
      found.push({ at: at / this.unit, text: step >= DAY ? `${Math.round(at / DAY)} d` : clockText(at, step) });
    }
    return found;
  }

  context(first: number, last: number, most: number): Tick[] {
    if (stepFor((last - first) * this.unit, most) >= DAY) return [];
    const day = Math.floor((first * this.unit) / DAY);
    const found = [{ at: first, text: `day ${day}` }];
    for (let next = day + 1; next * DAY < last * this.unit; next++) {
      found.push({ at: (next * DAY) / this.unit, text: `day ${next}` });
    }
    return found;
  }

  text(time: number): string {
    return Number.isFinite(time) ? lengthText(time * this.unit) : "–";
  }

  near(time: number, pixel: number): string {
    return this.text(pointed(time * this.unit, pixel * this.unit) / this.unit);
  }

  length(span: number): string {
    return lengthText(span * this.unit);
  }
}

/** Plain numbers. */
class Plain implements Scale {
  label = "time, in the units of the slots";

  ticks(first: number, last: number, most: number): Tick[] {
    const raw = (last - first) / most;
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= raw * (1 - 1e-9)) ?? 10 * ten;
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    const found = [];
    for (let k = Math.ceil(first / step); k * step < last; k++) {
      const text = (k * step).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
      found.push({ at: k * step, text: text.replace("-", "−") });
    }
    return found;
  }

  context(): Tick[] {
    return [];
  }

  text(time: number): string {
    return time === Infinity ? "no end" : number(time);
  }

  near(time: number, pixel: number): string {
    const fine = 10 ** Math.floor(Math.log10(pixel));
    return number(Math.round(time / fine) * fine);
  }

  length(span: number): string {
    return number(span);
  }
}

export function scaleOf(given: Description): Scale {
  if (given.clock) return new Dates(given.clock);
  return given.seconds ? new Elapsed(given.seconds * SECOND) : new Plain();
}
