/** Identifiers, made from the injected environment's randomness. */
import type { Environment } from './env.ts';
import { toHex } from './bytes.ts';

function formatUuid(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** A random UUID, version 4. */
export function randomUuid(environment: Environment): string {
  const bytes = environment.randomBytes(16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return formatUuid(bytes);
}

/** A time-ordered UUID, version 7 (RFC 9562): milliseconds since 1970, then random bits. */
export function timeOrderedUuid(environment: Environment): string {
  const bytes = environment.randomBytes(16);
  let time = Math.max(0, Math.floor(environment.now()));
  for (let i = 5; i >= 0; i--) {
    bytes[i] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return formatUuid(bytes);
}
