/** Figures and values as text for people. */
import type { Cell, TableInfo } from '../../src/studio/messages.ts';

/** Name of a field type. */
export type TypeName = TableInfo['fields'][number]['type'];

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** 12,345. */
export function countText(count: number): string {
  return whole.format(count);
}

/** 12,345 or 1.5: estimates may be fractions. */
export function estimateText(count: number): string {
  return tenth.format(count);
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** 1.2 MB. */
export function bytesText(bytes: number): string {
  let at = 0;
  let left = bytes;
  while (Math.abs(left) >= 1000 && at < units.length - 1) {
    left /= 1000;
    at++;
  }
  return `${at === 0 || left >= 100 ? whole.format(left) : tenth.format(left)} ${units[at]}`;
}

/** $1.20; small amounts with two significant digits. */
export function dollarsText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars >= 1000) return `$${whole.format(dollars)}`;
  if (dollars >= 0.01) return `$${dollars.toFixed(2)}`;
  if (dollars < 1e-9) return '< $0.000000001';
  return `$${dollars.toFixed(Math.min(10, 1 - Math.floor(Math.log10(dollars))))}`;
}

/** 3.4 s, 2 min, 5 h, 3 days. */
export function durationText(ms: number | null | undefined): string {
  // JSON has no infinity.
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return 'not known';
  if (ms < 1000) return `${tenth.format(ms)} ms`;
  if (ms < 120_000) return `${tenth.format(ms / 1000)} s`;
  if (ms < 7_200_000) return `${whole.format(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${tenth.format(ms / 3_600_000)} h` : `${whole.format(ms / 86_400_000)} days`;
}

/** 2026-11-28 18:50:56Z. */
export function timeText(iso: string | Date): string {
  const text = typeof iso === 'string' ? iso : iso.toISOString();
  return text.replace('T', ' ').replace('.000Z', 'Z');
}

/** “3 rows”, “1 row”. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Returns the bytes of base64. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  return Uint8Array.from(binary, (char) => char.codePointAt(0) as number);
}

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCodePoint(byte);
  return btoa(binary);
}

export function hexText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const longest = 240;

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** Returns a value as one line of text, cut short. */
export function cellText(type: TypeName | null | undefined, value: Cell): string {
  if (value === null || value === undefined) return 'null';
  if (type === 'timestamp' && typeof value === 'string') return timeText(value);
  if (type === 'bytes' && typeof value === 'string') {
    try {
      const bytes = fromBase64(value.slice(0, 160));
      return `${hexText(bytes)}${value.length > 160 ? '…' : ''}`;
    } catch {
      return cut(value);
    }
  }
  if (typeof value === 'object') return cut(JSON.stringify(value));
  return cut(typeof value === 'string' ? value : JSON.stringify(value));
}

const numeric: ReadonlySet<string> = new Set([
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'int8',
  'int16',
  'int32',
  'int64',
  'float32',
  'float64',
]);

export function isNumeric(type: TypeName | null | undefined): boolean {
  return numeric.has(type ?? '');
}

/** Returns the width of a column in pixels. */
export function widthOf(type: TypeName | null | undefined, name: string, maxLength = Infinity): number {
  const byName = 44 + name.length * 8;
  const byType =
    type === 'uuid'
      ? 290
      : type === 'timestamp' || type === 'int64' || type === 'uint64'
        ? 190
        : type === 'boolean'
          ? 76
          : isNumeric(type)
            ? 104
            : Math.min(180, 20 + 9 * maxLength);
  return Math.min(320, Math.max(byType, byName));
}
