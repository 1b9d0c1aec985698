/** A B+Tree, level by level: a block, the blocks under it, and at the end the rows of a leaf. */
import type { Calls, Cell } from '../../src/studio/messages.ts';
import { call } from '../model/api.ts';
import { bytesText, cellText, countText, plural } from '../model/format.ts';
import type { TypeName } from '../model/format.ts';
import { go, jsonOf, linkTo } from '../model/route.ts';
import { tableNamed } from '../model/state.ts';
import { useCall } from '../model/use-call.ts';
import { Empty, Failure, Figure } from '../parts/basics.tsx';
import { Grid } from '../parts/grid.tsx';
import type { Column } from '../parts/grid.tsx';

type Block = NonNullable<Calls['block'][1]>;

function keyText(key: unknown): string {
  return Array.isArray(key) ? key.map((part) => cellText(null, part)).join(', ') : cellText(null, key);
}

export function TreePage({
  table,
  index,
}: {
  readonly table: string;
  readonly index: string | undefined;
}): preact.JSX.Element {
  // The blocks from the one under the root on.
  const path = jsonOf<readonly string[]>('path', []);
  const name = path.at(-1);
  const asked = { table, ...(index !== undefined && { index }), ...(name !== undefined && { name }) };
  const answer = useCall(JSON.stringify(asked), (signal) => call('block', asked, signal));
  const root = useCall(JSON.stringify([table, index]), (signal) =>
    call('block', { table, ...(index !== undefined && { index }) }, signal),
  );
  const parts = ['storage', table, ...(index === undefined ? [] : [index])];
  const block = answer.value;
  const depth = root.value === undefined || root.value === null ? undefined : root.value.level + 1;
  return (
    <div class="page tree-page">
      <header class="bar">
        <h1>
          {table}
          {index !== undefined && <span class="dim"> · index {index}</span>}
        </h1>
      </header>
      <nav class="crumbs" aria-label="Blocks above">
        <a href={linkTo(['storage'])}>Storage</a>
        <a href={linkTo(parts)} aria-current={path.length === 0 ? 'page' : undefined}>
          Root
        </a>
        {path.map((each, at) => (
          <a
            key={each}
            href={linkTo(parts, { path: JSON.stringify(path.slice(0, at + 1)) })}
            aria-current={at === path.length - 1 ? 'page' : undefined}
            title={each}
          >
            {depth === undefined ? `Block ${at + 1}` : depth - 2 - at === 0 ? 'Leaf' : `Level ${depth - 2 - at}`}
          </a>
        ))}
      </nav>
      <Failure failure={answer.failure} onRetry={answer.retry} />
      {block === null && (
        <Empty title="There is no such block">
          <p>
            {path.length === 0
              ? 'The tree is empty: its rows may be pending commits that are not merged yet.'
              : 'A merge has replaced it. Begin again at the root.'}
          </p>
        </Empty>
      )}
      {block !== undefined && block !== null && answer.failure === undefined && (
        <BlockView
          key={block.name}
          block={block}
          depth={depth}
          table={table}
          onOpen={(child) => go(parts, { path: JSON.stringify([...path, child]) })}
        />
      )}
    </div>
  );
}

interface BlockViewProps {
  readonly block: Block;
  readonly depth: number | undefined;
  readonly table: string;
  readonly onOpen: (name: string) => void;
}

const kindNames: Readonly<Record<string, string>> = {
  table: 'Leaf with rows',
  index: 'Leaf of an index',
  inner: 'Inner block',
};

function BlockView({ block, depth, table, onOpen }: BlockViewProps): preact.JSX.Element {
  const { entries, kind, level, count, rows, sizeBytes, name, generation, schemaVersion } = block;
  const isInner = entries.some(({ child }) => child !== undefined);
  return (
    <>
      <dl class="card figures-row">
        <Figure name="Block" note={<span class="code wrap">{name}</span>}>
          {kindNames[kind] ?? kind}
        </Figure>
        <Figure name="Level" note={depth === undefined ? undefined : `of ${plural(depth, 'level')}`}>
          {level}
        </Figure>
        <Figure name="Keys">{countText(count)}</Figure>
        <Figure name={kind === 'index' ? 'Entries under it' : 'Rows under it'}>{countText(rows)}</Figure>
        <Figure name="Size" note={count === 0 ? undefined : `${bytesText(sizeBytes / count)} for each key`}>
          {bytesText(sizeBytes)}
        </Figure>
        <Figure name="Generation" note={schemaVersion === undefined ? undefined : `rows of version ${schemaVersion}`}>
          {countText(generation)}
        </Figure>
      </dl>
      {isInner ? <Children block={block} onOpen={onOpen} /> : <Leaf block={block} table={table} />}
    </>
  );
}

