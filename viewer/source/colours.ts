// Colours: Okabe and Ito's, which stay apart under every kind of colour blindness, as they
// have contrast on light and on dark. The rest comes from the style sheet.

export interface Colours {
  back: string;
  ink: string;
  faint: string;
  line: string;
  free: string;
  busy: string;
  accent: string;
  windows: string[];
}

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DARK = ["#56b4e9", "#ff8a47", "#2cc295", "#e79cc5", "#f2b93b", "#b9d9f5"];

export function coloursOf(root: HTMLElement): Colours {
  const style = getComputedStyle(root);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    back: of("back"),
    ink: of("ink"),
    faint: of("faint"),
    line: of("line"),
    free: of("free"),
    busy: of("busy"),
    accent: of("accent"),
    windows: of("windows") === "dark" ? DARK : LIGHT,
  };
}

export function rgb(colour: string): [number, number, number] {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return [r, g, b];
}

export function luminance(colour: string): number {
  const [r, g, b] = rgb(colour).map((each) => {
    const c = each / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white: what can be read on a colour. */
export const onto = (colour: string) => (luminance(colour) > 0.19 ? "#10151b" : "#ffffff");

/** The same colour, darker or lighter: for outlines. */
export function shade(colour: string, by: number): string {
  const toward = by < 0 ? 0 : 255;
  const mixed = rgb(colour).map((c) => Math.round(c + (toward - c) * Math.abs(by)));
  return `rgb(${mixed.join(",")})`;
}
