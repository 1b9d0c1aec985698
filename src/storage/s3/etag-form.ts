/**
 * How a store wants ETags in `If-Match`. Most take them as they gave them, in quotes; some (Ceph 16 and 18, DigitalOcean
 * Spaces) compare the header with the bare text and refuse every quoted one.
 */
export class EtagForm {
  #isOther: boolean | undefined;

  /** Whether a conditional write has shown which form it is. */
  get isKnown(): boolean {
    return this.#isOther !== undefined;
  }

  /** The ETag as the store is thought to want it. */
  write(etag: string): string {
    return this.#isOther === true ? otherForm(etag) : etag;
  }

  /** The ETag in the form that was not tried. */
  writeOther(etag: string): string {
    return this.#isOther === true ? etag : otherForm(etag);
  }

  /** Takes note that a write was accepted, with the ETag in the other form or as it was given. */
  accepted(form: 'given' | 'other'): void {
    this.#isOther = form === 'other';
  }

  /** For reports. */
  toString(): string {
    if (this.#isOther === undefined) return 'not tried yet';
    return this.#isOther ? 'without quotes' : 'as given';
  }
}

function otherForm(etag: string): string {
  return etag.startsWith('"') && etag.endsWith('"') ? etag.slice(1, -1) : `"${etag}"`;
}
