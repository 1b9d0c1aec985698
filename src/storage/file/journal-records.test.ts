/** The bytes of records: what a killed process, a loss of power and a damaged disk leave of them. */
import { describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { seededRandom } from '../../../test/simulation/crash/schedule.ts';
import { decodeRecord, encodeJournal, encodeRecord, findRecord, isDamaged } from './journal-records.ts';

const id = '0123456789abcdef';
const sectorBytes = 32;
const offset = 1000;

function record(number: number, text = 'sdbr, sdbt and the rest of a body'): Uint8Array {
  const body = encodeUtf8(text);
  const name = String(number).padStart(16, '0');
  const base = { kind: 'put', name, etag: name, condition: 'absent', timeMs: 1e12, sizeBytes: body.length } as const;
  return encodeRecord(id, { ...base, body }, { syncedTo: 4711, skippedTo: 815 });
}

const damagedIn = (gap: Uint8Array): boolean => isDamaged(id, gap, offset, sectorBytes);
const concat = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts);
/** Another value that is not the beginning of a record, nor a byte that was not written. */
const changed = (byte: number): number =>
  [1, 2, 4].map((bit) => byte ^ bit).find((other) => !'\0sdb'.includes(String.fromCharCode(other))) ?? 1;

describe('a record', () => {
  it('is decoded with the place of its body, and with the journal as its writer saw it', () => {
    const bytes = record(7);
    const decoded = decodeRecord(id, concat(bytes, record(8)));
    expect(decoded).toMatchObject({ length: bytes.length, seen: { syncedTo: 4711, skippedTo: 815 } });
    expect(bytes.subarray(decoded?.bodyAt, bytes.length - 12)).toEqual(decoded?.record.body);
  });

  it('does not count if it is cut at any byte, and another one follows', () => {
    const whole = record(7);
    for (let length = 1; length < whole.length; length++) {
      const cut = whole.subarray(0, length);
      expect(decodeRecord(id, concat(cut, record(8))), `${length}`).toBe(undefined);
      expect(findRecord(id, concat(cut, record(8))), `${length}`).toBe(length);
    }
  });

  it('is torn if it is cut at any byte, alone and before another one that is cut', () => {
    const [first, second] = [record(7), record(8)];
    const wrong: number[][] = [];
    for (let length = 1; length < first.length; length++) {
      for (let next = 0; next < second.length; next++) {
        const gap = concat(first.subarray(0, length), second.subarray(0, next));
        if (damagedIn(gap)) wrong.push([length, next]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it.each([1, 100, 200, 300])('is torn if the power failed before it was synced: seeds from %i', (firstSeed) => {
    const wrong: number[] = [];
    for (let seed = firstSeed * 1000; seed < firstSeed * 1000 + 3000; seed++) {
      const random = seededRandom(seed);
      const below = (limit: number): number => Math.floor(random() * limit);
      let bytes: Uint8Array = new Uint8Array();
      for (let losses = 0; losses < 2; losses++) {
        const cleanTo = bytes.length;
        for (let i = below(4); i >= 0; i--) {
          const next = record(i, 'x'.repeat(below(100)));
          bytes = concat(bytes, random() < 0.5 ? next : next.subarray(0, below(next.length)));
        }
        bytes = bytes.slice(0, cleanTo + below(bytes.length - cleanTo + 1));
        for (
          let sector = Math.floor((offset + cleanTo) / sectorBytes);
          sector * sectorBytes < offset + bytes.length;
          sector++
        ) {
          const start = Math.max(cleanTo, sector * sectorBytes - offset);
          if (random() < 0.5) bytes.fill(0, start, Math.min(bytes.length, (sector + 1) * sectorBytes - offset));
        }
      }
      for (let at = 0; at < bytes.length; ) {
        const rest = bytes.subarray(at);
        const length = decodeRecord(id, rest)?.length ?? findRecord(id, rest) ?? rest.length;
        const gap = rest.subarray(0, length);
        const isGap = decodeRecord(id, gap) === undefined;
        if (isGap && isDamaged(id, gap, offset + at, sectorBytes)) wrong.push(seed);
        at += length;
      }
    }
    expect(wrong).toEqual([]);
  });

  it('is damaged if one of its bytes changed: alone, before a cut one and behind one', () => {
    const whole = record(7);
    for (let at = 0; at < whole.length; at++) {
      const bytes = Uint8Array.from(whole);
      bytes[at] = changed(bytes[at] as number);
      expect(damagedIn(bytes), `${at}`).toBe(true);
      expect(damagedIn(concat(bytes, record(8).subarray(0, 30))), `${at}`).toBe(true);
      expect(damagedIn(concat(record(8).subarray(0, 80), bytes)), `${at}`).toBe(true);
    }
  });

  it('is damaged if nothing of it is left, and it was not replaced by zeros', () => {
    expect(damagedIn(record(7).fill(0xa5))).toBe(true);
    expect(damagedIn(record(7).fill(0))).toBe(false);
    const bytes = record(7, 'x'.repeat(500));
    expect(damagedIn(concat(bytes.fill(0xa5, 80), record(8, 'y'.repeat(500)).fill(0xa5)))).toBe(true);
  });

  it('is not found with the id of another journal', () => {
    expect(findRecord('f'.repeat(16), concat(record(7), record(8)))).toBe(undefined);
  });
});

describe('a journal that begins with many records', () => {
  it('is encoded in steps, between which other work can run', () => {
    const count = 3000;
    const name = '0'.repeat(16);
    const base = { kind: 'file', name, etag: name, condition: 'any', timeMs: 0, sizeBytes: 1 } as const;
    const records = Array.from({ length: count }, () => ({ ...base, body: encodeUtf8('!journal-1 40') }));
    const steps = encodeJournal(id, records);
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) pauses++;
    expect(pauses).toBe(2);
    expect(step.value.length).toBe(40 + count * encodeRecord(id, records[0] as (typeof records)[0]).length);
  });
});
