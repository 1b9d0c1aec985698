/** Commit messages have one form, which a hook holds where they are written, and CI over all since there is the check. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const author = ['-c', 'user.name=Somebody', '-c', 'user.email=somebody@example.com', '-c', 'commit.gpgsign=false'];

interface Run {
  readonly status: number | null;
  readonly text: string;
}

function run(command: string, args: readonly string[], cwd: string): Run {
  // Inside a hook git names its own folders, and the test's repository is another one.
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'));
  const env = Object.fromEntries([...kept, ['GIT_CONFIG_GLOBAL', '/dev/null'], ['GIT_CONFIG_SYSTEM', '/dev/null']]);
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

class Clone {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static #folder(): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'store-db-commits-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  static empty(): Clone {
    const clone = new Clone(Clone.#folder());
    clone.must('init', '--quiet', '--initial-branch', 'main');
    return clone;
  }

  shallow(depth: number): Clone {
    const clone = new Clone(Clone.#folder());
    clone.must('clone', '--quiet', '--depth', `${depth}`, pathToFileURL(this.folder).href, '.');
    return clone;
  }

  git(...args: readonly string[]): Run {
    return run('git', [...author, ...args], this.folder);
  }

  must(...args: readonly string[]): void {
    const { status, text } = this.git(...args);
    if (status !== 0) throw new Error(text);
  }

  commit(message: string): void {
    this.must('commit', '--quiet', '--no-verify', '--allow-empty', '--message', message);
  }

  addHook(): void {
    mkdirSync(path.join(this.folder, '.githooks'));
    cpSync(path.join(repository, '.githooks/commit-msg'), path.join(this.folder, '.githooks/commit-msg'));
    this.must('add', '.githooks');
    this.commit('Check the messages of commits');
  }

  check(): Run {
    const script = path.join(repository, 'scripts/commits.ts');
    return run(process.execPath, ['--import', 'tsx', script, '--repository', this.folder], repository);
  }
}

describe('the check of a history', () => {
  it('looks at the commits since there is the check, and at no merge', () => {
    const clone = Clone.empty();
    clone.commit('the first, of another form.');
    expect(clone.check()).toMatchObject({ status: 0, text: expect.stringContaining('0 commits checked') as string });
    clone.addHook();
    clone.must('checkout', '--quiet', '-b', 'side');
    clone.commit('Refuse what is not known');
    clone.must('checkout', '--quiet', 'main');
    clone.commit('Keep what is known');
    clone.must('merge', '--quiet', '--no-ff', '--message', 'merged side into main.', 'side');
    expect(clone.check()).toMatchObject({ status: 0, text: expect.stringContaining('3 commits checked') as string });
  });

  it('fails for one bad message, and names it and its fault', () => {
    const clone = Clone.empty();
    clone.addHook();
    clone.commit('fixed things');
    clone.commit('Keep what is known');
    const { status, text } = clone.check();
    expect(status).toBe(1);
    expect(text).toMatch(/^[0-9a-f]{10}: fixed things$/m);
    expect(text).toContain('The first letter of the subject is not in upper case.');
    expect(text).toContain('3 commits checked, 1 refused');
  });

  it('works in a shallow clone, on the commits that it has', () => {
    const clone = Clone.empty();
    clone.commit('the first, of another form.');
    clone.addHook();
    clone.commit('Keep what is known');
    expect(clone.shallow(1).check()).toMatchObject({ status: 0, text: expect.stringContaining('1 commits') as string });
    clone.commit('fixed things');
    expect(clone.shallow(1).check().status).toBe(1);
    expect(clone.shallow(3).check().text).toContain('3 commits checked, 1 refused');
  });
});

describe('the hook', () => {
  it('refuses a bad message and takes a good one, a merge, and a fixup of another commit', () => {
    const clone = Clone.empty();
    clone.addHook();
    for (const part of ['node_modules', 'scripts']) {
      symlinkSync(path.join(repository, part), path.join(clone.folder, part));
    }
    clone.must('config', 'core.hooksPath', '.githooks');
    const commit = (message: string): Run => clone.git('commit', '--allow-empty', '--message', message);
    const refused = commit('fixed things.');
    expect(refused.status).not.toBe(0);
    expect(refused.text).toContain('The commit is refused: fixed things.');
    expect(refused.text).toContain('The subject ends with a full stop.');
    expect(commit('Keep what is known').status).toBe(0);
    expect(commit('fixup! Keep what is known').status).toBe(0);
    clone.must('checkout', '--quiet', '-b', 'side', 'HEAD~2');
    expect(commit('Refuse what is not known').status).toBe(0);
    clone.must('merge', '--quiet', '--no-ff', '--message', 'merged main into side.', 'main');
  });
});
