/**
 * The house rules that neither the compiler nor the linter can check. Each takes a tree and returns what breaks it;
 * tidy.test.ts applies them to the repository, and to small trees that each break one.
 */
import { ambientUses } from './ambient-use.ts';
import { folders } from './folders.ts';
import { realmUses } from './realm-use.ts';
import { sharedStates, sharedStatesOf } from './shared-state.ts';
import { childOf, countLines, isTest, lineAt, stringOf, walk } from './source-tree.ts';
import type { Module, SyntaxNode, Tree } from './source-tree.ts';

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

type Rule = (tree: Tree) => Finding[];

const environmentFile = 'src/base/env.ts';
/** The modules of the platforms, whose functions only the environment may use where they are clocks, timers or randomness. */
const isPlatform = (path: string): boolean => path.startsWith('src/platform/');
const limits = { sourceLines: 700, supportLines: 1000, functionLines: 80 };
const vagueNames = new Set(['util', 'utils', 'common', 'helper', 'helpers', 'misc']);

function sourcesOf(tree: Tree): Module[] {
  return [...tree.modules.values()].filter((module) => module.kind === 'source');
}

/** The first folder below `src/`, or the file that lies there. */
function roomOf(path: string): string {
  return path.split('/')[1] as string;
}

/** The folder below `src/`, such as `query/planner`; a file that lies directly there is its own. */
function folderOf(path: string): string {
  const [, ...within] = path.split('/');
  return within.length === 1 ? (within[0] as string) : within.slice(0, -1).join('/');
}

function levelOf(folder: string): number {
  return folders.findIndex(({ path }) => path === folder);
}

function at(module: Module, node: SyntaxNode, message: string): Finding {
  return { path: module.path, line: lineAt(module.text, node.start), message };
}

/** Findings for the nodes of all modules of which `check` says something. */
function perNode(
  modules: Iterable<Module>,
  check: (node: SyntaxNode, module: Module) => string | undefined,
): Finding[] {
  const findings: Finding[] = [];
  for (const module of modules) {
    walk(module.program, (node) => {
      const message = check(node, module);
      if (message !== undefined) findings.push(at(module, node, message));
    });
  }
  return findings;
}

const importDirection: Rule = (tree) =>
  sourcesOf(tree).flatMap(({ path, imports }) => {
    const folder = folderOf(path);
    const level = levelOf(folder);
    if (level === -1) return [{ path, line: 1, message: `src/${folder} is not in the list of folders` }];
    return imports.flatMap(({ specifier, target, line }) => {
      const other = target?.startsWith('src/') === true ? folderOf(target) : undefined;
      if (other !== undefined && isTest(target as string)) return [{ path, line, message: `imports a test` }];
      if (other !== undefined && (other === folder || levelOf(other) < level)) return [];
      // Packages and the runtime's modules come from below; anything else is outside of src/.
      if (other === undefined && !specifier.startsWith('.') && !specifier.startsWith('store-db')) return [];
      return [{ path, line, message: `${folder} must not import ${specifier}: imports only point down` }];
    });
  });

/** A folder is more than one file, or it only hides that file. */
const folderSizes: Rule = (tree) => {
  const sizes = new Map<string, string[]>();
  for (const { path } of sourcesOf(tree)) {
    const folder = folderOf(path);
    if (!folder.endsWith('.ts')) sizes.set(folder, [...(sizes.get(folder) ?? []), path]);
  }
  return [...sizes.values()]
    .filter(({ length }) => length === 1)
    .map(([path]) => ({ path: path as string, line: 1, message: 'is the only file of its folder' }));
};

const resolvedImports: Rule = (tree) =>
  [...tree.modules.values()].flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier, target }) => specifier.startsWith('.') && target === undefined)
      .filter(({ specifier }) => /\.[jt]s$/.test(specifier) || !/\.\w+$/.test(specifier))
      .filter(({ specifier }) => !specifier.includes('/dist/'))
      .map(({ specifier, line }) => ({ path, line, message: `${specifier} leads to no file` })),
  );

