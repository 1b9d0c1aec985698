/** The page of the bill: what the instance has asked of its store, what that costs, and what other settings would change. */
import { useState } from 'preact/hooks';
import type { Calls, NamedPrices } from '../../src/studio/messages.ts';
import { call } from '../model/api.ts';
import { bytesText, countText, dollarsText, durationText } from '../model/format.ts';
import { live, overview, stateText } from '../model/state.ts';
import { useCall } from '../model/use-call.ts';
import { Failure, Figure, Select } from '../parts/basics.tsx';

type Bill = Calls['bill'][1];
type Counts = Bill['stats']['requests'];

const monthMs = 30 * 86_400_000;

interface Line {
  readonly name: string;
  readonly requests: number;
  readonly bytes: number;
  readonly dollars: number;
}

/** Returns the bill by kind of request. */
function linesOf(counts: Counts, prices: NamedPrices): readonly Line[] {
  const copies = counts.copy + counts.copyErrors + counts.extraCopies;
  const puts = counts.put + counts.putLost + counts.putErrors + counts.extraPuts;
  const found = counts.get + counts.extraGets;
  const looks = counts.getUnchanged + counts.getMissing;
  const lists = counts.list + counts.listErrors + counts.extraLists;
  const deletes = counts.delete + counts.deleteErrors + counts.extraDeletes;
  const priced = (requests: number, per1000: number, bytes = 0): number =>
    (requests * per1000) / 1000 + (bytes * prices.perGigabyteRead) / 1e9;
  return [
    { name: 'Writes', requests: puts, bytes: counts.bytesWritten, dollars: priced(puts, prices.per1000Writes) },
    { name: 'Copies', requests: copies, bytes: 0, dollars: priced(copies, prices.per1000Writes) },
    {
      name: 'Reads that returned bytes',
      requests: found,
      bytes: counts.bytesRead,
      dollars: priced(found, prices.per1000Reads, counts.bytesRead),
    },
    {
      name: 'Looks: nothing new, or nothing there',
      requests: looks,
      bytes: 0,
      dollars: priced(looks, prices.per1000Reads),
    },
    {
      name: 'Reads that failed',
      requests: counts.getErrors,
      bytes: 0,
      dollars: priced(counts.getErrors, prices.per1000Reads),
    },
    { name: 'Lists', requests: lists, bytes: 0, dollars: priced(lists, prices.per1000Lists) },
    { name: 'Deletions', requests: deletes, bytes: 0, dollars: priced(deletes, prices.per1000Deletes) },
  ];
}

/** Returns the bill by table. Bytes of writes and of reads are counted together, so that they have no price here. */
function tableLinesOf(tables: Bill['stats']['tables'], prices: NamedPrices): readonly Line[] {
  return tables.map(({ table, reads, writes, bytes }) => ({
    name: table,
    requests: reads + writes,
    bytes,
    dollars: (reads * prices.per1000Reads + writes * prices.per1000Writes) / 1000,
  }));
}

export function BillPage(): preact.JSX.Element {
  const answer = useCall(stateText.value, (signal) => call('bill', {}, signal));
  const prices = overview.value?.prices ?? [];
  const [chosen, setChosen] = useState('');
  const price = prices.find(({ name }) => name === chosen) ?? prices[0];
  const bill = answer.value;
  const stats = bill === undefined ? undefined : (live.value?.stats ?? bill.stats);
  return (
    <div class="page">
      <header class="bar">
        <h1>Bill</h1>
        <span class="grow" />
        <Select
          label="Prices"
          options={prices.map(({ name }) => [name, name] as const)}
          value={price?.name ?? ''}
          onChange={setChosen}
        />
      </header>
      <Failure failure={answer.failure} onRetry={answer.retry} />
      {bill !== undefined && stats !== undefined && price !== undefined && (
        <BillView bill={{ ...bill, stats }} price={price} />
      )}
    </div>
  );
}

function BillView({ bill, price }: { readonly bill: Bill; readonly price: NamedPrices }): preact.JSX.Element {
  const { stats, pollingMs } = bill;
  const lines = linesOf(stats.requests, price);
  const sum = (of: (line: Line) => number): number => lines.reduce((total, line) => total + of(line), 0);
  const dollars = sum((line) => line.dollars);
  const perMonth = monthMs / Math.max(1, stats.uptimeMs);
  return (
    <>
      <dl class="card figures-row">
        <Figure name="Since it was opened" note={durationText(stats.uptimeMs)}>
          {dollarsText(dollars)}
        </Figure>
        <Figure name="A month at this rate" note="30 days like this time">
          {dollarsText(dollars * perMonth)}
        </Figure>
        <Figure name="Requests" note={`${countText(sum((line) => line.requests) * perMonth)} a month`}>
          {countText(sum((line) => line.requests))}
        </Figure>
        <Figure name="Bytes read" note={`${bytesText(stats.requests.bytesRead * perMonth)} a month`}>
          {bytesText(stats.requests.bytesRead)}
        </Figure>
        <Figure name="Bytes written" note={`${bytesText(stats.requests.bytesWritten * perMonth)} a month`}>
          {bytesText(stats.requests.bytesWritten)}
        </Figure>
        <Figure name="Failed requests">{countText(stats.requests.errors)}</Figure>
      </dl>
      <p class="dim">
        These are the requests of this instance: of Studio and of the application that it is part of, and not of others.
      </p>
      <Lines title="By kind" column="Kind" lines={lines} perMonth={perMonth} />
      {stats.tables.length > 0 && (
        <Lines
          title="By table"
          column="Table"
          lines={tableLinesOf(stats.tables, price)}
          perMonth={perMonth}
          note="Requests for blocks of rows and indexes. The log, Block 0, blobs and lists belong to no table, and further attempts of a request are not counted here."
        />
      )}
      <div class="cards">
        <Polling pollingMs={pollingMs} price={price} />
        <Merging stats={stats} price={price} />
      </div>
    </>
  );
}

