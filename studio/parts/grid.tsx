/** A list of rows that makes elements only for those that are seen. It scrolls through any number of them, and works from the keyboard. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Cell, Order, RowMarks } from '../../src/studio/messages.ts';
import { cellText, isNumeric, widthOf } from '../model/format.ts';
import type { TypeName } from '../model/format.ts';
import { Icon } from './basics.tsx';

/** A column. */
export interface Column {
  readonly name: string;
  readonly type: TypeName | null;
  /** A mark of the field: a part of the primary key. */
  readonly isKey?: boolean;
  /** Most characters of a value, if they are few. */
  readonly maxLength?: number | undefined;
}

export interface GridProps {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly count: number;
  /** Returns the cells of a row; undefined while they are read. */
  readonly rowAt: (index: number) => readonly Cell[] | undefined;
  /** Returns the parts of the cells of a row that are marked. */
  readonly marksAt?: ((index: number) => RowMarks | undefined) | undefined;
  /** Is told which rows are seen. */
  readonly onRange?: (first: number, last: number) => void;
  readonly orderBy?: readonly Order[];
  readonly onSort?: (field: string) => void;
  readonly onOpen?: (index: number) => void;
  /** The row that is open. */
  readonly opened?: number | undefined;
  readonly empty?: ComponentChildren;
}

const rowHeight = 28;
/** Browsers cannot lay out elements that are much higher. */
const mostPixels = 15_000_000;
/** Rows that are made above and below those that are seen. */
const around = 6;

function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}

