/** Finds the secrets of requests, and removes them from responses and errors, in whatever form a store repeats them. */

/** Headers that hold secrets. */
const secretHeaders = /authori[sz]ation|token|secret|cookie|credential|customer-key$/;

/** Matches the signature in the URL of a request, or in the URL of the source of a copy. */
const urlSignature = /[?&](?:sig|Signature|X-Amz-Signature|X-Goog-Signature)=([^&#\s]+)/i;

/**
 * Returns the secrets in the headers of a request. Of a signed request that is the signature: the rest of the header is not
 * secret.
 */
export function secretsIn(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string') return [];
    if (!secretHeaders.test(name.toLowerCase())) return secretsInUrl(value);
    const signature = /Signature=(\w+)/.exec(value)?.[1] ?? /^SharedKey [^:]*:(\S+)$/.exec(value)?.[1];
    return [signature ?? value.replace(/^(?:Basic|Bearer) /i, '')];
  });
}

/** Returns the signature in a URL as it is, and decoded. */
export function secretsInUrl(url: string): string[] {
  const signature = urlSignature.exec(url)?.[1];
  return signature === undefined ? [] : [signature, decoded(signature)];
}

/** Shortest part of a secret that is removed: shorter parts reveal nothing, and match by chance. */
const minLength = 12;
/** Matches words of the characters of secrets, also escaped as in URLs and in markup. */
const words = /(?:[\w+/~.-]|%[0-9a-f]{2}|&#?\w{2,6};)+/gi;

function decoded(word: string): string {
  const text = word.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return text.replace(/&#(?:x([0-9a-f]{2})|(\d{2,3}));/gi, (_, hex: string | undefined, digits: string | undefined) =>
    String.fromCharCode(hex === undefined ? Number(digits) : Number.parseInt(hex, 16)),
  );
}

/** Removes secrets and parts of secrets from a text, however they are escaped. */
export function withoutKnown(text: string, secrets: readonly string[]): string {
  let safe = text;
  for (const secret of secrets) {
    if (secret.length < minLength) continue;
    if (safe.includes(secret)) safe = safe.replaceAll(secret, '\u2026');
  }
  return safe.replace(words, (word) => {
    if (word.length < minLength) return word;
    const plain = decoded(word);
    const one = plain.toLowerCase();
    const isSecret = secrets.some((secret) => {
      const other = secret.toLowerCase();
      return secret.length >= minLength && (one.includes(other) || other.includes(one));
    });
    return isSecret ? '\u2026' : word;
  });
}
