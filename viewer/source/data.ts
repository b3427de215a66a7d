// The data of the page: a description in JSON, and columns of numbers in one packed text. Both
// are written by src/slotkern/viewer/packing.py.

export type Numbers = Float64Array | Float32Array | Int32Array | Uint8Array;
type Kind = "f8" | "f4" | "i4" | "u1";

export interface Clock {
  origin: number; // ms since 1970 at time 0
  unit: number; // ms per time unit
  zone: string;
  offsets: [number, number][]; // (ms since 1970 from which it holds, seconds added to UTC)
}

export interface Field {
  name: string;
  kind: "time" | "span" | "number";
  column: string;
}

export interface Description {
  title: string;
  rest: "busy" | "free" | "blank"; // the state of a node outside of all spans
  first: number;
  last: number;
  clock: Clock | null;
  seconds: number | null; // without a clock: seconds per time unit, or null if unknown
  nodes: { noun: string; count: number; names: string[] | null };
  items: { noun: string; count: number; names: string[] | null; fields: Field[] };
  groups: { noun: string; names: string[] } | null;
  reasons: string[]; // of disabled spans; empty: no node is disabled
  prices: { name: string; column: string }[]; // by tariff: columns _edge, _low and _high
  marks: { time: number; text: string }[];
  columns: Record<string, { kind: Kind; length: number }>;
}

const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u1: Uint8Array };

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const decoder = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };
  if (decoder.fromBase64) return decoder.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Unpack the columns by name. In each column the first bytes of all numbers come first, then
 * the second bytes, and so on. */
export async function unpack(
  columns: Description["columns"],
  text: string,
): Promise<Record<string, Numbers>> {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found: Record<string, Numbers> = {};
  let at = 0;
  for (const [name, { kind, length }] of Object.entries(columns)) {
    const size = ARRAYS[kind].BYTES_PER_ELEMENT;
    const mine = new Uint8Array(size * length);
    for (let byte = 0; byte < size; byte++) {
      for (let i = byte; i < mine.length; i += size) mine[i] = bytes[at++];
    }
    found[name] = new ARRAYS[kind](mine.buffer);
  }
  return found;
}
