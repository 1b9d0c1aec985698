/** How a browser takes a blob that it downloads by link. */
import { defined } from '../base/defined.ts';
import { kinds, OptionTable } from '../base/option-checks.ts';
import type { DownloadHeaders } from '../storage/contract/driver.ts';
import { contentTypeKind } from './blob-value.ts';

/** Options of `getDownloadUrl()`. */
export interface DownloadUrlOptions {
  /** How long the URL works, in seconds: 1 to 604800. Default 3600. */
  readonly expiresIn?: number;
  /** Media type that the answer has. Default: the blob's own. */
  readonly contentType?: string;
  /**
   * What a browser does with it: `'inline'` shows it, `'attachment'` saves it, also with a name: `attachment; filename="a.pdf"`.
   * Default: `'attachment'` for types that a browser runs or guesses at, such as HTML, SVG and XML; else what the browser does.
   */
  readonly contentDisposition?: string;
}

const maxDispositionLength = 1024;
const maxExpirySeconds = 604_800;

export const downloadOptions: OptionTable<DownloadUrlOptions> = new OptionTable({
  expiresIn: kinds.whole(1, maxExpirySeconds, 'a whole number of seconds'),
  contentType: contentTypeKind,
  contentDisposition: kinds.text(
    "'inline' or 'attachment', which parameters in printable ASCII may follow, up to " +
      `${maxDispositionLength} characters: attachment; filename="report.pdf". Other characters of a name are written as ` +
      "filename*=UTF-8''caf%C3%A9.pdf",
    (value) => value.length <= maxDispositionLength && /^(?:inline|attachment)(?:\s*;[\x20-\x7e]*)?$/i.test(value),
  ),
});

/** Scripts, documents that may hold scripts, and wrappers of both. */
const active = /html|svg|xml|xsl|javascript|ecmascript|livescript|jscript|vbscript|flash|^multipart\/|^message\//;
/** Types for which browsers look into the bytes and guess another. */
const unknown: ReadonlySet<string> = new Set(['unknown/unknown', 'application/unknown', '*/*']);

/** Whether a browser that opens it would run it in the name of where it lies. */
function isActive(contentType: string): boolean {
  const type = (contentType.toLowerCase().split(';')[0] ?? '').trim();
  // What is no type at all is guessed at as well.
  return !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) || unknown.has(type) || active.test(type);
}

/** What the answer of a link says besides the bytes. */
export function downloadHeaders(stored: string, options: DownloadUrlOptions): DownloadHeaders {
  const { contentType, contentDisposition } = options;
  const disposition = contentDisposition ?? (isActive(contentType ?? stored) ? 'attachment' : undefined);
  return {
    ...defined({ contentType, contentDisposition: disposition }),
  };
}
