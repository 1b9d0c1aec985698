/** Formats numbers for people, and values as JSON. */
const grouped = new Intl.NumberFormat('en-US');

/** `1,234,567` */
export function formatCount(count: number): string {
  return grouped.format(count);
}

/** `1.2 MB`, in powers of a thousand. */
export function formatBytes(bytes: number): string {
  const units = ['KB', 'MB', 'GB', 'TB', 'PB'];
  if (bytes < 1000) return `${formatCount(bytes)} B`;
  let scaled = bytes / 1000;
  let unit = 0;
  for (; scaled >= 1000 && unit < units.length - 1; unit++) scaled /= 1000;
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${units[unit] as string}`;
}

/** `$12.34`; amounts below a cent have two significant digits. */
export function formatDollars(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  return `$${dollars.toFixed(2)}`;
}

/** `5s`, `1m 5s`, `2h 3m` */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${formatCount(Math.floor(minutes / 60))}h ${minutes % 60}m`;
}

/** `2026-01-31 12:00:00Z` */
export function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString().replace('T', ' ').replace('.000Z', 'Z') : String(ms);
}

/** `a row`, `2 rows` */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Characters that JSON does not escape, but that control a terminal: DEL, C1, line ends, and changes of text direction. */
const controls = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Encodes a value as JSON without characters that control a terminal. A parser reads the value unchanged. Bigints become strings. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part), indent);
  return text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
