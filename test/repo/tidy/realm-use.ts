/** Finds tests that ask where a value's constructor stands, and so fail for values of another realm. */
import { childOf, childrenOf, walk } from './source-tree.ts';
import type { Module, SyntaxNode } from './source-tree.ts';

export interface RealmUse {
  readonly node: SyntaxNode;
  readonly message: string;
}

/** The classes that each realm has for itself, and those of Node.js that test environments replace. */
const realmClasses: ReadonlySet<string> = new Set(
  Object.getOwnPropertyNames(globalThis).filter((name) => /^[A-Z]/.test(name)),
);

function nameOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === 'Identifier' ? (node['name'] as string) : undefined;
}

/** Names that a module imports or declares as classes: they stand for something of its own. */
function ownNames(module: Module): ReadonlySet<string> {
  const names = new Set<string>();
  walk(module.program, (node) => {
    const declared = node.type === 'ClassDeclaration' ? childOf(node, 'id') : undefined;
    const local = declared ?? (/^Import\w*Specifier$/.test(node.type) ? childOf(node, 'local') : undefined);
    const name = nameOf(local);
    if (name !== undefined) names.add(name);
  });
  return names;
}

/** `Object` for `Object.prototype`. */
function prototypeOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type !== 'MemberExpression' || nameOf(childOf(node, 'property')) !== 'prototype') return undefined;
  return nameOf(childOf(node, 'object'));
}

/** The class that a comparison asks for: `Date` in `value instanceof Date` and in `value.constructor === Date`. */
function askedFor(node: SyntaxNode): string | undefined {
  if (node.type !== 'BinaryExpression') return undefined;
  const sides = [childOf(node, 'left'), childOf(node, 'right')];
  if (node['operator'] === 'instanceof') return nameOf(sides[1]);
  if (!/^[!=]==?$/.test(String(node['operator']))) return undefined;
  const prototype = sides.map(prototypeOf).find((name) => name !== undefined);
  if (prototype !== undefined) return prototype;
  const isConstructor = sides.some((side) => nameOf(side && childOf(side, 'property')) === 'constructor');
  return isConstructor ? sides.map(nameOf).find((name) => name !== undefined) : undefined;
}

function isSignalMaker(node: SyntaxNode): boolean {
  if (node.type === 'NewExpression') return nameOf(childOf(node, 'callee')) === 'AbortController';
  if (node.type !== 'CallExpression' || childrenOf(node, 'arguments').length === 0) return false;
  const callee = childOf(node, 'callee');
  return callee?.type === 'MemberExpression' && nameOf(childOf(callee, 'object')) === 'AbortSignal';
}

/** Every one in a module, in the order of the text. */
export function realmUses(module: Module): RealmUse[] {
  const own = ownNames(module);
  const uses: RealmUse[] = [];
  walk(module.program, (node) => {
    const name = askedFor(node);
    if (name !== undefined && realmClasses.has(name) && !own.has(name)) {
      uses.push({ node, message: `asks for the ${name} of one realm: use base/brands.ts` });
    }
    if (isSignalMaker(node))
      uses.push({ node, message: 'makes signals of a class that can be replaced: use base/abort.ts' });
  });
  return uses;
}
