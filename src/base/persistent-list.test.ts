import { expect, it } from 'vitest';
import { PersistentList } from './persistent-list.ts';

it('grows without a change to the lists before', () => {
  const empty = PersistentList.of<number>();
  const one = empty.with(1);
  const two = one.with(2);
  // Both grow from the same list.
  const other = one.with(20).with(30);
  expect([...empty]).toEqual([]);
  expect([...one]).toEqual([1]);
  expect([...two]).toEqual([1, 2]);
  expect([...other]).toEqual([1, 20, 30]);
  expect([empty.length, one.length, two.length, other.length]).toEqual([0, 1, 2, 3]);
});

it('has items by position, and a last one', () => {
  const list = PersistentList.of(['a', 'b']);
  const longer = list.with('c');
  expect([list.get(0), list.get(1), list.get(2), list.get(-1)]).toEqual(['a', 'b', undefined, undefined]);
  expect([list.last, longer.last, PersistentList.of().last]).toEqual(['b', 'c', undefined]);
});

it('copies the items that it is made of', () => {
  const items = [1, 2];
  const list = PersistentList.of(items);
  items.push(3);
  list.with(4);
  expect([...list]).toEqual([1, 2]);
  expect(items).toEqual([1, 2, 3]);
});
