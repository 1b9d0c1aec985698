/** Lays rectangles out in a larger one, by their sizes, and as square as they can be. */

export interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The greatest ratio of the sides of rectangles in a row along a side. */
function worstRatio(sizes: readonly number[], sum: number, side: number): number {
  let worst = 0;
  for (const size of sizes) {
    const ratio = (side * side * size) / (sum * sum);
    worst = Math.max(worst, ratio, 1 / ratio);
  }
  return worst;
}

/** Returns a rectangle for each size, in order. Sizes come from the largest on. */
export function layOut(sizes: readonly number[], width: number, height: number): readonly Rectangle[] {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= 0 || width <= 0 || height <= 0) return sizes.map(() => ({ left: 0, top: 0, width: 0, height: 0 }));
  const areas = sizes.map((size) => (size / total) * width * height);
  const placed: Rectangle[] = [];
  let [left, top, restWidth, restHeight] = [0, 0, width, height];
  for (let at = 0; at < areas.length; ) {
    const side = Math.min(restWidth, restHeight);
    const row: number[] = [areas[at] as number];
    let sum = row[0] as number;
    while (at + row.length < areas.length) {
      const next = areas[at + row.length] as number;
      if (worstRatio([...row, next], sum + next, side) > worstRatio(row, sum, side)) break;
      row.push(next);
      sum += next;
    }
    const thickness = side === 0 ? 0 : sum / side;
    const isTall = restWidth >= restHeight;
    let offset = 0;
    for (const area of row) {
      const length = thickness === 0 ? 0 : area / thickness;
      placed.push(
        isTall
          ? { left, top: top + offset, width: thickness, height: length }
          : { left: left + offset, top, width: length, height: thickness },
      );
      offset += length;
    }
    if (isTall) {
      left += thickness;
      restWidth -= thickness;
    } else {
      top += thickness;
      restHeight -= thickness;
    }
    at += row.length;
  }
  return placed;
}
