/** The page of queries: by clicking, as TypeScript, with the result as a table or a chart, and the plan beside it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  AggregateAsked,
  Explained,
  QueryAsked,
  QueryResult,
  SearchAsked,
  TableInfo,
} from '../../src/studio/messages.ts';
import { call, failureOf } from '../model/api.ts';
import type { CallFailure } from '../model/api.ts';
import { bytesText, cellText, dollarsText, durationText, isNumeric, plural } from '../model/format.ts';
import { queryText } from '../model/query-text.ts';
import { go, jsonOf, moment, route, setQuery } from '../model/route.ts';
import { announce, overview, tableNamed } from '../model/state.ts';
import { useCall } from '../model/use-call.ts';
import { isUnfinished } from '../model/values.ts';
import type { ComparedType } from '../model/values.ts';
import { Button, Choice, Copy, Empty, Failure, Progress, Select } from '../parts/basics.tsx';
import { choiceOf, FieldChoice, isOrdered, pathStarts } from '../parts/field-choice.tsx';
import { OrderRow } from '../parts/order-row.tsx';
import { Chart, mostPoints } from '../parts/chart.tsx';
import { Conditions } from '../parts/conditions.tsx';
import { Grid } from '../parts/grid.tsx';
import { Plan } from '../parts/plan.tsx';
import { isSearchable, SearchBox } from '../parts/search-box.tsx';

type Form = Omit<QueryAsked, 'table' | 'at' | 'limit' | 'search'> & {
  readonly limit?: number | undefined;
  readonly search?: SearchAsked | undefined;
};

const firstForm: Form = { where: [], orderBy: [], limit: 100, budget: { requests: 1000, ms: 10_000 } };

export function QueryPage(): preact.JSX.Element {
  const tables = overview.value?.tables ?? [];
  const table = tableNamed(route.value.parts[1]) ?? tables[0];
  if (table === undefined) {
    return (
      <Empty isPage title="There is nothing to query yet">
        <p>This database has no tables. Once it has one, you can ask for its rows here.</p>
      </Empty>
    );
  }
  return <QueryView key={table.name} table={table} tables={tables} />;
}

/** Returns a form without the paths that are not typed yet. */
function finished(table: TableInfo, form: Form): Form {
  const isWhole = (name: string): boolean => !isUnfinished(table, name);
  const { orderBy, groupBy, aggregates } = form;
  const figures = aggregates?.filter(({ field }) => field === undefined || isWhole(field));
  // Groups need one.
  const counted = figures?.length === 0 && aggregates?.length !== 0 ? [freshAggregate([])] : figures;
  return {
    ...form,
    orderBy: orderBy.filter(({ field }) => isWhole(field)),
    ...(groupBy && { groupBy: groupBy.filter(isWhole) }),
    ...(counted && { aggregates: counted }),
  };
}

interface Run {
  readonly result?: QueryResult;
  readonly explained?: Explained;
  readonly failure?: CallFailure;
}

