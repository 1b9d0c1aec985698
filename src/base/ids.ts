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

/** A time-ordered UUID, version 7 (RFC 9562): milliseconds since 1970, then random bits. */
export function timeOrderedUuid(environment: Environment): string {
  // Eight bytes that only this process has, behind the time.
  const bytes = newBytes(environment, 16).toReversed();
  let time = Math.max(0, Math.floor(environment.now()));
  for (let i = 5; i >= 0; i--) {
    bytes[i] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return formatUuid(bytes);
}
