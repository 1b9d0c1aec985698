/** The pages, in the order of the navigation. */
import { BillPage } from './bill.tsx';
import { HealthPage } from './health.tsx';
import { QueryPage } from './query.tsx';
import { StoragePage } from './storage.tsx';
import { TablesPage } from './tables.tsx';
import { TimePage } from './time.tsx';

export interface PageEntry {
  /** Its name in routes, and that of its icon. */
  readonly name: string;
  readonly label: string;
  readonly view: () => preact.JSX.Element;
}

export const pages: readonly PageEntry[] = [
  { name: 'tables', label: 'Tables', view: TablesPage },
  { name: 'query', label: 'Query', view: QueryPage },
  { name: 'storage', label: 'Storage', view: StoragePage },
  { name: 'time', label: 'Time', view: TimePage },
  { name: 'health', label: 'Health', view: HealthPage },
  { name: 'bill', label: 'Bill', view: BillPage },
];
