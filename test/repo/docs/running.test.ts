/** The guide shows the files of examples/notes-service/deploy, and these say what the example and the package understand. */
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings } from '../../../examples/notes-service/settings.ts';
import { stopTimeoutMs } from '../../../src/instance/engine-host.ts';
import { StoreDb } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const root = new URL('../../../', import.meta.url);
const deploy = 'examples/notes-service/deploy/';
const read = (file: string): Promise<string> => readFile(new URL(file, root), 'utf8');
const pages = ['production', 'platforms', 'operations', 'tenants', 'troubleshooting'].map((name) =>
  read(`docs/guide/${name}.md`),
);
const page = (await Promise.all(pages)).join('\n');

type Variables = Readonly<Record<string, string>>;

interface Resource {
  readonly kind: string;
}

interface Probe {
  readonly httpGet: { readonly path: string };
}

interface Container extends Readonly<Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', Probe>> {
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

interface Deployment extends Resource {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly [Container] };
    };
  };
}

function blocksOf(language: string): string[] {
  return Array.from(page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms')), ([, block = '']) => block);
}

/** Sections of a unit; what is said twice is a list. */
function unitOf(text: string): Record<string, Record<string, string[]>> {
  const sections: Record<string, Record<string, string[]>> = {};
  let section: Record<string, string[]> = {};
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const name = /^\[(\w+)\]$/.exec(line)?.[1];
    const [, key, value] = /^(\w+)=(.+)$/.exec(line) ?? [];
    if (name !== undefined) section = sections[name] = {};
    else if (key === undefined || value === undefined) throw new Error(`This is no line of a unit: ${line}`);
    else (section[key] ??= []).push(value);
  }
  return sections;
}

/** Whether so many seconds are enough for a process with these variables to stop by itself. */
function expectTimeToStop(seconds: number, { DRAIN_MS = '0' }: Variables): void {
  expect(seconds * 1000).toBeGreaterThan(Number(DRAIN_MS) + stopTimeoutMs);
}

/** The variables are those of the example, or of the AWS SDK and the package. */
async function expectKnown(variables: Variables): Promise<void> {
  const readme = await read('examples/notes-service/README.md');
  const own = Object.keys(variables).filter((name) => name !== 'NODE_ENV' && !name.startsWith('STOREDB_'));
  for (const name of own) expect(readme).toContain(`\`${name}\``);
  readSettings(variables);
}

it('shows every file of the folder, word for word', async () => {
  const blocks = ['js', 'ini', 'yaml', 'json', 'dockerfile'].flatMap(blocksOf);
  for (const name of await readdir(new URL(deploy, root))) expect(blocks).toContain(await read(`${deploy}${name}`));
});

describe('a sample', () => {
  it('for PM2 gives processes the time that they need', async () => {
    const loaded: unknown = createRequire(import.meta.url)(new URL(`${deploy}ecosystem.config.cjs`, root).pathname);
    const { apps } = loaded as { apps: { kill_timeout: number; wait_ready: boolean; env: Record<string, unknown> }[] };
    for (const { kill_timeout: killMs, wait_ready: waits, env } of apps) {
      const variables = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
      expect(waits).toBe(true);
      expectTimeToStop(killMs / 1000, variables);
      await expectKnown(variables);
    }
  });

  it('for systemd is made of units', async () => {
    const { Service: service = {} } = unitOf(await read(`${deploy}notes@.service`));
    const variables = Object.fromEntries(
      (service['Environment'] ?? []).flatMap((line) =>
        line.split(' ').map((pair) => pair.replaceAll('%i', '3').split('=')),
      ),
    ) as Variables;
    expect(readSettings(variables)).toMatchObject({ nodeId: 3, port: 3003 });
    await expectKnown(variables);
    expectTimeToStop(Number(service['TimeoutStopSec']?.[0]), variables);
    expect(unitOf(await read(`${deploy}notes-backup.service`))['Service']?.['ExecStart']).toHaveLength(2);
    expect(Object.keys(unitOf(await read(`${deploy}notes-backup.timer`)))).toEqual(['Unit', 'Timer', 'Install']);
  });

  it('for Kubernetes asks the routes that there are, and is patient', async () => {
    const documents = parseAllDocuments(await read(`${deploy}kubernetes.yaml`));
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    const [deployment, ...others] = documents.map((document) => document.toJS() as Resource);
    expect(others.map(({ kind }) => kind)).toEqual(['Service', 'PodDisruptionBudget', 'CronJob']);
    const pod = (deployment as Deployment).spec.template.spec;
    const [container] = pod.containers;
    const pairs = container.env.map(({ name, value }) => [name, value]);
    const variables = Object.fromEntries(pairs) as Variables;
    await expectKnown(variables);
    expect(readSettings(variables).nodeId).toBe('auto');
    expectTimeToStop(pod.terminationGracePeriodSeconds, variables);
    const routes = await read('examples/notes-service/health.ts');
    for (const { httpGet } of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
      expect(routes).toContain(`app.get('${httpGet.path}'`);
    }
  });

  it('for Kubernetes takes the ordinal of a pod', () => {
    const [, snippet = ''] = /```yaml\n( {2}- name: NODE_ID.*?) {2}```/s.exec(page) ?? [];
    expect(parse(snippet)).toEqual([
      { name: 'NODE_ID', valueFrom: { fieldRef: { fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']" } } },
    ]);
  });

  it('for ECS is JSON', async () => {
    const task = JSON.parse(await read(`${deploy}ecs-task-definition.json`)) as {
      containerDefinitions: { stopTimeout: number; environment: { name: string; value: string }[] }[];
    };
    for (const { stopTimeout, environment } of task.containerDefinitions) {
      const variables = Object.fromEntries(environment.map(({ name, value }) => [name, value]));
      await expectKnown(variables);
      expectTimeToStop(stopTimeout, variables);
    }
  });
});

it('names commands and options that there are', async () => {
  const reference = await read('docs/cli.md');
  const sections = new Map(
    Array.from(reference.matchAll(/^### ([\w-]+)\n(.*?)(?=^### |^## |$(?![^]))/gms), ([, name = '', text = '']) => [
      name,
      text,
    ]),
  );
  const commands = Array.from(page.matchAll(/store-db ([a-z-]+)([^`\n]*)/g));
  expect(commands.length).toBeGreaterThan(12);
  for (const [, name = '', words = ''] of commands) {
    expect([name, sections.has(name)]).toEqual([name, true]);
    const options = (words.split('>>')[0] ?? '').match(/--[a-z-]+/g) ?? [];
    for (const option of options)
      expect([name, option, sections.get(name)?.includes(option)]).toEqual([name, option, true]);
  }
});

it('names figures that there are', async () => {
  const db = StoreDb({ dbPrefix: 'app', nodeId: 'auto', driver: new MemoryDriver(), logLevel: 'silent' });
  await db.start();
  const stats: unknown = db.stats();
  await db.stop();
  const figures = Array.from(page.matchAll(/^\| ((?:`[a-z][A-Za-z.]+`(?: and )?)+) \|/gm), ([, names = '']) => names);
  const names = figures.flatMap((text) => Array.from(text.matchAll(/`([^`]+)`/g), ([, name = '']) => name));
  expect(names.length).toBeGreaterThan(8);
  // It is there where a budget is shared.
  for (const name of names.filter((each) => each !== 'memory.budget')) {
    let found = stats;
    for (const part of name.split('.')) found = (found as Record<string, unknown>)[part];
    expect([name, found === undefined]).toEqual([name, false]);
  }
});