/** The first way back to `start` among `targets`, as a list of paths; every module is entered once. */
function wayBack(tree: Tree, start: string): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const pending = [start];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const { target } of tree.modules.get(path)?.imports ?? []) {
      if (target === undefined || !tree.modules.has(target)) continue;
      if (target === start) {
        const way = [path];
        for (let step = path; step !== start; ) way.unshift((step = cameFrom.get(step) as string));
        return [...way, start];
      }
      if (cameFrom.has(target)) continue;
      cameFrom.set(target, path);
      pending.push(target);
    }
  }
  return undefined;
}

const importCycles: Rule = (tree) => {
  const known = new Set<string>();
  return [...tree.modules.keys()].flatMap((path) => {
    const cycle = known.has(path) ? undefined : wayBack(tree, path);
    for (const member of cycle ?? []) known.add(member);
    return cycle === undefined ? [] : [{ path, line: 1, message: `imports itself: ${cycle.join(' -> ')}` }];
  });
};

const fileLength: Rule = (tree) =>
  [...tree.modules.values()].flatMap(({ path, text, kind }) => {
    const lines = countLines(text);
    const most = kind === 'source' ? limits.sourceLines : limits.supportLines;
    return lines <= most ? [] : [{ path, line: most + 1, message: `${lines} lines, at most ${most} are allowed` }];
  });

const functionTypes = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

const functionLength: Rule = (tree) =>
  perNode(sourcesOf(tree), (node, { text }) => {
    if (!functionTypes.has(node.type)) return undefined;
    const lines = countLines(text.slice(node.start, node.end));
    return lines <= limits.functionLines ? undefined : `a function of ${lines} lines, at most ${limits.functionLines}`;
  });

/** A command line has a real clock and a terminal before it; the engine has neither. */
const ambientUse: Rule = (tree) =>
  sourcesOf(tree)
    .filter(({ path }) => path !== environmentFile && !isPlatform(path) && roomOf(path) !== 'cli')
    .flatMap((module) =>
      ambientUses(module).map(({ node, name, instead }) => at(module, node, `${name} is banned: use ${instead}`)),
    );

/** Values come from any realm; what makes sure of that has to name the classes of its own. */
const realmFiles = new Set(['src/base/brands.ts', 'src/base/abort.ts']);

const realmUse: Rule = (tree) =>
  sourcesOf(tree)
    .filter(({ path }) => !realmFiles.has(path) && !isPlatform(path) && roomOf(path) !== 'cli')
    .flatMap((module) => realmUses(module).map(({ node, message }) => at(module, node, message)));

/** Two instances in a process share nothing, and neither do two calls: what is kept has an owner. A command is a process. */
const moduleState: Rule = (tree) =>
  sourcesOf(tree)
    .filter(({ path }) => roomOf(path) !== 'cli')
    .flatMap((module) =>
      sharedStatesOf(module)
        .filter(({ name }) => !sharedStates.has(`${module.path} ${name}`))
        .map(({ node, name }) => at(module, node, `${name} is kept for all: let an instance own it, or pass it`)),
    );

const fileNames: Rule = (tree) =>
  [...tree.modules.keys()].flatMap((path) => {
    const names = path.split('/').map((name) => name.replace(/(\.slow)?(\.test|\.test-d|\.bench|\.d)?\.ts$/, ''));
    const odd = names.find((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name));
    const vague = names.find((name) => vagueNames.has(name.replace(/^.*-/, '')));
    if (odd !== undefined) return [{ path, line: 1, message: `${odd} is not in kebab-case` }];
    return vague === undefined ? [] : [{ path, line: 1, message: `${vague} says nothing about what is in it` }];
  });

/** By kind, and below that by subject. */
const testKinds = new Set(['features', 'properties', 'simulation', 'servers', 'repo']);

/** What `npm test` leaves out goes by the name: in a file of another name it would be run, or never. */
const testPlaces: Rule = (tree) =>
  [...tree.modules.keys()].flatMap((path) => {
    const [room, kind = '', ...within] = path.split('/');
    const isMisnamed = path.includes('.slow.') && !path.endsWith('.slow.test.ts');
    if (isMisnamed) return [{ path, line: 1, message: 'only tests are slow: their names end in .slow.test.ts' }];
    if (room !== 'test' || (testKinds.has(kind) && within.length > 1)) return [];
    const kinds = [...testKinds].join(', ');
    return [{ path, line: 1, message: `lies in no folder of a kind of test, such as test/features/query: ${kinds}` }];
  });

