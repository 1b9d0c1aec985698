/** How a release is made, as far as it can be seen without making one. */
import { access, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const workflow = await readFile(`${repository}.github/workflows/release.yml`, 'utf8');
const [beginning = '', check = '', publish = ''] = workflow.split(/^ {2}(?:check|publish):$/m);

function commandsOf(job: string): string {
  return [...job.matchAll(/^ {8}run: (?:\|\n((?: {10}.*\n?)+)|(.*))$/gm)]
    .map(([, many, one]) => many ?? one)
    .join('\n');
}

describe('the release workflow', () => {
  it('takes actions by commit, and says which version that is', () => {
    const actions = [...workflow.matchAll(/uses: (.*)$/gm)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(3);
    for (const action of actions) expect(action).toMatch(/^actions\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('may do no more than it must, and has no secrets', () => {
    expect(beginning).toMatch(/^permissions: \{\}$/m);
    expect(check.match(/^ {6}[a-z-]+: (?:read|write)$/gm)).toEqual(['      contents: read']);
    expect(publish.match(/^ {6}[a-z-]+: (?:read|write)$/gm)).toEqual(['      id-token: write']);
    expect(publish).toContain('environment: release');
    expect(workflow).toContain('persist-credentials: false');
    // Neither secrets, nor text of others that would become a part of a command.
    expect(workflow).not.toContain('${{');
    expect(workflow).not.toMatch(/pull_request|workflow_run|schedule/);
  });

  it('runs only for tags, checks first, and publishes the checked package with provenance', () => {
    expect(beginning).toMatch(/^on:\n {2}push:\n {4}tags: \['v\*\.\*\.\*'\]$/m);
    const commands = commandsOf(check);
    const order = [
      'test "v$version" = "$GITHUB_REF_NAME"',
      'CHANGELOG.md',
      'npm ci --ignore-scripts',
      'npm audit --omit=dev',
      'npm audit signatures',
      'npm run verify',
      'npm pack',
      'cmp ',
    ].map((part) => commands.indexOf(part));
    expect(order).not.toContain(-1);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(publish).toContain('needs: check');
    // Nothing of the repository runs where there is the right to publish.
    expect(publish).not.toContain('actions/checkout');
    expect(commandsOf(publish)).toBe('npm publish ./packed/*.tgz --provenance --access public --ignore-scripts');
  });
});

describe('the package', () => {
  it('holds the built code, and the pages for readers', async () => {
    const manifest = JSON.parse(await readFile(`${repository}package.json`, 'utf8')) as {
      readonly files: readonly string[];
      readonly private?: boolean;
    };
    // Examples and the two pages about the sources are what README links to.
    const linked = ['examples', 'ARCHITECTURE.md', 'CONTRIBUTING.md'];
    // The figures behind the pages are for their makers.
    const files = ['dist', 'docs', '!docs/*.json', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', ...linked];
    expect(manifest.files.toSorted()).toEqual(files.toSorted());
    expect(manifest.private).toBeUndefined();
    const named = manifest.files.filter((name) => name !== 'dist' && !name.startsWith('!'));
    for (const file of named) await access(`${repository}${file}`);
  });
});
