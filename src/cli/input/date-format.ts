/** Dates and times as `--date-format` describes them: `DD/MM/YYYY`, `M/D/YYYY h:mm A`. */
import { UsageError } from '../terminal/exit-code.ts';

/** What stands for each token in an expression. */
const tokens: Readonly<Record<string, string>> = {
  YYYY: '(?<year>\\d{4})',
  MMM: '(?<monthName>[A-Za-z]{3})',
  MM: '(?<month>\\d{2})',
  M: '(?<month>\\d{1,2})',
  DD: '(?<day>\\d{2})',
  D: '(?<day>\\d{1,2})',
  HH: '(?<hour>\\d{2})',
  H: '(?<hour>\\d{1,2})',
  hh: '(?<hour12>\\d{2})',
  h: '(?<hour12>\\d{1,2})',
  mm: '(?<minute>\\d{2})',
  ss: '(?<second>\\d{2})',
  SSS: '(?<fraction>\\d{3})',
  A: '(?<half>[AaPp][Mm])',
  Z: '(?<zone>Z|[-+]\\d{2}:?\\d{2})',
};

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Gives the milliseconds since 1970 that a text stands for; NaN for text of another form, and for days that there are not. */
export type DateReader = (text: string) => number;

type Parts = Readonly<Record<string, string | undefined>>;

const two = (value: number | string): string => String(value).padStart(2, '0');

function hourOf({ hour = '0', hour12, half }: Parts): number {
  if (hour12 === undefined) return Number(hour);
  const shown = Number(hour12);
  if (shown < 1 || shown > 12) return Number.NaN;
  return (shown % 12) + (half?.toLowerCase() === 'pm' ? 12 : 0);
}

function timeOfParts(parts: Parts): number {
  const { year, month, monthName, day, minute = '00', second = '00', fraction = '000', zone = 'Z' } = parts;
  const number = monthName === undefined ? Number(month) : months.indexOf(monthName.toLowerCase()) + 1;
  const date = `${year}-${two(number)}-${two(Number(day))}`;
  const midnight = new Date(`${date}T00:00Z`);
  // There is no 31st of February, though the runtime takes it for the 3rd of March.
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(date)) return Number.NaN;
  const offset = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  return Date.parse(`${date}T${two(hourOf(parts))}:${minute}:${second}.${fraction}${offset}`);
}

function refuse(format: string, why: string): never {
  throw new UsageError(`--date-format ${format}: ${why}. Its parts are ${Object.keys(tokens).join(', ')}.`);
}

/** Reads dates of a form. Throws `UsageError` for a form that names no day, or has letters that are no parts. */
export function dateReader(format: string): DateReader {
  let source = '';
  const seen = new Set<string>();
  for (const [part] of format.matchAll(/(?<letter>[A-Za-z])\k<letter>*|[^A-Za-z]/g)) {
    const token = Object.hasOwn(tokens, part) ? tokens[part] : undefined;
    if (token === undefined && part !== 'T' && /[A-Za-z]/.test(part)) refuse(format, `there is no part ${part}`);
    if (token === undefined) {
      source += part.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&');
      continue;
    }
    const name = /<(\w+)>/.exec(token)?.[1] as string;
    const kind = name.replace(/Name$|12$/, '');
    if (seen.has(kind)) refuse(format, `it names the ${kind} twice`);
    for (const each of [kind, name]) seen.add(each);
    source += token;
  }
  for (const needed of ['year', 'month', 'day']) if (!seen.has(needed)) refuse(format, `it has no ${needed}`);
  if (seen.has('hour12') !== seen.has('half')) refuse(format, 'h and A go together');
  const pattern = new RegExp(`^${source}$`);
  return (text) => {
    const found = pattern.exec(text);
    return found?.groups === undefined ? Number.NaN : timeOfParts(found.groups);
  };
}

export interface DateFormat {
  readonly format: string;
  readonly read: DateReader;
  /** Whether text of another form may be ISO 8601: no text can be both then. */
  readonly allowsIso: boolean;
}

/** How dates are written in the fields of a file. */
export interface DateFormats {
  /** In fields that are not named. */
  readonly general: DateFormat | undefined;
  readonly byField: ReadonlyMap<string, DateFormat>;
}

export const noDateFormats: DateFormats = { general: undefined, byField: new Map() };

/** What `--date-format` says: `DD/MM/YYYY`, or `born=DD/MM/YYYY` for one field. Throws `UsageError`. */
export function parseDateFormats(words: readonly string[]): DateFormats {
  const byField = new Map<string, DateFormat>();
  let general: DateFormat | undefined;
  for (const word of words) {
    const at = word.indexOf('=');
    const format = word.slice(at + 1);
    const read = { format, read: dateReader(format), allowsIso: !format.startsWith('YYYY') };
    if (at !== -1) byField.set(word.slice(0, at), read);
    else if (general === undefined) general = read;
    else throw new UsageError(`--date-format ${word}: another is given for all fields: write field=${word}.`);
  }
  return { general, byField };
}

export function dateFormatOf({ general, byField }: DateFormats, field: string): DateFormat | undefined {
  return byField.get(field) ?? general;
}
