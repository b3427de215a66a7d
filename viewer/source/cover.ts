// How much of each pixel is covered: exact areas of any number of boxes, however thin.

/** Sums of areas. A box adds four differences to a line of pixels; sums come at the end. */
export class Cover {
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

  /** Add a box, in pixels; `weights` for the channels, one each. */
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

  /** Make sums of the differences; pixel x of line y begins at `index(x, y)`. */
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
