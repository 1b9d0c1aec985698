/**
 * Finds uses of the runtime's own clock, timers and randomness, however they are spelled: as globals, as members of
 * globals, under a local name of a built-in module, or taken apart by destructuring.
 */
import { childOf, childrenOf, stringOf, walk } from './source-tree.ts';
import type { Module, SyntaxNode } from './source-tree.ts';

const clock = "the Environment's now()";
const stopwatch = "the Environment's monotonicMs()";
const timer = "the Environment's setTimer() or sleep()";
const yielding = "the Environment's yieldToEventLoop()";
const randomness = "the Environment's randomBytes() or random(), or base/ids.ts";

/** What is banned, as it is written with its global object, and what to use instead. */
const banned: ReadonlyMap<string, string> = new Map([
  ['setTimeout', timer],
  ['setInterval', timer],
  ['setImmediate', yielding],
  ['queueMicrotask', yielding],
  ['Date.now', clock],
  ['performance.now', stopwatch],
  ['process.hrtime', stopwatch],
  ['process.uptime', stopwatch],
  ['process.nextTick', yielding],
  ['AbortSignal.timeout', timer],
  ['Math.random', randomness],
  ...[
    'randomUUID',
    'randomBytes',
    'randomFill',
    'randomFillSync',
    'randomInt',
    'getRandomValues',
    'pseudoRandomBytes',
    'webcrypto',
  ].map((name) => [`crypto.${name}`, randomness] as const),
  ['#platform.startTimer', timer],
  ['#platform.afterIo', yielding],
  ['#platform.monotonicMs', stopwatch],
  ['#platform.fillRandom', randomness],
]);

/** Built-in modules that offer nothing else. */
const bannedModules: ReadonlyMap<string, string> = new Map([
  ['timers', timer],
  ['timers/promises', timer],
  ['perf_hooks', stopwatch],
]);

export interface AmbientUse {
  readonly node: SyntaxNode;
  readonly name: string;
  readonly instead: string;
}

function nameOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === 'Identifier' ? (node['name'] as string) : undefined;
}

/** The name by which a member is looked up, if it is written in the source. */
function memberName(key: SyntaxNode | undefined, computed: unknown): string | undefined {
  return computed === true ? stringOf(key) : (nameOf(key) ?? stringOf(key));
}

function builtinName(specifier: string | undefined): string | undefined {
  return specifier?.replace(/^node:/, '');
}

/** Local names that stand for a whole built-in module: `import * as secrets from 'node:crypto'`. */
function moduleAliases(module: Module): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  for (const statement of childrenOf(module.program, 'body')) {
    if (statement.type !== 'ImportDeclaration') continue;
    const builtin = builtinName(stringOf(childOf(statement, 'source')));
    if (builtin !== 'crypto' && builtin !== 'process') continue;
    for (const specifier of childrenOf(statement, 'specifiers')) {
      const local = nameOf(childOf(specifier, 'local'));
      if (specifier.type !== 'ImportSpecifier' && local !== undefined) aliases.set(local, builtin);
    }
  }
  return aliases;
}

/** `Date.now` for the expression of that name, whatever way it is reached; undefined if it is no plain path. */
function pathOf(node: SyntaxNode, aliases: ReadonlyMap<string, string>): string | undefined {
  if (node.type === 'Identifier') return aliases.get(node['name'] as string) ?? (node['name'] as string);
  if (node.type === 'ChainExpression') return pathOf(childOf(node, 'expression') as SyntaxNode, aliases);
  if (node.type !== 'MemberExpression') return undefined;
  const object = pathOf(childOf(node, 'object') as SyntaxNode, aliases);
  const member = memberName(childOf(node, 'property'), node['computed']);
  if (object === undefined || member === undefined) return undefined;
  return object === 'globalThis' || object === 'global' ? member : `${object}.${member}`;
}

/** Whether an identifier only names a member, a key or a type, and so refers to nothing outside. */
function isMereName(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (parent === undefined) return false;
  if (parent.type === 'MemberExpression') return parent['property'] === node && parent['computed'] !== true;
  if (parent.type === 'Property' && parent['shorthand'] === true) return false;
  if (parent['key'] === node) return parent['computed'] !== true;
  return parent.type.startsWith('TSType') || parent.type === 'TSQualifiedName';
}

/** What a node uses, as `Date.now`; several for `const { now, parse } = Date` and for imports. */
function usedBy(
  node: SyntaxNode,
  parent: SyntaxNode | undefined,
  aliases: ReadonlyMap<string, string>,
): readonly string[] {
  if (node.type === 'Identifier') return isMereName(node, parent) ? [] : [node['name'] as string];
  if (node.type === 'MemberExpression') return [pathOf(node, aliases) ?? ''];
  if (node.type === 'ImportDeclaration') {
    const builtin = builtinName(stringOf(childOf(node, 'source')));
    return childrenOf(node, 'specifiers').map((specifier) => `${builtin}.${nameOf(childOf(specifier, 'imported'))}`);
  }
  if (node.type !== 'VariableDeclarator') return [];
  const pattern = childOf(node, 'id');
  const from = childOf(node, 'init');
  const object = from === undefined ? undefined : pathOf(from, aliases);
  if (pattern?.type !== 'ObjectPattern' || object === undefined) return [];
  const prefix = object === 'globalThis' || object === 'global' ? '' : `${object}.`;
  return childrenOf(pattern, 'properties').map(
    (property) => `${prefix}${memberName(childOf(property, 'key'), property['computed'])}`,
  );
}

/** `new Date()`, and `Date()` with any arguments: both read the clock. */
function readsDate(node: SyntaxNode): boolean {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return false;
  if (nameOf(childOf(node, 'callee')) !== 'Date') return false;
  return node.type === 'CallExpression' || childrenOf(node, 'arguments').length === 0;
}

/** Every use in a module, in the order of the text. */
export function ambientUses(module: Module): AmbientUse[] {
  const aliases = moduleAliases(module);
  const uses: AmbientUse[] = [];
  walk(module.program, (node, parent) => {
    if (readsDate(node)) uses.push({ node, name: 'new Date()', instead: clock });
    const specifier = builtinName(stringOf(childOf(node, 'source')));
    const instead = specifier === undefined ? undefined : bannedModules.get(specifier);
    if (specifier !== undefined && instead !== undefined) uses.push({ node, name: specifier, instead });
    for (const name of usedBy(node, parent, aliases)) {
      const replacement = banned.get(name);
      if (replacement !== undefined) uses.push({ node, name, instead: replacement });
    }
  });
  return uses;
}
