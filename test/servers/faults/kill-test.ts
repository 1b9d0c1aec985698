/**
 * A database survives that its writers are killed at any moment, while the store's server is struck too. One writer reaches
 * the store directly, another through a network that delays, cuts and loses.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { RemoteStore } from '../../simulation/crash/crash-store.ts';
import { bundleChild, KillChain, newTally } from '../../simulation/crash/kill-chain.ts';
import { remoteAim, restless } from '../../simulation/crash/restless-network.ts';
import { startProxy, throughProxy } from '../../simulation/crash/store-proxy.ts';
import type { TcpProxy } from '../s3/tcp-proxy.ts';

/** A server of a store, whose processes a test kills, stops or starts again. */
export interface StruckServer {
  readonly store: RemoteStore;
  /** What can be done to the server, by name. Each resolves when requests are served again. */
  readonly strikes: Readonly<Record<string, (random: SeededRandom) => Promise<void>>>;
  close(): Promise<void>;
}

/** Strikes the server again and again. */
async function strikeServer(
  { strikes }: StruckServer,
  counts: Record<string, number>,
  goesOn: () => boolean,
): Promise<void> {
  const random = new SeededRandom('server');
  let tookMs = 0;
  while (goesOn()) {
    for (const name of random.shuffled(Object.keys(strikes))) {
      // A server that takes long to start has time to do something.
      await sleep(Math.max(random.between(1000, 6000), 2 * tookMs));
      const beganMs = performance.now();
      await strikes[name]?.(random);
      tookMs = performance.now() - beganMs;
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
}

/** The longest that a test goes on where too little has happened, in seconds. */
const mostSeconds = 270;

/** Defines the test for a server. It lasts for so many seconds; longer where too little happened by then. */
export function testKills(serverName: string, seconds: number, open: () => Promise<StruckServer>): void {
  let folder = '';
  let server: StruckServer | undefined;
  let proxy: TcpProxy | undefined;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'store-db-kill-'));
    server = await open();
    proxy = await startProxy(server.store, { seed: serverName, rules: restless });
  }, 120_000);

  afterAll(async () => {
    await proxy?.close();
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  it(`a database on ${serverName} keeps all acknowledged writes, no matter which process is killed`, {
    timeout: Math.max(seconds, mostSeconds) * 1000 + 300_000,
  }, async ({ annotate }) => {
    const { store, strikes } = server as StruckServer;
    const child = bundleChild(folder);
    const [direct, proxied] = [newTally(), newTally()];
    const counts: Record<string, number> = {};
    const isEnough = (): boolean =>
      [direct, proxied].every(({ kills, merges, acknowledged }) => kills >= 5 && merges >= 3 && acknowledged >= 6) &&
      Object.keys(strikes).every((name) => (counts[name] ?? 0) >= 1);
    const started = performance.now();
    let isBroken = false;
    const goesOn = (): boolean => {
      const passed = (performance.now() - started) / 1000;
      return !isBroken && (passed < seconds || (passed < mostSeconds && !isEnough()));
    };
    const chains = [
      new KillChain({ child, store, seed: 'direct', aim: remoteAim, tally: direct }),
      new KillChain({
        child,
        store: throughProxy(store, proxy as TcpProxy),
        checkedStore: store,
        seed: 'proxied',
        aim: remoteAim,
        tally: proxied,
      }),
    ];
    const ended = (error: unknown): never => {
      isBroken = true;
      throw error;
    };
    const striking = strikeServer(server as StruckServer, counts, goesOn);
    await Promise.all([striking.catch(ended), ...chains.map((chain) => chain.run(goesOn).catch(ended))]);
    await annotate(JSON.stringify({ strikes: counts, direct, proxied, proxy: proxy?.counts }));
    expect(isEnough()).toBe(true);
  });
}
