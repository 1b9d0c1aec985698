/**
 * Identifiers, made from the randomness and the clocks of the injected environment. The clocks help where randomness does not: a
 * process that was cloned while it ran (a virtual machine that was copied, or restored twice) draws the same random numbers as
 * its copy, but hardly in the same microsecond.
 */
import type { Environment } from './env.ts';
import { toHex } from './bytes.ts';

const dash = 0x2d;

/** The character code of a hexadecimal digit. */
function digit(value: number): number {
  return value < 10 ? 0x30 + value : 0x57 + value;
}

function high(bytes: Uint8Array, at: number): number {
  return digit((bytes[at] as number) >> 4);
}

function low(bytes: Uint8Array, at: number): number {
  return digit((bytes[at] as number) & 15);
}

/**
 * Formats the UUID in the 16 bytes from `at` on, in lower case. One call makes the whole text, because concatenation leaves
 * garbage.
 */
export function formatUuid(bytes: Uint8Array, at = 0): string {
  return String.fromCharCode(
    high(bytes, at),
    low(bytes, at),
    high(bytes, at + 1),
    low(bytes, at + 1),
    high(bytes, at + 2),
    low(bytes, at + 2),
    high(bytes, at + 3),
    low(bytes, at + 3),
    dash,
    high(bytes, at + 4),
    low(bytes, at + 4),
    high(bytes, at + 5),
    low(bytes, at + 5),
    dash,
    high(bytes, at + 6),
    low(bytes, at + 6),
    high(bytes, at + 7),
    low(bytes, at + 7),
    dash,
    high(bytes, at + 8),
    low(bytes, at + 8),
    high(bytes, at + 9),
    low(bytes, at + 9),
    dash,
    high(bytes, at + 10),
    low(bytes, at + 10),
    high(bytes, at + 11),
    low(bytes, at + 11),
    high(bytes, at + 12),
    low(bytes, at + 12),
    high(bytes, at + 13),
    low(bytes, at + 13),
    high(bytes, at + 14),
    low(bytes, at + 14),
    high(bytes, at + 15),
    low(bytes, at + 15),
  );
}

/** Returns `length` random bytes, 8 at least, for a unique id: a process that draws the same random numbers gets other bytes. */
export function newBytes(environment: Environment, length: number): Uint8Array {
  const bytes = environment.randomBytes(length);
  // Mixing the clocks in does not make random bytes less random.
  mixIn(bytes, 0, environment.now() % 2 ** 32);
  mixIn(bytes, 4, Math.floor(environment.monotonicMs() * 1000) % 2 ** 32);
  return bytes;
}

/** XORs 32 bits into four bytes, big-endian. Ids are made by the million, and writing single bytes takes a third of the time. */
function mixIn(bytes: Uint8Array, at: number, bits: number): void {
  bytes[at] = (bytes[at] as number) ^ (bits >>> 24);
  bytes[at + 1] = (bytes[at + 1] as number) ^ (bits >>> 16);
  bytes[at + 2] = (bytes[at + 2] as number) ^ (bits >>> 8);
  bytes[at + 3] = (bytes[at + 3] as number) ^ bits;
}

/** Returns `length` new bytes as hexadecimal digits. */
export function newId(environment: Environment, length: number): string {
  return toHex(newBytes(environment, length));
}

/** Returns a random UUID, version 4. */
export function randomUuid(environment: Environment): string {
  const bytes = newBytes(environment, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return formatUuid(bytes);
}

/** Bits of an id's counter: 12 after the version, 14 after the variant. */
const counterBits = 26;

/**
 * The position of an id in the order in which a process makes them: milliseconds since 1970, and a counter within the
 * millisecond.
 */
export interface IdPosition {
  readonly ms: number;
  readonly counter: number;
}

/** The position of the last id made with each environment. */
const lastIds = new WeakMap<Environment, IdPosition>();

/** Returns the position of the next id. `random` is any whole number; it sets the start of the counter in a new millisecond. */
export function nextPosition(last: IdPosition | undefined, nowMs: number, random: number): IdPosition {
  if (last !== undefined && nowMs <= last.ms && last.counter + 1 < 2 ** counterBits)
    return { ms: last.ms, counter: last.counter + 1 };
  const ms = last === undefined ? nowMs : Math.max(nowMs, last.ms + 1);
  // The counter starts in the lower half, which leaves room to count.
  return { ms, counter: random % 2 ** (counterBits - 1) };
}

/**
 * Returns a time-ordered UUID, version 7 (RFC 9562): milliseconds since 1970, a counter that begins at a random number in each
 * millisecond (method 1 of section 6.2), and 48 random bits. Each id that a process makes sorts after the ids before it. If the
 * clock is set back, the id's time stands still until the clock catches up.
 */
export function timeOrderedUuid(environment: Environment): string {
  const bytes = newBytes(environment, 16);
  const nowMs = Math.max(0, Math.floor(environment.now()));
  const drawn = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8);
  const next = nextPosition(lastIds.get(environment), nowMs, drawn);
  lastIds.set(environment, next);
  const { ms, counter } = next;
  // The bytes that the low bits of both clocks were mixed into: only this process has them, and they would be overwritten below.
  for (let i = 1; i < 4; i++) {
    bytes[9 + i] = bytes[i] as number;
    bytes[12 + i] = bytes[4 + i] as number;
  }
  const upper = Math.floor(ms / 2 ** 16);
  bytes[0] = upper >>> 24;
  bytes[1] = upper >>> 16;
  bytes[2] = upper >>> 8;
  bytes[3] = upper;
  bytes[4] = ms >>> 8;
  bytes[5] = ms;
  bytes[6] = 0x70 | (counter >>> 22);
  bytes[7] = counter >>> 14;
  bytes[8] = 0x80 | ((counter >>> 8) & 0x3f);
  bytes[9] = counter;
  return formatUuid(bytes);
}
