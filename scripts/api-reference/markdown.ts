/** Writes the reference as Markdown. */
import { childOf, childrenOf } from '../../test/repo/tidy/source-tree.ts';
import type { SyntaxNode } from '../../test/repo/tidy/source-tree.ts';
import { mentioned, propertiesOf, signatureParts } from './model.ts';
import type { Item, Member, Model } from './model.ts';
import type { Module } from './source.ts';
import { nameOf } from './source.ts';

const maxWidth = 100;

/** The anchor that a heading gets. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function fence(code: string): string {
  // Not `ts`: signatures are no programs.
  return `\`\`\`typescript
${code}
\`\`\``;
}

function cell(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|');
}

function typeText(module: Module, node: SyntaxNode | undefined): string {
  const annotation = node === undefined ? undefined : childOf(node, 'typeAnnotation');
  return annotation === undefined ? 'unknown' : module.slice(annotation).replace(/^: ?/, '');
}

function parameterText(module: Module, parameter: SyntaxNode): string {
  if (parameter.type !== 'AssignmentPattern') return module.slice(parameter);
  const left = childOf(parameter, 'left') as SyntaxNode;
  const right = childOf(parameter, 'right') as SyntaxNode;
  // A literal says what the default is; anything else is told in words.
  if (right.type === 'Literal') return `${module.slice(left)} = ${module.slice(right)}`;
  return `${nameOf(left) ?? 'options'}?: ${typeText(module, left)}`;
}

function signature(module: Module, name: string, node: SyntaxNode): string {
  const callable = childOf(node, 'value') ?? node;
  const generics = childOf(callable, 'typeParameters');
  const parameters = childrenOf(callable, 'params').map((parameter) => parameterText(module, parameter));
  const start = name + (generics === undefined ? '' : module.slice(generics));
  const returns = childOf(callable, 'returnType');
  const end = returns === undefined ? '' : module.slice(returns);
  const line = `${start}(${parameters.join(', ')})${end}`;
  if (line.length <= maxWidth) return line;
  return `${start}(\n${parameters.map((parameter) => `  ${parameter},\n`).join('')})${end}`;
}

/** Splits a docstring's `Default x.` from the rest. A point within a number does not end it. */
function splitDefault(text: string): { meaning: string; fallback: string | undefined } {
  const match = /\bDefault:? ((?:`[^`]*`|\[[^\]]*\]|[^.;`]|\.(?=\d))+)[.;]\s*/.exec(text);
  if (match === null) return { meaning: text, fallback: undefined };
  const rest = text.slice(match.index + match[0].length);
  const meaning = `${text.slice(0, match.index)}${rest.slice(0, 1).toUpperCase()}${rest.slice(1)}`;
  return { meaning: meaning.trim(), fallback: match[1] };
}

/** What an object of a class is called in headings: `db.start()`. */
function holderOf(name: string): string {
  return name === 'Database' ? 'db' : name.charAt(0).toLowerCase() + name.slice(1);
}

/** A method as headings name it. */
function methodTitle(item: Item, name: string): string {
  return `${holderOf(item.name)}${name.startsWith('[') ? '' : '.'}${name}()`;
}

/** A method with several signatures is known by these: the one with its body is nobody else's concern. */
function withoutBodiesOfOverloads(methods: readonly Member[]): Member[] {
  const isSignature = ({ node }: Member): boolean => childOf(node, 'value')?.type === 'TSEmptyBodyFunctionExpression';
  const overloaded = new Set(methods.filter(isSignature).map(({ name }) => name));
  return methods.filter((member) => !overloaded.has(member.name) || isSignature(member));
}

export class Writer {
  readonly #model: Model;
  readonly #anchors = new Set<string>();
  /** Public things that no docstring explains. */
  readonly undocumented: string[] = [];

  constructor(model: Model) {
    this.#model = model;
  }

  heading(level: number, text: string): string {
    const anchor = anchorOf(text);
    if (this.#anchors.has(anchor)) throw new Error(`Two headings have the anchor ${anchor}`);
    this.#anchors.add(anchor);
    return `${'#'.repeat(level)} ${text}`;
  }

  link(item: Item): string {
    return `[\`${item.name}\`](#${anchorOf(item.name)})`;
  }

  /** A docstring as Markdown: names become links, wrapped lines become one, indented lines become code. */
  prose(text: string, module: Module, within?: Item): string {
    const linked = (words: string): string =>
      words
        .replaceAll(/\{@link (\w+)(?:\.(\w+))?\}/g, (_all, name: string, member?: string) => {
          const isMethod = member !== undefined || within?.members.some((other) => other.name === name) === true;
          return `\`${member === undefined ? name : `${name}.${member}`}${isMethod ? '()' : ''}\``;
        })
        .replaceAll(/\bdocs\/([\w-]+\.md)/g, '[$1]($1)')
        .replaceAll(/`([A-Za-z]\w*)(?:\.(\w+))?(\(\))?`/g, (all, name: string, member?: string, call?: string) => {
          const item = this.#model.lookup(module, name) ?? this.#named(name);
          if (item !== undefined && member === undefined)
            return item === within ? all : `[${all}](${this.#target(item)})`;
          const own = item ?? this.#held(name) ?? within;
          const method = own?.members.find((other) => other.name === (member ?? name) && other.kind === 'method');
          if (own === undefined || method === undefined || call === undefined) return all;
          return `[${all}](#${anchorOf(methodTitle(own, method.name))})`;
        });
    const blocks = text.split(/\n\n+/).map((block) => {
      if (/^ {4}/.test(block)) return fence(block.replaceAll(/^ {4}/gm, ''));
      return linked(block.replaceAll(/\n(?!- )\s*/g, ' '));
    });
    return blocks.join('\n\n');
  }

  #named(name: string): Item | undefined {
    return this.#model.items.find((item) => item.name === name && /^[A-Z]/.test(name));
  }

