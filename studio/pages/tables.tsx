/** The page of tables: a list of them, the rows of one, and one row in full. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type {
  Cell,
  Condition,
  Moment,
  Order,
  RowMarks,
  SearchAsked,
  Selection,
  TableInfo,
} from '../../src/studio/messages.ts';
import { call, failureOf } from '../model/api.ts';
import type { CallFailure } from '../model/api.ts';
import { countText, durationText, isNumeric, plural } from '../model/format.ts';
import { fullOrder, RowSource } from '../model/row-source.ts';
import { go, jsonOf, linkTo, moment, route, setQuery } from '../model/route.ts';
import { announce, overview, stateText, tableNamed } from '../model/state.ts';
import { isUnfinished, jsonFieldOf } from '../model/values.ts';
import { Button, Dialog, Empty, Failure } from '../parts/basics.tsx';
import { Conditions } from '../parts/conditions.tsx';
import { choiceOf } from '../parts/field-choice.tsx';
import { Grid } from '../parts/grid.tsx';
import type { Column } from '../parts/grid.tsx';
import { OrderRow } from '../parts/order-row.tsx';
import { isSearchable, SearchBox } from '../parts/search-box.tsx';
import { RowPanel } from './row-panel.tsx';

export function TablesPage(): preact.JSX.Element {
  const { parts } = route.value;
  const tables = overview.value?.tables ?? [];
  const name = parts[1];
  const table = tableNamed(name);
  if (tables.length === 0) return <NoTables />;
  return (
    <div class={`split${name === undefined ? '' : ' has-table'}`}>
      <TableList tables={tables} chosen={name} />
      {table !== undefined && <TableView key={table.name} table={table} />}
      {table === undefined && name === undefined && (
        <Empty isPage title="Choose a table">
          <p>
            {plural(tables.length, 'table')} {tables.length === 1 ? 'is' : 'are'} in this database.
          </p>
        </Empty>
      )}
      {table === undefined && name !== undefined && (
        <Empty isPage title={`There is no table ${name}`}>
          <p>It may have been removed, or have another name. Choose one from the list.</p>
        </Empty>
      )}
    </div>
  );
}

function NoTables(): preact.JSX.Element {
  return (
    <Empty isPage title="This database has no tables yet">
      <p>A table is there once an application has registered its schema and written the first row:</p>
      <pre tabIndex={0} role="group" aria-label="An example">{`import { defineSchema, StoreDb, Types } from 'store-db';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
});
db.registerSchema(notes);
await db.start();
const batch = db.batch();
await batch.insert(notes, { id: 1, text: 'Hello' });
await batch.flush();`}</pre>
      <p>This page shows it by itself then.</p>
    </Empty>
  );
}

function TableList({
  tables,
  chosen,
}: {
  readonly tables: readonly TableInfo[];
  readonly chosen: string | undefined;
}): preact.JSX.Element {
  const [search, setSearch] = useState('');
  const words = search.trim().toLowerCase();
  const found = tables.filter(({ name }) => name.toLowerCase().includes(words));
  return (
    <nav class="list" aria-label="Tables">
      <input
        type="search"
        id="search-tables"
        aria-label="Search tables"
        placeholder={`Search ${plural(tables.length, 'table')}`}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          const first = found[0];
          if (event.key === 'Enter' && first !== undefined) go(['tables', first.name]);
        }}
      />
      <ul tabIndex={-1}>
        {found.map(({ name, version }) => (
          <li key={name}>
            <a href={linkTo(['tables', name])} aria-current={name === chosen ? 'page' : undefined} title={name}>
              <span class="name">{name}</span>
              <span class="dim">v{version}</span>
            </a>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="dim pad">No table is named like that.</p>}
    </nav>
  );
}

/** Returns the next order after a click on a field: up, down, none. */
function nextOrder(orderBy: readonly Order[], field: string): readonly Order[] {
  const order = orderBy.find((each) => each.field === field);
  if (order === undefined) return [{ field, direction: 'asc' }];
  return order.direction === 'asc' ? [{ field, direction: 'desc' }] : [];
}

/** Returns the orders by which a list shows its columns as sorted: a path is shown in the column of its json field. */
function shownOrders(table: TableInfo, orderBy: readonly Order[]): readonly Order[] {
  return orderBy.map((order) => ({ ...order, field: jsonFieldOf(table, order.field) ?? order.field }));
}

