/** Checks of a store: conditions of writes, and that reads see the last one. */
import type { Verdicts } from './certification.ts';
import { expectFound, probeBytes, Violation } from './prober.ts';
import type { FoundProbe, Probe, Prober } from './prober.ts';

/** An object that was created, read, and is not to be changed. */
export interface Anchor {
  readonly key: string;
  readonly probe: Probe;
  readonly etag: string;
}

/** Clocks that differ by more than this are worth a word. */
const tolerableSkewMs = 5000;
/** Stores give times in whole seconds, mostly cut off. */
const timeGrainMs = 1000;

/** The first object: whether anything can be written and read at all, and what time the store thinks it is. */
export async function probeAnchor(prober: Prober): Promise<{ readonly anchor: Anchor; readonly skewMs: number }> {
  const [key, probe] = [prober.key('anchor'), prober.probe()];
  const sentMs = prober.environment.now();
  const etag = await prober.write(key, probe, 'absent');
  const found = await prober.holds(key, probe, etag);
  return { anchor: { key, probe, etag }, skewMs: skewOf(found, sentMs, prober.environment.now()) };
}

/** How far the time of an object is from the time in which it was written. */
function skewOf({ lastModifiedMs }: FoundProbe, sentMs: number, answeredMs: number): number {
  if (lastModifiedMs > answeredMs) return lastModifiedMs - answeredMs;
  return Math.min(0, lastModifiedMs + timeGrainMs - sentMs);
}

export function judgeClock(verdicts: Verdicts, skewMs: number): void {
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (Math.abs(skewMs) <= tolerableSkewMs) {
    verdicts.pass('clock', "The store's clock and this machine's agree.");
    return;
  }
  verdicts.warn(
    'clock',
    `The store's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's. No data depends on it, ` +
      'but instances take turns by their clocks, and stores refuse requests whose time is far off.',
  );
}

/** A create-only put on an existing key, from memory and as a stream. */
export async function probeCreateOnly(prober: Prober, verdicts: Verdicts, { key, probe, etag }: Anchor): Promise<void> {
  const intruder = prober.probe(
    'create-only put',
    'A create-only put (If-None-Match: *) replaced an object that was there.',
  );
  const streamed = prober.probe('streamed put', 'A streamed create-only put replaced an object that was there.');
  await prober.refused(key, intruder, 'absent');
  await prober.refused(key, streamed, 'absent', { streamed: true });
  await prober.holds(key, probe, etag);
  verdicts.pass('create-only put', 'Refused where there is an object, which was left as it was.');
  const [other, content] = [prober.key('streamed'), prober.probe()];
  await prober.write(other, content, 'absent', { streamed: true });
  // Past the end, so that this says something about ranges as well.
  const tail = content.bytes.subarray(8);
  await prober.readRange(other, { start: 8, end: probeBytes + 1000 }, ({ bytes, sizeBytes }) => {
    return sizeBytes === probeBytes && sameBytes(bytes, tail);
  });
  verdicts.pass('streamed put', 'Created where there is nothing, refused where there is an object.');
}

/** Replacements by ETag, each read back; one with the ETag of an older version is refused. */
export async function probeUpdates(prober: Prober, verdicts: Verdicts): Promise<void> {
  const key = prober.key('register');
  const [first, second, third] = [prober.probe(), prober.probe(), prober.probe()];
  const intruder = prober.probe(
    'stale ETag',
    'A put with the ETag of an older version (If-Match) replaced a newer one.',
  );
  const firstEtag = await prober.write(key, first, 'absent');
  const secondEtag = await prober.write(key, second, { etag: firstEtag });
  expectOther(firstEtag, secondEtag);
  await prober.holds(key, second, secondEtag);
  await prober.refused(key, intruder, { etag: firstEtag });
  const seen = expectFound(await prober.read(key, { ifNoneMatch: firstEtag }), second, secondEtag);
  verdicts.pass('stale ETag', 'Refused where the object has been replaced, and changed nothing.');
  const thirdEtag = await prober.write(key, third, { etag: seen.etag });
  verdicts.pass('condition that holds', 'Puts whose condition holds are made, with the ETag of a put and of a read.');
  expectOther(firstEtag, thirdEtag);
  expectOther(secondEtag, thirdEtag);
  expectFound(await prober.read(key, { ifNoneMatch: secondEtag }), third, thirdEtag);
  verdicts.pass('ETags', 'Every version has its own, and a read answers with the one of the put.');
  verdicts.pass('reads', 'A read shows the last write at once.');
  const same = await prober.read(key, { ifNoneMatch: thirdEtag });
  if (same.status === 'unchanged') {
    verdicts.pass('conditional reads', 'Unchanged objects are answered without their bytes.');
    return;
  }
  expectFound(same, third, thirdEtag);
  verdicts.warn(
    'conditional reads',
    'A conditional read (If-None-Match) of an unchanged object gave all of its bytes: correct, but every refresh costs more.',
  );
}

function expectOther(earlier: string, later: string): void {
  if (earlier === later) throw new Violation('ETags', 'Two versions of an object had the same ETag.');
}

/** A put with an ETag where there is no object. */
export async function probeMissingKey(prober: Prober, verdicts: Verdicts, { etag }: Anchor): Promise<void> {
  const key = prober.key('missing');
  const intruder = prober.probe('missing key', 'A put with an ETag (If-Match) created an object where there was none.');
  await prober.refused(key, intruder, { etag });
  const stored = await prober.read(key);
  // Nobody else writes there.
  if (stored.status !== 'missing') throw new Violation('missing key', intruder.intruder?.finding ?? '');
  verdicts.pass('missing key', 'A put with an ETag is refused where there is no object, and creates none.');
}

/** Parts of an object. */
export async function probeRanges(prober: Prober, verdicts: Verdicts, { key, probe, etag }: Anchor): Promise<void> {
  const part = probe.bytes.subarray(40, 72);
  await prober.readRange(key, { start: 40, end: 72 }, (found) => {
    return found.sizeBytes === probeBytes && found.etag === etag && sameBytes(found.bytes, part);
  });
  verdicts.pass('ranges', 'A read of a part gives exactly that part.');
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