/** A table of requests, a line for each kind or each table. */
function Lines({
  title,
  column,
  lines,
  perMonth,
  note,
}: {
  readonly title: string;
  readonly column: string;
  readonly lines: readonly Line[];
  readonly perMonth: number;
  readonly note?: string;
}): preact.JSX.Element {
  const most = Math.max(...lines.map((line) => line.dollars), 1e-12);
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {note !== undefined && <p class="dim">{note}</p>}
      <div class="table-box" tabIndex={0} role="group" aria-label={`${title}: table`}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{column}</th>
              <th scope="col" class="number">
                Requests
              </th>
              <th scope="col" class="number">
                Bytes
              </th>
              <th scope="col" class="number">
                Dollars
              </th>
              <th scope="col" class="number">
                A month
              </th>
              <td class="wide-only" />
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => (
              <tr key={line.name}>
                <th scope="row">{line.name}</th>
                <td class="number">{countText(line.requests)}</td>
                <td class="number">{line.bytes === 0 ? '–' : bytesText(line.bytes)}</td>
                <td class="number">{dollarsText(line.dollars)}</td>
                <td class="number">{dollarsText(line.dollars * perMonth)}</td>
                <td class="wide-only">
                  <span class="meter" aria-hidden="true">
                    <span style={{ width: `${(line.dollars / most) * 100}%` }} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const pollings: readonly number[] = [500, 1000, 2000, 5000, 15_000, 60_000];

function Polling({
  pollingMs,
  price,
}: {
  readonly pollingMs: number | null;
  readonly price: NamedPrices;
}): preact.JSX.Element {
  const cost = (ms: number): number => ((monthMs / ms) * price.per1000Reads) / 1000;
  const now =
    pollingMs === null
      ? 'It looks at the log only when it is asked for something.'
      : `It looks every ${durationText(pollingMs)} now.`;
  return (
    <section class="card" aria-label="Polling">
      <h2>Polling</h2>
      <p>
        An instance looks at the log for commits of others. Each look is one read. {now} A longer pause costs less, and
        shows the commits of others later.
      </p>
      <div class="table-box" tabIndex={0} role="group" aria-label="Table">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Pause</th>
              <th scope="col" class="number">
                Looks a month
              </th>
              <th scope="col" class="number">
                Dollars a month
              </th>
            </tr>
          </thead>
          <tbody>
            {[...new Set([...pollings, ...(pollingMs === null ? [] : [pollingMs])])]
              .toSorted((a, b) => a - b)
              .map((ms) => (
                <tr key={ms} class={ms === pollingMs ? 'differs' : ''}>
                  <th scope="row">
                    {durationText(ms)}
                    {ms === pollingMs && ' (now)'}
                  </th>
                  <td class="number">{countText(monthMs / ms)}</td>
                  <td class="number">{dollarsText(cost(ms))}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Merging({ stats, price }: { readonly stats: Bill['stats']; readonly price: NamedPrices }): preact.JSX.Element {
  const { merges } = stats;
  if (merges === undefined || merges.merges === 0) {
    return (
      <section class="card" aria-label="Merging">
        <h2>Merging</h2>
        <p>
          This instance has merged nothing since it was opened. A merge writes the blocks that commits have changed, and
          Block 0: the more commits it takes at once (option mergePolicy), the less it writes for each.
        </p>
      </section>
    );
  }
  const writes = merges.blocksWritten / merges.merges + 1;
  const aMonth = (merges.merges * monthMs) / Math.max(1, stats.uptimeMs);
  const cost = (factor: number): number => ((aMonth / factor) * writes * price.per1000Writes) / 1000;
  return (
    <section class="card" aria-label="Merging">
      <h2>Merging</h2>
      <p>
        A merge has written {countText(writes)} objects on average: the blocks that commits have changed, and Block 0.
        If it waits for more commits (option mergePolicy), there are fewer merges. The figures assume that each writes
        as much as now, so they show the least that can be saved where commits change the same blocks, and more than
        that where they do not.
      </p>
      <div class="table-box" tabIndex={0} role="group" aria-label="Table">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Commits in a merge</th>
              <th scope="col" class="number">
                Merges a month
              </th>
              <th scope="col" class="number">
                Dollars a month
              </th>
            </tr>
          </thead>
          <tbody>
            {[1, 2, 4, 16].map((factor) => (
              <tr key={factor} class={factor === 1 ? 'differs' : ''}>
                <th scope="row">{factor === 1 ? 'as now' : `${factor} times as many`}</th>
                <td class="number">{countText(aMonth / factor)}</td>
                <td class="number">{dollarsText(cost(factor))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
