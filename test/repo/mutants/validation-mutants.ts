/** Mistakes in the checks of rows by `validate`, and in the values of `rowSchema()`. */
import type { Mutant } from './mutant.ts';

const validator = 'src/schema/row-validator.ts';
const edge = 'src/schema/row-schema.ts';
const kinds = 'src/schema/field-kinds.ts';
const tests = ['test/features/validation/validate.test.ts', 'test/features/validation/row-schema.test.ts'];

function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name: `validation: ${name}`, edits: [{ file, find, replace }], tests };
}

export const validationMutants: readonly Mutant[] = [
  mutant(
    'rows of a flush are not checked',
    'src/batch/make-member.ts',
    'if (validator !== undefined) await validateRows(',
    'if (validator === undefined) await validateRows(',
  ),
  mutant(
    'only the first row of a flush is checked',
    'src/batch/make-member.ts',
    'const advanced = rows.advance();\n    if (isPromise(advanced)) await advanced;\n    if (pacer.due()) await pacer.pause();\n  }',
    'return;\n  }',
  ),
  mutant(
    'rows of a load are not checked',
    'src/load/row-source.ts',
    'if (validator !== undefined) await untilAborted(',
    'if (validator === undefined) await untilAborted(',
  ),
  mutant(
    'a schema that answers later is taken for one that finds nothing',
    validator,
    'isThenable(answer) ? Promise.resolve(answer).then(issuesInAnswer).catch(failed)',
    'isThenable(answer) ? []',
  ),
  mutant(
    'fields without a value are left out only',
    validator,
    'if (asNull.length > 0) return',
    'if (asNull.length < 0) return',
  ),
  mutant(
    'an answer that is none finds nothing',
    'src/schema/standard-schema.ts',
    "return 'value' in answer ? []",
    'return answer ? []',
  ),
  mutant('a schema that throws finds nothing', validator, 'return failed(error);', 'return [];'),
  mutant(
    'requests may name the key as null',
    edge,
    'if (isKey || field.required === true)',
    'if (field.required === true)',
  ),
  mutant(
    'decimals lose their last digits',
    kinds,
    'if (/[1-9]/.test(part.slice(scale))) throw',
    'if (/[1-9]/.test(part.slice(40))) throw',
  ),
];
