/** A string that no other call gives. `crypto.randomUUID` is missing where pages come without TLS. */
export function unique(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, '0')).join('');
}
