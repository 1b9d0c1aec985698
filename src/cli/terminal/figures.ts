/** Numbers as people read them. */
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

/** Dollars: two digits that count where they are few. */
export function formatDollars(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  return `$${dollars.toFixed(2)}`;
}

/** A time by the clock of its writer. */
export function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString().replace('T', ' ').replace('.000Z', 'Z') : String(ms);
}

/** `a row`, `2 rows` */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// JSON as the command line writes it.

/** What JSON may hold as it is, and a terminal would obey: DEL, C1, ends of lines, and turns of the direction of text. */
const controls = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Writes a value as JSON without characters that a terminal obeys. A parser reads the value unchanged; bigints are strings. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part), indent);
  return text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
