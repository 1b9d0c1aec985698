/** What the reference is about: everything that the entries export, and the types that it mentions. */
import { childOf, childrenOf, stringOf, walk } from '../../test/repo/tidy/source-tree.ts';
import type { SyntaxNode } from '../../test/repo/tidy/source-tree.ts';
import { nameOf } from './source.ts';
import type { Declaration, Doc, Module, Sources } from './source.ts';

export interface Entry {
  readonly specifier: string;
  readonly path: string;
}

export interface Member {
  readonly name: string;
  readonly kind: 'constructor' | 'method' | 'property';
  readonly module: Module;
  readonly node: SyntaxNode;
  readonly doc: Doc | undefined;
  readonly isOptional: boolean;
  readonly isReadonly: boolean;
}

export type ItemKind = 'class' | 'error' | 'function' | 'constant' | 'interface' | 'type';

export interface Item {
  readonly name: string;
  readonly kind: ItemKind;
  readonly declaration: Declaration;
  readonly specifier: string;
  /** Entries that export it; none for a type that only signatures mention. */
  readonly exportedBy: readonly string[];
  readonly members: readonly Member[];
  /** Interfaces whose members a class has without saying anything new about them. */
  readonly inherits: readonly string[];
  /** `code` of an error class. */
  readonly code: string | undefined;
}

const kinds: Readonly<Record<string, ItemKind>> = {
  ClassDeclaration: 'class',
  FunctionDeclaration: 'function',
  VariableDeclarator: 'constant',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
};

const memberKinds: Readonly<Record<string, Member['kind']>> = {
  MethodDefinition: 'method',
  PropertyDefinition: 'property',
  TSMethodSignature: 'method',
  TSPropertySignature: 'property',
};

function isPublic(node: SyntaxNode): boolean {
  return node['accessibility'] !== 'private' && node['accessibility'] !== 'protected' && node['static'] !== true;
}

function memberOf(module: Module, node: SyntaxNode): Member | undefined {
  const name = nameOf(childOf(node, 'key'));
  const kind = memberKinds[node.type];
  if (name === undefined || kind === undefined || !isPublic(node) || node['kind'] === 'set') return undefined;
  const isGetter = node['kind'] === 'get';
  return {
    name,
    kind: node['kind'] === 'constructor' ? 'constructor' : isGetter ? 'property' : kind,
    module,
    node,
    doc: module.docOf(node),
    isOptional: node['optional'] === true,
    isReadonly: node['readonly'] === true || isGetter,
  };
}

/** What stands in a declaration's body, as it is written. */
function ownMembers({ module, node }: Declaration): Member[] {
  const body = childOf(node, 'body');
  const nodes = body === undefined || node.type === 'FunctionDeclaration' ? [] : childrenOf(body, 'body');
  return nodes.flatMap((member) => memberOf(module, member) ?? []);
}

/** Members of the object that a constant is. */
export function propertiesOf({ module, node }: Declaration): Member[] {
  let value = childOf(node, 'init');
  if (value?.type === 'TSAsExpression') value = childOf(value, 'expression');
  const properties = value?.type === 'ObjectExpression' ? childrenOf(value, 'properties') : [];
  return properties.map((node_) => ({
    name: nameOf(childOf(node_, 'key')) as string,
    kind: 'property',
    module,
    node: node_,
    doc: module.docOf(node_),
    isOptional: false,
    isReadonly: true,
  }));
}

/** Names of the types that a node mentions. */
export function mentioned(node: SyntaxNode): string[] {
  const names: string[] = [];
  walk(node, (inner) => {
    if (inner.type === 'TSTypeReference') names.push(nameOf(childOf(inner, 'typeName')) ?? '');
    // `typeof x` in a type.
    if (inner.type === 'TSTypeQuery') names.push(nameOf(childOf(inner, 'exprName')) ?? '');
  });
  return names.filter((name) => name !== '');
}

/** The parts of a member or function that are its signature. */
export function signatureParts(node: SyntaxNode): SyntaxNode[] {
  const callable = node.type === 'MethodDefinition' ? (childOf(node, 'value') as SyntaxNode) : node;
  const parts = [childOf(callable, 'typeParameters'), childOf(callable, 'returnType'), childOf(node, 'typeAnnotation')];
  return [...parts, ...childrenOf(callable, 'params')].filter((part) => part !== undefined);
}

