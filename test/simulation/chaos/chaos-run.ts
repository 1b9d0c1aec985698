/**
 * A whole run: four real processes work on one database for some time, while they are killed, stopped and cut off and
 * their clocks are wrong. Then everything that they told is compared with what they left.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isRemote } from '../crash/crash-store.ts';
import type { CrashStore } from '../crash/crash-store.ts';
import { bundleProgram } from '../crash/program-bundle.ts';
import { startProxy, throughProxy } from '../crash/store-proxy.ts';
import type { TcpProxy } from '../../servers/s3/tcp-proxy.ts';
import { Conductor } from './conductor.ts';
import type { FaultCounts } from './conductor.ts';
import { endDatabase, openings, prepareDatabase } from './final-state.ts';
import type { Ending } from './final-state.ts';
import { writeHistory } from './history.ts';
import type { Anomaly, FinalState, History } from './history.ts';
import { checkHistory, checkReports } from './judge.ts';
import { Lane } from './lane.ts';
import { machineMs } from './lane-protocol.ts';
import { Recorder } from './recorder.ts';
import { describeAnomalies, summarize } from './summary.ts';
import { laneCount } from './tables.ts';

/** How long a run lasts at most because no process is at work, or because too little has been merged, in milliseconds. */
const patienceMs = 240_000;

export interface ChaosOptions {
  readonly store: CrashStore;
  readonly dbPrefix: string;
  /** How long it lasts, from when the first process is at work. */
  readonly seconds: number;
  /** It lasts longer where there are fewer merges. Default 0. */
  readonly leastMerges?: number;
  readonly seed: string;
  /** The interval of write authority, in milliseconds. Default 400. */
  readonly intervalMs?: number;
  /** How long each worker waits between two operations, at most, in milliseconds. Default 150. */
  readonly pauseMs?: number;
}

export interface ChaosResult {
  readonly history: History;
  readonly anomalies: readonly Anomaly[];
  readonly faultCounts: FaultCounts;
  readonly merges: number;
  readonly commits: number;
  readonly summary: string;
}

export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { store, dbPrefix, seconds, seed, leastMerges = 0, intervalMs = 400, pauseMs = 150 } = options;
  const folder = mkdtempSync(path.join(tmpdir(), 'store-db-chaos-'));
  const proxies: TcpProxy[] = [];
  const recorder = new Recorder();
  try {
    const program = bundleProgram(new URL('lane-program.ts', import.meta.url), folder);
    await prepareDatabase(store, dbPrefix);
    const epochMs = machineMs();
    const lanes: Lane[] = [];
    for (let lane = 0; lane < laneCount; lane++) {
      let proxy: TcpProxy | undefined;
      let ownStore = store;
      if (isRemote(store)) {
        proxy = await startProxy(store, { seed: `${seed} ${lane}` });
        ownStore = throughProxy(store, proxy);
        proxies.push(proxy);
      }
      const task = { store: ownStore, dbPrefix, intervalMs, pauseMs, epochMs };
      lanes.push(new Lane({ program, lane, recorder, proxy, task }));
    }
    const conductor = new Conductor({ lanes, recorder, seed, intervalMs });
    let readyMs: number | undefined;
    const isTimeLeft = (): boolean => {
      if (lanes.some(({ isReady }) => isReady)) readyMs ??= machineMs();
      const isTooEarly = readyMs !== undefined && machineMs() - readyMs < seconds * 1000;
      const isTooLittle = readyMs === undefined || recorder.figures.merges < leastMerges;
      return isTooEarly || (isTooLittle && machineMs() - epochMs < patienceMs);
    };
    await conductor.run(() => isTimeLeft() && recorder.anomalies.length === 0);
    const ranSeconds = (machineMs() - epochMs) / 1000;
    await Promise.all(proxies.map((proxy) => proxy.settled()));
    const { final, anomalies, commits } = await endDatabase(store, dbPrefix).catch(unreadable);
    const { operations, figures } = recorder;
    const history: History = { opening: openings, stalenessMs: 2 * intervalMs, operations, final };
    const summary = summarize(operations, {
      seconds: ranSeconds,
      commits,
      lives: lanes.reduce((sum, { lives }) => sum + lives, 0),
      faultCounts: conductor.faultCounts,
      figures,
      proxied: proxies.length === 0 ? undefined : sumOf(proxies.map(({ counts }) => counts)),
    });
    const check = final === noState ? checkReports : checkHistory;
    const found = [...recorder.anomalies, ...anomalies, ...check(history)];
    return { history, anomalies: found, faultCounts: conductor.faultCounts, merges: figures.merges, commits, summary };
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.close()));
    rmSync(folder, { recursive: true, force: true });
  }
}

const noState: FinalState = { lists: {}, banks: {}, marks: [], fields: {} };

/** What was done before is to be kept all the same. */
function unreadable(error: Error): Ending {
  const anomaly = { kind: 'cannot be read in the end', message: error.stack ?? error.message };
  return { final: noState, anomalies: [anomaly], commits: 0 };
}

function sumOf(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const one of counts) for (const [name, count] of Object.entries(one)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

/** Throws if anything was found, having written the history to a file, and says how to check it again. */
export function expectNoAnomalies({ anomalies, history, summary }: ChaosResult): void {
  if (anomalies.length === 0) return;
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'store-db-history-')), 'history.jsonl');
  writeHistory(file, history);
  const again = `The history is in ${file}. To check it again: npx tsx scripts/chaos.ts check ${file}`;
  throw new Error(`${describeAnomalies(anomalies)}\n\n${summary}\n\n${again}`);
}