/** Returns the next order after a click on a column. Rows are sorted by what is in a json field, which has no order as a whole. */
function orderAfterClick(table: TableInfo, orderBy: readonly Order[], column: string): readonly Order[] {
  const isJson = table.fields.some(({ name, type }) => name === column && type === 'json');
  if (!isJson) return nextOrder(orderBy, column);
  const path = orderBy.map(({ field }) => field).find((field) => jsonFieldOf(table, field) === column);
  return path !== undefined && isUnfinished(table, path) ? [] : nextOrder(orderBy, path ?? `${column}.`);
}

/** Says how rows are sorted. */
function orderText(table: TableInfo, order: Order | undefined, isSearch: boolean): string {
  if (order === undefined) return isSearch ? 'The best rows first.' : 'Sorted by primary key.';
  const { field, direction } = order;
  if (isUnfinished(table, field)) return `Type the path in ${field.slice(0, -1)} to sort by.`;
  return `Sorted by ${field}, ${direction === 'asc' ? 'ascending' : 'descending'}.`;
}

/** Returns the fields of a table as columns, those of the key first. */
function columnsOf(table: TableInfo, names: readonly string[]): readonly Column[] {
  const shown = names.length === 0 ? table.fields.map(({ name }) => name) : names;
  return shown.flatMap((name) => {
    const field = table.fields.find((each) => each.name === name);
    if (field === undefined) return [];
    const { type, maxLength } = field;
    return [{ name, type, maxLength, isKey: table.primaryKey.includes(name) }];
  });
}

function exportUrl(selection: Selection, format: 'csv' | 'ndjson'): string {
  return `api/export?${new URLSearchParams({ format, asked: JSON.stringify(selection) })}`;
}

