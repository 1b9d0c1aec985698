/**
 * What this machine allows: the system calls, or the requests, that a commit or an opening cannot do without, made one after
 * the other by plain code that does nothing else. In tables it stands beside the databases, as `limit`.
 */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { medianOf, noFigures } from './figures.ts';
import type { Figures, Measurement } from './figures.ts';

export const limitName = 'limit';
const commitBytes = 256;
const commitsOfRound = 300;
const requestsOfRound = 20;

/** A commit of its own file: the file and its place in the folder are on the disk when it is over. */
function commitFile(folder: string, opened: number, name: string, bytes: Uint8Array): void {
  const temporary = path.join(folder, `#${name}`);
  const file = fs.openSync(temporary, 'wx');
  fs.writeSync(file, bytes);
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.linkSync(temporary, path.join(folder, name));
  fs.fsyncSync(opened);
  fs.unlinkSync(temporary);
}

/** Commits of one row a second, as new files: what a store of objects in a folder comes down to. */
export function fileLimit(root: string, rows: number, rounds: number): Figures {
  const folder = fs.mkdtempSync(path.join(root, 'limit-'));
  const opened = fs.openSync(folder, 'r');
  const bytes = Buffer.alloc(commitBytes, 1);
  const values: number[] = [];
  const perCpuSecond: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const startedMs = performance.now();
    const cpu = process.cpuUsage();
    for (let i = 0; i < commitsOfRound; i++) commitFile(folder, opened, `${round}-${i}`, bytes);
    const { user, system } = process.cpuUsage(cpu);
    values.push((commitsOfRound * 1000) / (performance.now() - startedMs));
    perCpuSecond.push((commitsOfRound * 1_000_000) / (user + system));
  }
  fs.closeSync(opened);
  const measured = { part: 'writes', workload: 'commit', rows, contender: limitName, values, perCpuSecond } as const;
  return { ...noFigures(), measurements: [measured] };
}

/** One request, over a connection that is kept, by HTTP alone: neither signed nor looked into. */
function request(endpoint: string, agent: http.Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    http.get(`${endpoint}/nothing`, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}

/** Milliseconds of what takes two requests, each after the other, and of what takes three. */
export async function storeLimit(endpoint: string, rows: number, rounds: number): Promise<Measurement[]> {
  const agent = new http.Agent({ keepAlive: true });
  const took: number[] = [];
  await request(endpoint, agent);
  for (let i = 0; i < rounds * requestsOfRound; i++) {
    const startedMs = performance.now();
    await request(endpoint, agent);
    took.push(performance.now() - startedMs);
  }
  agent.destroy();
  const of = (workload: string, requests: number): Measurement => ({
    part: 'store',
    workload,
    rows,
    contender: limitName,
    values: [requests * medianOf(took)],
  });
  return [of('store-open-ms', 3), of('store-commit-ms', 2)];
}
