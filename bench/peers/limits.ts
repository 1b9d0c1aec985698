/**
 * What an object store allows: the requests that a commit or an opening cannot do without, made one after the other by plain
 * code that does nothing else. In tables it stands beside the databases, as `limit`.
 */
import http from 'node:http';
import { limitName } from './contenders.ts';
import { medianOf } from './figures.ts';
import type { Measurement } from './figures.ts';

const requestsOfRound = 20;

/** One request, over a connection that is kept, by HTTP alone: neither signed nor looked into. */
function request(endpoint: string, agent: http.Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    http.get(`${endpoint}/nothing`, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject);
  });
}

/**
 * Milliseconds of what takes two requests, each after the other: a commit, and a first row, of whose three requests two can be
 * made at the same time.
 */
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
  const of = (workload: string): Measurement => ({
    part: 'store',
    workload,
    rows,
    contender: limitName,
    values: [2 * medianOf(took)],
  });
  return [of('store-open-ms'), of('store-commit-ms')];
}
