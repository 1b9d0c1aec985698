/** What is wrong with a database, for people. */
import type { Finding } from '../../tree/check.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';

export function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  if (findings.length === 0) return;
  printTable(
    terminal,
    [{ name: 'object' }, { name: 'table' }, { name: 'index' }, { name: 'what is wrong' }],
    findings.map(({ name, table = '', index = '', message, snapshot, generation }) => {
      const state = snapshot === undefined ? generation : `snapshot ${snapshot}`;
      return [name, table, index, state === undefined ? message : `${message} (in ${state})`];
    }),
  );
}
