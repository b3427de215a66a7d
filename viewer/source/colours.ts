// The colours of items are those of Okabe and Ito, in variants with enough contrast on light
// and on dark; they are distinguishable under every kind of colour blindness. All other colours
// are read from the style sheet.

export interface Colours {
  back: string;
  ink: string;
  faint: string;
  line: string;
  free: string;
  busy: string;
  disabled: string;
  accent: string;
  windows: string[];
}

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DARK = ["#56b4e9", "#ff8a47", "#2cc295", "#e79cc5", "#f2b93b", "#b9d9f5"];

/** Read the colours of the current theme from the custom properties of an element. */
export function readColours(root: HTMLElement): Colours {
  const style = getComputedStyle(root);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    back: read("back"),
    ink: read("ink"),
    faint: read("faint"),
    line: read("line"),
    free: read("free"),
    busy: read("busy"),
    disabled: read("disabled"),
    accent: read("accent"),
    windows: read("windows") === "dark" ? DARK : LIGHT,
  };
}

/** Return the components of a colour of the form #rrggbb. */
export function parseRgb(colour: string): [number, number, number] {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return [r, g, b];
}

/** Return the relative luminance of a colour, from 0 to 1, as WCAG defines it. */
export function luminance(colour: string): number {
  const [r, g, b] = parseRgb(colour).map((each) => {
    const c = each / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Return black or white, whichever is readable on a colour. */
export const textColourOn = (colour: string) => (luminance(colour) > 0.19 ? "#10151b" : "#ffffff");

/** Return a colour darkened (`by` < 0) or lightened, for outlines. */
export function shade(colour: string, by: number): string {
  const toward = by < 0 ? 0 : 255;
  const mixed = parseRgb(colour).map((c) => Math.round(c + (toward - c) * Math.abs(by)));
  return `rgb(${mixed.join(",")})`;
}
