/** A value in full: JSON folded, bytes as digits and text, blobs with a preview. Everything is text, and nothing is markup. */
import { useEffect, useState } from 'preact/hooks';
import type { Cell, Moment } from '../../src/studio/messages.ts';
import { blobUrl, failureOf } from '../model/api.ts';
import { bytesText, countText, fromBase64, plural, timeText } from '../model/format.ts';
import type { TypeName } from '../model/format.ts';
import { Icon } from './basics.tsx';

/** JSON as a tree that can be folded. */
export function JsonTree({ value, name, depth = 0 }: JsonTreeProps): preact.JSX.Element {
  const label = name === undefined ? null : <span class="json-name">{name}: </span>;
  if (value === null || typeof value !== 'object') {
    return (
      <div class="json-line">
        {label}
        <span class={`json-${value === null ? 'null' : typeof value}`}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  const entries = Object.entries(value as Readonly<Record<string, Cell>>);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) {
    return (
      <div class="json-line">
        {label}
        {open}
        {close}
      </div>
    );
  }
  const words = Array.isArray(value) ? plural(entries.length, 'item') : plural(entries.length, 'field');
  return (
    <details class="json" open={depth === 0 && entries.length <= 20}>
      <summary>
        {label}
        {open} <span class="dim">{words}</span> {close}
      </summary>
      <JsonEntries entries={entries} depth={depth} />
    </details>
  );
}

interface JsonTreeProps {
  readonly value: Cell;
  readonly name?: string;
  readonly depth?: number;
}

/** Entries of JSON, some at a time: a value may have very many. */
function JsonEntries({
  entries,
  depth,
}: {
  readonly entries: readonly (readonly [string, Cell])[];
  readonly depth: number;
}): preact.JSX.Element {
  const [shown, setShown] = useState(100);
  return (
    <div class="json-entries">
      {entries.slice(0, shown).map(([name, value]) => (
        <JsonTree key={name} name={name} value={value} depth={depth + 1} />
      ))}
      {entries.length > shown && (
        <button type="button" class="button quiet" onClick={() => setShown(shown + 500)}>
          {plural(entries.length - shown, 'more')}
        </button>
      )}
    </div>
  );
}

const bytesPerLine = 16;
const mostLines = 64;

/** Bytes as hexadecimal digits beside the text that they are. */
export function BytesView({ base64 }: { readonly base64: string }): preact.JSX.Element {
  const [lines, setLines] = useState(mostLines);
  const bytes = fromBase64(base64);
  const texts: string[] = [];
  for (let at = 0; at < bytes.length && texts.length < lines; at += bytesPerLine) {
    const part = bytes.subarray(at, at + bytesPerLine);
    const digits = Array.from(part, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = Array.from(part, (byte) => (byte >= 32 && byte < 127 ? String.fromCodePoint(byte) : '·')).join('');
    texts.push(`${at.toString(16).padStart(6, '0')}  ${digits.padEnd(bytesPerLine * 3)} ${text}`);
  }
  const left = Math.ceil(bytes.length / bytesPerLine) - texts.length;
  return (
    <div>
      <p class="dim">{plural(bytes.length, 'byte')}</p>
      {bytes.length > 0 && (
        <pre class="hex" tabIndex={0} role="group" aria-label="Bytes">
          {texts.join('\n')}
        </pre>
      )}
      {left > 0 && (
        <button type="button" class="button quiet" onClick={() => setLines(lines + 1024)}>
          {plural(left, 'more line')}
        </button>
      )}
    </div>
  );
}

/** Where a blob is. */
export interface BlobPlace {
  readonly table: string;
  readonly key: readonly Cell[];
  readonly field: string;
  readonly at?: Moment | undefined;
}

type Preview =
  | { readonly kind: 'image'; readonly url: string; readonly sizeBytes: number; readonly type: string }
  | { readonly kind: 'text'; readonly text: string; readonly isCut: boolean; readonly sizeBytes: number | undefined }
  | { readonly kind: 'none'; readonly sizeBytes: number | undefined; readonly type: string }
  | { readonly kind: 'failed'; readonly message: string };

const mostText = 65_536;
const mostImage = 20_000_000;

function textOf(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return text.includes('\u0000') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Reads as much of a blob as its preview needs. */
async function readPreview(url: string, signal: AbortSignal): Promise<Preview> {
  const response = await fetch(url, { signal });
  if (!response.ok) {
    const { error } = (await response.json().catch(() => ({}))) as { readonly error?: { readonly message: string } };
    return { kind: 'failed', message: error?.message ?? `Studio answered with ${response.status}.` };
  }
  const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? '';
  const length = response.headers.get('content-length');
  const sizeBytes = length === null ? undefined : Number(length);
  if (/^image\/(?:png|jpeg|gif|webp|avif)$/.test(type) && (sizeBytes ?? 0) <= mostImage) {
    const blob = await response.blob();
    return { kind: 'image', url: URL.createObjectURL(blob), sizeBytes: blob.size, type };
  }
  const reader = response.body?.getReader();
  const parts: Uint8Array[] = [];
  let read = 0;
  let isCut = false;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) break;
    parts.push(value);
    read += value.length;
    if (read >= mostText) {
      isCut = true;
      await reader?.cancel();
      break;
    }
  }
  const bytes = new Uint8Array(Math.min(read, mostText));
  let at = 0;
  for (const part of parts) {
    bytes.set(part.subarray(0, bytes.length - at), at);
    at += Math.min(part.length, bytes.length - at);
  }
  const text = textOf(bytes);
  const size = isCut ? sizeBytes : read;
  return text === undefined ? { kind: 'none', sizeBytes: size, type } : { kind: 'text', text, isCut, sizeBytes: size };
}

/** A blob: its reference, a preview of images and text, and a link to download it. */
export function BlobView({
  place,
  reference,
}: {
  readonly place: BlobPlace;
  readonly reference: string;
}): preact.JSX.Element {
  const [preview, setPreview] = useState<Preview | undefined>(undefined);
  const url = blobUrl({ ...place }, false);
  useEffect(() => {
    const controller = new AbortController();
    let made: string | undefined;
    setPreview(undefined);
    const read = async (): Promise<void> => {
      let next: Preview;
      try {
        next = await readPreview(url, controller.signal);
      } catch (error) {
        next = { kind: 'failed', message: failureOf(error).message };
      }
      if (next.kind === 'image') made = next.url;
      if (!controller.signal.aborted) setPreview(next);
      else if (made !== undefined) URL.revokeObjectURL(made);
    };
    void read();
    return () => {
      controller.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [url, reference]);
  const size = preview !== undefined && 'sizeBytes' in preview ? preview.sizeBytes : undefined;
  return (
    <div class="blob">
      <p class="blob-line">
        <span class="code">{reference}</span>
        {size !== undefined && <span class="dim"> {bytesText(size)}</span>}
        <a class="button" href={blobUrl({ ...place }, true)} download>
          <Icon name="download" /> Download
        </a>
      </p>
      {preview === undefined && <p class="dim">Reads the blob…</p>}
      {preview?.kind === 'failed' && <p class="problem">{preview.message}</p>}
      {preview?.kind === 'none' && <p class="dim">It is neither an image nor text: no preview.</p>}
      {preview?.kind === 'image' && <img src={preview.url} alt={`The blob in ${place.field}`} />}
      {preview?.kind === 'text' && (
        <pre class="blob-text" tabIndex={0} role="group" aria-label={`Text of the blob in ${place.field}`}>
          {preview.text}
          {preview.isCut ? '…' : ''}
        </pre>
      )}
    </div>
  );
}

/** A value in full. */
export function ValueView({ type, value, blob }: ValueViewProps): preact.JSX.Element {
  if (value === null || value === undefined) return <span class="dim">null</span>;
  if (type === 'json') return <JsonTree value={value} />;
  if (type === 'bytes' && typeof value === 'string') return <BytesView base64={value} />;
  if (type === 'blob' && typeof value === 'string') {
    return blob === undefined ? <span class="code">{value}</span> : <BlobView place={blob} reference={value} />;
  }
  if (type === 'uuid' && typeof value === 'string') return <span class="code">{value}</span>;
  if (type === 'timestamp' && typeof value === 'string') return <time dateTime={value}>{timeText(value)}</time>;
  if (typeof value === 'object') return <JsonTree value={value} />;
  if (value === '') return <span class="dim">(empty)</span>;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 400 ? <LongText text={text} /> : <span class="text">{text}</span>;
}

interface ValueViewProps {
  readonly type: TypeName | null;
  readonly value: Cell;
  readonly blob?: BlobPlace;
}

function LongText({ text }: { readonly text: string }): preact.JSX.Element {
  const [isFull, setFull] = useState(false);
  return (
    <div>
      <span class="text">{isFull ? text : `${text.slice(0, 400)}…`}</span>{' '}
      {!isFull && (
        <button type="button" class="button quiet" onClick={() => setFull(true)}>
          All {countText(text.length)} characters
        </button>
      )}
    </div>
  );
}
