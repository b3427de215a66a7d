// What is told of a window, a node, a place: the same words on the card, in the panel, in the
// table.
import type { Field } from "./data";
import { name } from "./dom";
import { number, type Scale } from "./scale";
import type { Scene } from "./scene";

export type Fact = [name: string, value: string];

const title = (text: string) => text.replaceAll("_", " ");

export class Words {
  constructor(
    private readonly scene: Scene,
    private readonly scale: Scale,
  ) {}

  value(field: Field, item: number): string {
    const value = this.scene.columns[field.column][item];
    if (Number.isNaN(value)) return "–";
    if (field.kind === "time") return this.scale.text(value);
    return field.kind === "span" ? this.scale.length(value) : number(value);
  }

  group(item: number): Fact | null {
    const { groups } = this.scene.about;
    if (!groups || groups.noun === this.scene.about.items.noun) return null; // names themselves
    return [groups.noun, groups.names[this.scene.items.group[item]]];
  }

  item(i: number): Fact[] {
    const { scene, scale } = this;
    const { start, finish, chosen } = scene.items;
    const facts: Fact[] = [];
    const group = this.group(i);
    if (group) facts.push(group);
    facts.push(["start", scale.text(start[i])], ["finish", scale.text(finish[i])]);
    facts.push([`${scene.about.nodes.noun}s`, number(scene.width(i))]);
    for (const field of scene.about.items.fields) {
      const value = this.value(field, i);
      if (value !== "–") facts.push([title(field.name), value]);
    }
    if (!chosen[i]) facts.push(["state", "an alternative that was not chosen"]);
    return facts;
  }

  slot(i: number): Fact[] {
    const { scale } = this;
    const { start, end, price } = this.scene.free;
    const facts: Fact[] = [
      ["free from", scale.text(start[i])],
      ["until", scale.text(end[i])],
    ];
    if (Number.isFinite(end[i])) facts.push(["length", scale.length(end[i] - start[i])]);
    if (price && !Number.isNaN(price[i])) facts.push(["price", number(price[i])]);
    return facts;
  }

  /** A node by its name, or by its number and what it is. */
  called(row: number): (HTMLElement | string)[] {
    const { names, noun } = this.scene.about.nodes;
    return [...(names ? [] : [`${noun} `]), name(this.scene.node(row))];
  }

  node(row: number): Fact[] {
    const performance = this.scene.performance[row];
    return Number.isNaN(performance) ? [] : [["performance", number(performance)]];
  }

  /** What a node is at a time where it is in no free slot. */
  otherwise(row: number, time: number): string {
    const { scene } = this;
    const { rest } = scene.about;
    if (scene.busy.at(row, time) >= 0) return "busy";
    return rest === "blank" ? "nothing is known" : rest;
  }

  heading(field: Field): string {
    return title(field.name);
  }
}