function TableView({ table }: { readonly table: TableInfo }): preact.JSX.Element {
  const at = moment.value;
  const where = jsonOf<readonly Condition[]>('where', []);
  const chosenOrder = jsonOf<readonly Order[]>('order', []);
  const orderBy = chosenOrder.filter(({ field }) => !isUnfinished(table, field));
  const search = isSearchable(table) ? jsonOf<SearchAsked | undefined>('search', undefined) : undefined;
  const names = jsonOf<readonly string[]>('cols', []);
  const rowKey = jsonOf<readonly Cell[] | 'new' | undefined>('row', undefined);
  const isWritable = overview.value?.writable === true && at === undefined;
  const asked = JSON.stringify([where, search, orderBy, names, at ?? null]);
  const columns = columnsOf(table, names);
  const selection = selectionOf(table, where, orderBy, names, at, search);
  const source = useMemo(() => new RowSource(table, selection), [asked]);
  useEffect(() => () => source.stop(), [source]);
  const state = stateText.value;
  const [seenState, setSeenState] = useState(state);
  useEffect(() => {
    if (state === seenState) return;
    setSeenState(state);
    if (at === undefined) source.refresh();
  }, [state]);
  const [isChoosing, setChoosing] = useState(false);
  const [isDropping, setDropping] = useState(false);
  const cells = source.version.value;
  const places = useMemo(() => columns.map(({ name }) => source.columns.indexOf(name)), [cells, asked]);
  const rowAt = (index: number): readonly Cell[] | undefined => {
    const row = source.rowAt(index);
    return row && places.map((place) => row[place]);
  };
  const marksAt = (index: number): RowMarks | undefined => {
    const marks = source.marksAt(index);
    return marks && places.map((place) => marks[place] ?? []);
  };
  const keyAt = (index: number): readonly Cell[] | undefined => {
    const row = source.rowAt(index);
    return row && table.primaryKey.map((name) => row[source.columns.indexOf(name)]);
  };
  const open = (index: number): void => {
    const key = keyAt(index);
    if (key !== undefined) setQuery({ row: JSON.stringify(key) }, rowKey !== undefined);
  };
  const onRange = useMemo(() => (first: number, last: number) => source.want(first, last), [source]);
  const sort = (next: readonly Order[]): void => {
    announce(orderText(table, next[0], search !== undefined));
    setQuery({ order: next.length === 0 ? undefined : JSON.stringify(next), row: undefined });
  };
  const count = source.count.value;
  const opened = rowKey === undefined || rowKey === 'new' ? undefined : JSON.stringify(rowKey);
  const openedIndex =
    opened === undefined ? undefined : indexIn(source, count, (index) => JSON.stringify(keyAt(index)) === opened);
  return (
    <section class="table-view" aria-label={`Table ${table.name}`}>
      <header class="bar">
        <h1>
          <a class="back" href={linkTo(['tables'])} aria-label="All tables">
            ‹
          </a>
          {table.name}
        </h1>
        <span class="figures" role="status">
          {source.isCounted.value ? plural(count, 'row') : 'counting…'}
        </span>
        <span class="grow" />
        <Button onClick={() => setChoosing(true)}>
          Columns{names.length > 0 && ` (${names.length} of ${table.fields.length})`}
        </Button>
        <span class="export" role="group" aria-label="Export what is shown">
          <a class="button" href={exportUrl(selection, 'csv')} download={`${table.name}.csv`}>
            CSV
          </a>
          <a class="button" href={exportUrl(selection, 'ndjson')} download={`${table.name}.ndjson`}>
            NDJSON
          </a>
        </span>
        {isWritable && (
          <Button kind="primary" icon="plus" onClick={() => setQuery({ row: '"new"' })}>
            Insert
          </Button>
        )}
        {isWritable && (
          <Button kind="quiet" onClick={() => setDropping(true)}>
            Drop…
          </Button>
        )}
      </header>
      <div class="filters">
        {isSearchable(table) && (
          <SearchBox
            table={table}
            search={search}
            first={{ prefix: true }}
            delayMs={250}
            onChange={(next) => setQuery({ search: next && JSON.stringify(next), row: undefined }, true)}
          />
        )}
        <Conditions
          table={table}
          where={where}
          onChange={(next) => setQuery({ where: next.length === 0 ? undefined : JSON.stringify(next), row: undefined })}
        />
        {chosenOrder
          .filter(({ field }) => jsonFieldOf(table, field) !== undefined)
          .map((order) => (
            <OrderRow
              key={choiceOf(table, order.field)}
              order={order}
              table={table}
              isFocused
              onChange={(next) => sort(next === undefined ? [] : [next])}
            />
          ))}
      </div>
      <Failure failure={source.failure.value} onRetry={() => source.retry()} />
      <div class={`rows${rowKey === undefined ? '' : ' has-panel'}`}>
        <div class="grid-box">
          <Grid
            key={asked}
            label={`Rows of ${table.name}`}
            columns={columns}
            count={count}
            rowAt={rowAt}
            marksAt={search && marksAt}
            onRange={onRange}
            orderBy={
              orderBy.length > 0 || search !== undefined
                ? shownOrders(table, orderBy)
                : fullOrder(table, []).slice(0, 1)
            }
            onSort={(field) => {
              sort(orderAfterClick(table, chosenOrder, field));
            }}
            onOpen={open}
            opened={openedIndex}
            empty={source.isCounted.value && <NoRows isFiltered={where.length > 0} isSearch={search !== undefined} />}
          />
          <Walking source={source} />
        </div>
        {rowKey !== undefined && (
          <RowPanel
            key={JSON.stringify(rowKey)}
            table={table}
            rowKey={rowKey === 'new' ? undefined : rowKey}
            at={at}
            isWritable={isWritable}
            onClose={() => {
              setQuery({ row: undefined }, true);
              document.querySelector<HTMLElement>('.grid')?.focus();
            }}
            onSaved={(key) => {
              source.refresh();
              setQuery({ row: key === undefined ? undefined : JSON.stringify(key) }, true);
            }}
          />
        )}
      </div>
      <footer class="foot">
        <span>
          {source.cost.value !== undefined &&
            `Last page: ${durationText(source.cost.value.ms)}, ${plural(source.cost.value.requests, 'request')}`}
        </span>
        <span class="grow" />
        {table.expireAfter !== undefined && <span>{expiryText(table.expireAfter)}</span>}
        <span>{search !== undefined && orderBy.length === 0 ? 'The best rows first.' : indexHint(table, orderBy)}</span>
      </footer>
      {isDropping && <DropDialog table={table.name} onClose={() => setDropping(false)} />}
      {isChoosing && <ColumnChooser table={table} names={names} onClose={() => setChoosing(false)} />}
    </section>
  );
}

function selectionOf(
  table: TableInfo,
  where: readonly Condition[],
  orderBy: readonly Order[],
  names: readonly string[],
  at: Moment | undefined,
  search: SearchAsked | undefined,
): Selection {
  // The key of a row is needed to open it.
  const fields = [...new Set([...names, ...table.primaryKey])];
  return {
    table: table.name,
    where,
    ...(search && { search }),
    orderBy,
    ...(names.length > 0 && { fields }),
    ...(at && { at }),
  };
}