function isDefaultExport(node: SyntaxNode): boolean {
  if (node.type === 'ExportDefaultDeclaration') return true;
  const exported = node.type === 'ExportSpecifier' ? childOf(node, 'exported') : undefined;
  return exported?.['name'] === 'default' || stringOf(exported) === 'default';
}

/** A Worker is what its module exports by default. */
const isWorker = (path: string): boolean => path.endsWith('/worker.ts');

const defaultExports: Rule = (tree) =>
  perNode(tree.modules.values(), (node, { path }) =>
    path !== 'src/index.ts' && !isWorker(path) && isDefaultExport(node) ? 'a default export: name it' : undefined,
  );

const wildcardExports: Rule = (tree) =>
  perNode(tree.modules.values(), (node) =>
    node.type === 'ExportAllDeclaration' ? 'export * hides what is exported: list the names' : undefined,
  );

/** Names are imported from where they are made; only what is published gathers them. */
const barrels: Rule = (tree) => [
  ...perNode(sourcesOf(tree), (node, { path }) => {
    const passesOn = node.type === 'ExportNamedDeclaration' && childOf(node, 'source') !== undefined;
    return passesOn && !tree.entries.includes(path) ? 'only published entries export what others made' : undefined;
  }),
  ...sourcesOf(tree)
    .filter(({ path }) => !['index.ts', 'cli', 'studio', 'studio.ts', 'testing'].includes(roomOf(path)))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => target !== undefined && tree.entries.includes(target))
        .map(({ specifier, line }) => ({ path, line, message: `${specifier} gathers names for users only` })),
    ),
];

const castsToAny: Rule = (tree) =>
  perNode(tree.modules.values(), (node) => {
    const isCast = node.type === 'TSAsExpression' || node.type === 'TSTypeAssertion';
    return isCast && childOf(node, 'typeAnnotation')?.type === 'TSAnyKeyword' ? 'a cast to any' : undefined;
  });

