/** Mistakes in how blobs are uploaded, condemned and deleted. */
import type { Mutant } from './mutant.ts';

const blobUploads = 'src/batch/flush.ts';
const gcBlobs = 'src/maintenance/gc/gc-blobs.ts';
const gc = 'src/maintenance/gc/collector.ts';

export const blobMutants: readonly Mutant[] = [
  {
    name: 'blobs: deleted by age, without a condemnation',
    edits: [
      {
        file: gcBlobs,
        find: 'verdicts.condemned.push(blob);',
        replace: `await store.delete({ kind: 'blob', name, sizeBytes, reason: '' });`,
      },
    ],
  },
  {
    name: 'blobs: deleted before the condemnation is in the log',
    edits: [
      {
        file: gcBlobs,
        find: 'verdicts.condemned.push(blob);',
        replace: `verdicts.condemned.push(blob);
      await store.delete({ kind: 'blob', name, sizeBytes, reason: '' });`,
      },
    ],
  },
  {
    name: 'blobs: a flush does not check whether its blob is still there',
    edits: [
      {
        file: blobUploads,
        find: 'if (isCondemned || !(await this.#store.exists(blob.reference, this.#signal))) await',
        replace: 'if (isCondemned) await',
      },
    ],
  },
  {
    name: 'blobs: a flush does not check whether its blob is condemned',
    edits: [
      {
        file: blobUploads,
        find: `const isCondemned = await isListed(view, '_deleted_blobs', blob.reference);`,
        replace: 'const isCondemned = (void isListed, false);',
      },
    ],
  },
  {
    name: 'blobs: a flush checks its blob only once, before it is validated',
    edits: [
      {
        file: blobUploads,
        find: '      if (!isCondemned && blob.checkedTail === view.tail) continue;',
        replace: '      if (blob.checkedTail >= 0) continue;',
      },
    ],
  },
  {
    name: 'blobs: condemned without a check of which rows refer to them',
    edits: [
      {
        file: gcBlobs,
        find: `if ((await isListed(view, '_blobs', blob)) || (await isListed(view, '_deleted_blobs', blob))) continue;`,
        replace: `if (await isListed(view, '_deleted_blobs', blob)) continue;`,
      },
    ],
  },
  {
    name: 'blobs: condemned on an older state than the one before the commit',
    edits: [
      {
        file: gc,
        find: 'blobOperations(verdicts, view, environment)',
        replace: 'blobOperations(verdicts, (this.#first ??= view), environment)',
      },
      {
        file: gc,
        find: `  #condemned = 0;
`,
        replace: `  #condemned = 0;
  #first: View | undefined;
`,
      },
    ],
  },
  {
    name: 'blobs: the row of a deleted blob removed before the object',
    edits: [
      {
        file: gcBlobs,
        find: `  await deleted.finish();
  await store.finish();`,
        replace: '  await deleted.finish();',
      },
      {
        file: gc,
        find: `          slot: view.tail + 1,
        });
      },
    });`,
        replace: `          slot: view.tail + 1,
        });
      },
    });
    await this.#store.finish();`,
      },
    ],
  },
  {
    name: 'blobs: the row removed although the object could not be deleted',
    edits: [
      {
        file: gcBlobs,
        find: 'wanted.filter((blob) => !failed.has(blobName(blob)))',
        replace: 'wanted.filter((blob) => !failed.has(blobName(blob)) || true)',
      },
    ],
    tests: ['test/features/gc/blobs.test.ts'],
  },
  {
    name: 'blobs: uploaded again under the same name',
    edits: [
      {
        file: blobUploads,
        find: `    this.#operations.renameBlob(blob);
    await this.#upload(blob);
  }
}`,
        replace: `    await this.#upload(blob);
  }
}`,
      },
    ],
  },
  {
    name: 'blobs: several attempts under one name',
    edits: [
      {
        file: blobUploads,
        find: `        this.#operations.renameBlob(blob);
      }`,
        replace: '      }',
      },
    ],
    tests: ['test/features/blobs/uploads.test.ts'],
  },
  {
    name: 'blobs: a condemnation in the same commit is ignored',
    edits: [
      {
        file: blobUploads,
        find: '      const isCondemned =',
        replace: `      if (blob.checkedTail === view.tail) continue;
      const isCondemned =`,
      },
    ],
    tests: ['test/features/gc/blobs.test.ts'],
  },
  {
    name: 'blobs: deleted although an unmerged commit may refer to them',
    edits: [
      {
        file: gcBlobs,
        find: `if (await listed.has(blob)) continue;
    if (isDeleted) {`,
        replace: `if (await listed.has(blob)) continue;
    if (isDeleted || lastModifiedMs < (await graceBeforeMs())) {`,
      },
    ],
  },
  {
    name: 'blobs: not uploaded once more after a second upload failed',
    edits: [
      {
        file: blobUploads,
        find: `        await this.#uploadNew(blob, view.tail);
        continue;`,
        replace: '        continue;',
      },
    ],
    tests: ['test/simulation/sim/regressions.slow.test.ts'],
  },
];
