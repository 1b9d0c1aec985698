/** The sources as the reference reads them: modules by path, what they declare, export and import, and docstrings. */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync } from 'oxc-parser';
import { childOf, childrenOf, stringOf } from '../../test/repo/tidy/source-tree.ts';
import type { SyntaxNode } from '../../test/repo/tidy/source-tree.ts';

/** Something that a module declares at its top level. */
export interface Declaration {
  readonly module: Module;
  readonly name: string;
  readonly node: SyntaxNode;
  readonly doc: Doc | undefined;
}

interface Origin {
  readonly path: string;
  readonly name: string;
}

/** What a docstring says: text in Markdown, and the tags that are understood here. */
export interface Doc {
  readonly text: string;
  readonly params: readonly { readonly name: string; readonly text: string }[];
  /** `@internal`: stripped from the declarations; `@hidden`: there, and left out of the reference. */
  readonly isHidden: boolean;
}

const docPattern = /\/\*\*((?:(?!\*\/)[^])*)\*\/$/;
const openingDoc = /^\s*\/\*\*((?:(?!\*\/)[^])*)\*\/\s*\n/;

function readDoc(body: string): Doc {
  const lines = body.split('\n').map((line) => line.replace(/^\s*\* ?/, '').trimEnd());
  const text: string[] = [];
  const params: { name: string; text: string }[] = [];
  let isHidden = false;
  for (const line of lines) {
    const param = /^@param (\w+) (.*)$/.exec(line);
    if (/^\s*@(internal|hidden)\b/.test(line)) isHidden = true;
    else if (param !== null) params.push({ name: param[1] as string, text: param[2] as string });
    else if (params.length > 0) (params.at(-1) as { text: string }).text += ` ${line.trim()}`;
    else text.push(line);
  }
  const trimmed = params.map(({ name, text: words }) => ({ name, text: words.trim() }));
  return { text: text.join('\n').trim(), params: trimmed, isHidden };
}

/** The name by which a member or declaration is called, undefined for private ones. */
export function nameOf(key: SyntaxNode | undefined): string | undefined {
  if (key?.type === 'Identifier') return key['name'] as string;
  if (key?.type === 'MemberExpression') return `[Symbol.${nameOf(childOf(key, 'property'))}]`;
  return stringOf(key);
}

function declaredNames(node: SyntaxNode): { name: string; node: SyntaxNode }[] {
  if (node.type === 'VariableDeclaration') {
    return childrenOf(node, 'declarations').flatMap((declarator) => {
      const name = nameOf(childOf(declarator, 'id'));
      return name === undefined ? [] : [{ name, node: declarator }];
    });
  }
  const name = nameOf(childOf(node, 'id'));
  return name === undefined ? [] : [{ name, node }];
}

export class Module {
  readonly path: string;
  readonly text: string;
  /** The comment at the head of the file. */
  readonly head: Doc | undefined;
  readonly declarations = new Map<string, Declaration>();
  /** Where imported and re-exported names come from, by their names here. */
  readonly imports = new Map<string, Origin>();
  /** Exported names, in the order of the source, and what they are called here. */
  readonly exports = new Map<string, string>();

  constructor(path: string, text: string) {
    this.path = path;
    this.text = text;
    const { program, errors } = parseSync(path, text, { sourceType: 'module' });
    if (errors[0] !== undefined) throw new Error(`${path} does not parse: ${errors[0].message}`);
    const opening = openingDoc.exec(text)?.[1];
    this.head = opening === undefined ? undefined : readDoc(opening);
    for (const statement of childrenOf(program as unknown as SyntaxNode, 'body')) this.#read(statement);
  }

  /** The docstring before a node. */
  docOf(node: SyntaxNode): Doc | undefined {
    const match = docPattern.exec(this.text.slice(0, node.start).trimEnd());
    return match === null ? undefined : readDoc(match[1] as string);
  }

  /** The source of a node on one line, without comments. */
  slice(node: SyntaxNode): string {
    return this.text
      .slice(node.start, node.end)
      .replaceAll(/\/\*[^]*?\*\//g, '')
      .replaceAll(/\/\/.*$/gm, '')
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/readonly (?=\w+\??:)/g, '')
      .replaceAll(/; }/g, ' }')
      .replace(/^\| /, '')
      .trim();
  }

  /** The source of a node as it is laid out. */
  lines(node: SyntaxNode): string {
    return this.text.slice(node.start, node.end);
  }

  #read(statement: SyntaxNode): void {
    const source = stringOf(childOf(statement, 'source'));
    const from = source === undefined ? undefined : posix.join(posix.dirname(this.path), source);
    const isRelative = source?.startsWith('.') === true;
    if (statement.type === 'ImportDeclaration') {
      if (!isRelative) return;
      for (const specifier of childrenOf(statement, 'specifiers')) this.#bind(specifier, 'imported', from as string);
      return;
    }
    if (!statement.type.startsWith('Export')) {
      this.#declare(statement, statement);
      return;
    }
    const declaration = childOf(statement, 'declaration');
    if (declaration !== undefined) {
      for (const name of this.#declare(declaration, statement)) this.exports.set(name, name);
    }
    for (const specifier of childrenOf(statement, 'specifiers')) {
      const exported = nameOf(childOf(specifier, 'exported')) as string;
      const local = nameOf(childOf(specifier, 'local')) as string;
      if (from !== undefined) this.imports.set(exported, { path: from, name: local });
      this.exports.set(exported, from === undefined ? local : exported);
    }
  }

  #bind(specifier: SyntaxNode, field: string, path: string): void {
    const local = nameOf(childOf(specifier, 'local')) as string;
    this.imports.set(local, { path, name: nameOf(childOf(specifier, field)) ?? 'default' });
  }

  #declare(node: SyntaxNode, documented: SyntaxNode): string[] {
    if (node.type === 'Identifier') return [];
    const doc = this.docOf(documented);
    return declaredNames(node).map((declared) => {
      this.declarations.set(declared.name, { module: this, name: declared.name, node: declared.node, doc });
      return declared.name;
    });
  }
}

/** The modules of the package, read when they are asked for. */
export class Sources {
  readonly #root: string;
  readonly #modules = new Map<string, Module>();

  constructor(root: string) {
    this.#root = root;
  }

  module(path: string): Module {
    let module = this.#modules.get(path);
    if (module === undefined) {
      module = new Module(path, readFileSync(join(this.#root, path), 'utf8'));
      this.#modules.set(path, module);
    }
    return module;
  }

  /** What a name in a module means, through imports and re-exports; undefined where it is not of this package. */
  resolve(module: Module, name: string): Declaration | undefined {
    const own = module.declarations.get(name);
    if (own !== undefined) return own;
    const origin = module.imports.get(name);
    return origin === undefined ? undefined : this.resolve(this.module(origin.path), origin.name);
  }
}
