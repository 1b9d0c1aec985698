/** The page of health: nodes and the log, migrations, indexes, and the checks that a person starts. */
import { useEffect, useState } from 'preact/hooks';
import type { Calls, LongCalls } from '../../src/studio/messages.ts';
import { call } from '../model/api.ts';
import { bytesText, countText, durationText, plural } from '../model/format.ts';
import { announce, live, overview, stateText } from '../model/state.ts';
import { useCall, useLongCall } from '../model/use-call.ts';
import { Button, Dialog, Failure, Figure, Progress } from '../parts/basics.tsx';

type Health = Calls['health'][1];
type Stats = Health['stats'];

export function HealthPage(): preact.JSX.Element {
  const answer = useCall(stateText.value, (signal) => call('health', {}, signal));
  const health = answer.value;
  const stats = live.value?.stats ?? health?.stats;
  const verdict = live.value?.health ?? health?.health;
  return (
    <div class="page">
      <header class="bar">
        <h1>Health</h1>
      </header>
      <Failure failure={answer.failure} onRetry={answer.retry} />
      {verdict !== undefined && <Verdict health={verdict} />}
      {stats !== undefined && <LogCard stats={stats} />}
      {health !== undefined && (
        <div class="cards">
          <Migrations health={health} />
          <Indexes health={health} />
        </div>
      )}
      <div class="cards">
        <Doctor />
        <Verify />
      </div>
      <Gc />
    </div>
  );
}

const verdicts: Readonly<Record<Health['health']['status'], string>> = {
  ok: 'This instance is well.',
  degraded: 'This instance is degraded: it works, and something needs a look.',
  failing: 'This instance is failing.',
};