/** Packages are loaded by what needs them when it does, so that nobody else waits for them or pays in memory. */
const eagerPackages: Rule = (tree) =>
  perNode(
    // The bundle for a platform has in it what its module imports, and whoever imports an entry for a package has that package.
    sourcesOf(tree).filter(
      ({ path }) => !['cli', 'otel', 'otel.ts', 'react.ts'].includes(roomOf(path)) && !isPlatform(path),
    ),
    (node) => {
      const specifier = node.type === 'ImportDeclaration' ? stringOf(childOf(node, 'source')) : undefined;
      if (specifier === undefined || node['importKind'] === 'type' || /^(\.|#|node:)/.test(specifier)) return undefined;
      return `loads ${specifier} for everybody: import() it where it is used`;
    },
  );

const deadFiles: Rule = (tree) => {
  const pending = [...tree.entries, ...[...tree.modules.keys()].filter(isTest)];
  const reached = new Set(pending);
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    for (const { target } of tree.modules.get(path)?.imports ?? []) {
      if (target === undefined || reached.has(target)) continue;
      reached.add(target);
      pending.push(target);
    }
  }
  const dead = sourcesOf(tree).filter(({ path }) => !reached.has(path));
  return dead.map(({ path }) => ({ path, line: 1, message: 'neither an entry nor a test leads here' }));
};

/** Files that comments and pages name are there: a file that is renamed leaves such names behind. */
const mentionedFiles: Rule = (tree) => {
  const names = new Set([...tree.modules.keys()].map((path) => path.replace(/^.*\//, '')));
  return [...tree.texts].flatMap(([path, text]) =>
    // What a release changed is told with the names of that time.
    path === 'CHANGELOG.md' || !/\.(ts|md)$/.test(path)
      ? []
      : text.split('\n').flatMap((line, index) => {
          if (path.endsWith('.ts') && !/^\s*(\/\*|\*|\/\/)/.test(line)) return [];
          return [...line.matchAll(/(?<![\w./-])(?!\.\w)[\w./-]*?([a-z0-9-]+(?:\.[a-z]+)*\.ts)\b/g)]
            .filter(([mention, name]) => {
              const isPath = mention.includes('/') && !mention.startsWith('.');
              return isPath ? !hasPath(tree, mention) : !names.has(name as string);
            })
            .map(([mention]) => ({ path, line: index + 1, message: `names ${mention}, which is not there` }));
        }),
  );
};

function hasPath({ modules }: Tree, mention: string): boolean {
  return modules.has(mention) || modules.has(`src/${mention}`);
}

const testFunctions = new Set(['describe', 'it', 'test', 'suite', 'bench']);

/** `it` in `it.concurrent.only`. */
function firstName(node: SyntaxNode): unknown {
  const object = childOf(node, 'object') ?? childOf(node, 'callee');
  return object === undefined ? node['name'] : firstName(object);
}

const focusedTests: Rule = (tree) =>
  perNode(tree.modules.values(), (node, { path }) => {
    if (node.type !== 'MemberExpression' || path.startsWith('src/testing/')) return undefined;
    const name = childOf(node, 'property')?.['name'];
    const narrows = (name === 'only' || name === 'skip') && testFunctions.has(firstName(node) as string);
    return narrows ? `.${name} leaves tests out` : undefined;
  });

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Every package that another one names is locked, also those for other platforms: npm leaves out what its registry did
 * not offer when the file was made, and then refuses the file that it wrote. And none says where to get it from.
 */
const lockFile: Rule = (tree) => {
  const path = 'package-lock.json';
  const locked =
    (JSON.parse(tree.texts.get(path) ?? '{}') as { packages?: Record<string, LockedPackage> }).packages ?? {};
  const findings: string[] = [];
  for (const [place, entry] of Object.entries(locked)) {
    if (place !== '' && entry.link !== true && entry.version === undefined) findings.push(`${place} has no version`);
    if (entry.resolved !== undefined) findings.push(`${place} says where to get it from`);
    for (const name of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      // Looked up as Node does: beside the package, then ever further out.
      const nextVersion = place
        .split('/node_modules/')
        .map((_, depth, parts) => parts.slice(0, depth + 1).join('/node_modules/'));
      const places = [`node_modules/${name}`, ...nextVersion.map((folder) => `${folder}/node_modules/${name}`)];
      if (!places.some((candidate) => candidate in locked))
        findings.push(`${place} needs ${name}, which is not locked`);
    }
  }
  return findings.map((message) => ({ path, line: 1, message }));
};

/** A rule that no line of any text file may match. */
function forbiddenText(pattern: RegExp, message: string): Rule {
  return (tree) =>
    [...tree.texts].flatMap(([path, text]) =>
      text.split('\n').flatMap((line, index) => {
        const match = pattern.exec(line);
        return match === null ? [] : [{ path, line: index + 1, message: `${message}: ${match[0]}` }];
      }),
    );
}

/** By name, as the tests refer to them. */
export const rules = {
  importDirection,
  folderSizes,
  resolvedImports,
  importCycles,
  fileLength,
  functionLength,
  ambientUse,
  realmUse,
  moduleState,
  fileNames,
  testPlaces,
  defaultExports,
  wildcardExports,
  barrels,
  castsToAny,
  eagerPackages,
  deadFiles,
  mentionedFiles,
  focusedTests,
  lockFile,
  // Installing must work from any mirror, so nothing names a host to install from.
  registryHosts: forbiddenText(
    /https?:\/\/[\w.-]*registry|registry\.(npmjs|yarnpkg|npmmirror)|npm\.pkg\./i,
    'names a registry',
  ),
  // Absolute, and so true on one machine only; `../root/` and `${folder}/tmp/` are relative to something.
  machinePaths: forbiddenText(
    /(?<![\w.~*)}\]<-])(\/(?:root|tmp|home|Users|work|mnt)(?=[/'"`])|\b[A-Z]:\\\\?Users)/,
    'is a path on one machine',
  ),
  // Hooks for all tests restore the variables, and vitest's own stubs leave some behind.
  stubbedVariables: forbiddenText(/\b(?:un)?stub(?:All)?Envs?\(/, 'is not needed: assign to process.env'),
  // A reader has the text before them, not the tracker.
  issueNumbers: forbiddenText(/\b(issue|ticket|pull request|PR|bug) ?#|\/(issues|pull)\/\d/i, 'refers to a tracker'),
} satisfies Record<string, Rule>;

export type RuleName = keyof typeof rules;

/** One line for a finding, which editors and terminals turn into a link. */
export function describeFinding({ path, line, message }: Finding): string {
  return `${path}:${line} ${message}`;
}