function QueryView({
  table,
  tables,
}: {
  readonly table: TableInfo;
  readonly tables: readonly TableInfo[];
}): preact.JSX.Element {
  const at = moment.value;
  const form = jsonOf<Form>('q', firstForm);
  const change = (part: Partial<Form>): void => setQuery({ q: JSON.stringify({ ...form, ...part }) }, true);
  const { limit, search, ...others } = finished(table, form);
  const asked: QueryAsked = {
    ...others,
    table: table.name,
    ...(search && { search }),
    ...(limit !== undefined && { limit }),
    ...(at && { at }),
  };
  const text = queryText(table, asked);
  const [run, setRun] = useState<Run>({});
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController | undefined>(undefined);
  /** Whether the query runs as soon as what was typed last is a part of it. */
  const isWanted = useRef(false);
  useEffect(() => () => running.current?.abort(), []);
  const askedText = JSON.stringify(asked);
  const plan = useCall(askedText, (signal) => call('explain', asked, signal));
  const start = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setRunning(true);
    try {
      const result = await call('query', asked, controller.signal);
      announce(`${plural(result.rows.length, 'row')} in ${durationText(result.cost.ms)}.`);
      setRun({ result });
    } catch (error) {
      setRun({ failure: failureOf(error) });
    }
    setRunning(false);
  };
  const explainRun = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setRunning(true);
    try {
      const explained = await call('explain', { ...asked, run: true }, controller.signal);
      setRun((before) => ({ ...before, explained }));
    } catch (error) {
      setRun({ failure: failureOf(error) });
    }
    setRunning(false);
  };
  useEffect(
    () =>
      setRun((before) =>
        before.explained === undefined ? before : { ...(before.result && { result: before.result }) },
      ),
    [askedText],
  );
  const [enters, setEnters] = useState(0);
  useEffect(() => {
    if (!isWanted.current) return;
    isWanted.current = false;
    void start();
  }, [enters, askedText]);
  // A plan that is left of another query is no plan of one that fails.
  const shown = run.explained ?? (plan.failure === undefined ? plan.value : undefined);
  return (
    <div class="page query">
      <header class="bar">
        <h1>Query</h1>
        <Select
          label="Table"
          options={tables.map(({ name }) => [name, name] as const)}
          value={table.name}
          onChange={(name) => go(['query', name])}
        />
        <span class="grow" />
        <Button kind="primary" isDisabled={isRunning} onClick={() => void start()}>
          Run
        </Button>
      </header>
      <div class="query-columns">
        <div class="query-main">
          <section class="card" aria-label="What to ask for">
            <Builder
              table={table}
              form={form}
              onChange={change}
              onEnter={() => {
                isWanted.current = true;
                setEnters(enters + 1);
              }}
            />
          </section>
          {isRunning && <Running onStop={() => running.current?.abort()} />}
          <Failure failure={run.failure} onRetry={() => void start()} />
          {run.result !== undefined && <Result result={run.result} groups={asked.groupBy?.length ?? 0} />}
        </div>
        <div class="query-side">
          <section class="card" aria-label="As TypeScript">
            <div class="card-head">
              <h2>As TypeScript</h2>
              <Copy text={text} label="Copy the query" />
            </div>
            <pre tabIndex={0} role="group" aria-label="The query as TypeScript">
              {text}
            </pre>
          </section>
          <section class="card" aria-label="Plan">
            <div class="card-head">
              <h2>Plan</h2>
              <Button isDisabled={isRunning} onClick={() => void explainRun()}>
                Run and measure
              </Button>
            </div>
            <Failure failure={plan.failure} onRetry={plan.retry} />
            {shown !== undefined && <Plan explained={shown} />}
          </section>
        </div>
      </div>
    </div>
  );
}

function Running({ onStop }: { readonly onStop: () => void }): preact.JSX.Element {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <Progress
      label="The query runs"
      progress={{ done: 0, what: `Runs, ${plural(seconds, 'second')} so far` }}
      onStop={onStop}
    />
  );
}

interface BuilderProps {
  readonly table: TableInfo;
  readonly form: Form;
  readonly onChange: (part: Partial<Form>) => void;
  /** Is told of Enter behind words. */
  readonly onEnter: () => void;
}

