// Functions that create elements. Text is inserted as text and never parsed as markup.

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Return an element with a name that cannot change the direction of the text around it. */
export const isolated = (text: string) => el("bdi", {}, text);

export function button(text: string, label: string, onClick: () => void): HTMLButtonElement {
  const element = el("button", { type: "button", title: label }, text);
  if (text !== label && !label.startsWith(text)) element.setAttribute("aria-label", label);
  element.addEventListener("click", onClick);
  return element;
}

/** Return a small square in a window's colour, filled or outlined. The colour is set by the
 * script because the page's policy forbids style attributes. */
export function swatch(colour: string, full = true): HTMLElement {
  const element = el("span", { class: full ? "swatch" : "swatch hollow", "aria-hidden": "true" });
  if (full) element.style.background = colour;
  else element.style.borderColor = colour;
  return element;
}

export const countText = (n: number, noun: string) =>
  `${n.toLocaleString("en")} ${n === 1 ? noun : `${noun}s`}`;
