/** The table of cities as the page needs it: an index that has all that a search shows. */
import { defineSchema, Types } from 'store-db';

export const cities = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 60 },
    country: { typeId: Types.varchar, maxLength: 2 },
    admin1: { typeId: Types.varchar, maxLength: 8 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: [{ name: 'search', fields: ['name', 'country', 'admin1'] }, 'country'],
});
