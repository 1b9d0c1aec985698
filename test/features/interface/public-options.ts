/** The calls of the package that take options, and their options, as the sources define them. */
import { fileURLToPath } from 'node:url';
import { Model } from '../../../scripts/api-reference/model.ts';
import type { Item, Member } from '../../../scripts/api-reference/model.ts';
import { nameOf, Sources } from '../../../scripts/api-reference/source.ts';
import type { Declaration, Module } from '../../../scripts/api-reference/source.ts';
import { childOf, childrenOf } from '../../repo/tidy/source-tree.ts';
import type { SyntaxNode } from '../../repo/tidy/source-tree.ts';

/** An option, as its type declares it. */
export interface DeclaredOption {
  /** Its name, behind those of the options that it is in: `mergePolicy.minCommits`. */
  readonly path: string;
  /** Its type in TypeScript; that of an alias of texts, spelt out. */
  readonly type: string;
}

/** A parameter of a public call that takes options. */
export interface OptionsParameter {
  /** Such as `Database.gc(options)`, `new FileDriver(options)` or `pruneBackups(options)`. */
  readonly call: string;
  /** Such as `GcOptions`. */
  readonly type: string;
  readonly returnsPromise: boolean;
  readonly options: readonly DeclaredOption[];
}

const sources = new Sources(fileURLToPath(new URL('../../../', import.meta.url)));
const model = new Model(sources, [
  { specifier: 'store-db', path: 'src/index.ts' },
  { specifier: 'store-db/lib/storage', path: 'src/storage/index.ts' },
  { specifier: 'store-db/testing', path: 'src/testing/index.ts' },
  { specifier: 'store-db/workers', path: 'src/workers.ts' },
  { specifier: 'store-db/reader', path: 'src/reader.ts' },
  { specifier: 'store-db/live', path: 'src/live-server.ts' },
  { specifier: 'store-db/live-client', path: 'src/live-client.ts' },
  { specifier: 'store-db/react', path: 'src/react.ts' },
  { specifier: 'store-db/otel', path: 'src/otel.ts' },
  { specifier: 'store-db/tanstack', path: 'src/tanstack.ts' },
  { specifier: 'store-db/studio', path: 'src/studio.ts' },
]);

/** The type in an annotation. */
function typeNode(node: SyntaxNode): SyntaxNode | undefined {
  const annotation = childOf(node, 'typeAnnotation');
  return annotation?.type === 'TSTypeAnnotation' ? childOf(annotation, 'typeAnnotation') : annotation;
}

/** The types that a type is one of: `string | FileDriverOptions` names two. */
function alternatives(type: SyntaxNode): readonly SyntaxNode[] {
  return type.type === 'TSUnionType' ? childrenOf(type, 'types').flatMap(alternatives) : [type];
}

/** An interface of nothing but properties: what is passed for it is an object that somebody writes for the call. */
function isOptions(item: Item | undefined): item is Item {
  const members = item?.members ?? [];
  return item?.kind === 'interface' && members.length > 0 && members.every(({ kind }) => kind === 'property');
}

function namedIn(module: Module, type: SyntaxNode): Item | undefined {
  if (type.type !== 'TSTypeReference') return undefined;
  return model.lookup(module, nameOf(childOf(type, 'typeName')) ?? '');
}

/** An alias of texts as these texts; any other type as it is written. */
function spelt(module: Module, type: SyntaxNode): string {
  const name = nameOf(childOf(type, 'typeName')) ?? '';
  const alias: Declaration | undefined = type.type === 'TSTypeReference' ? sources.resolve(module, name) : undefined;
  const aliased = alias?.node.type === 'TSTypeAliasDeclaration' ? childOf(alias.node, 'typeAnnotation') : undefined;
  return aliased === undefined ? module.slice(type) : (alias as Declaration).module.slice(aliased);
}

function optionsIn(
  members: readonly { module: Module; node: SyntaxNode; name: string }[],
  path: string,
): DeclaredOption[] {
  return members.flatMap(({ module, node, name }) => {
    const type = typeNode(node) as SyntaxNode;
    const own = { path: `${path}${name}`, type: spelt(module, type) };
    const inner = alternatives(type).flatMap((each) => {
      const item = namedIn(module, each);
      if (isOptions(item)) return optionsIn(item.members, `${own.path}.`);
      if (each.type !== 'TSTypeLiteral') return [];
      const fields = childrenOf(each, 'members').flatMap((field) => {
        const key = nameOf(childOf(field, 'key'));
        return key === undefined ? [] : [{ module, node: field, name: key }];
      });
      return optionsIn(fields, `${own.path}.`);
    });
    return [own, ...inner];
  });
}

function parametersOf(call: string, module: Module, node: SyntaxNode, isConstructor: boolean): OptionsParameter[] {
  const callable = node.type === 'MethodDefinition' ? (childOf(node, 'value') as SyntaxNode) : node;
  const returned = childOf(callable, 'returnType');
  const returnsPromise = !isConstructor && returned !== undefined && module.slice(returned).includes('Promise<');
  return childrenOf(callable, 'params').flatMap((parameter) => {
    const named = parameter.type === 'AssignmentPattern' ? (childOf(parameter, 'left') as SyntaxNode) : parameter;
    const type = typeNode(named);
    if (type === undefined) return [];
    return alternatives(type).flatMap((each) => {
      const item = namedIn(module, each);
      if (!isOptions(item)) return [];
      const options = optionsIn(item.members, '');
      return [{ call: `${call}(${nameOf(named) ?? '{}'})`, type: item.name, returnsPromise, options }];
    });
  });
}

function callsOf(item: Item): OptionsParameter[] {
  const { name, kind, declaration } = item;
  if (kind === 'function') return parametersOf(name, declaration.module, declaration.node, false);
  if (kind !== 'class') return [];
  return item.members.flatMap((member: Member) => {
    const { module, node } = member;
    if (member.kind === 'constructor') return parametersOf(`new ${name}`, module, node, true);
    return member.kind === 'method' ? parametersOf(`${name}.${member.name}`, module, node, false) : [];
  });
}

/** Every parameter of a public call that takes options. */
export const optionsParameters: readonly OptionsParameter[] = model.items.flatMap(callsOf);

/** The properties that an interface of the package declares. */
export function declaredIn(type: string): readonly DeclaredOption[] {
  const item = model.items.find(({ name }) => name === type);
  if (!isOptions(item)) throw new Error(`${type} is no interface of properties.`);
  return optionsIn(item.members, '');
}