function Builder({ table, form, onChange, onEnter }: BuilderProps): preact.JSX.Element {
  const { search, where, orderBy, limit, groupBy = [], aggregates = [], budget = {} } = form;
  const sortable = [
    ...[...table.fields, ...table.paths].filter(({ type }) => type !== 'json').map(({ name }) => name),
    ...pathStarts(table),
  ];
  // Groups are sorted by what they have.
  const grouped = finished(table, form);
  const ofGroups = [...(grouped.groupBy ?? []), ...(grouped.aggregates ?? []).map(({ name }) => name)];
  const ordered = groupBy.length > 0 ? ofGroups : sortable;
  const number = (text: string): number | undefined => (/^\d+$/.test(text) ? Number(text) : undefined);
  return (
    <div class="builder">
      {isSearchable(table) && (
        <>
          <h2>Search</h2>
          <SearchBox
            table={table}
            search={search}
            first={{}}
            onChange={(next) => onChange({ search: next })}
            onEnter={onEnter}
          />
        </>
      )}
      <h2>Conditions</h2>
      <Conditions table={table} where={where} onChange={(next) => onChange({ where: next })} />
      <h2>Order</h2>
      <div class="parts">
        {orderBy.map((order, i) => (
          <OrderRow
            // Rows have no identity but their place.
            key={`${i} ${choiceOf(table, order.field)}`}
            order={order}
            table={table}
            names={groupBy.length > 0 ? ofGroups : undefined}
            onChange={(next) =>
              onChange({
                orderBy: orderBy.flatMap((each, j) => (i === j ? (next === undefined ? [] : [next]) : [each])),
              })
            }
          />
        ))}
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => {
            const field = ordered.find((name) => orderBy.every((order) => order.field !== name));
            if (field !== undefined) onChange({ orderBy: [...orderBy, { field, direction: 'asc' }] });
          }}
        >
          Field
        </Button>
      </div>
      <h2>Groups</h2>
      <div class="parts">
        {groupBy.map((name, i) => (
          <span class="part" key={`${i} ${choiceOf(table, name)}`}>
            <FieldChoice
              label="Grouped by"
              table={table}
              field={name}
              takes={isOrdered}
              onChange={(next) => onChange({ groupBy: groupBy.map((each, j) => (i === j ? next : each)), orderBy: [] })}
            />
            <Button
              kind="quiet"
              icon="close"
              label={`Do not group by ${name}`}
              onClick={() => onChange({ groupBy: groupBy.filter((each) => each !== name), orderBy: [] })}
            />
          </span>
        ))}
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => {
            const field =
              sortable.find((name) => !groupBy.includes(name) && !table.primaryKey.includes(name)) ?? sortable[0];
            if (field === undefined || groupBy.includes(field)) return;
            const counted: readonly AggregateAsked[] =
              aggregates.length > 0 ? aggregates : [{ name: 'rows', kind: 'count' }];
            onChange({ groupBy: [...groupBy, field], aggregates: counted, limit: undefined, orderBy: [] });
          }}
        >
          Group
        </Button>
        {aggregates.map((aggregate, i) => (
          <AggregateRow
            // Its name changes with its field.
            key={`figure ${i}`}
            table={table}
            aggregate={aggregate}
            onChange={(next) =>
              onChange({
                aggregates: aggregates.flatMap((each, j) => (i === j ? (next === undefined ? [] : [next]) : [each])),
              })
            }
          />
        ))}
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => onChange({ aggregates: [...aggregates, freshAggregate(aggregates)] })}
        >
          Figure
        </Button>
      </div>
      <h2>Limits</h2>
      <div class="parts">
        <NumberInput label="Rows" value={limit} onChange={(value) => onChange({ limit: number(value) })} />
        <NumberInput
          label="Requests"
          value={budget.requests}
          onChange={(value) => onChange({ budget: limited({ ...budget, requests: number(value) }) })}
        />
        <NumberInput
          label="Seconds"
          value={budget.ms === undefined ? undefined : budget.ms / 1000}
          onChange={(value) => {
            const seconds = number(value);
            onChange({ budget: limited({ ...budget, ms: seconds === undefined ? undefined : seconds * 1000 }) });
          }}
        />
      </div>
    </div>
  );
}

function limited(budget: Readonly<Record<string, number | undefined>>): NonNullable<Form['budget']> {
  return Object.fromEntries(Object.entries(budget).filter(([, value]) => value !== undefined));
}

function freshAggregate(aggregates: readonly AggregateAsked[]): AggregateAsked {
  let name = 'rows';
  for (let i = 2; aggregates.some((each) => each.name === name); i++) name = `rows${i}`;
  return { name, kind: 'count' };
}

interface NumberInputProps {
  readonly label: string;
  readonly value: number | undefined;
  readonly onChange: (text: string) => void;
}

