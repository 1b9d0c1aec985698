/** The pages, in the order of the navigation. */
import { TablesPage } from './tables.tsx';

export interface PageEntry {
  /** Its name in routes, and that of its icon. */
  readonly name: string;
  readonly label: string;
  readonly view: () => preact.JSX.Element;
}

export const pages: readonly PageEntry[] = [{ name: 'tables', label: 'Tables', view: TablesPage }];
