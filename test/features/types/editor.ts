/** What an editor shows of a program: asks the compiler's language server, as editors do, at marked places. */
import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiler, programFolder } from './compiler.ts';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly items?: readonly unknown[] };
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Completions {
  readonly items: readonly { readonly label: string }[];
}

/** The messages in bytes that come in pieces: each has a head that tells its length. */
class Messages {
  #bytes: Buffer = Buffer.alloc(0);

  *of(piece: Buffer): Generator<Message, void, undefined> {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    for (;;) {
      const head = this.#bytes.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.#bytes.toString('latin1', 0, head))?.[1]);
      const end = head + 4 + length;
      if (this.#bytes.length < end) return;
      yield JSON.parse(this.#bytes.toString('utf8', head + 4, end)) as Message;
      this.#bytes = this.#bytes.subarray(end);
    }
  }
}

/** A language server that is asked one thing after another. */
class LanguageServer {
  readonly #process = spawn(process.execPath, [compiler, '--lsp', '-stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #ended: Promise<void>;
  #last = 0;

  constructor() {
    const messages = new Messages();
    this.#process.stdout.on('data', (piece: Buffer) => {
      for (const message of messages.of(piece)) this.#take(message);
    });
    this.#ended = new Promise((resolve) => {
      this.#process.on('close', () => {
        for (const end of this.#waiting.values()) end({ error: { message: 'The language server ended.' } });
        resolve();
      });
    });
  }

  #send(message: object): void {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.#process.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  #take(message: Message): void {
    const { id, method, params } = message;
    if (id === undefined) return;
    // What the server asks of an editor: settings, of which there are none, and to be told of changes to files.
    if (method !== undefined) this.#send({ id, result: params?.items?.map(() => null) ?? null });
    else this.#waiting.get(id)?.(message);
  }

  tell(method: string, params?: object): void {
    this.#send({ method, ...(params && { params }) });
  }

  async ask(method: string, params?: object): Promise<unknown> {
    const id = ++this.#last;
    const answer = new Promise<Message>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#send({ id, method, ...(params && { params }) });
    const { result, error } = await answer;
    this.#waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  async end(): Promise<void> {
    await this.ask('shutdown');
    this.tell('exit');
    this.#process.stdin.end();
    await this.#ended;
  }
}

/** A place in a program. */
interface Place {
  readonly line: number;
  readonly character: number;
}

/** A mark in a program: `⟦name⟧`. It is taken out of what the compiler sees. */
const mark = /⟦(\w+)⟧/;

function unmarked(program: string): { text: string; places: ReadonlyMap<string, Place> } {
  const places = new Map<string, Place>();
  const lines = program.split('\n').map((written, line) => {
    let text = written;
    for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
      places.set(found[1] as string, { line, character: found.index });
      text = text.replace(mark, '');
    }
    return text;
  });
  return { text: lines.join('\n'), places };
}

/** A program in an editor. */
export interface Editor {
  /** What it shows of the name that ends at a mark, without documentation, in one line. */
  hover(name: string): Promise<string>;
  /** What it offers at a mark. */
  completions(name: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Opens a program, at whose marks the editor is asked. */
export async function openEditor(program: string): Promise<Editor> {
  const { text, places } = unmarked(program);
  const folder = await programFolder();
  const file = path.join(folder, 'program.ts');
  await writeFile(file, text);
  const server = new LanguageServer();
  const capabilities = { textDocument: { hover: { contentFormat: ['plaintext'] } } };
  await server.ask('initialize', { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities });
  server.tell('initialized', {});
  const uri = pathToFileURL(file).href;
  server.tell('textDocument/didOpen', { textDocument: { uri, languageId: 'typescript', version: 1, text } });
  const at = (name: string, before: number): object => {
    const place = places.get(name);
    if (place === undefined) throw new Error(`There is no mark ${name}.`);
    return { textDocument: { uri }, position: { ...place, character: place.character - before } };
  };
  return {
    async hover(name) {
      const shown = (await server.ask('textDocument/hover', at(name, 1))) as { contents: { value: string } } | null;
      return (shown?.contents.value ?? '').trim().replaceAll(/\s+/g, ' ');
    },
    async completions(name) {
      const offered = await server.ask('textDocument/completion', at(name, 0));
      return ((offered as Completions | null)?.items ?? []).map(({ label }) => label);
    },
    async close() {
      await server.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