function NumberInput({ label, value, onChange }: NumberInputProps): preact.JSX.Element {
  return (
    <label class="number-input">
      {label}
      <input
        type="text"
        inputMode="numeric"
        placeholder="no limit"
        value={value === undefined ? '' : String(value)}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}

const kinds: readonly (readonly [AggregateAsked['kind'], string])[] = [
  ['count', 'number of rows'],
  ['sum', 'sum of'],
  ['avg', 'average of'],
  ['min', 'smallest'],
  ['max', 'largest'],
];

interface AggregateRowProps {
  readonly table: TableInfo;
  readonly aggregate: AggregateAsked;
  readonly onChange: (aggregate: AggregateAsked | undefined) => void;
}

function AggregateRow({ table, aggregate, onChange }: AggregateRowProps): preact.JSX.Element {
  const takes = (kind: AggregateAsked['kind'], type: ComparedType): boolean =>
    kind === 'sum' || kind === 'avg' ? type === 'any' || isNumeric(type) : type !== 'json' && type !== 'blob';
  const fieldsOf = (kind: AggregateAsked['kind']): readonly string[] => [
    ...[...table.fields, ...table.paths].filter(({ type }) => takes(kind, type)).map(({ name }) => name),
    ...pathStarts(table),
  ];
  const changeKind = (kind: AggregateAsked['kind']): void => {
    const fields = fieldsOf(kind);
    const field = aggregate.field !== undefined && fields.includes(aggregate.field) ? aggregate.field : fields[0];
    onChange(
      kind === 'count' || field === undefined
        ? { name: aggregate.name, kind: 'count' }
        : { name: `${kind}_${field}`, kind, field },
    );
  };
  return (
    <span class="part">
      <Select label={`Kind of figure ${aggregate.name}`} options={kinds} value={aggregate.kind} onChange={changeKind} />
      {aggregate.kind !== 'count' && (
        <FieldChoice
          label={`Field of figure ${aggregate.name}`}
          table={table}
          field={aggregate.field ?? ''}
          takes={(type) => takes(aggregate.kind, type)}
          onChange={(field) => onChange({ ...aggregate, field, name: `${aggregate.kind}_${field}` })}
        />
      )}
      <Button
        kind="quiet"
        icon="close"
        label={`Remove the figure ${aggregate.name}`}
        onClick={() => onChange(undefined)}
      />
    </span>
  );
}

function Result({ result, groups }: { readonly result: QueryResult; readonly groups: number }): preact.JSX.Element {
  const { columns, rows, marks, cost } = result;
  const [view, setView] = useState<'table' | 'bar' | 'line'>('table');
  const values = columns.slice(groups).map(({ name }) => name);
  const [chosen, setChosen] = useState('');
  const name = values.includes(chosen) ? chosen : (values[0] ?? '');
  const isChart = groups > 0 && values.length > 0;
  const at = columns.findIndex((column) => column.name === name);
  const some = rows.slice(0, mostPoints);
  return (
    <section class="card" aria-label="Result">
      <div class="card-head">
        <h2>{plural(rows.length, groups > 0 ? 'group' : 'row')}</h2>
        <span class="figures">
          {durationText(cost.ms)}, {plural(cost.requests, 'request')}, {bytesText(cost.bytes)},{' '}
          {dollarsText(cost.dollars)}
        </span>
        {isChart && (
          <div class="buttons">
            {view !== 'table' && values.length > 1 && (
              <Select
                label="Figure"
                options={values.map((each) => [each, each] as const)}
                value={name}
                onChange={setChosen}
              />
            )}
            <Choice
              label="Show as"
              options={[
                ['table', 'Table'],
                ['bar', 'Bars'],
                ['line', 'Line'],
              ]}
              value={view}
              onChange={setView}
            />
          </div>
        )}
      </div>
      {result.isCut === true && (
        <p class="dim">There are more than these. A lower limit or more conditions make them fewer.</p>
      )}
      {view === 'table' || !isChart ? (
        <div class="grid-box result-box">
          <Grid
            label="Result"
            columns={columns.map((column) => ({ name: column.name, type: column.type }))}
            count={rows.length}
            rowAt={(index) => rows[index]}
            marksAt={marks && ((index) => marks[index])}
            empty={<Empty title="No row matches" />}
          />
        </div>
      ) : (
        <>
          <Chart
            kind={view}
            label={name}
            names={some.map((row) =>
              columns
                .slice(0, groups)
                .map(({ type }, i) => cellText(type, row[i]))
                .join(', '),
            )}
            values={some.map((row) => (row[at] === null ? null : Number(row[at])))}
          />
          {rows.length > mostPoints && <p class="dim">The first {mostPoints} groups are drawn. The table has all.</p>}
        </>
      )}
    </section>
  );
}
