// Elements in few words. All text is text: nothing here reads markup.

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A name as its owner wrote it, which does not turn the text around it. */
export const name = (text: string) => el("bdi", {}, text);

export function button(text: string, says: string, act: () => void): HTMLButtonElement {
  const made = el("button", { type: "button", title: says }, text);
  if (text !== says && !says.startsWith(text)) made.setAttribute("aria-label", says);
  made.addEventListener("click", act);
  return made;
}

/** A small square of a window's look; its colour comes by script, for style attributes are
 * forbidden. */
export function swatch(colour: string, full = true): HTMLElement {
  const made = el("span", { class: full ? "swatch" : "swatch hollow", "aria-hidden": "true" });
  if (full) made.style.background = colour;
  else made.style.borderColor = colour;
  return made;
}

export const counted = (n: number, noun: string) =>
  `${n.toLocaleString("en")} ${n === 1 ? noun : `${noun}s`}`;
