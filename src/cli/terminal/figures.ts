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

/** A time by the clock of whoever wrote it. */
export function formatTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString().replace('T', ' ').replace('.000Z', 'Z') : String(ms);
}

/** `a row`, `2 rows` */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
