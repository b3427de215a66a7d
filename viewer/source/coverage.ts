// The share of each pixel that is covered by boxes, computed exactly for boxes of any size.

/** Sums of covered areas per pixel and channel.
 *
 * In each line of pixels `add` writes at most four differences per channel, for the left and the
 * right edge; `finish` replaces the differences by their prefix sums. A box thus costs
 * O(lines), independent of its width. `sums` has `width + 2` pixels a line. */
export class Coverage {
  readonly sums: Float32Array;
  private readonly stride: number;

  constructor(
    readonly width: number,
    readonly height: number,
    readonly channels: number,
  ) {
    this.stride = (width + 2) * channels;
    this.sums = new Float32Array(this.stride * height);
  }

  clear(): void {
    this.sums.fill(0);
  }

  /** Add a box with edges in pixels, multiplied by a weight for each channel. */
  add(left: number, right: number, top: number, bottom: number, weights: readonly number[]): void {
    const { width, height, stride, channels, sums } = this;
    const a = left < 0 ? 0 : left;
    const b = right > width ? width : right;
    const low = top < 0 ? 0 : top;
    const high = bottom > height ? height : bottom;
    if (!(a < b && low < high)) return;
    const ia = a | 0;
    const ib = b | 0;
    const fa = a - ia;
    const fb = b - ib;
    for (let y = low | 0; y < high; y++) {
      const share = (y + 1 < high ? y + 1 : high) - (y > low ? y : low);
      let p = y * stride + ia * channels;
      let q = y * stride + ib * channels;
      for (let c = 0; c < channels; c++, p++, q++) {
        const weight = share * weights[c];
        if (weight === 0) continue;
        sums[p] += weight * (1 - fa);
        sums[p + channels] += weight * fa;
        sums[q] -= weight * (1 - fb);
        sums[q + channels] -= weight * fb;
      }
    }
  }

  /** Replace differences by sums; pixel x of line y then begins at `index(x, y)`. */
  finish(): void {
    const { height, stride, channels, sums } = this;
    for (let y = 0; y < height; y++) {
      const end = (y + 1) * stride;
      for (let i = y * stride + channels; i < end; i++) sums[i] += sums[i - channels];
    }
  }

  index(x: number, y: number): number {
    return y * this.stride + x * this.channels;
  }
}
