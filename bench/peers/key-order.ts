/** Keys for contenders that have one space of keys in the order of their bytes, with indexes kept by hand. */

const digits = 10;

function padded(value: number): string {
  return String(value).padStart(digits, '0');
}

export function rowKey(id: number): string {
  return `r${padded(id)}`;
}

export function countryKey(country: string, id: number): string {
  return `c${country}${padded(id)}`;
}

export function populationKey(population: number, id: number): string {
  return `p${padded(population)}${padded(id)}`;
}

/** The id at the end of any of them. */
export function idIn(key: string): number {
  return Number(key.slice(-digits));
}

/** Behind every key that begins so. */
export function after(beginning: string): string {
  return `${beginning}\u{7f}`;
}
