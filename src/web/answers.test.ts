import { expect, it } from 'vitest';
import { errorAnswer, jsonText, safeHeaders } from './answers.ts';

it('encodes what JSON lacks as strings', () => {
  const value = { small: 7n, big: 2n ** 60n, none: Infinity, bytes: new Uint8Array([1, 2, 3]), at: new Date(0) };
  expect(jsonText(value)).toBe(
    '{"small":7,"big":"1152921504606846976","none":"Infinity","bytes":"AQID","at":"1970-01-01T00:00:00.000Z"}',
  );
});

it('says to browsers that nothing comes from another host, in errors as well', async () => {
  const answer = errorAnswer(400, { code: 'bad', message: 'It is bad.' });
  expect(await answer.json()).toEqual({ error: { code: 'bad', message: 'It is bad.' } });
  for (const [name, value] of Object.entries(safeHeaders)) expect(answer.headers.get(name)).toBe(value);
  expect(answer.headers.get('cache-control')).toBe('no-store');
});
