/** Numbers, times and values as people read them. */

const whole = new Intl.NumberFormat('en');

/** A number with thousands separators. */
export const number = (value: number): string => whole.format(value);

/** A count with its noun, as in `1 piece`, `14 pieces`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${number(count)} ${count === 1 ? noun : plural}`;

/** A duration in the largest unit that says enough. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '';
  if (seconds < 0.001) return '< 1 ms';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** How long ago something was. */
export function ago(at: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  return seconds < 10 ? 'just now' : `${duration(seconds)} ago`;
}

const clockFormat = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const momentFormat = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});

export const clock = (at: string): string => clockFormat.format(new Date(at));
export const moment = (at: string): string => momentFormat.format(new Date(at));

/** A value as JSON on one line, cut after `most` characters. */
export function preview(value: unknown, most = 120): string {
  const text = JSON.stringify(value ?? null);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A text on one line, cut after `most` characters. */
export function oneLine(text: string, most = 120): string {
  const line = text.trim().replace(/\s+/g, ' ');
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

// The most lines of an excerpt.
const LINES = 10;

/** The beginning of a text: of a JSON object its names and values, otherwise one line. */
export function excerpt(text: string, most: number): string {
  const data = objectIn(text);
  if (data === null) return oneLine(text, most);
  const lines = Object.entries(data).map(
    ([name, each]) =>
      `${name}: ${typeof each === 'string' ? oneLine(each, 90) : preview(each, 90)}`,
  );
  return lines.length > LINES ? [...lines.slice(0, LINES - 1), '…'].join('\n') : lines.join('\n');
}

function objectIn(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

interface Tokens {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  reasoning_tokens?: number;
}

/** The tokens that were used, as in `900 tokens in (700 cached), 40 out`; empty if none. */
export function usedTokens(usage: Tokens | null | undefined): string {
  const { input_tokens = 0, output_tokens = 0 } = usage ?? {};
  if (input_tokens + output_tokens === 0) return '';
  const cached = usage?.cached_tokens ? ` (${number(usage.cached_tokens)} cached)` : '';
  const thought = usage?.reasoning_tokens ? ` (${number(usage.reasoning_tokens)} reasoning)` : '';
  return `${number(input_tokens)} tokens in${cached}, ${number(output_tokens)} out${thought}`;
}

/** Names in a sentence: `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}

/** A word for a POSIX shell. */
export const quoted = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`;