/** The blocks under one: how full each is, beside the largest of them. */
function Children({
  block,
  onOpen,
}: {
  readonly block: Block;
  readonly onOpen: (name: string) => void;
}): preact.JSX.Element {
  const { entries } = block;
  const most = Math.max(...entries.map(({ child }) => child?.sizeBytes ?? 0), 1);
  const fill = (at: number): number => (entries[at]?.child?.sizeBytes ?? 0) / most;
  const columns: readonly Column[] = [
    { name: 'from key', type: 'varchar' },
    { name: 'rows', type: 'float64' },
    { name: 'size', type: 'varchar', maxLength: 10 },
    { name: 'fill', type: 'varchar', maxLength: 6 },
    { name: 'block', type: 'varchar' },
  ];
  return (
    <section class="card" aria-label="Blocks under it">
      <div class="card-head">
        <h2>{plural(entries.length, 'block')} under it</h2>
        <span class="dim">Fill is the size beside the largest of them</span>
      </div>
      <svg
        class="fills"
        viewBox={`0 0 ${entries.length} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label="How full the blocks are. The list below has the figures."
      >
        {entries.map((entry, at) => (
          <rect
            key={entry.child?.name ?? at}
            x={at + 0.08}
            y={40 - 40 * fill(at)}
            width={0.84}
            height={40 * fill(at)}
            onClick={() => entry.child !== undefined && onOpen(entry.child.name)}
          />
        ))}
      </svg>
      <div class="grid-box result-box">
        <Grid
          label="Blocks under it"
          columns={columns}
          count={entries.length}
          rowAt={(at) => {
            const entry = entries[at];
            if (entry === undefined) return undefined;
            const { child, key } = entry;
            const shown = at === 0 && (key === undefined || key === null) ? '(from the first)' : keyText(key);
            return [
              shown,
              child?.rows ?? null,
              bytesText(child?.sizeBytes ?? 0),
              `${Math.round(fill(at) * 100)} %`,
              child?.name ?? null,
            ];
          }}
          onOpen={(at) => {
            const child = entries[at]?.child;
            if (child !== undefined) onOpen(child.name);
          }}
        />
      </div>
    </section>
  );
}

/** The rows of a leaf, or the keys of a leaf of an index. */
function Leaf({ block, table }: { readonly block: Block; readonly table: string }): preact.JSX.Element {
  const { entries, kind } = block;
  const info = tableNamed(table);
  const typeOf = (name: string): TypeName | null => info?.fields.find((field) => field.name === name)?.type ?? null;
  const names = kind === 'index' ? [] : Object.keys(entries.find(({ row }) => row !== undefined)?.row ?? {});
  const columns: readonly Column[] =
    names.length === 0
      ? [{ name: 'key', type: null }]
      : names.map((name) => ({ name, type: typeOf(name), isKey: info?.primaryKey.includes(name) === true }));
  const openRow = (at: number): void => {
    const entry = entries[at];
    if (kind === 'index' || entry?.row === undefined || info === undefined) return;
    const { row } = entry;
    go(['tables', table], { row: JSON.stringify(info.primaryKey.map((name) => row[name])), path: undefined });
  };
  return (
    <section class="card" aria-label="Keys">
      <div class="card-head">
        <h2>{plural(entries.length, kind === 'index' ? 'entry' : 'row', kind === 'index' ? 'entries' : 'rows')}</h2>
      </div>
      <div class="grid-box result-box">
        <Grid
          label={kind === 'index' ? 'Entries of the leaf' : 'Rows of the leaf'}
          columns={columns}
          count={entries.length}
          rowAt={(at): readonly Cell[] | undefined => {
            const entry = entries[at];
            if (entry === undefined) return undefined;
            if (names.length === 0) return [keyText(entry.key)];
            const { row } = entry;
            return row === undefined
              ? [`${keyText(entry.key)}${entry.deleted === true ? ' (deleted)' : ''}`]
              : names.map((name) => row[name]);
          }}
          onOpen={openRow}
        />
      </div>
    </section>
  );
}
