/**
 * What the house rules look at: every module parsed, with its imports resolved, and every text file of the repository.
 * A tree is read from disk, or made of texts in memory, so that each rule can be shown a tree that breaks it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync, visitorKeys } from 'oxc-parser';

/** A node of the syntax tree; fields are looked up by name, since a rule cares for few of the many kinds. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export interface Import {
  readonly specifier: string;
  /** Path of the module that is meant, if the specifier is relative and the module exists. */
  readonly target: string | undefined;
  readonly line: number;
}

export interface Module {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly program: SyntaxNode;
  readonly imports: readonly Import[];
  /** `source` is what is published; tests, models, benchmarks, examples and scripts are `support`. */
  readonly kind: 'source' | 'support';
}

export interface Tree {
  readonly modules: ReadonlyMap<string, Module>;
  /** All text files by path, modules among them. */
  readonly texts: ReadonlyMap<string, string>;
  /** Modules that the package's `exports` and `bin` name. */
  readonly entries: readonly string[];
}

const moduleFolders = new Set(['src', 'test', 'model', 'examples', 'bench', 'scripts']);

export function isTest(path: string): boolean {
  return path.endsWith('.test.ts');
}

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

export function countLines(text: string): number {
  return text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

/** Calls `visit` for a node and everything below it, parents first. */
export function walk(
  node: SyntaxNode,
  visit: (node: SyntaxNode, parent: SyntaxNode | undefined) => void,
  parent?: SyntaxNode,
): void {
  visit(node, parent);
  const fields = visitorKeys[node.type];
  if (fields === undefined) throw new Error(`The parser knows no fields of a ${node.type}`);
  for (const field of fields) {
    const value = node[field];
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (isNode(child)) walk(child, visit, node);
    }
  }
}

/** The node in a field, if there is one. */
export function childOf(node: SyntaxNode, field: string): SyntaxNode | undefined {
  const value = node[field];
  return isNode(value) ? value : undefined;
}

/** The nodes in a field that holds a list. */
export function childrenOf(node: SyntaxNode, field: string): readonly SyntaxNode[] {
  const value = node[field];
  return Array.isArray(value) ? (value as unknown[]).filter(isNode) : [];
}

/** The text of a string literal. */
export function stringOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === 'Literal' && typeof node['value'] === 'string' ? node['value'] : undefined;
}

/** The literal by which a node names another module: imports of every form, and files named relative to this one. */
function importedSpecifier(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return stringOf(childOf(node, 'source'));
    case 'NewExpression': {
      // new URL('./worker.ts', import.meta.url)
      const [first, second] = childrenOf(node, 'arguments');
      const relative = stringOf(first);
      const base = second === undefined ? undefined : childOf(second, 'object');
      const names = childOf(node, 'callee')?.['name'] === 'URL' && base?.type === 'MetaProperty';
      return names && relative?.endsWith('.ts') === true ? relative : undefined;
    }
    default:
      return undefined;
  }
}

/** Names that stand for another file on each platform: on Node.js, and for browsers and Workers (tsconfig.json, tsconfig.web.json). */
const platformFiles: ReadonlyMap<string, readonly string[]> = new Map([
  ['#platform', ['src/platform/node.ts', 'src/platform/web.ts']],
  ['#environment-driver', ['src/storage/environment-driver.ts', 'src/storage/environment-driver-web.ts']],
  ['#load-thread', ['src/platform/load-thread.ts', 'src/platform/load-thread-web.ts']],
]);

/** Returns the files that an import leads to; undefined stands for none of the repository. */
function resolved(from: string, specifier: string, exists: (path: string) => boolean): (string | undefined)[] {
  const files = platformFiles.get(specifier);
  if (files !== undefined) return [...files];
  if (!specifier.startsWith('.')) return [undefined];
  const path = posix.join(posix.dirname(from), specifier);
  return [[path, path.replace(/\.js$/, '.ts')].find(exists)];
}

function parseModule(path: string, text: string, exists: (path: string) => boolean): Module {
  const parsed = parseSync(path, text, { sourceType: 'module', preserveParens: false });
  const [error] = parsed.errors;
  if (error !== undefined) throw new Error(`${path} does not parse: ${error.message}`);
  const program = parsed.program as unknown as SyntaxNode;
  const imports: Import[] = [];
  walk(program, (node) => {
    const specifier = importedSpecifier(node);
    if (specifier === undefined) return;
    for (const target of resolved(path, specifier, exists)) {
      imports.push({ specifier, target, line: lineAt(text, node.start) });
    }
  });
  const kind = path.startsWith('src/') && !isTest(path) ? 'source' : 'support';
  return { path, text, program, imports, kind };
}

/** All strings in a JSON value, however deep. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/** The source modules behind the built files that package.json publishes. */
function publishedEntries(packageJson: string | undefined): string[] {
  if (packageJson === undefined) return [];
  const manifest = JSON.parse(packageJson) as { exports?: unknown; bin?: unknown };
  const built = stringsIn([manifest.exports, manifest.bin]).flatMap((path) => {
    // What is published as CommonJS too is of the same source.
    const match = /^(?:\.\/)?dist\/(?:cjs\/)?(.*)\.js$/.exec(path);
    return match === null ? [] : [`src/${match[1]}.ts`];
  });
  return [...new Set(built)];
}

/** A tree of texts by path. */
export function treeOf(files: Iterable<readonly [path: string, text: string]>): Tree {
  const texts = new Map(files);
  const modules = new Map<string, Module>();
  for (const [path, text] of texts) {
    if (!path.endsWith('.ts') || !moduleFolders.has(path.split('/', 1)[0] as string)) continue;
    modules.set(
      path,
      parseModule(path, text, (other) => texts.has(other)),
    );
  }
  return { modules, texts, entries: publishedEntries(texts.get('package.json')) };
}

/** Whether .gitignore leaves a name out; it understands `folder/` and `*.ending`, which is all that file uses. */
function ignoredNames(gitignore: string): (name: string, path: string, isFolder: boolean) => boolean {
  const patterns = gitignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return (name, path, isFolder) =>
    patterns.some((pattern) => {
      if (pattern.startsWith('*')) return !isFolder && name.endsWith(pattern.slice(1));
      if (pattern.startsWith('/')) return `/${path}${isFolder ? '/' : ''}` === pattern;
      return `${name}${isFolder ? '/' : ''}` === pattern;
    });
}

/** Reads the repository in `folder`: all files that version control would not ignore. */
export function readTree(folder: string): Tree {
  const ignored = ignoredNames(readFileSync(join(folder, '.gitignore'), 'utf8'));
  const files: [path: string, text: string][] = [];
  const pending = [''];
  for (let within = pending.pop(); within !== undefined; within = pending.pop()) {
    for (const entry of readdirSync(join(folder, within), { withFileTypes: true })) {
      const path = posix.join(within, entry.name);
      if (entry.name === '.git' || ignored(entry.name, path, entry.isDirectory())) continue;
      if (entry.isDirectory()) pending.push(path);
      if (!entry.isFile()) continue;
      const bytes = readFileSync(join(folder, path));
      if (!bytes.includes(0)) files.push([path, bytes.toString('utf8')]);
    }
  }
  return treeOf(files);
}
