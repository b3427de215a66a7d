// Time scales: text of times and durations, and ticks at round times. Times are dates in a zone,
// days and hours, or plain numbers.
import type { Clock, Description } from "./data";

export interface Tick {
  at: number;
  text: string;
}

export interface Scale {
  label: string; // next to the axis
  ticks(first: number, last: number, most: number): Tick[];
  /** Return what the ticks leave out, such as the day, at the times from which it holds. */
  context(first: number, last: number, most: number): Tick[];
  text(time: number): string;
  /** Return the time under a pointer, rounded to the width of a pixel. */
  pointerText(time: number, pixel: number): string;
  durationText(span: number): string;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30.4 * DAY;
const YEAR = 365.25 * DAY;
// Distances of ticks in ms; from MONTH on, ticks are the first days of months or years.
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

const twoDigits = (n: number) => String(n).padStart(2, "0");

export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  const digits = size >= 1e6 ? 0 : size >= 1000 ? 2 : 6;
  const shown = size && (size < 1e-4 || size >= 1e15)
    ? value.toPrecision(4)
    : value.toLocaleString("en", digits === 6 ? { maximumSignificantDigits: 6 } : { maximumFractionDigits: digits });
  return shown.replace("-", "−");
}

/** Return the time of day, with minutes, seconds or milliseconds according to a step. */
function clockText(local: number, step: number): string {
  const within = ((local % DAY) + DAY) % DAY;
  const text = `${twoDigits(Math.floor(within / HOUR))}:${twoDigits(Math.floor(within / MINUTE) % 60)}`;
  if (step >= MINUTE) return text;
  const whole = `${text}:${twoDigits(Math.floor(within / SECOND) % 60)}`;
  return step >= SECOND ? whole : `${whole}.${String(Math.floor(within % SECOND)).padStart(3, "0")}`;
}

const dateText = (local: number) => new Date(local).toISOString().replace(/T.*/, "");

/** Return a duration as text: 1 d 04:30 h, 00:20:05. */
function lengthText(ms: number): string {
  if (!Number.isFinite(ms)) return formatNumber(ms);
  if (ms && Math.abs(ms) < SECOND) return `${formatNumber(ms)} ms`;
  const days = Math.floor(Math.abs(ms) / DAY);
  const rest = Math.abs(ms) % DAY;
  const fine = rest % MINUTE ? (rest % SECOND ? 1 : SECOND) : MINUTE;
  return `${ms < 0 ? "−" : ""}${days ? `${days} d ` : ""}${clockText(rest, fine)}${fine === MINUTE ? " h" : ""}`;
}

/** Return the round local times in [low, high): dates of the calendar, or multiples of a step. */
function roundTimes(step: number, low: number, high: number): number[] {
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
  const shift = step % (7 * DAY) === 0 ? 4 * DAY : 0; // weeks start on Monday
  for (let at = Math.ceil((low - shift) / step) * step + shift; at < high; at += step) found.push(at);
  return found;
}

const chooseStep = (span: number, most: number) =>
  STEPS.find((step) => step * most >= span) ?? STEPS[STEPS.length - 1];

/** Round to a whole minute, second or millisecond, according to the width of a pixel. */
function roundToPixel(ms: number, pixel: number): number {
  const fine = pixel >= MINUTE ? MINUTE : pixel >= SECOND ? SECOND : 1;
  return Math.round(ms / fine) * fine;
}

/** Dates in a time zone. */
class DateScale implements Scale {
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

  /** Return the round local times. Each period of one UTC offset is handled separately, so an
   * hour that occurs twice has two ticks, and an hour that is skipped has none. */
  private roundTimes(step: number, first: number, last: number): { at: number; local: number }[] {
    const [low, high] = [this.ms(first), this.ms(last)];
    const found = [];
    for (let k = this.segment(low); k < this.from.length && this.from[k] <= high; k++) {
      const offset = this.offset[k];
      const begin = k ? Math.max(low, this.from[k]) : low;
      const end = Math.min(high, this.from[k + 1] ?? Infinity);
      for (const local of roundTimes(step, begin + offset, end + offset)) {
        found.push({ at: this.time(local - offset), local });
      }
    }
    return found;
  }

  private step(first: number, last: number, most: number): number {
    return chooseStep((last - first) * this.clock.unit, most);
  }

  ticks(first: number, last: number, most: number): Tick[] {
    const step = this.step(first, last, most);
    const words = (local: number) => {
      if (step < DAY) return clockText(local, step);
      const date = dateText(local);
      return step < MONTH ? date.slice(-5) : step < YEAR ? date.slice(0, -3) : date.slice(0, -6);
    };
    return this.roundTimes(step, first, last).map(({ at, local }) => ({ at, text: words(local) }));
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
      ...this.roundTimes(unit, first, last).map(({ at, local }) => ({ at, text: words(local) })),
    ];
  }

  text(time: number): string {
    if (!Number.isFinite(time)) return time > 0 ? "no end" : "–";
    const ms = Math.round(this.ms(time) * 1000) / 1000;
    const offset = this.offset[this.segment(ms)];
    const local = ms + offset;
    const fine = local % MINUTE ? (local % SECOND ? 1 : SECOND) : MINUTE;
    const size = Math.abs(offset);
    const odd = size % MINUTE ? `:${twoDigits(Math.floor(size / SECOND) % 60)}` : ""; // historical offsets have seconds
    const zone = `${offset < 0 ? "−" : "+"}${clockText(size, MINUTE)}${odd}`;
    return `${dateText(local)} ${clockText(local, fine)} ${zone}`;
  }

  pointerText(time: number, pixel: number): string {
    return this.text(this.time(roundToPixel(this.ms(time), pixel * this.clock.unit)));
  }

  durationText(span: number): string {
    return lengthText(span * this.clock.unit);
  }
}

/** Days and hours since time 0. */
class ElapsedScale implements Scale {
  label = "days and hours since time 0";

  constructor(private readonly unit: number) {}

  ticks(first: number, last: number, most: number): Tick[] {
    const step = Math.min(chooseStep((last - first) * this.unit, most), 10 * YEAR);
    const length = step >= YEAR ? 1000 * DAY : step >= MONTH ? 100 * DAY : step;
    const found = [];
    for (let at = Math.ceil((first * this.unit) / length) * length; at < last * this.unit; at += length) {
      found.push({ at: at / this.unit, text: step >= DAY ? `${Math.round(at / DAY)} d` : clockText(at, step) });
    }
    return found;
  }

  context(first: number, last: number, most: number): Tick[] {
    if (chooseStep((last - first) * this.unit, most) >= DAY) return [];
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

  pointerText(time: number, pixel: number): string {
    return this.text(roundToPixel(time * this.unit, pixel * this.unit) / this.unit);
  }

  durationText(span: number): string {
    return lengthText(span * this.unit);
  }
}

/** Plain numbers, in the units of the slots. */
class NumberScale implements Scale {
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
    return time === Infinity ? "no end" : formatNumber(time);
  }

  pointerText(time: number, pixel: number): string {
    const fine = 10 ** Math.floor(Math.log10(pixel));
    return formatNumber(Math.round(time / fine) * fine);
  }

  durationText(span: number): string {
    return formatNumber(span);
  }
}

export function createScale(given: Description): Scale {
  if (given.clock) return new DateScale(given.clock);
  return given.seconds ? new ElapsedScale(given.seconds * SECOND) : new NumberScale();
}
