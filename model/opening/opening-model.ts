/**
 * The model of opening: nodes that find no Block 0, list, look again, try the store out and create one.
 *
 * Databases are numbered by their creators: each start of a process makes an id of its own.
 */
import { actionInfos, actionNumbers, brokenRules, Model } from '../checker/model.ts';
import type { ActionEntry } from '../checker/model.ts';
import type { OpeningMutant, OpeningScope } from './scope.ts';
import { openingMutants } from './scope.ts';

const Phase = {
  down: 0,
  missing: 1,
  listed: 2,
  certifying: 3,
  probed: 4,
  creating: 5,
  reading: 6,
  open: 7,
  refused: 8,
} as const;
const Field = { phase: 0, starts: 1, stray: 2, database: 3, probe: 4, late: 5 } as const;
const nodeBytes = 6;

const opening = 'src/engine/open-or-create.ts';
const register = 'src/block0/block0-register.ts';

const nodeName = (node: number): string => String.fromCharCode(65 + node);
const creations = ['and is told so', ', and the answer is lost', 'without an answer: it is still on its way'];

const list = [
  ['look', [register, 'async open('], (a, b) => `${nodeName(a)}: ${b === 0 ? 'finds no Block 0' : 'finds Block 0'}`],
  ['list', [opening, 'await findStrayObject('], (a, b) => `${nodeName(a)}: lists ${b === 0 ? 'nothing' : 'objects'}`],
  [
    'look again',
    [opening, 'const created = await register.open('],
    (a, b) => `${nodeName(a)}: looks again, and ${['finds no Block 0', 'finds Block 0', 'refuses'][b]}`,
  ],
  [
    'try out',
    ['src/storage/certify/certify.ts', 'certifyStore'],
    (a) => `${nodeName(a)}: puts something to try the store out`,
  ],
  [
    'end trying',
    ['src/storage/certify/certify.ts', 'certifyStore'],
    (a) => `${nodeName(a)}: removes what it has tried with`,
  ],
  [
    'create',
    [register, 'async create('],
    (a, b) => `${nodeName(a)}: its creation of Block 0 ${b === 3 ? 'is not the first' : `arrives ${creations[b]}`}`,
  ],
  [
    'read',
    [register, 'const stored = await this.open('],
    (a, b) => `${nodeName(a)}: reads ${b === 0 ? 'no Block 0, and creates it again' : 'Block 0'}`,
  ],
  ['late creation', undefined, (a) => `the creation by ${nodeName(a)} that was on its way arrives`],
  ['write', ['src/log/log-writer.ts', 'async #commitMembers('], (a) => `${nodeName(a)}: commits something`],
  ['crash', undefined, (a) => `${nodeName(a)} crashes`],
] as const satisfies readonly ActionEntry[];

const Act = actionNumbers(list);

export class OpeningModel extends Model {
  readonly actions = actionInfos(list);
  readonly scope: OpeningScope;
  readonly #broken: Readonly<Record<OpeningMutant, boolean>>;
  /** The database of the Block 0 that is stored; 0 for none. */
  readonly #stored = 0;
  /** Whether there are other objects. */
  readonly #objects = 1;
  readonly #delays = 2;
  readonly #crashes = 3;

  constructor(scope: OpeningScope, mutant: OpeningMutant | undefined) {
    super(4 + nodeBytes * scope.nodes);
    this.scope = scope;
    this.#broken = brokenRules(openingMutants, mutant);
  }

  start(): void {
    const { next, scope } = this;
    next.fill(0);
    next[this.#objects] = scope.stray === true ? 1 : 0;
    next[this.#delays] = scope.delays ?? 0;
    next[this.#crashes] = scope.crashes ?? 0;
  }

  #get(s: Uint8Array, at: number): number {
    return s[at] as number;
  }

  #nodeAt(node: number): number {
    return 4 + node * nodeBytes;
  }

  /** The database that a node means to create. */
  #own(s: Uint8Array, node: number): number {
    return this.#get(s, this.#nodeAt(node) + Field.starts) * this.scope.nodes + node + 1;
  }

  expand(): void {
    for (let node = 0; node < this.scope.nodes; node++) {
      this.#expandNode(node);
      this.#expandCrash(node);
    }
  }

  #expandNode(node: number): void {
    const { state } = this;
    const at = this.#nodeAt(node);
    this.#expandLate(node, at);
    switch (state[at + Field.phase]) {
      case Phase.down: {
        const n = this.begin();
        if (!this.#find(n, node)) n[at + Field.phase] = Phase.missing;
        this.emit(Act.look, node, n[at + Field.phase] === Phase.open ? 1 : 0);
        break;
      }
      case Phase.missing:
        this.#list(node, at);
        break;
      case Phase.listed:
        this.#lookAgain(node, at);
        break;
      case Phase.certifying: {
        const n = this.begin();
        n[at + Field.probe] = 1;
        n[at + Field.phase] = Phase.probed;
        this.emit(Act['try out'], node);
        break;
      }
      case Phase.probed: {
        const n = this.begin();
        n[at + Field.probe] = 0;
        n[at + Field.phase] = Phase.creating;
        this.emit(Act['end trying'], node);
        break;
      }
      case Phase.creating:
        this.#create(node, at);
        break;
      case Phase.reading: {
        const n = this.begin();
        const isFound = this.#find(n, node);
        if (!isFound) n[at + Field.phase] = Phase.creating;
        this.emit(Act.read, node, isFound ? 1 : 0);
        break;
      }
      case Phase.open:
        if (state[this.#objects] === 0) {
          const n = this.begin();
          n[this.#objects] = 1;
          this.emit(Act.write, node);
        }
        break;
      default:
    }
  }

  /** Opens the database whose Block 0 is stored. */
  #find(n: Uint8Array, node: number): boolean {
    const stored = this.#get(n, this.#stored);
    if (stored !== 0) this.#open(n, node, stored);
    return stored !== 0;
  }

  #open(n: Uint8Array, node: number, database: number): void {
    const at = this.#nodeAt(node);
    n[at + Field.phase] = Phase.open;
    n[at + Field.stray] = 0;
    n[at + Field.database] = database;
    this.#checkOne(n);
  }

