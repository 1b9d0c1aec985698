/**
 * Identifiers, made from the injected environment's randomness and from its clocks: a process that was cloned while it
 * ran (a virtual machine that was copied, or restored twice) draws the same random numbers as its twin, but hardly in
 * the same microsecond.
 */
import type { Environment } from './env.ts';
import { toHex } from './bytes.ts';

function formatUuid(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** So many random bytes, 8 at least, for what must be new: another process with the same random numbers has others. */
export function newBytes(environment: Environment, length: number): Uint8Array {
  const bytes = environment.randomBytes(length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, length);
  // What is random stays so, whatever is mixed in.
  view.setUint32(0, view.getUint32(0) ^ (environment.now() % 2 ** 32));
  view.setUint32(4, view.getUint32(4) ^ (Math.floor(environment.monotonicMs() * 1000) % 2 ** 32));
  return bytes;
}

/** So many new bytes, as hexadecimal digits. */
export function newId(environment: Environment, length: number): string {
  return toHex(newBytes(environment, length));
}

/** A random UUID, version 4. */
export function randomUuid(environment: Environment): string {
  const bytes = newBytes(environment, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return formatUuid(bytes);
}

/** The counter of an id: 12 bits beside the version, 14 beside the variant. */
const counterBits = 26;

/** Milliseconds since 1970, and a counter within them: where an id stands in the order of those that a process makes. */
export interface IdPosition {
  readonly ms: number;
  readonly counter: number;
}

/** The last id that was made with an environment. */
const lastIds = new WeakMap<Environment, IdPosition>();

/** The position of the next id. `random`: any whole number, which the counter of a new millisecond begins at. */
export function nextPosition(last: IdPosition | undefined, nowMs: number, random: number): IdPosition {
  if (last !== undefined && nowMs <= last.ms && last.counter + 1 < 2 ** counterBits)
    return { ms: last.ms, counter: last.counter + 1 };
  const ms = last === undefined ? nowMs : Math.max(nowMs, last.ms + 1);
  // The upper half is left to count in.
  return { ms, counter: random % 2 ** (counterBits - 1) };
}

/**
 * A time-ordered UUID, version 7 (RFC 9562): milliseconds since 1970, a counter that begins at a random number in each of
 * them (method 1 of section 6.2), and 48 random bits. Each one that a process makes sorts behind those before it, also where
 * its clock is set back: then the time stands still.
 */
export function timeOrderedUuid(environment: Environment): string {
  const random = newBytes(environment, 16);
  const view = new DataView(random.buffer, random.byteOffset, 16);
  const nowMs = Math.max(0, Math.floor(environment.now()));
  const next = nextPosition(lastIds.get(environment), nowMs, view.getUint32(8));
  lastIds.set(environment, next);
  const { ms, counter } = next;
  const bytes = new Uint8Array(16);
  const id = new DataView(bytes.buffer);
  id.setUint32(0, Math.floor(ms / 2 ** 16));
  id.setUint16(4, ms % 2 ** 16);
  id.setUint16(6, 0x7000 | (counter >>> 14));
  id.setUint16(8, 0x8000 | (counter & 0x3fff));
  // The lower bytes of both clocks, which only this process has, are in these.
  bytes.set(random.subarray(1, 4), 10);
  bytes.set(random.subarray(5, 8), 13);
  return formatUuid(bytes);
}
