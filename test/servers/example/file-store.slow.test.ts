import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeService } from './service-behaviour.ts';

describeService('a folder', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'notes-service-'));
  return {
    variables: { NOTES_FOLDER: folder },
    makesLinks: false,
    close: () => rm(folder, { recursive: true, force: true }),
  };
});
