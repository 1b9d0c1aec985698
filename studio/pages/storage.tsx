/** The page of storage: what lies in the store as a tree map, and the trees of tables and indexes block by block. */
import { useEffect, useState } from 'preact/hooks';
import type { StoredObjects } from '../../src/studio/messages.ts';
import { bytesText, countText, plural } from '../model/format.ts';
import { linkTo, route } from '../model/route.ts';
import { useLongCall } from '../model/use-call.ts';
import { Button, Choice, Empty, Failure, Figure, Progress } from '../parts/basics.tsx';
import { TreeMap } from '../parts/tree-map.tsx';
import type { MapItem } from '../parts/tree-map.tsx';
import { TreePage } from './tree.tsx';

type Group = StoredObjects['groups'][number];
type Measure = 'bytes' | 'objects';

const kindNames: Readonly<Record<Group['kind'], string>> = {
  root: 'Block 0 and catalogue',
  rows: 'Rows',
  index: 'Index',
  blobs: 'Blobs',
  log: 'Log',
  staged: 'Staged runs',
  states: 'Kept states',
  other: 'Other objects',
};

const colours: Readonly<Record<Group['kind'], number>> = {
  rows: 1,
  index: 2,
  blobs: 3,
  log: 4,
  staged: 7,
  states: 5,
  root: 7,
  other: 7,
};

interface Entry {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly objects: number;
  readonly sizeBytes: number;
  readonly colour: number;
  readonly link: string | undefined;
}

function linkOf({ kind, table, index }: Group): string | undefined {
  if ((kind === 'rows' || kind === 'index') && table !== undefined) {
    return linkTo(['storage', table, ...(index === undefined ? [] : [index])]);
  }
  return kind === 'log' || kind === 'states' ? linkTo(['time']) : undefined;
}

function entriesOf({ groups, garbage }: StoredObjects): readonly Entry[] {
  const stored = groups.map((group): Entry => {
    const { kind, table, index, objects, sizeBytes } = group;
    const name = table === undefined ? kindNames[kind] : index === undefined ? table : `${table} · ${index}`;
    const id = JSON.stringify([kind, table, index]);
    return { id, kind: kindNames[kind], name, objects, sizeBytes, colour: colours[kind], link: linkOf(group) };
  });
  const wasted = garbage.map(({ kind, objects, sizeBytes }): Entry => {
    return {
      id: `garbage ${kind}`,
      kind: 'Garbage',
      name: `Garbage: ${kind}`,
      objects,
      sizeBytes,
      colour: 6,
      link: linkTo(['health']),
    };
  });
  return [...stored, ...wasted];
}

export function StoragePage(): preact.JSX.Element {
  const [, table, index] = route.value.parts;
  return table === undefined ? <StoreMap /> : <TreePage key={`${table}/${index ?? ''}`} table={table} index={index} />;
}

function StoreMap(): preact.JSX.Element {
  const { value, failure, progress, start, stop } = useLongCall('objects');
  const [measure, setMeasure] = useState<Measure>('bytes');
  useEffect(() => start({}), []);
  const entries = value === undefined ? [] : entriesOf(value);
  const groups = value?.groups ?? [];
  const sizeOf = (entry: { readonly objects: number; readonly sizeBytes: number }): number =>
    measure === 'bytes' ? entry.sizeBytes : entry.objects;
  const sum = groups.reduce((total, group) => total + sizeOf(group), 0);
  const noteOf = (entry: Entry): string =>
    measure === 'bytes' ? bytesText(entry.sizeBytes) : plural(entry.objects, 'object');
  const items: readonly MapItem[] = entries.map((entry) => ({ ...entry, note: noteOf(entry), size: sizeOf(entry) }));
  const garbageBytes = (value?.garbage ?? []).reduce((total, { sizeBytes }) => total + sizeBytes, 0);
  return (
    <div class="page">
      <header class="bar">
        <h1>Storage</h1>
        <span class="grow" />
        <Choice
          label="Measure by"
          options={[
            ['bytes', 'Bytes'],
            ['objects', 'Objects'],
          ]}
          value={measure}
          onChange={setMeasure}
        />
        <Button isDisabled={progress !== undefined} onClick={() => start({})}>
          List again
        </Button>
      </header>
      <Progress label="Lists the objects" progress={progress} onStop={stop} />
      <Failure failure={failure} onRetry={() => start({})} />
      {value?.garbageError !== undefined && (
        <p class="notice bad" role="alert">
          What is garbage cannot be told: {value.garbageError.message}
        </p>
      )}
      {value !== undefined && groups.length === 0 && (
        <Empty title="Nothing is stored yet">
          <p>The first commit writes the first objects.</p>
        </Empty>
      )}
      {value !== undefined && groups.length > 0 && (
        <>
          <dl class="card figures-row">
            <Figure name="Stored">{bytesText(groups.reduce((total, { sizeBytes }) => total + sizeBytes, 0))}</Figure>
            <Figure name="Objects">{countText(groups.reduce((total, { objects }) => total + objects, 0))}</Figure>
            <Figure name="Tables and indexes">
              {countText(groups.filter(({ table }) => table !== undefined).length)}
            </Figure>
            <Figure name="Garbage" note={garbageBytes > 0 ? 'Also counted as what it was' : undefined}>
              {bytesText(garbageBytes)}
            </Figure>
          </dl>
          <TreeMap items={items} label="A map of what is stored. The table below has the same figures." />
          <section class="card" aria-label="What is stored">
            <div class="table-box" tabIndex={0} role="group" aria-label="Table">
              <table class="plain">
                <thead>
                  <tr>
                    <th scope="col">Kind</th>
                    <th scope="col">Name</th>
                    <th scope="col" class="number">
                      Objects
                    </th>
                    <th scope="col" class="number">
                      Size
                    </th>
                    <th scope="col" class="number">
                      Share
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {entries.map((entry) => (
                    <tr key={entry.id}>
                      <td class="nowrap">
                        <span class={`swatch c${entry.colour}`} /> {entry.kind}
                      </td>
                      <th scope="row">
                        {entry.link === undefined ? entry.name : <a href={entry.link}>{entry.name}</a>}
                      </th>
                      <td class="number">{countText(entry.objects)}</td>
                      <td class="number">{bytesText(entry.sizeBytes)}</td>
                      <td class="number">{sum === 0 ? '–' : `${((sizeOf(entry) / sum) * 100).toFixed(1)} %`}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        </>
      )}
    </div>
  );
}
