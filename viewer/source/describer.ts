// Facts about items, slots and nodes as text, the same on the card, in the panel and in the
// table.
import type { Field } from "./data";
import { isolated } from "./dom";
import { formatNumber, type Scale } from "./scale";
import type { Scene } from "./scene";

export type Fact = [name: string, value: string];

const title = (text: string) => text.replaceAll("_", " ");

/** Formats facts as pairs of a name and a value. */
export class Describer {
  constructor(
    private readonly scene: Scene,
    private readonly scale: Scale,
  ) {}

  fieldText(field: Field, item: number): string {
    const value = this.scene.columns[field.column][item];
    if (Number.isNaN(value)) return "–";
    if (field.kind === "time") return this.scale.text(value);
    return field.kind === "span" ? this.scale.durationText(value) : formatNumber(value);
  }

  groupFact(item: number): Fact | null {
    const { groups } = this.scene.about;
    if (!groups || groups.noun === this.scene.about.items.noun) return null; // the item's name is its group
    return [groups.noun, groups.names[this.scene.items.group[item]]];
  }

  itemFacts(i: number): Fact[] {
    const { scene, scale } = this;
    const { start, finish, chosen } = scene.items;
    const facts: Fact[] = [];
    const group = this.groupFact(i);
    if (group) facts.push(group);
    facts.push(["start", scale.text(start[i])], ["finish", scale.text(finish[i])]);
    facts.push([`${scene.about.nodes.noun}s`, formatNumber(scene.nodeCount(i))]);
    for (const field of scene.about.items.fields) {
      const value = this.fieldText(field, i);
      if (value !== "–") facts.push([title(field.name), value]);
    }
    if (!chosen[i]) facts.push(["state", "an alternative that was not chosen"]);
    return facts;
  }

  slotFacts(i: number): Fact[] {
    const { scale } = this;
    const { start, end, price } = this.scene.free;
    const facts: Fact[] = [
      ["free from", scale.text(start[i])],
      ["until", scale.text(end[i])],
    ];
    if (Number.isFinite(end[i])) facts.push(["length", scale.durationText(end[i] - start[i])]);
    if (price && !Number.isNaN(price[i])) facts.push(["price", formatNumber(price[i])]);
    return facts;
  }

  /** Return the reason and the span for which a node is disabled at a time, if it is. */
  disabledFacts(row: number, time: number): Fact[] {
    const { scene, scale } = this;
    const reason = scene.reasonAt(row, time);
    if (reason === null) return [];
    const i = scene.disabled.spanAt(row, time);
    const facts: Fact[] = [["disabled for", reason]];
    if (Number.isFinite(scene.disabled.start[i])) facts.push(["from", scale.text(scene.disabled.start[i])]);
    facts.push(["until", Number.isFinite(scene.disabled.end[i]) ? scale.text(scene.disabled.end[i]) : "enabled again"]);
    return facts;
  }

  /** Return a node's name, or the noun and its number. */
  nodeLabel(row: number): (HTMLElement | string)[] {
    const { names, noun } = this.scene.about.nodes;
    return [...(names ? [] : [`${noun} `]), isolated(this.scene.nodeName(row))];
  }

  nodeFacts(row: number): Fact[] {
    const performance = this.scene.performance[row];
    return Number.isNaN(performance) ? [] : [["performance", formatNumber(performance)]];
  }

  /** Return the state of a node at a time outside of its free slots. */
  stateAt(row: number, time: number): string {
    const { scene } = this;
    const { rest } = scene.about;
    if (scene.disabled.spanAt(row, time) >= 0) return "disabled";
    if (scene.busy.spanAt(row, time) >= 0) return "busy";
    return rest === "blank" ? "unknown" : rest;
  }

  heading(field: Field): string {
    return title(field.name);
  }
}