export class Model {
  readonly items: Item[] = [];
  readonly #sources: Sources;
  readonly #byDeclaration = new Map<SyntaxNode, Item>();

  constructor(sources: Sources, entries: readonly Entry[]) {
    this.#sources = sources;
    const exporters = new Map<SyntaxNode, string[]>();
    for (const { specifier, path } of entries) {
      for (const declaration of this.#exported(path)) {
        const known = exporters.get(declaration.node) ?? [];
        exporters.set(declaration.node, [...known, specifier]);
      }
    }
    for (const { path } of entries) {
      for (const declaration of this.#exported(path)) {
        const exportedBy = exporters.get(declaration.node) as string[];
        // An error of the storage entry is what its drivers throw: it is described there.
        this.#add(declaration, exportedBy.at(-1) as string, exportedBy);
      }
    }
    // What signatures mention belongs to the entry that mentions it first. The list grows while it is gone through.
    for (const item of this.items) {
      for (const declaration of this.#mentionedBy(item)) this.#add(declaration, item.specifier, []);
    }
  }

  /** The item that a name in a module stands for. */
  lookup(module: Module, name: string): Item | undefined {
    const declaration = this.#sources.resolve(module, name);
    return declaration === undefined ? undefined : this.#byDeclaration.get(declaration.node);
  }

  #exported(path: string): Declaration[] {
    const module = this.#sources.module(path);
    return [...module.exports].map(([exported, local]) => {
      const declaration = this.#sources.resolve(module, local);
      if (declaration === undefined) throw new Error(`${path} exports ${exported}, which is not found`);
      return declaration;
    });
  }

  #add(declaration: Declaration, specifier: string, exportedBy: readonly string[]): void {
    if (this.#byDeclaration.has(declaration.node)) return;
    const base = kinds[declaration.node.type];
    if (base === undefined) throw new Error(`${declaration.name} is a ${declaration.node.type}`);
    const code = this.#errorCode(declaration);
    const kind = code === undefined ? base : 'error';
    const { members, inherits } = this.#membersOf(declaration);
    const { name } = declaration;
    const item: Item = { name, kind, declaration, specifier, exportedBy, members, inherits, code };
    this.items.push(item);
    this.#byDeclaration.set(declaration.node, item);
  }

  /** The code that the constructor of an error class hands to its base class. */
  #errorCode({ node }: Declaration): string | undefined {
    const base = childOf(node, 'superClass');
    if (base === undefined || nameOf(base) !== 'StoreDbError') return undefined;
    let code: string | undefined;
    walk(node, (inner) => {
      if (inner.type !== 'CallExpression' || childOf(inner, 'callee')?.type !== 'Super') return;
      code ??= stringOf(childrenOf(inner, 'arguments')[0]);
    });
    return code;
  }

  #membersOf(declaration: Declaration): { members: Member[]; inherits: string[] } {
    const { module, node } = declaration;
    const bases = [...childrenOf(node, 'implements'), ...childrenOf(node, 'extends')];
    const members = ownMembers(declaration);
    const inherits: string[] = [];
    for (const heritage of bases) {
      const name = nameOf(childOf(heritage, 'expression')) ?? '';
      const base = this.#sources.resolve(module, name);
      if (base === undefined) continue;
      const inherited = this.#membersOf(base).members;
      if (node.type === 'TSInterfaceDeclaration') members.unshift(...inherited);
      else {
        inherits.push(name);
        const said = new Set(inherited.map((member) => member.name));
        const silent = (member: Member): boolean => member.doc === undefined && said.has(member.name);
        members.splice(0, members.length, ...members.filter((member) => !silent(member)));
      }
    }
    return { members: members.filter(({ doc }) => doc?.isHidden !== true), inherits };
  }

  #mentionedBy({ kind, declaration, members }: Item): Declaration[] {
    const { module, node } = declaration;
    const found = members.flatMap((member) =>
      // The constructors of errors are for StoreDb, and for drivers.
      kind === 'error' && member.kind === 'constructor'
        ? []
        : signatureParts(member.node).flatMap((part) => mentioned(part).map((name) => ({ from: member.module, name }))),
    );
    if (kind === 'function') {
      found.push(...signatureParts(node).flatMap((part) => mentioned(part).map((name) => ({ from: module, name }))));
    }
    return found.flatMap(({ from, name }) => this.#sources.resolve(from, name) ?? []);
  }
}
