// Mouse, fingers, wheel and keys.
import type { App, Place } from "./app";
import { STRIP } from "./strip";

const STEP = 0.12; // of what is in sight
const DRAG = 4; // pixels that are no click any more

interface Finger {
  x: number;
  y: number;
}

export class Hands {
  private readonly fingers = new Map<number, Finger>();
  private mode: "none" | "press" | "move" | "range" | "strip" = "none";
  private origin: Finger = { x: 0, y: 0 };
  private begin: Place | null = null;

  constructor(
    private readonly app: App,
    private readonly canvas: HTMLCanvasElement,
  ) {
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.up(event, false));
    canvas.addEventListener("pointerleave", () => app.leave());
    canvas.addEventListener("dblclick", (event) => this.twice(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private where(event: MouseEvent): Finger {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = this.where(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, at);
    this.origin = at;
    if (this.fingers.size > 1) this.mode = "move";
    else if (at.y < STRIP) {
      this.mode = "strip";
      this.toStrip(at.x);
    } else {
      this.begin = this.app.place(at.x, at.y);
      this.mode = event.shiftKey && this.begin ? "range" : "press";
    }
  }

  private moved(event: PointerEvent): void {
    const { app } = this;
    const at = this.where(event);
    const before = this.fingers.get(event.pointerId);
    if (!before) {
      app.point(at.x, at.y);
      return;
    }
    if (this.mode === "strip") {
      this.toStrip(at.x);
    } else if (this.mode === "range" && this.begin) {
      const { left, right } = app.painter.frame;
      const end = app.place(Math.min(Math.max(at.x, left), right), this.begin.y);
      if (end) app.draft([this.begin, end]);
    } else if (this.fingers.size === 2) {
      this.pinch(event.pointerId, before, at);
    } else {
      if (this.mode === "press" && Math.hypot(at.x - this.origin.x, at.y - this.origin.y) > DRAG) {
        this.mode = "move";
        this.canvas.classList.add("grabbing");
        app.leave();
      }
      if (this.mode === "move") {
        app.sight.move((before.x - at.x) / app.painter.perTime, (before.y - at.y) / app.painter.perRow);
        app.redraw();
      }
    }
    this.fingers.set(event.pointerId, at);
  }

  private up(event: PointerEvent, done = true): void {
    const at = this.where(event);
    if (!this.fingers.delete(event.pointerId)) return;
    if (done && this.mode === "press") this.app.click(at.x, at.y);
    if (this.mode === "range" && this.begin) {
      const { left, right } = this.app.painter.frame;
      const end = this.app.place(Math.min(Math.max(at.x, left), right), this.begin.y);
      this.app.range(this.begin, done && end ? end : this.begin);
    }
    if (!this.fingers.size) this.mode = "none";
    this.canvas.classList.remove("grabbing");
  }

  /** Two fingers: what lies under them stays there. */
  private pinch(id: number, before: Finger, at: Finger): void {
    const { sight, painter } = this.app;
    const other = [...this.fingers].find(([each]) => each !== id)?.[1];
    if (!other) return;
    const { frame } = painter;
    const apart = (a: number, b: number) => Math.max(Math.abs(a - b), 1);
    const time = sight.x0 + (other.x - frame.left) / painter.perTime;
    const row = sight.y0 + (other.y - frame.top) / painter.perRow;
    const limit = (factor: number) => Math.min(Math.max(factor, 0.5), 2);
    if (apart(before.x, other.x) > 30) sight.zoomTime(limit(apart(before.x, other.x) / apart(at.x, other.x)), time);
    if (apart(before.y, other.y) > 30) sight.zoomRows(limit(apart(before.y, other.y) / apart(at.y, other.y)), row);
    this.app.redraw();
  }

  private toStrip(x: number): void {
    const { sight, painter, scene } = this.app;
    const { left, right } = painter.frame;
    const { first, last } = scene.about;
    const time = first + ((x - left) / (right - left)) * (last - first);
    sight.move(time - (sight.x0 + sight.x1) / 2, 0);
    this.app.redraw();
  }

  private twice(event: MouseEvent): void {
    const at = this.where(event);
    const place = this.app.place(at.x, at.y);
    if (!place) return;
    if (place.part >= 0) this.app.zoomTo(this.app.scene.parts.item[place.part]);
    else this.app.sight.zoomTime(0.4, place.time);
    this.app.redraw();
  }

  private wheel(event: WheelEvent): void {
    // In a notebook the wheel scrolls the notebook until the picture was clicked.
    if (window !== window.parent && document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    const { app } = this;
    const { sight, painter } = app;
    const at = this.where(event);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const factor = Math.min(Math.max(Math.exp(event.deltaY * unit * 0.0016), 0.5), 2);
    const { left, top } = painter.frame;
    const row = sight.y0 + (at.y - top) / painter.perRow;
    if (event.shiftKey) sight.move(0, ((event.deltaY || event.deltaX) * unit) / painter.perRow);
    else if (at.x < left) sight.zoomRows(factor, row);
    else {
      sight.zoomTime(factor, sight.x0 + (at.x - left) / painter.perTime);
      if (event.ctrlKey) sight.zoomRows(factor, row);
      if (event.deltaX) sight.move((event.deltaX * unit) / painter.perTime, 0);
    }
    app.point(at.x, at.y);
    app.redraw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const { sight } = app;
    const move = (x: number, y: number) => {
      sight.move(x * (sight.x1 - sight.x0), y * (sight.y1 - sight.y0));
      app.redraw();
    };
    const shift = event.shiftKey;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => (shift ? app.zoom(1.25, 1) : move(-STEP, 0)),
      ArrowRight: () => (shift ? app.zoom(0.8, 1) : move(STEP, 0)),
      ArrowUp: () => (shift ? app.zoom(1, 0.8) : move(0, -STEP)),
      ArrowDown: () => (shift ? app.zoom(1, 1.25) : move(0, STEP)),
      PageUp: () => move(0, -0.9),
      PageDown: () => move(0, 0.9),
      "+": () => app.zoom(1 / 1.5, 1),
      "=": () => app.zoom(1 / 1.5, 1),
      "-": () => app.zoom(1.5, 1),
      "−": () => app.zoom(1.5, 1),
      "0": () => app.all(),
      Home: () => app.all(),
      n: () => app.step(1),
      p: () => app.step(-1),
      u: () => app.toggleUsed(),
      f: () => app.focusSearch(),
      "/": () => app.focusSearch(),
      Enter: () => app.chosen >= 0 && app.zoomTo(app.chosen),
      Escape: () => app.select(-1),
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}
