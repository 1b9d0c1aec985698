/**
 * Checks the messages of commits. `tsx scripts/commits.ts`: of all commits up to HEAD whose tree has the hook, which are those made
 * since there is this check; merges are left out. `--file <file>`: of the commit that is being made, as the hook asks.
 * `--repository <folder>`: of another clone.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { messageFaults, storedMessage } from './commit-message.ts';

const hook = '.githooks/commit-msg';
const { values } = parseArgs({ options: { file: { type: 'string' }, repository: { type: 'string', default: '.' } } });

function git(args: readonly string[], input = ''): string {
  // In a container the clone often belongs to somebody else, and git would not look at it.
  const all = ['-c', 'safe.directory=*', '-C', values.repository, ...args];
  return execFileSync('git', all, { encoding: 'utf8', input, maxBuffer: 1 << 30, stdio: ['pipe', 'pipe', 'inherit'] });
}

/** The commits that have the check, whatever a shallow clone lacks of the others. */
function checkedCommits(): string[] {
  const commits = git(['rev-list', '--no-merges', 'HEAD']).split('\n').filter(Boolean);
  const found = git(['cat-file', '--batch-check'], commits.map((commit) => `${commit}:${hook}\n`).join('')).split('\n');
  return commits.filter((_, i) => / blob \d+$/.test(found[i] as string));
}

function report(what: string, message: string): boolean {
  const faults = messageFaults(message);
  if (faults.length === 0) return true;
  console.error([`${what}: ${message.split('\n', 1)[0]}`, ...faults.map((fault) => `  - ${fault}.`)].join('\n'));
  return false;
}

function checkEdited(file: string): boolean {
  const isMerge = existsSync(path.resolve(values.repository, git(['rev-parse', '--git-path', 'MERGE_HEAD']).trim()));
  const message = storedMessage(readFileSync(file, 'utf8'));
  // Git makes no commit of an empty message, and folds these into the commit that they name.
  if (isMerge || message === '' || /^(fixup|squash|amend)! /.test(message)) return true;
  if (report('The commit is refused', message)) return true;
  console.error(`CONTRIBUTING.md says how messages are written. Yours is kept: git commit --edit --file ${file}`);
  return false;
}

function checkHistory(): boolean {
  if (!existsSync(path.join(values.repository, '.git'))) {
    console.log('This is no clone, and has no commits to check');
    return true;
  }
  const commits = checkedCommits();
  const bad = commits.filter((commit) => {
    const message = git(['show', '--no-patch', '--format=%B', commit]).trimEnd();
    return !report(commit.slice(0, 10), message);
  });
  console.log(`${commits.length} commits checked, ${bad.length} refused`);
  return bad.length === 0;
}

const isRight = values.file === undefined ? checkHistory() : checkEdited(values.file);
if (!isRight) process.exitCode = 1;