function indexIn(source: RowSource, count: number, isIt: (index: number) => boolean): number | undefined {
  const { first, last } = source.wanted;
  for (let index = first; index <= Math.min(last, count - 1); index++) if (isIt(index)) return index;
  return undefined;
}

function indexHint(table: TableInfo, orderBy: readonly Order[]): string {
  const field = orderBy[0]?.field;
  if (field === undefined || table.primaryKey[0] === field) return '';
  const index = table.indexes.find(
    ({ fields, isPartial, isText }) => fields[0] === field && !isPartial && isText !== true,
  );
  return index === undefined
    ? `No index begins with ${field}: each page sorts the table.`
    : `In the order of index ${index.name}.`;
}

interface NoRowsProps {
  readonly isFiltered: boolean;
  readonly isSearch: boolean;
}

function expiryText({ field, seconds }: NonNullable<TableInfo['expireAfter']>): string {
  return seconds === 0 ? `Rows expire at ${field}.` : `Rows expire ${durationText(seconds * 1000)} after ${field}.`;
}

/** Asks for the name of a table before it is dropped. */
function DropDialog({ table, onClose }: { readonly table: string; readonly onClose: () => void }): preact.JSX.Element {
  const [typed, setTyped] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<CallFailure | undefined>();
  const drop = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (typed !== table || isBusy) return;
    setBusy(true);
    try {
      await call('drop', { table, typed });
      announce(`Table ${table} is dropped.`);
      go(['tables']);
    } catch (error) {
      setFailure(failureOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Drop table ${table}`} onClose={onClose}>
      <form class="drop-form" onSubmit={(event) => void drop(event)}>
        <p>
          The table goes with all its rows, indexes and blobs, for everybody. Only snapshots, the history and backups
          still have it.
        </p>
        <label for="dropped-name">
          Type <strong>{table}</strong> to drop it
        </label>
        <input
          id="dropped-name"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <Failure failure={failure} />
        <div class="buttons">
          <Button onClick={onClose}>Keep it</Button>
          <button type="submit" class="button danger" disabled={typed !== table || isBusy}>
            Drop
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function NoRows({ isFiltered, isSearch }: NoRowsProps): preact.JSX.Element {
  return (
    <Empty title={isFiltered || isSearch ? 'No row matches' : 'This table has no rows'}>
      {isSearch ? (
        <Button onClick={() => setQuery({ search: undefined })}>Remove the search</Button>
      ) : isFiltered ? (
        <Button onClick={() => setQuery({ where: undefined })}>Remove the conditions</Button>
      ) : (
        <p>Rows are shown here as soon as somebody writes some.</p>
      )}
    </Empty>
  );
}

/** Says how far the way to a row in the middle is. */
function Walking({ source }: { readonly source: RowSource }): preact.JSX.Element | null {
  const walk = source.walk.value;
  if (walk === undefined) return null;
  return (
    <div class="walking">
      <progress aria-label="The way to these rows" max={walk.total} value={walk.done} />
      <span class="figures">
        Passes {countText(walk.done)} of {plural(walk.total, 'row')} to get there
      </span>
    </div>
  );
}

interface ColumnChooserProps {
  readonly table: TableInfo;
  readonly names: readonly string[];
  readonly onClose: () => void;
}

function ColumnChooser({ table, names, onClose }: ColumnChooserProps): preact.JSX.Element {
  const all = table.fields.map(({ name }) => name);
  const shown = new Set(names.length === 0 ? all : names);
  const choose = (next: readonly string[]): void =>
    setQuery({ cols: next.length === all.length || next.length === 0 ? undefined : JSON.stringify(next) }, true);
  return (
    <Dialog title="Columns" onClose={onClose}>
      <ul class="checks">
        {table.fields.map(({ name, type }) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                checked={shown.has(name)}
                disabled={shown.size === 1 && shown.has(name)}
                onChange={({ currentTarget }) =>
                  choose(all.filter((each) => (each === name ? currentTarget.checked : shown.has(each))))
                }
              />
              <span>{name}</span>
              <span class={`dim${isNumeric(type) ? ' figures' : ''}`}>{type}</span>
            </label>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
        <Button onClick={() => choose([])}>All</Button>
      </div>
    </Dialog>
  );
}
