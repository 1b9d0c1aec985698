/** A tree map: rectangles by size, which lead further. It is for eyes and the mouse: a table beside it has the same for all. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { layOut } from '../model/tree-map.ts';

export interface MapItem {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly size: number;
  /** The number of its colour, from 1 to 7. */
  readonly colour: number;
  readonly link: string | undefined;
}

const height = 380;

export function TreeMap({
  items,
  label,
}: {
  readonly items: readonly MapItem[];
  readonly label: string;
}): preact.JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const sorted = items.filter(({ size }) => size > 0).toSorted((a, b) => b.size - a.size);
  const places = layOut(
    sorted.map(({ size }) => size),
    width,
    height,
  );
  return (
    <div ref={box} class="tree-map" role="img" aria-label={label} style={{ height: `${height}px` }}>
      {sorted.map(({ id, name, note, colour, link }, at) => {
        const place = places[at];
        if (place === undefined || place.width < 1 || place.height < 1) return null;
        const style = {
          left: `${place.left}px`,
          top: `${place.top}px`,
          width: `${Math.max(1, place.width - 2)}px`,
          height: `${Math.max(1, place.height - 2)}px`,
        };
        return (
          <div
            key={id}
            class={`tile c${colour}${link === undefined ? '' : ' link'}`}
            title={`${name}: ${note}`}
            style={style}
            onClick={() => {
              if (link !== undefined) location.hash = link;
            }}
          >
            {place.width > 56 && place.height > 22 && <span class="tile-name">{name}</span>}
            {place.width > 56 && place.height > 42 && <span class="tile-note">{note}</span>}
          </div>
        );
      })}
    </div>
  );
}
