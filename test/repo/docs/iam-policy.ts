/** Policies as IAM evaluates them, as far as those of the documentation need it. What it does not know it refuses. */

import { readFile } from 'node:fs/promises';
import type { Access } from '../../servers/s3-server/authorization.ts';

export interface Statement {
  readonly Sid: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface Policy {
  readonly Version: string;
  readonly Statement: readonly Statement[];
}

export type PagePolicies = Record<'writers' | 'replicas' | 'collection' | 'encryption' | 'guard', Policy>;

/** The policies that docs/object-stores.md gives. */
export async function pagePolicies(): Promise<PagePolicies> {
  const page = await readFile(new URL('../../../docs/object-stores.md', import.meta.url), 'utf8');
  const below = (heading: string): Policy => {
    const section = page.split(`\n${heading}\n`)[1] ?? '';
    const json = /^```json\n(.*?)^```/ms.exec(section)?.[1];
    if (json === undefined) throw new Error(`There is no policy below ${heading}`);
    return JSON.parse(json) as Policy;
  };
  return {
    writers: below('### Writers'),
    replicas: below('### Replicas'),
    collection: below('### Garbage collection'),
    encryption: below('### With a key in KMS'),
    guard: below('## A bucket policy that guards the database'),
  };
}

function list(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value;
}

/** `*` stands for any characters, none included. */
function isLike(text: string, pattern: string): boolean {
  const escaped = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${escaped.join('.*')}$`, 's').test(text);
}

function holds(operator: string, key: string, expected: string, context: Access['context']): boolean {
  const value = context[key];
  switch (operator) {
    case 'Null':
      return (value === undefined) === (expected === 'true');
    case 'Bool':
      return value === expected;
    case 'StringEquals':
      return value === expected;
    case 'StringLike':
      return value !== undefined && isLike(value, expected);
    default:
      throw new Error(`The condition ${operator} is not known here`);
  }
}

/** Whether a statement is about an access: all of its conditions must hold. */
export function concerns({ Action, Resource, Condition = {} }: Statement, access: Access): boolean {
  return (
    list(Action).some((action) => isLike(access.action, action)) &&
    list(Resource).some((resource) => isLike(access.resource, resource)) &&
    Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, expected]) => holds(operator, key, expected, access.context)),
    )
  );
}

/** What is denied by any statement is denied; what none allows, too. */
export function isAllowed(policies: readonly Policy[], access: Access): boolean {
  const concerned = policies.flatMap((policy) => policy.Statement).filter((statement) => concerns(statement, access));
  return concerned.length > 0 && concerned.every(({ Effect }) => Effect === 'Allow');
}
