/** What the environment says. */
import { FileDriver } from 'store-db/lib/storage';
import type { StorageDriver } from 'store-db/lib/storage';

export interface Settings {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly dbPrefix: string;
  /** Different in every instance that runs at the same time; `'auto'`: one that is free. */
  readonly nodeId: number | 'auto';
  /** Undefined: the bucket that `STOREDB_BUCKET` names. */
  readonly driver: StorageDriver | undefined;
  /** How often instances look for each other's writes. */
  readonly intervalMs: number;
  /** For how long it goes on after it was told to stop, so that others notice that it is not ready. */
  readonly drainMs: number;
  readonly logLevel: string;
  readonly maxAttachmentBytes: number;
}

type Variables = Readonly<Record<string, string | undefined>>;

function integer(variables: Variables, name: string, fallback: number, max: number): number {
  const text = variables[name] ?? '';
  const value = text === '' ? fallback : Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new Error(`${name} is '${text}'; it must be a whole number from 0 to ${max}.`);
}

/** PM2 numbers the processes of an application. Elsewhere each takes a number that is free. */
function nodeIdOf(variables: Variables): number | 'auto' {
  const name = (variables['NODE_ID'] ?? '') === '' ? 'NODE_APP_INSTANCE' : 'NODE_ID';
  const text = variables[name] ?? '';
  if (text === '' || text === 'auto') return 'auto';
  // As hosts of a StatefulSet are called: notes-3.
  return integer({ [name]: text.replace(/^[a-z0-9][a-z0-9-]*-(?=\d+$)/, '') }, name, 0, 255);
}

/** Reads the settings. Throws an error that names the variable if one makes no sense. */
export function readSettings(variables: Variables): Settings {
  return {
    host: variables['HOST'] ?? '127.0.0.1',
    port: integer(variables, 'PORT', 3000, 65_535),
    dbPrefix: variables['NOTES_PREFIX'] ?? 'notes',
    nodeId: nodeIdOf(variables),
    driver: chooseDriver(variables),
    intervalMs: integer(variables, 'INTERVAL_MS', 5000, 86_400_000),
    drainMs: integer(variables, 'DRAIN_MS', 0, 600_000),
    logLevel: variables['LOG_LEVEL'] ?? 'info',
    maxAttachmentBytes: integer(variables, 'MAX_ATTACHMENT_BYTES', 1024 ** 3, Number.MAX_SAFE_INTEGER),
  };
}

function chooseDriver(variables: Variables): StorageDriver | undefined {
  const bucket = variables['STOREDB_BUCKET'] ?? '';
  if (bucket !== '') {
    console.log(`Data is in the bucket ${bucket}${at(variables['STOREDB_ENDPOINT'])}.`);
    return undefined;
  }
  const folder = variables['NOTES_FOLDER'] ?? 'data/notes';
  console.log(`STOREDB_BUCKET is not set: data is in the folder ${folder}, and downloads pass through the service.`);
  return new FileDriver(folder);
}

function at(endpoint = ''): string {
  return endpoint === '' ? '' : ` at ${endpoint}`;
}