  /** Every node that has opened has opened the stored database. */
  #checkOne(n: Uint8Array): void {
    for (let node = 0; node < this.scope.nodes; node++) {
      const at = this.#nodeAt(node);
      if (n[at + Field.phase] !== Phase.open || n[at + Field.database] === n[this.#stored]) continue;
      this.fail('one database', `${nodeName(node)} has opened another database than the one that is stored.`);
    }
  }

  #list(node: number, at: number): void {
    const n = this.begin();
    const others = n[this.#stored] !== 0 || n[this.#objects] !== 0;
    let isFound = others && !this.#broken['second-look-only'];
    for (let i = 0; i < this.scope.nodes && this.#broken['probes-count']; i++) {
      isFound ||= n[this.#nodeAt(i) + Field.probe] === 1;
    }
    n[at + Field.stray] = isFound ? 1 : 0;
    n[at + Field.phase] = Phase.listed;
    this.emit(Act.list, node, isFound ? 1 : 0);
  }

  #lookAgain(node: number, at: number): void {
    const n = this.begin();
    const isFound = !this.#broken['no-second-look'] && this.#find(n, node);
    const isRefused = !isFound && n[at + Field.stray] === 1;
    if (isRefused) {
      n[at + Field.phase] = Phase.refused;
      n[at + Field.stray] = 0;
      if (this.scope.stray !== true) {
        this.fail('one database', `${nodeName(node)} refuses to open, although all there is belongs to a database.`);
      }
    } else if (!isFound) n[at + Field.phase] = Phase.certifying;
    this.emit(Act['look again'], node, isRefused ? 2 : isFound ? 1 : 0);
  }

  /** A creation reaches the store. True if it was written. */
  #land(n: Uint8Array, database: number): boolean {
    if (n[this.#stored] !== 0 && !this.#broken['created-blindly']) return false;
    if (this.scope.stray === true) this.fail('one database', 'A database is created where something else lies.');
    n[this.#stored] = database;
    this.#checkOne(n);
    return true;
  }

  #create(node: number, at: number): void {
    const { state } = this;
    let n = this.begin();
    const own = this.#own(n, node);
    const isWritten = this.#land(n, own);
    if (isWritten || this.#broken['loser-keeps-own']) this.#open(n, node, own);
    else n[at + Field.phase] = Phase.reading;
    this.emit(Act.create, node, isWritten ? 0 : 3);
    if (this.#get(state, this.#delays) === 0) return;
    n = this.begin();
    n[this.#delays] = this.#get(n, this.#delays) - 1;
    if (this.#land(n, own)) {
      n[at + Field.phase] = Phase.reading;
      this.emit(Act.create, node, 1);
    }
    if (state[at + Field.late] !== 0) return;
    n = this.begin();
    n[this.#delays] = this.#get(n, this.#delays) - 1;
    n[at + Field.late] = own;
    n[at + Field.phase] = Phase.reading;
    if (this.#broken['unknown-means-created']) this.#open(n, node, own);
    this.emit(Act.create, node, 2);
  }

  #expandLate(node: number, at: number): void {
    const late = this.#get(this.state, at + Field.late);
    if (late === 0) return;
    const n = this.begin();
    n[at + Field.late] = 0;
    this.#land(n, late);
    this.emit(Act['late creation'], node);
  }

  #expandCrash(node: number): void {
    const { state } = this;
    const at = this.#nodeAt(node);
    const phase = this.#get(state, at + Field.phase);
    if (this.#get(state, this.#crashes) === 0 || phase === Phase.down || phase === Phase.refused) return;
    const n = this.begin();
    n[this.#crashes] = this.#get(n, this.#crashes) - 1;
    n[at + Field.phase] = Phase.down;
    n[at + Field.starts] = this.#get(n, at + Field.starts) + 1;
    n[at + Field.stray] = 0;
    n[at + Field.database] = 0;
    this.emit(Act.crash, node);
    // Its creation may be on its way.
    if (phase !== Phase.creating || state[at + Field.late] !== 0) return;
    n[at + Field.late] = this.#own(state, node);
    this.emit(Act.crash, node);
  }

  describeState(s: Uint8Array): string {
    const stored = this.#get(s, this.#stored);
    const nodes: string[] = [];
    for (let node = 0; node < this.scope.nodes; node++) {
      const at = this.#nodeAt(node);
      if (s[at + Field.phase] === Phase.open)
        nodes.push(`${nodeName(node)} has ${this.#databaseName(this.#get(s, at + Field.database))}`);
    }
    const objects = s[this.#objects] === 0 ? 'no other objects' : 'other objects';
    const opened = nodes.length === 0 ? '' : `; ${nodes.join(', ')}`;
    return `Block 0: ${stored === 0 ? 'missing' : this.#databaseName(stored)}, ${objects}${opened}`;
  }

  #databaseName(database: number): string {
    return `the database of ${nodeName((database - 1) % this.scope.nodes)}`;
  }
}