function Verdict({ health: { status, reasons } }: { readonly health: Health['health'] }): preact.JSX.Element {
  return (
    <section class="card" aria-label="Verdict">
      <p class={`notice ${status === 'ok' ? 'good' : 'bad'}`} role="status">
        {verdicts[status]}
      </p>
      {reasons.length > 0 && (
        <ul class="checks-list">
          {reasons.map((reason) => (
            <li key={reason.code}>
              <span class={`badge ${reason.status === 'failing' ? 'bad' : 'warn'}`}>{reason.code}</span>{' '}
              {reason.message}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const roles: Readonly<Record<Stats['role'], string>> = {
  writer: 'Writer',
  ephemeral: 'Writer without a node id of its own',
  replica: 'Replica: reads only',
};

function LogCard({ stats }: { readonly stats: Stats }): preact.JSX.Element {
  const { log, role, cache, memory, merges } = stats;
  const looked = cache.hits + cache.driverHits + cache.misses;
  return (
    <section class="card" aria-label="This instance and the log">
      <h2>This instance and the log</h2>
      <dl class="figures-row">
        <Figure name="Role" note={role === 'replica' || log === undefined ? undefined : `node ${log.nodeId}`}>
          {roles[role]}
        </Figure>
        {log !== undefined && (
          <>
            <Figure name="Position" note={`merged up to ${countText(log.appliedSeq)}`}>
              {countText(log.tail)}
            </Figure>
            <Figure name="Waiting to be merged" note={bytesText(log.pendingBytes)}>
              {plural(log.pendingCommits, 'commit')}
            </Figure>
            <Figure name="Staleness" note="since it last knew the newest state">
              {durationText(log.ageMs)}
            </Figure>
            <Figure name="Generation" note={`revision ${countText(log.revision)}`}>
              {countText(log.generation)}
            </Figure>
            <Figure name="Nodes" note={log.nodes.length === 0 ? 'none registered' : 'merge in this turn'}>
              {log.nodes.length === 0 ? '–' : log.nodes.join(', ')}
            </Figure>
          </>
        )}
        <Figure
          name="Cache"
          note={looked === 0 ? undefined : `${Math.round((cache.hits / looked) * 100)} % of blocks were in memory`}
        >
          {bytesText(cache.sizeBytes)}
        </Figure>
        {memory !== undefined && (
          <Figure name="Memory" note={`of ${bytesText(memory.maxBytes)}`}>
            {bytesText(memory.leafBytes + memory.innerBytes + memory.committedBytes + memory.scratchBytes)}
          </Figure>
        )}
        {merges !== undefined && (
          <Figure
            name="Merges"
            note={`${plural(merges.blocksWritten, 'block')} written, ${countText(merges.lostMerges)} lost`}
          >
            {countText(merges.merges)}
          </Figure>
        )}
      </dl>
    </section>
  );
}

function Migrations({ health }: { readonly health: Health }): preact.JSX.Element {
  const active = health.migrations.filter(({ state }) => state !== 'none');
  return (
    <section class="card" aria-label="Migrations">
      <h2>Migrations</h2>
      {active.length === 0 && <p class="dim">No table is being migrated.</p>}
      {active.map(({ table, state, from, to, rowsDone, rowsTotal, rowsPerSecond, blockers }) => (
        <div key={table} class="item">
          <div class="card-head">
            <strong>{table}</strong>
            <span>
              version {from ?? '–'} to {to ?? '–'}{' '}
              <span class={`badge ${state === 'blocked' ? 'bad' : 'warn'}`}>{state}</span>
            </span>
          </div>
          <Progress
            label={`Migration of ${table}`}
            progress={{ done: rowsDone, total: rowsTotal, what: `${countText(rowsPerSecond)} rows per second` }}
          />
          {blockers.map((blocker) => (
            <p key={blocker} class="problem">
              {blocker}
            </p>
          ))}
        </div>
      ))}
    </section>
  );
}

function Indexes({ health }: { readonly health: Health }): preact.JSX.Element {
  const all = health.indexes.flatMap(({ table, indexes }) => indexes.map((index) => ({ table, index })));
  const unfinished = all.filter(({ index }) => index.state !== 'ready');
  return (
    <section class="card" aria-label="Indexes">
      <h2>Indexes</h2>
      <p class="dim">
        {plural(all.length - unfinished.length, 'index is', 'indexes are')} ready
        {unfinished.length === 0 ? '.' : `, ${countText(unfinished.length)} not yet:`}
      </p>
      {unfinished.map(({ table, index }) => (
        <div key={`${table} ${index.name}`} class="item">
          <div class="card-head">
            <strong>
              {table} · {index.name}
            </strong>
            <span class={`badge ${index.state === 'failed' ? 'bad' : 'warn'}`}>{index.state}</span>
          </div>
          {index.state === 'building' && (
            <Progress
              label={`Index ${index.name}`}
              progress={{ done: index.rowsDone, total: index.rowsTotal, what: 'Rows' }}
            />
          )}
          {index.problem !== undefined && <p class="problem">{index.problem}</p>}
        </div>
      ))}
    </section>
  );
}

function Doctor(): preact.JSX.Element {
  const { value, failure, progress, start, stop } = useLongCall('doctor');
  return (
    <section class="card" aria-label="Check of the store">
      <div class="card-head">
        <h2>Check of the store</h2>
        <Button isDisabled={progress !== undefined} onClick={() => start({})}>
          Run doctor
        </Button>
      </div>
      <p class="dim">Tests whether the store keeps the rules that a database depends on.</p>
      <Progress label="Doctor" progress={progress} onStop={stop} />
      <Failure failure={failure} onRetry={() => start({})} />
      {value !== undefined && progress === undefined && <DoctorResult report={value} />}
    </section>
  );
}

const statusKinds: Readonly<Record<string, string>> = {
  passed: 'good',
  failed: 'bad',
  warning: 'warn',
  skipped: 'dim',
};

function DoctorResult({ report }: { readonly report: LongCalls['doctor'][1] }): preact.JSX.Element {
  const { safe, problems, checks, recommendations, database, driver, requests } = report;
  const verdict = safe
    ? 'The store keeps all rules.'
    : problems.length > 0
      ? 'The store broke rules.'
      : 'Some checks had no result.';
  return (
    <>
      <p class={`notice ${safe ? 'good' : 'bad'}`} role="status">
        {verdict} {database.detail} ({driver}, {plural(requests, 'request')})
      </p>
      {recommendations.map((text) => (
        <p key={text}>{text}</p>
      ))}
      <details>
        <summary>{plural(checks.length, 'check')}</summary>
        <ul class="checks-list">
          {checks.map(({ name, status, detail }) => (
            <li key={name}>
              <span class={`badge ${statusKinds[status] ?? 'dim'}`}>{status}</span> <strong>{name}</strong>{' '}
              <span class="dim">{detail}</span>
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

function Verify(): preact.JSX.Element {
  const { value, failure, progress, start, stop } = useLongCall('verify');
  return (
    <section class="card" aria-label="Check of what is stored">
      <div class="card-head">
        <h2>Check of what is stored</h2>
        <div class="buttons">
          <Button isDisabled={progress !== undefined} onClick={() => start({})}>
            Run verify
          </Button>
          <Button isDisabled={progress !== undefined} onClick={() => start({ deep: true })}>
            Deep
          </Button>
        </div>
      </div>
      <p class="dim">
        Reads every block of the newest state, and compares indexes with rows. Deep also reads blobs and kept states.
      </p>
      <Progress label="Verify" progress={progress} onStop={stop} />
      <Failure failure={failure} onRetry={() => start({})} />
      {value !== undefined && progress === undefined && <VerifyResult report={value} />}
    </section>
  );
}

function VerifyResult({ report }: { readonly report: LongCalls['verify'][1] }): preact.JSX.Element {
  const { ok, findings, tables } = report;
  return (
    <>
      <p class={`notice ${ok ? 'good' : 'bad'}`} role="status">
        {ok ? 'Everything is sound.' : `${plural(findings.length, 'problem')} found.`}
      </p>
      {findings.length > 0 && (
        <ul class="checks-list">
          {findings.slice(0, 100).map((finding) => (
            <li key={JSON.stringify(finding)}>{finding.message}</li>
          ))}
        </ul>
      )}
      <details>
        <summary>{plural(tables.length, 'table')}</summary>
        <div class="table-box" tabIndex={0} role="group" aria-label="Table">
          <table class="plain small">
            <thead>
              <tr>
                <th scope="col">Table</th>
                <th scope="col" class="number">
                  Rows
                </th>
                <th scope="col" class="number">
                  Blocks
                </th>
              </tr>
            </thead>
            <tbody>
              {tables.map(({ name, rows, blocks }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class="number">{countText(rows)}</td>
                  <td class="number">{countText(blocks)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function Gc(): preact.JSX.Element {
  const preview = useLongCall('gc');
  const collection = useLongCall('gc');
  const [isAsking, setAsking] = useState(false);
  const isWritable = overview.value?.writable === true;
  const { value, failure, progress } = preview;
  // What was shown before is gone.
  useEffect(() => {
    if (collection.value !== undefined) preview.start({});
  }, [collection.value]);
  const reasons = value === undefined ? [] : reasonsOf(value);
  const isBusy = progress !== undefined || collection.progress !== undefined;
  return (
    <section class="card" aria-label="Garbage">
      <div class="card-head">
        <h2>Garbage</h2>
        <div class="buttons">
          <Button isDisabled={isBusy} onClick={() => preview.start({})}>
            Show what would go
          </Button>
          {isWritable && (
            <Button kind="danger" isDisabled={isBusy || reasons.length === 0} onClick={() => setAsking(true)}>
              Collect…
            </Button>
          )}
        </div>
      </div>
      <p class="dim">Objects that nothing needs any more, and the reason for each. Looking deletes nothing.</p>
      <Progress label="Looks for garbage" progress={progress} onStop={preview.stop} />
      <Progress label="Collects garbage" progress={collection.progress} onStop={collection.stop} />
      <Failure failure={failure} onRetry={() => preview.start({})} />
      <Failure failure={collection.failure} />
      {collection.value !== undefined && collection.progress === undefined && (
        <p class="notice good" role="status">
          {plural(
            Object.values(collection.value.counts).reduce((sum, count) => sum + count, 0),
            'object',
          )}{' '}
          deleted, {bytesText(collection.value.freedBytes)} freed.
        </p>
      )}
      {value !== undefined && progress === undefined && (
        <>
          <p role="status">
            {reasons.length === 0
              ? 'There is no garbage.'
              : `${plural(value.garbage.length, 'object')} with ${bytesText(value.freedBytes)} would go.`}
          </p>
          {reasons.map(({ reason, kind, objects, sizeBytes, names }) => (
            <details key={`${kind} ${reason}`}>
              <summary>
                <strong>{plural(objects, kind)}</strong>, {bytesText(sizeBytes)}: {reason}
              </summary>
              <ul class="checks-list code">
                {names.map((name) => (
                  <li key={name}>{name}</li>
                ))}
                {objects > names.length && <li>… and {countText(objects - names.length)} more</li>}
              </ul>
            </details>
          ))}
        </>
      )}
      {isAsking && value !== undefined && (
        <Dialog title="Collect the garbage?" onClose={() => setAsking(false)}>
          <p>
            {plural(value.garbage.length, 'object')} with {bytesText(value.freedBytes)} go for good, and what has become
            garbage since.
          </p>
          <div class="buttons">
            <Button
              kind="danger"
              onClick={() => {
                setAsking(false);
                announce('Collects the garbage.');
                collection.start({ collect: true });
              }}
            >
              Collect
            </Button>
            <Button onClick={() => setAsking(false)}>Leave it</Button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

interface Reason {
  readonly reason: string;
  readonly kind: string;
  readonly objects: number;
  readonly sizeBytes: number;
  readonly names: readonly string[];
}

const mostNames = 50;

/** Groups what would go by its kind and the reason. */
function reasonsOf({ garbage }: LongCalls['gc'][1]): readonly Reason[] {
  const groups = Map.groupBy(garbage, ({ kind, reason }) => `${kind} ${reason}`);
  return [...groups.values()]
    .map((those) => ({
      reason: those[0]?.reason ?? '',
      kind: those[0]?.kind ?? '',
      objects: those.length,
      sizeBytes: those.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      names: those.slice(0, mostNames).map(({ name }) => name),
    }))
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}
