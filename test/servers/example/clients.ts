/**
 * Clients of the example service behind a load balancer: they use whichever processes say that they are ready, each with
 * connections that are kept alive, and hold every answer against what was acknowledged to them before.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { ServiceProcess } from './service-process.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How often the balancer asks whether a process is ready, in milliseconds. */
const probeMs = 50;

export class Balancer implements Disposable {
  #known: { readonly service: ServiceProcess; readonly isNext: boolean; isReady: boolean }[] = [];
  #isOpen = true;

  constructor() {
    void this.#probe();
  }

  /** Sends it requests from now on, as long as it is ready. `isNext`: it is of the next release. */
  add(service: ServiceProcess, isNext: boolean): void {
    this.#known.push({ service, isNext, isReady: true });
  }

  remove(service: ServiceProcess): void {
    this.#known = this.#known.filter((known) => known.service !== service);
  }

  async #probe(): Promise<void> {
    while (this.#isOpen) {
      await Promise.all(
        this.#known.map(async (known) => {
          known.isReady = await known.service.fetch('/ready').then(
            ({ ok }) => ok,
            () => false,
          );
        }),
      );
      await sleep(probeMs);
    }
  }

  /** One that is ready. */
  pick(random: SeededRandom): { readonly service: ServiceProcess; readonly isNext: boolean } {
    const ready = this.#known.filter(({ isReady }) => isReady);
    if (ready.length === 0) throw new Error('No process is ready');
    return random.pick(ready);
  }

  [Symbol.dispose](): void {
    this.#isOpen = false;
  }
}

/** What became of the requests of all clients. */
export interface Tally {
  requests: number;
  /** Requests that the new release answered. */
  byNext: number;
  readonly failures: string[];
}

/** Creates notes, changes them by way of any process, and reads them back. Nobody else touches them. */
export class Client {
  /** What was acknowledged, by the id of the note. */
  readonly notes = new Map<string, Fields>();
  readonly #balancer: Balancer;
  readonly #tally: Tally;
  readonly #random: SeededRandom;
  #count = 0;

  constructor(balancer: Balancer, tally: Tally, seed: string) {
    this.#balancer = balancer;
    this.#tally = tally;
    this.#random = new SeededRandom(seed);
  }

  async run(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      await this.#step();
      await sleep(this.#random.between(0, 30));
    }
  }

  async #send(
    { service, isNext }: { readonly service: ServiceProcess; readonly isNext: boolean },
    method: string,
    path: string,
    body?: Fields,
  ): Promise<Fields | undefined> {
    this.#tally.requests++;
    if (isNext) this.#tally.byNext++;
    try {
      const headers = { 'cache-control': 'no-cache' };
      const response =
        body === undefined ? await service.fetch(path, { headers }) : await service.send(method, path, body);
      const answer = (await response.json()) as Fields;
      if (response.ok) return answer;
      this.#tally.failures.push(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    } catch (error) {
      this.#tally.failures.push(`${method} ${path}: ${String((error as Error).cause ?? error)}`);
    }
    return undefined;
  }

  async #step(): Promise<void> {
    const target = this.#balancer.pick(this.#random);
    const value = ++this.#count;
    const dice = this.#random.next();
    if (this.notes.size === 0 || dice < 0.2) {
      const note = { id: randomUUID(), topic: 'load', title: `title ${value}`, text: `text ${value}` };
      if ((await this.#send(target, 'POST', '/notes', note)) !== undefined) this.notes.set(note.id, note);
      return;
    }
    const id = this.#random.pick([...this.notes.keys()]);
    if (dice < 0.7) {
      const old = this.#random.chance(0.5) ? { title: `title ${value}` } : { text: `text ${value}` };
      const change = target.isNext && this.#random.chance(0.6) ? { stars: value, status: 'done' } : old;
      if ((await this.#send(target, 'PATCH', `/notes/${id}`, change)) !== undefined)
        this.notes.set(id, { ...this.notes.get(id), ...change });
      return;
    }
    await this.check(id, target);
  }

  /** Whether a process shows what was acknowledged of a note. */
  async check(id: string, target: { readonly service: ServiceProcess; readonly isNext: boolean }): Promise<void> {
    const known = this.notes.get(id) as Fields;
    const shown = await this.#send(target, 'GET', `/notes/${id}`);
    if (shown === undefined) return;
    // The release before knows nothing of the fields that the next one has added.
    const expected = target.isNext ? { status: 'open', stars: 0, ...known } : known;
    for (const [field, value] of Object.entries(expected)) {
      if (!target.isNext && (field === 'status' || field === 'stars')) continue;
      if (shown[field] === value) continue;
      this.#tally.failures.push(
        `Note ${id}: ${field} is ${String(shown[field])}, and ${String(value)} was acknowledged`,
      );
    }
  }

  /** Of what only the next release knows nothing is expected any more. */
  forgetNew(): void {
    for (const [id, { status: _, stars: __, ...rest }] of this.notes) this.notes.set(id, rest);
  }
}
