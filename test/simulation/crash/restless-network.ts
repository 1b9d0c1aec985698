/** The faults of the network in the kill tests, and the moments of kills there. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { ProxiedRequest, ProxyRule } from '../../servers/s3/tcp-proxy.ts';
import type { Aim } from './kill-chain.ts';

/** On which everything depends: commits, and Block 0. */
function isDecisive({ method, path }: ProxiedRequest): boolean {
  return method === 'PUT' && (path.includes('/committed/') || path.endsWith('/block0'));
}

/** Every fault now and then, and more of them where they hurt. */
export const restless: readonly ProxyRule[] = [
  { fault: 'delay-request', probability: 0.1, delayMs: [0, 60] },
  { fault: 'delay-answer', probability: 0.1, delayMs: [0, 60] },
  { fault: 'cut-after', probability: 0.06, matches: isDecisive },
  { fault: 'land-late', probability: 0.04, matches: isDecisive, delayMs: [0, 400] },
  // Rare, since a request that is never answered is waited for longer than a process lives.
  { fault: 'black-hole', probability: 0.004 },
  { fault: 'cut-before', probability: 0.02 },
  { fault: 'cut-within', probability: 0.02 },
  { fault: 'cut-after', probability: 0.02 },
  { fault: 'cut-answer', probability: 0.02 },
  { fault: 'land-late', probability: 0.02, delayMs: [0, 400] },
];

/** When to kill a process that takes its time to start, and to do anything. */
export function remoteAim(random: SeededRandom): Aim {
  const dice = random.next();
  if (dice < 0.05) return { what: 'start', nth: 1, afterMs: random.between(100, 900) };
  if (dice < 0.25) return { what: 'ready', nth: 1, afterMs: random.between(0, 600) };
  if (dice < 0.6) return { what: 'flush', nth: random.integer(1, 12), afterMs: random.between(0, 120) };
  return { what: 'merge', nth: random.integer(1, 4), afterMs: random.chance(0.3) ? 0 : random.between(0, 40) };
}
