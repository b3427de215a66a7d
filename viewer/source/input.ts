// Input by mouse, touch, wheel and keyboard.
import type { App, PointerPosition } from "./app";
import { OVERVIEW_HEIGHT } from "./overview";

const PAN_STEP = 0.12; // share of the visible range
const DRAG_THRESHOLD = 4; // pixels of movement from which a press is a drag

interface Point {
  x: number;
  y: number;
}

/** Translates events of the canvas into actions of the application. */
export class InputHandler {
  private readonly pointers = new Map<number, Point>();
  private mode: "none" | "press" | "move" | "range" | "overview" = "none";
  private origin: Point = { x: 0, y: 0 };
  private begin: PointerPosition | null = null;

  constructor(
    private readonly app: App,
    private readonly canvas: HTMLCanvasElement,
  ) {
    canvas.addEventListener("pointerdown", (event) => this.onPointerDown(event));
    canvas.addEventListener("pointermove", (event) => this.onPointerMove(event));
    canvas.addEventListener("pointerup", (event) => this.onPointerUp(event));
    canvas.addEventListener("pointercancel", (event) => this.onPointerUp(event, false));
    canvas.addEventListener("pointerleave", () => app.onPointerLeave());
    canvas.addEventListener("dblclick", (event) => this.onDoubleClick(event));
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  private pointOf(event: MouseEvent): Point {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private onPointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const at = this.pointOf(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, at);
    this.origin = at;
    if (this.pointers.size > 1) this.mode = "move";
    else if (at.y < OVERVIEW_HEIGHT) {
      this.mode = "overview";
      this.centreOn(at.x);
    } else {
      this.begin = this.app.locate(at.x, at.y);
      this.mode = event.shiftKey && this.begin ? "range" : "press";
    }
  }

  private onPointerMove(event: PointerEvent): void {
    const { app } = this;
    const at = this.pointOf(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      app.onPointerMove(at.x, at.y);
      return;
    }
    if (this.mode === "overview") {
      this.centreOn(at.x);
    } else if (this.mode === "range" && this.begin) {
      const { left, right } = app.painter.frame;
      const end = app.locate(Math.min(Math.max(at.x, left), right), this.begin.y);
      if (end) app.showRange([this.begin, end]);
    } else if (this.pointers.size === 2) {
      this.pinch(event.pointerId, before, at);
    } else {
      if (this.mode === "press" && Math.hypot(at.x - this.origin.x, at.y - this.origin.y) > DRAG_THRESHOLD) {
        this.mode = "move";
        this.canvas.classList.add("grabbing");
        app.onPointerLeave();
      }
      if (this.mode === "move") {
        app.viewport.move((before.x - at.x) / app.painter.pixelsPerTime, (before.y - at.y) / app.painter.pixelsPerRow);
        app.redraw();
      }
    }
    this.pointers.set(event.pointerId, at);
  }

  private onPointerUp(event: PointerEvent, done = true): void {
    const at = this.pointOf(event);
    if (!this.pointers.delete(event.pointerId)) return;
    if (done && this.mode === "press") this.app.onClick(at.x, at.y);
    if (this.mode === "range" && this.begin) {
      const { left, right } = this.app.painter.frame;
      const end = this.app.locate(Math.min(Math.max(at.x, left), right), this.begin.y);
      this.app.zoomToRange(this.begin, done && end ? end : this.begin);
    }
    if (!this.pointers.size) this.mode = "none";
    this.canvas.classList.remove("grabbing");
  }

  /** Zoom with two fingers: the times and rows under them stay there. */
  private pinch(id: number, before: Point, at: Point): void {
    const { viewport, painter } = this.app;
    const other = [...this.pointers].find(([each]) => each !== id)?.[1];
    if (!other) return;
    const { frame } = painter;
    const apart = (a: number, b: number) => Math.max(Math.abs(a - b), 1);
    const time = viewport.x0 + (other.x - frame.left) / painter.pixelsPerTime;
    const row = viewport.y0 + (other.y - frame.top) / painter.pixelsPerRow;
    const limit = (factor: number) => Math.min(Math.max(factor, 0.5), 2);
    if (apart(before.x, other.x) > 30) viewport.zoomTime(limit(apart(before.x, other.x) / apart(at.x, other.x)), time);
    if (apart(before.y, other.y) > 30) viewport.zoomRows(limit(apart(before.y, other.y) / apart(at.y, other.y)), row);
    this.app.redraw();
  }

  private centreOn(x: number): void {
    const { viewport, painter, scene } = this.app;
    const { left, right } = painter.frame;
    const { first, last } = scene.about;
    const time = first + ((x - left) / (right - left)) * (last - first);
    viewport.move(time - (viewport.x0 + viewport.x1) / 2, 0);
    this.app.redraw();
  }

  private onDoubleClick(event: MouseEvent): void {
    const at = this.pointOf(event);
    const place = this.app.locate(at.x, at.y);
    if (!place) return;
    if (place.part >= 0) this.app.zoomTo(this.app.scene.parts.item[place.part]);
    else this.app.viewport.zoomTime(0.4, place.time);
    this.app.redraw();
  }

  private onWheel(event: WheelEvent): void {
    // In a notebook the wheel scrolls the notebook unless the picture has the focus.
    if (window !== window.parent && document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    const { app } = this;
    const { viewport, painter } = app;
    const at = this.pointOf(event);
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const factor = Math.min(Math.max(Math.exp(event.deltaY * unit * 0.0016), 0.5), 2);
    const { left, top } = painter.frame;
    const row = viewport.y0 + (at.y - top) / painter.pixelsPerRow;
    if (event.shiftKey) viewport.move(0, ((event.deltaY || event.deltaX) * unit) / painter.pixelsPerRow);
    else if (at.x < left) viewport.zoomRows(factor, row);
    else {
      viewport.zoomTime(factor, viewport.x0 + (at.x - left) / painter.pixelsPerTime);
      if (event.ctrlKey) viewport.zoomRows(factor, row);
      if (event.deltaX) viewport.move((event.deltaX * unit) / painter.pixelsPerTime, 0);
    }
    app.onPointerMove(at.x, at.y);
    app.redraw();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { app } = this;
    const { viewport } = app;
    const move = (x: number, y: number) => {
      viewport.move(x * (viewport.x1 - viewport.x0), y * (viewport.y1 - viewport.y0));
      app.redraw();
    };
    const shift = event.shiftKey;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => (shift ? app.zoom(1.25, 1) : move(-PAN_STEP, 0)),
      ArrowRight: () => (shift ? app.zoom(0.8, 1) : move(PAN_STEP, 0)),
      ArrowUp: () => (shift ? app.zoom(1, 0.8) : move(0, -PAN_STEP)),
      ArrowDown: () => (shift ? app.zoom(1, 1.25) : move(0, PAN_STEP)),
      PageUp: () => move(0, -0.9),
      PageDown: () => move(0, 0.9),
      "+": () => app.zoom(1 / 1.5, 1),
      "=": () => app.zoom(1 / 1.5, 1),
      "-": () => app.zoom(1.5, 1),
      "−": () => app.zoom(1.5, 1),
      "0": () => app.showAll(),
      Home: () => app.showAll(),
      n: () => app.step(1),
      p: () => app.step(-1),
      u: () => app.toggleUsed(),
      f: () => app.focusSearch(),
      "/": () => app.focusSearch(),
      Enter: () => app.chosen >= 0 && app.zoomTo(app.chosen),
      Escape: () => app.select(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
