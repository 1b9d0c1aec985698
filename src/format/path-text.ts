/** The text of paths into json fields: the name of the field and keys behind it, joined by dots. */
import { isKeyType, Types } from './types.ts';
import type { TypeId } from './types.ts';

/** The most characters and keys of a path. */
export const maxPathLength = 1000;
const maxKeys = 100;

/** The types in which an index can read a path: those that JSON has, and times as JSON holds Dates. */
const pathTypes: ReadonlySet<unknown> = new Set([Types.varchar, Types.float64, Types.boolean, Types.timestamp]);

/** Whether an index can read a path as a type. */
export function isPathType(typeId: unknown): typeId is TypeId {
  return pathTypes.has(typeId) && isKeyType(typeId as TypeId);
}

/** Returns the keys in the part of a path behind the name of its field; undefined if one is empty, or there are too many. */
function keysOf(text: string): string[] | undefined {
  const keys: string[] = [];
  let key = '';
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    // A backslash takes the next dot or backslash as a part of the key.
    if (char === '\\' && (text[i + 1] === '.' || text[i + 1] === '\\')) key += text[++i] as string;
    else if (char !== '.') key += char;
    else {
      keys.push(key);
      key = '';
    }
  }
  keys.push(key);
  return keys.length > maxKeys || keys.includes('') ? undefined : keys;
}

/** A path: the name of a field, and the keys that lead on from its value. */
export interface PathParts {
  readonly field: string;
  readonly keys: readonly string[];
}

/**
 * Splits a path into the name of its json field, the longest that fits, and its keys. Undefined if it is none. `isJson`: whether there
 * is a json field of a name.
 */
export function partsOfPath(path: unknown, isJson: (name: string) => boolean): PathParts | undefined {
  if (typeof path !== 'string' || path.length > maxPathLength || !path.isWellFormed()) return undefined;
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const field = path.slice(0, dot);
    if (!isJson(field)) continue;
    const keys = keysOf(path.slice(dot + 1));
    return keys && { field, keys };
  }
  return undefined;
}
