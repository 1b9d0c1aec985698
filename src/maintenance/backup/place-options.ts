/** What a place may be to which databases are copied. */
import { kinds, OptionTable } from '../../base/option-checks.ts';
import { driverKind, placePrefixKind } from '../../storage/contract/place-kinds.ts';
import type { StorePlace } from './state-copy.ts';

export const placeOptions: OptionTable<StorePlace> = new OptionTable({
  driver: kinds.required(driverKind),
  prefix: kinds.required(placePrefixKind),
});
