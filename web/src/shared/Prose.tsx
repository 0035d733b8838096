/** A message of the server: what stands in backticks is code. */
export function Prose({ text }: { text: string }) {
  return text
    .split(/`([^`]+)`/)
    .map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part));
}
