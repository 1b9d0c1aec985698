/** Finds out from the bytes of a blob whether a browser may show it. What its row or its name says of it counts for nothing. */
import { toLatin1 } from '../base/bytes.ts';

/** Images that hold no scripts. SVG does. */
const signatures: readonly (readonly [type: string, matches: (start: string) => boolean])[] = [
  ['image/png', (start) => start.startsWith('\x89PNG\r\n\x1a\n')],
  ['image/jpeg', (start) => start.startsWith('\xff\xd8\xff')],
  ['image/gif', (start) => start.startsWith('GIF87a') || start.startsWith('GIF89a')],
  ['image/webp', (start) => start.startsWith('RIFF') && start.slice(8, 12) === 'WEBP'],
  ['image/avif', (start) => start.slice(4, 8) === 'ftyp' && /^avi[fs]/.test(start.slice(8, 12))],
];

/** Beginnings of documents that could hold scripts, were they shown as what they are. */
const markup = /^\s*<|<(?:!doctype|html|head|body|script|svg|iframe|\?xml)/i;
const isControl = (code: number): boolean => (code < 0x20 && code !== 9 && code !== 10 && code !== 13) || code === 0x7f;

/** Whether bytes are text without markup. `isWhole`: there are no more of them, so that no character is cut off. */
function isText(bytes: Uint8Array, isWhole: boolean): boolean {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return false;
  }
  if (markup.test(text)) return false;
  for (let i = 0; i < text.length; i++) if (isControl(text.charCodeAt(i))) return false;
  return true;
}

/** Returns the type by which a browser may show a blob that begins with some bytes; undefined if it must be saved. */
export function sniffedType(beginning: Uint8Array, isWhole: boolean): string | undefined {
  const start = toLatin1(beginning.subarray(0, 16));
  const image = signatures.find(([, matches]) => matches(start));
  if (image !== undefined) return image[0];
  return isText(beginning, isWhole) ? 'text/plain; charset=utf-8' : undefined;
}
