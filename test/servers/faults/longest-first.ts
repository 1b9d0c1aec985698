/** Begins with the tests that take longest. The other tests run meanwhile. */
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

const longest = ['kill.test.ts', 'chaos.test.ts'];

export class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      longest.findIndex((name) => moduleId.endsWith(`/${name}`));
    return Promise.resolve(files.toSorted((a, b) => rank(b) - rank(a)));
  }
}
