/** Compares a table at two moments, row by row. */
import { useState } from 'preact/hooks';
import type { Moment, Moments } from '../../src/studio/messages.ts';
import { cellText, countText, plural } from '../model/format.ts';
import { overview, tableNamed } from '../model/state.ts';
import { useLongCall } from '../model/use-call.ts';
import { NoValue } from '../model/values.ts';
import { Button, Failure, Progress, Select } from '../parts/basics.tsx';
import { Difference } from '../parts/difference.tsx';
import { MomentInput, parseMoment } from './moment-form.tsx';
import type { MomentKind } from './moment-form.tsx';

type Typed = readonly [kind: MomentKind, text: string];

const mostDifferences = 200;

export function Compare({ moments }: { readonly moments: Moments | undefined }): preact.JSX.Element {
  const tables = overview.value?.tables ?? [];
  const [table, setTable] = useState(tables[0]?.name ?? '');
  const [from, setFrom] = useState<Typed>(['generation', moments === undefined ? '' : String(moments.generation)]);
  const [to, setTo] = useState<Typed>(['time', '']);
  const [problem, setProblem] = useState('');
  const { value, failure, progress, start, stop } = useLongCall('compare');
  const compare = (): void => {
    try {
      const earlier: Moment = parseMoment(...from);
      const later = to[1].trim() === '' ? undefined : parseMoment(...to);
      setProblem('');
      start({ table, from: earlier, ...(later && { to: later }), limit: mostDifferences });
    } catch (error) {
      if (!(error instanceof NoValue)) throw error;
      setProblem(error.message);
    }
  };
  if (tables.length === 0) return <p class="dim">There are no tables to compare yet.</p>;
  const info = tableNamed(table);
  return (
    <>
      <div class="compare-form">
        <span>Table</span>
        <Select
          label="Table"
          options={tables.map(({ name }) => [name, name] as const)}
          value={table}
          onChange={setTable}
        />
        <span>From</span>
        <MomentInput
          label="From"
          kind={from[0]}
          text={from[1]}
          onChange={(...typed) => setFrom(typed)}
          onEnter={compare}
        />
        <span>To</span>
        <MomentInput
          label="To, now if it is empty"
          kind={to[0]}
          text={to[1]}
          onChange={(...typed) => setTo(typed)}
          onEnter={compare}
        />
      </div>
      <p class="dim">An empty field for the end means now.</p>
      <div class="buttons">
        <Button isDisabled={progress !== undefined} onClick={compare}>
          Compare
        </Button>
      </div>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Progress label="Compares" progress={progress} onStop={stop} />
      <Failure failure={failure} onRetry={compare} />
      {value !== undefined && progress === undefined && (
        <div role="status">
          <p>
            {value.differences.length === 0
              ? 'No row differs.'
              : `${plural(value.differences.length, 'row')} ${value.differences.length === 1 ? 'differs' : 'differ'}.`}{' '}
            <span class="dim">{plural(value.rowsRead, 'row')} read.</span>
          </p>
          {value.isCut && (
            <p class="dim">The first {countText(mostDifferences)} differences are shown; there are more.</p>
          )}
        </div>
      )}
      {value?.differences.map(({ key, from: earlier, to: later }) => (
        <details key={JSON.stringify(key)} open={value.differences.length <= 5}>
          <summary>
            <span class={`badge ${later === null ? 'bad' : earlier === null ? 'good' : 'warn'}`}>
              {later === null ? 'deleted' : earlier === null ? 'inserted' : 'changed'}
            </span>{' '}
            <strong>{key.map((part) => cellText(null, part)).join(', ')}</strong>
          </summary>
          <Difference table={info} from={earlier} to={later} names={['From', 'To']} />
        </details>
      ))}
    </>
  );
}
