import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { draftTable, KeptFiles, tableNameOf } from '../draft/draft-files.ts';
import { jsonOf, tellOfHead, typeScriptOf } from '../draft/draft-source.ts';
import { draftingOptions, sampleOf } from '../draft/drafting-options.ts';
import { ExitCode } from '../terminal/exit-code.ts';
import { parseDateFormats } from '../input/date-format.ts';
import { inputFiles } from '../input/input-files.ts';
import type { InputFile } from '../input/input-files.ts';
import { describePosition, LineError } from '../input/line-error.ts';
import { jsonText } from '../terminal/json-text.ts';
import { readingOptions, readOptionsOf } from '../input/reading-options.ts';

const draft: Command = command({
  name: 'draft',
  summary: 'Print the schema of a table that would hold what is in files, as TypeScript, or as JSON for --schema',
  positionals: {
    files: {
      type: 'string',
      array: true,
      demandOption: true,
      describe: 'Files to look at, or patterns in quotes; -: the input',
    },
  },
  options: { ...draftingOptions, ...readingOptions },
  examples: [['schema draft cities.csv > cities.ts', 'a module with the definition of the table']],
  run: async (session, args) => {
    const { terminal } = session;
    const named = (await inputFiles(args.files)) as [InputFile, ...InputFile[]];
    const table = args.table ?? tableNameOf(named[0]);
    await using kept = await KeptFiles.keep(named, session);
    const { files } = kept;
    let [current] = named;
    try {
      const drafted = await draftTable(
        session,
        {
          table,
          key: args.key,
          dates: parseDateFormats(args['date-format'] ?? []),
          sample: sampleOf(args),
          files,
          readOptions: readOptionsOf(args, false),
          onBadRow: (_, problem) => {
            throw problem;
          },
        },
        (file) => (current = file),
      );
      tellOfHead(terminal, drafted, args.header);
      if (terminal.json) terminal.printJson(jsonOf(drafted));
      else terminal.printLines(typeScriptOf(drafted));
      return ExitCode.done;
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      const message = `${describePosition(current.name, error)}: ${error.message}`;
      if (terminal.json) terminal.tell(jsonText({ error: { code: 'BAD_ROW', message } }));
      else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${message}`);
      return ExitCode.found;
    }
  },
});

/** `schema`: what tables are made of. */
export const schema: Command = command({
  name: 'schema',
  summary: 'Draft the schema of a table from files',
  positionals: {},
  options: {},
  subcommands: [draft],
  isGroup: true,
  run: async () => ExitCode.usage,
});