/** Where a list of rows is scrolled to. A list that is too high for the browser is laid out less high, and scrolled in proportion. */
function useScroll(count: number): {
  readonly box: { current: HTMLDivElement | null };
  readonly top: number;
  readonly height: number;
  readonly seen: number;
  readonly scrollTop: number;
  readonly onScroll: () => void;
  readonly scrollTo: (row: number) => void;
} {
  const box = useRef<HTMLDivElement>(null);
  const [seenPixels, setSeen] = useState(600);
  const [scroll, setScroll] = useState({ top: 0, scrollTop: 0 });
  const full = count * rowHeight;
  const height = Math.min(full, mostPixels);
  const seen = Math.max(1, (seenPixels - rowHeight) / rowHeight);
  const mostTop = Math.max(0, count - seen);
  const mostScroll = Math.max(0, height + rowHeight - seenPixels);
  const own = useRef<number | undefined>(undefined);
  const exact = useRef(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setSeen(element.clientHeight));
    observer.observe(element);
    setSeen(element.clientHeight);
    return () => observer.disconnect();
  }, []);
  const scrollTo = (row: number): void => {
    const top = clamp(row, 0, mostTop);
    const scrollTop = mostTop === 0 ? 0 : Math.round((top / mostTop) * mostScroll);
    exact.current = top;
    own.current = scrollTop;
    if (box.current !== null) box.current.scrollTop = scrollTop;
    setScroll({ top, scrollTop });
  };
  const onScroll = (): void => {
    const scrollTop = box.current?.scrollTop ?? 0;
    // Its own scrolling is more exact than pixels are.
    if (own.current !== undefined && Math.abs(own.current - scrollTop) <= 1) return;
    own.current = undefined;
    const top = mostScroll === 0 ? 0 : clamp((scrollTop / mostScroll) * mostTop, 0, mostTop);
    exact.current = top;
    setScroll({ top, scrollTop });
  };
  const isScaled = full > mostPixels;
  useEffect(() => {
    const element = box.current;
    if (element === null || !isScaled) return;
    const onWheel = (event: WheelEvent): void => {
      if (event.deltaY === 0 || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? event.deltaY : event.deltaY / rowHeight;
      scrollTo(exact.current + lines);
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  });
  return { box, top: Math.min(scroll.top, mostTop), height, seen, scrollTop: scroll.scrollTop, onScroll, scrollTo };
}

function Header({ columns, orderBy, onSort, template, active }: HeaderProps): preact.JSX.Element {
  return (
    <div role="rowgroup" class="grid-head">
      <div role="row" aria-rowindex={1} class="grid-row" style={{ gridTemplateColumns: template }}>
        {columns.map(({ name, type, isKey }, at) => {
          const order = orderBy?.find(({ field }) => field === name);
          const sorted = order === undefined ? 'none' : order.direction === 'asc' ? 'ascending' : 'descending';
          const title = `${name}${type === null ? '' : ` (${type})`}${isKey === true ? ', primary key' : ''}`;
          return (
            <div
              key={name}
              id={`head-${at}`}
              role="columnheader"
              aria-colindex={at + 1}
              aria-sort={sorted}
              class={`grid-cell${isNumeric(type) ? ' number' : ''}${active === at ? ' active' : ''}`}
              title={title}
            >
              {onSort !== undefined ? (
                <button type="button" tabIndex={-1} onClick={() => onSort(name)}>
                  {isKey === true && <Icon name="key" />}
                  <span>{name}</span>
                  {order !== undefined && <Icon name={order.direction === 'asc' ? 'up' : 'down'} />}
                </button>
              ) : (
                <span class="grid-name">{name}</span>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface HeaderProps {
  readonly columns: readonly Column[];
  readonly orderBy: readonly Order[] | undefined;
  readonly onSort: ((field: string) => void) | undefined;
  readonly template: string;
  readonly active: number | undefined;
}

export function Grid(props: GridProps): preact.JSX.Element {
  const { label, columns, count, rowAt, marksAt, onRange, orderBy, onSort, onOpen, opened, empty } = props;
  const { box, top, height, seen, scrollTop, onScroll, scrollTo } = useScroll(count);
  // The header is row -1.
  const [active, setActive] = useState<readonly [row: number, column: number]>([0, 0]);
  const [isFocused, setFocused] = useState(false);
  const first = Math.max(0, Math.floor(top) - around);
  const last = Math.min(count - 1, Math.ceil(top + seen) + around);
  useEffect(() => onRange?.(first, last), [first, last, count, onRange]);
  const activeRow = Math.min(active[0], count - 1);
  const activeColumn = Math.min(active[1], columns.length - 1);
  const moveTo = (row: number, column: number): void => {
    const to = clamp(row, onSort === undefined ? 0 : -1, count - 1);
    setActive([to, clamp(column, 0, columns.length - 1)]);
    if (to < 0) return;
    if (to < top) scrollTo(to);
    else if (to > top + seen - 1) scrollTo(to - seen + 1);
  };
  useEffect(() => {
    const cell = document.getElementById(activeRow < 0 ? `head-${activeColumn}` : `cell-${activeRow}-${activeColumn}`);
    const element = box.current;
    if (cell === null || element === null || !isFocused) return;
    const [left, right] = [cell.offsetLeft, cell.offsetLeft + cell.offsetWidth];
    if (left < element.scrollLeft) element.scrollLeft = left;
    else if (right > element.scrollLeft + element.clientWidth) element.scrollLeft = right - element.clientWidth;
  }, [activeRow, activeColumn, isFocused]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(seen) - 1);
    const isFar = event.ctrlKey || event.metaKey;
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => moveTo(activeRow + 1, activeColumn),
      ArrowUp: () => moveTo(activeRow - 1, activeColumn),
      ArrowLeft: () => moveTo(activeRow, activeColumn - 1),
      ArrowRight: () => moveTo(activeRow, activeColumn + 1),
      PageDown: () => moveTo(Math.max(0, activeRow) + page, activeColumn),
      PageUp: () => moveTo(Math.max(0, activeRow - page), activeColumn),
      Home: () => moveTo(0, isFar ? 0 : activeColumn),
      End: () => moveTo(count - 1, isFar ? columns.length - 1 : activeColumn),
      Enter: () => (activeRow < 0 ? onSort?.(columns[activeColumn]?.name ?? '') : onOpen?.(activeRow)),
    };
    const move = event.altKey ? undefined : moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  const widths = columns.map(({ name, type, maxLength }) => widthOf(type, name, maxLength));
  const width = widths.reduce((sum, each) => sum + each, 0);
  const template = widths.map((each) => `minmax(${each}px, ${each}fr)`).join(' ');
  const rows: number[] = [];
  for (let row = first; row <= last; row++) rows.push(row);
  const isScaled = count * rowHeight > mostPixels;
  const offsetOf = (row: number): number => (isScaled ? scrollTop + (row - top) * rowHeight : row * rowHeight);
  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      aria-readonly
      tabIndex={0}
      aria-activedescendant={activeRow < 0 ? `head-${activeColumn}` : `cell-${activeRow}-${activeColumn}`}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <div class="grid-inner" role="presentation" style={{ minWidth: `${width}px` }}>
        <Header
          columns={columns}
          orderBy={orderBy}
          onSort={onSort}
          template={template}
          active={isFocused && activeRow < 0 ? activeColumn : undefined}
        />
        {count > 0 && (
          <div role="rowgroup" class="grid-body" style={{ height: `${height}px` }}>
            {rows.map((row) => {
              const cells = rowAt(row);
              const marks = marksAt?.(row);
              return (
                <div
                  key={row}
                  role="row"
                  aria-rowindex={row + 2}
                  aria-selected={opened === row}
                  class={`grid-row${row % 2 === 1 ? ' odd' : ''}`}
                  style={{ gridTemplateColumns: template, transform: `translateY(${offsetOf(row)}px)` }}
                  onClick={() => {
                    setActive([row, activeColumn]);
                    onOpen?.(row);
                  }}
                >
                  {columns.map(({ name, type }, at) => (
                    <GridCell
                      key={name}
                      id={`cell-${row}-${at}`}
                      at={at}
                      type={type}
                      isLoaded={cells !== undefined}
                      value={cells?.[at]}
                      marks={marks?.[at]}
                      isActive={isFocused && row === activeRow && at === activeColumn}
                    />
                  ))}
                </div>
              );
            })}
          </div>
        )}
      </div>
      {count === 0 && empty}
    </div>
  );
}

interface GridCellProps {
  readonly id: string;
  readonly at: number;
  readonly type: TypeName | null;
  readonly isLoaded: boolean;
  readonly value: Cell;
  readonly marks: RowMarks[number] | undefined;
  readonly isActive: boolean;
}

/** A marked text begins so many letters before its first mark, so that the mark is seen. */
const lettersBefore = 16;
/** Most letters of a marked text. */
const mostLetters = 300;

/** A text with marks. Of a long one, it shows the part from the first mark on. */
function Marked({ text, marks }: { readonly text: string; readonly marks: RowMarks[number] }): preact.JSX.Element {
  const first = marks[0]?.[0] ?? 0;
  const space = first <= lettersBefore ? -1 : text.indexOf(' ', first - lettersBefore);
  const from = first <= lettersBefore ? 0 : space >= 0 && space < first ? space + 1 : first;
  const end = Math.min(text.length, from + mostLetters);
  const parts: ComponentChildren[] = from > 0 ? ['…'] : [];
  let at = from;
  for (const [start, stop] of marks) {
    if (start >= end) break;
    parts.push(text.slice(at, start), <mark key={start}>{text.slice(start, Math.min(stop, end))}</mark>);
    at = Math.min(stop, end);
  }
  return (
    <>
      {parts}
      {text.slice(at, end)}
      {end < text.length && '…'}
    </>
  );
}

function GridCell({ id, at, type, isLoaded, value, marks, isActive }: GridCellProps): preact.JSX.Element {
  const isNull = value === null || value === undefined;
  const kind = isNull ? ' null' : isNumeric(type) ? ' number' : type === 'bytes' || type === 'uuid' ? ' code' : '';
  return (
    <div
      id={id}
      role="gridcell"
      aria-colindex={at + 1}
      class={`grid-cell${isNumeric(type) ? ' number' : ''}${kind}${isActive ? ' active' : ''}`}
    >
      {!isLoaded ? (
        <span class="waiting" />
      ) : typeof value === 'string' && marks !== undefined && marks.length > 0 ? (
        <Marked text={value} marks={marks} />
      ) : (
        cellText(type, value)
      )}
    </div>
  );
}
