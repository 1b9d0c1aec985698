/**
 * Finds what a module keeps for all who use it: variables that are assigned, and buffers, maps and lists that are written.
 * An instance should own such a thing, or be handed it.
 */
import { childOf, childrenOf, walk } from './source-tree.ts';
import type { Module, SyntaxNode } from './source-tree.ts';

export interface SharedState {
  readonly node: SyntaxNode;
  readonly name: string;
}

/** What remains, by file and name, and why nobody owns it. */
export const sharedStates: ReadonlyMap<string, string> = new Map([
  [
    'src/base/bytes.ts slab',
    'memory that small writers are cut from, and no byte twice: with a buffer each, they take nearly twice as long',
  ],
  ['src/platform/web.ts cryptoKeys', 'belongs to the bytes of a key, and goes with them'],
  ['src/base/bytes.ts slabUsed', 'goes with the slab'],
  [
    'src/base/bytes.ts scratch',
    'written and copied within one call that calls nothing else: without it, short texts take a third longer',
  ],
  [
    'src/base/bytes.ts shortWords',
    'strings that all rows share: a table of them for each decoder would take more than it saves',
  ],
  ['src/base/bytes.ts shortTexts', 'goes with the words'],
  [
    'src/search/analyzer.ts analyzers',
    'the code of a language is loaded once in a process, before the words of rows are made without a promise',
  ],
  ['src/schema/text-entries.ts counts', 'written and read within one call that calls nothing else, for each row'],
  ['src/query/search/word-postings.ts runsOfLeaves', 'follows from the leaf, which never changes, and goes with it'],
  ['src/query/search/corpus.ts wordsOfLayers', 'follows from the entries, which never change, and goes with them'],
  ['src/base/bytes.ts codes', 'written and read within one call that calls nothing else'],
  ['src/base/abort.ts followers', 'belongs to the signal of the application, and goes with it'],
  ['src/base/later.ts declared', 'modules of the package, which all databases of a process share'],
  ['src/base/ids.ts lastIds', 'belongs to the environment: ids ascend for all who have the same clock'],
  ['src/schema/table-shape.ts shapes', 'databases of a process share the code that the runtime makes for a shape'],
  ['src/schema/table-shape.ts maxShapes', 'goes with the shapes'],
  ['src/format/compression.ts expandZstd', 'code that is loaded once, as a module is'],
  ['src/storage/certify/certificate.ts byIdentity', 'a store is tried out once in a process, whoever opens it'],
  ['src/storage/certify/certificate.ts byDriver', 'belongs to the driver'],
]);

/** Classes of what can be written without a trace in the syntax: it is enough to hand it to a function. */
const scratchClasses =
  /^(ByteWriter|WeakMap|WeakSet|ArrayBuffer|DataView|Buffer|U?int(8|16|32)(Clamped)?Array|Big(Ui|I)nt64Array|Float(32|64)Array)$/i;
const writingMethods = new Set(
  'add clear copyWithin delete fill pop push reverse set shift sort splice unshift'.split(' '),
);

function nameOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === 'Identifier' ? (node['name'] as string) : undefined;
}

/** The name in `name.a.b` and `name[i]`. */
function rootOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === 'MemberExpression'
    ? (nameOf(childOf(node, 'object')) ?? rootOf(childOf(node, 'object')))
    : undefined;
}

/** Names whose parts a module assigns, deletes or changes by a method. */
function writtenNames(module: Module): ReadonlySet<string> {
  const names = new Set<string | undefined>();
  walk(module.program, (node) => {
    if (node.type === 'AssignmentExpression') names.add(rootOf(childOf(node, 'left')));
    if (node.type === 'UpdateExpression' || (node.type === 'UnaryExpression' && node['operator'] === 'delete')) {
      names.add(rootOf(childOf(node, 'argument')));
    }
    const callee = node.type === 'CallExpression' ? childOf(node, 'callee') : undefined;
    const method = callee?.type === 'MemberExpression' ? nameOf(childOf(callee, 'property')) : undefined;
    if (method !== undefined && writingMethods.has(method)) names.add(rootOf(callee));
  });
  return names as ReadonlySet<string>;
}

function isEmpty(created: SyntaxNode): boolean {
  const [size] = childrenOf(created, 'arguments');
  return size?.type === 'Literal' && size['value'] === 0;
}

/** Every one in a module, in the order of the text. */
export function sharedStatesOf(module: Module): SharedState[] {
  const written = writtenNames(module);
  const found: SharedState[] = [];
  for (const statement of childrenOf(module.program, 'body')) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? childOf(statement, 'declaration') : statement;
    if (declaration?.type !== 'VariableDeclaration') continue;
    for (const node of childrenOf(declaration, 'declarations')) {
      const name = nameOf(childOf(node, 'id'));
      const value = childOf(node, 'init');
      const made = value?.type === 'NewExpression' ? (nameOf(childOf(value, 'callee')) ?? '') : '';
      const isScratch = scratchClasses.test(made) && !isEmpty(value as SyntaxNode);
      if (declaration['kind'] !== 'const') found.push({ node, name: name ?? 'a pattern' });
      else if (name !== undefined && (isScratch || written.has(name))) found.push({ node, name });
    }
  }
  return found;
}