  /** The class whose objects are called so in headings. */
  #held(name: string): Item | undefined {
    return this.#model.items.find((item) => item.kind === 'class' && holderOf(item.name) === name);
  }

  #target(item: Item): string {
    return item.kind === 'error' && item.specifier === 'store-db' && item.name !== 'StoreDbError'
      ? '#errors'
      : `#${anchorOf(item.name)}`;
  }

  /** The types that a signature mentions, as links. */
  #seeAlso(module: Module, nodes: readonly SyntaxNode[], within: Item): string {
    const items = nodes.flatMap(mentioned).flatMap((name) => this.#model.lookup(module, name) ?? []);
    const links = [...new Set(items)].filter((item) => item !== within).map((item) => this.link(item));
    return links.length === 0 ? '' : `Types: ${links.join(', ')}`;
  }

  #explain(what: string, text: string | undefined): string {
    if (text === undefined || text === '') this.undocumented.push(what);
    return text ?? '';
  }

  /** One item with everything about it. */
  item(item: Item): string {
    const { name, declaration, kind } = item;
    const { module, node } = declaration;
    const parts = [this.heading(3, name)];
    const code = this.#definition(item);
    if (code !== undefined) parts.push(fence(code));
    const doc = this.#explain(name, declaration.doc?.text);
    parts.push(this.prose(doc, module, item));
    for (const { name: parameter, text } of declaration.doc?.params ?? []) {
      parts.push(`- \`${parameter}\`: ${this.prose(text, module, item)}`);
    }
    // The example at the head of a file belongs to what the file is named after.
    const fileName = module.path.replace(/^.*\//, '').replaceAll(/-|\.ts$/g, '');
    if (fileName === name.toLowerCase() && module.head !== undefined && /^ {4}/m.test(module.head.text)) {
      parts.push(this.prose(module.head.text, module, item));
    }
    if (item.inherits.length > 0) parts.push(this.#inherited(item));
    if (item.exportedBy.length === 0) parts.push('Not exported by name.');
    else if (item.exportedBy.length > 1)
      parts.push(`Exported by ${item.exportedBy.map((by) => `\`${by}\``).join(' and ')}.`);
    if (kind === 'function') parts.push(this.#seeAlso(module, signatureParts(node), item));
    if (kind === 'type') parts.push(this.#seeAlso(module, [childOf(node, 'typeAnnotation') as SyntaxNode], item));
    parts.push(...this.#members(item));
    return parts.filter((part) => part !== '').join('\n\n');
  }

  #inherited(item: Item): string {
    const { module } = item.declaration;
    const names = item.inherits.flatMap((name) => {
      const base = this.#model.lookup(module, name);
      return base === undefined || base.members.length === 0 ? [] : [this.link(base)];
    });
    return names.length === 0 ? '' : `Has everything that ${names.join(' and ')} has.`;
  }

  /** The signature of a function, or what a type stands for. */
  #definition({ name, kind, declaration }: Item): string | undefined {
    const { module, node } = declaration;
    if (kind === 'function') return signature(module, name, node);
    if (kind !== 'type') return undefined;
    const alias = childOf(node, 'typeAnnotation') as SyntaxNode;
    const isOurs = (type: string): boolean => module.declarations.has(type) || module.imports.has(type);
    // What is made of types that have no place here is told in words.
    const isClear = mentioned(alias).every((type) => !isOurs(type) || this.#model.lookup(module, type) !== undefined);
    const generics = childOf(node, 'typeParameters');
    const start = `type ${name}${generics === undefined ? '' : module.slice(generics)}`;
    if (!isClear) return start;
    const line = `${start} = ${module.slice(alias)}`;
    return line.length <= maxWidth ? line : `${start} = ${module.lines(alias)}`;
  }

  #members(item: Item): string[] {
    const { kind, members, declaration } = item;
    if (kind === 'constant') return [this.#constants(item)];
    if (kind === 'type' || kind === 'function') return [];
    const properties = members.filter((member) => member.kind === 'property');
    const methods = withoutBodiesOfOverloads(members.filter((member) => member.kind === 'method'));
    const constructors = members.filter((member) => member.kind === 'constructor');
    const parts: string[] = [];
    if (methods.length > 3) {
      const names = [...new Set(methods.map(({ name }) => name))];
      const links = names.map((name) => `[\`${name}()\`](#${anchorOf(methodTitle(item, name))})`);
      parts.push(`Methods: ${links.join(', ')}`);
    }
    for (const member of constructors) parts.push(...this.#method(item, member));
    if (properties.length > 0) {
      const isInput = declaration.node.type === 'TSInterfaceDeclaration' && isWritten(item.name, properties);
      parts.push(this.#table(item, properties, isInput));
    }
    for (const [i, member] of methods.entries()) {
      parts.push(...this.#method(item, member, methods[i - 1]?.name === member.name));
    }
    return parts;
  }

  /** `again`: another signature of the method that was written last, under the same heading. */
  #method(item: Item, member: Member, again = false): string[] {
    const { module, node, kind } = member;
    const isConstructor = kind === 'constructor';
    const name = isConstructor ? `new ${item.name}` : member.name;
    const heading = isConstructor ? `${name}()` : methodTitle(item, name);
    const doc = this.#explain(heading, member.doc?.text);
    const called = `${name}${member.isOptional ? '?' : ''}`;
    return [
      ...(again ? [] : [this.heading(4, heading)]),
      fence(signature(module, called, node)),
      this.prose(doc, module, item),
      this.#seeAlso(module, signatureParts(node), item),
    ];
  }

  #table(item: Item, properties: readonly Member[], isInput: boolean): string {
    const rows = properties.flatMap((property) => this.#rows(item, property, '', isInput));
    const head = isInput
      ? '| Name | Type | Default | Meaning |\n| --- | --- | --- | --- |'
      : '| Name | Type | Meaning |\n| --- | --- | --- |';
    return `${head}\n${rows.join('\n')}`;
  }

  #rows(item: Item, property: Member, within: string, isInput: boolean): string[] {
    const { module, node, isOptional } = property;
    const name = within + property.name;
    const nested = childOf(childOf(node, 'typeAnnotation') ?? node, 'typeAnnotation');
    const inner = nested?.type === 'TSTypeLiteral' ? childrenOf(nested, 'members') : [];
    const documented = inner.filter((member) => module.docOf(member) !== undefined);
    const text = this.#explain(`${item.name}.${name}`, property.doc?.text);
    const prose = this.prose(text, module, item);
    const { meaning, fallback } = isInput ? splitDefault(prose) : { meaning: prose, fallback: undefined };
    const type = documented.length > 0 ? '`object`' : this.#typeCell(property);
    const standard = fallback ?? (isOptional ? 'none' : 'required');
    const cells = isInput ? [type, standard, meaning] : [type, meaning];
    const label = `\`${name}${isOptional && !isInput ? '?' : ''}\``;
    const row = `| ${[label, ...cells].map(cell).join(' | ')} |`;
    const children = documented.flatMap((member) => {
      const child = { ...property, name: nameOf(childOf(member, 'key')) as string, node: member };
      const details = { doc: module.docOf(member), isOptional: member['optional'] === true };
      return this.#rows(item, { ...child, ...details }, `${name}.`, isInput);
    });
    return [row, ...children];
  }

  #typeCell({ module, node }: Member): string {
    const typed = childOf(node, 'value');
    const annotation = childOf(node, 'typeAnnotation') ?? (typed && childOf(typed, 'returnType'));
    if (annotation === undefined) return `\`${literalType(typed)}\``;
    const text = `\`${module.slice(annotation).replace(/^: ?/, '')}\``;
    const items = new Set(mentioned(annotation).flatMap((name) => this.#model.lookup(module, name) ?? []));
    const [only] = items;
    return items.size === 1 && only !== undefined ? `[${text}](#${anchorOf(only.name)})` : text;
  }

  #constants(item: Item): string {
    const rows = propertiesOf(item.declaration).map((property) => {
      const text = this.#explain(`${item.name}.${property.name}`, property.doc?.text);
      const value = property.module.slice(childOf(property.node, 'value') as SyntaxNode);
      return `| \`${item.name}.${property.name}\` | ${value} | ${cell(this.prose(text, property.module, item))} |`;
    });
    return `| Name | Value | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}`;
  }

  /** Error classes in one table. */
  errors(items: readonly Item[]): string {
    const rows = items.map((item) => {
      const { module, doc } = item.declaration;
      const text = this.prose(this.#explain(item.name, doc?.text), module, item);
      const fields = item.members
        .filter((member) => member.kind === 'property')
        .map((member) => {
          const meaning = this.#explain(`${item.name}.${member.name}`, member.doc?.text);
          return `\`${member.name}\`: ${this.prose(meaning, module, item)}`;
        });
      return `| \`${item.name}\` | \`${item.code}\` | ${cell(text)} | ${cell(fields.join('<br>'))} |`;
    });
    return `| Class | Code | When | Fields |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
  }
}

/** Whether an interface is of what callers write, rather than of what they are given. */
function isWritten(name: string, properties: readonly Member[]): boolean {
  return /(Options|Definition)$/.test(name) || properties.every(({ isOptional }) => isOptional);
}

function literalType(value: SyntaxNode | undefined): string {
  return value?.type === 'Literal' && typeof value['value'] !== 'object' ? typeof value['value'] : 'unknown';
}
