/** The page of time: commits as a time line, the states that can be looked at, and two of them beside each other. */
import { useEffect, useState } from 'preact/hooks';
import type { Calls, Moment } from '../../src/studio/messages.ts';
import { call, failureOf } from '../model/api.ts';
import type { CallFailure } from '../model/api.ts';
import { cellText, countText, plural, timeText } from '../model/format.ts';
import { go, linkTo } from '../model/route.ts';
import { stateText, tableNamed } from '../model/state.ts';
import { useCall } from '../model/use-call.ts';
import { Button, Empty, Failure } from '../parts/basics.tsx';
import { Difference } from '../parts/difference.tsx';
import { Compare } from './compare.tsx';
import { MomentForm } from './moment-form.tsx';

type Commit = Calls['commits'][1]['commits'][number];

const perPage = 25;

export function TimePage(): preact.JSX.Element {
  const state = stateText.value;
  const moments = useCall(state, (signal) => call('moments', {}, signal));
  return (
    <div class="page">
      <header class="bar">
        <h1>Time</h1>
      </header>
      <div class="time-columns">
        <Commits state={state} />
        <div class="query-side">
          <section class="card" aria-label="Look at an earlier state">
            <h2>Look at an earlier state</h2>
            <Failure failure={moments.failure} onRetry={moments.retry} />
            <MomentForm
              label="Earlier state"
              moments={moments.value}
              button="Browse it"
              onChoose={(at) => go(['tables'], { at: JSON.stringify(at) })}
            />
            {moments.value !== undefined && <Snapshots moments={moments.value} />}
          </section>
          <section class="card" aria-label="Compare two states">
            <h2>Compare two states</h2>
            <Compare moments={moments.value} />
          </section>
        </div>
      </div>
    </div>
  );
}

function Snapshots({ moments }: { readonly moments: Calls['moments'][1] }): preact.JSX.Element {
  const { snapshots, generation } = moments;
  return (
    <>
      <p class="dim">
        The newest generation is {countText(generation)}. Earlier ones can be read as long as snapshots or history keep
        them.
      </p>
      {snapshots.length > 0 && (
        <ul class="snapshots">
          {snapshots.map((snapshot) => {
            const at: Moment = { snapshot: snapshot.id };
            return (
              <li key={snapshot.id}>
                <a href={linkTo(['tables'], { at: JSON.stringify(at) })}>
                  Snapshot of generation {countText(snapshot.generation)}
                </a>{' '}
                <span class="dim">
                  node {snapshot.nodeId}, {timeText(String(snapshot.createdAt))}
                </span>
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}

function Commits({ state }: { readonly state: string }): preact.JSX.Element {
  const [commits, setCommits] = useState<readonly Commit[]>([]);
  const [isEnd, setEnd] = useState(false);
  const [isLoaded, setLoaded] = useState(false);
  const [failure, setFailure] = useState<CallFailure | undefined>(undefined);
  const read = async (before: number | undefined, known: readonly Commit[], limit: number): Promise<void> => {
    try {
      const page = await call('commits', { limit, ...(before !== undefined && { before }) });
      setCommits([...known, ...page.commits]);
      setEnd(page.commits.length < limit);
      setFailure(undefined);
    } catch (error) {
      setFailure(failureOf(error));
    }
    setLoaded(true);
  };
  // A newer state: as many as are shown.
  useEffect(() => {
    void read(undefined, [], Math.max(perPage, Math.min(200, commits.length)));
  }, [state]);
  const days = Map.groupBy(commits, ({ writtenAt }) => String(writtenAt).slice(0, 10));
  return (
    <section class="card" aria-label="Commits">
      <h2>Commits</h2>
      <Failure failure={failure} onRetry={() => void read(undefined, [], perPage)} />
      {isLoaded && commits.length === 0 && failure === undefined && (
        <Empty title="The log is empty">
          <p>Commits are listed from the first one on until garbage collection deletes them, after they were merged.</p>
        </Empty>
      )}
      {[...days].map(([day, those]) => (
        <div key={day} class="day">
          <h3>{day}</h3>
          <ol class="line">
            {those.map((commit) => (
              <CommitItem key={commit.position} commit={commit} />
            ))}
          </ol>
        </div>
      ))}
      {commits.length > 0 && !isEnd && (
        <Button onClick={() => void read(commits.at(-1)?.position, commits, perPage)}>Earlier commits</Button>
      )}
    </section>
  );
}

function CommitItem({ commit }: { readonly commit: Commit }): preact.JSX.Element {
  const { position, nodeId, writtenAt, rows, merged, flushes, drops = [] } = commit;
  const [isOpen, setOpen] = useState(false);
  const tables = Object.entries(rows).filter(([name]) => !name.startsWith('_'));
  const parts = [
    ...drops.map((name) => `drops ${name}`),
    ...tables.map(([name, count]) => `${name}: ${plural(count, 'row')}`),
  ];
  const time = String(writtenAt);
  return (
    <li class={`commit${merged ? '' : ' pending'}`}>
      <div class="commit-head">
        <button type="button" class="commit-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <time dateTime={time}>{timeText(time).slice(11)}</time>
          <strong>#{countText(position)}</strong>
          <span>{parts.length === 0 ? 'system tables only' : parts.join(', ')}</span>
        </button>
        <span class="dim">
          node {nodeId}
          {flushes > 1 && `, ${plural(flushes, 'flush', 'flushes')}`}
        </span>
        <span class={`badge ${merged ? 'good' : 'warn'}`}>{merged ? 'merged' : 'pending'}</span>
      </div>
      {isOpen && <Changes position={position} time={time} />}
    </li>
  );
}

function Changes({ position, time }: { readonly position: number; readonly time: string }): preact.JSX.Element {
  const answer = useCall(String(position), (signal) => call('commit', { position }, signal));
  const shown = answer.value;
  return (
    <div class="changes">
      <Failure failure={answer.failure} onRetry={answer.retry} />
      {shown === undefined && answer.failure === undefined && <p class="dim">Reads the commit…</p>}
      {shown?.changes.map((change, at) => {
        const { table, operation, key, row, before } = change;
        if (operation === 'drop') {
          return (
            <p key={`${at} ${table}`}>
              <span class="badge bad">dropped</span> table <strong>{table}</strong>
            </p>
          );
        }
        const what = operation === 'delete' ? 'deleted' : before === null ? 'inserted' : 'written';
        return (
          <details key={`${at} ${table}`} open={shown.changes.length <= 3}>
            <summary>
              <span class={`badge ${operation === 'delete' ? 'bad' : 'good'}`}>{what}</span> {table}{' '}
              <strong>{key.map((part) => cellText(null, part)).join(', ')}</strong>
            </summary>
            <Difference
              table={tableNamed(table)}
              from={before}
              to={operation === 'delete' ? null : row}
              names={['Before', 'After']}
            />
            {before === undefined && <p class="dim">The row before it is not kept any more.</p>}
          </details>
        );
      })}
      {shown?.isCut === true && <p class="dim">It changes more rows than are shown.</p>}
      <p>
        <a href={linkTo(['tables'], { at: JSON.stringify({ time }) })}>Browse the tables as they were then</a>
      </p>
    </div>
  );
}
