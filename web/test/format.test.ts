import { expect, test } from 'vitest';

import { excerpt } from '../src/shared/format';

test('an excerpt of JSON has its names and values, a line each', () => {
  const text = '{"type": "Question", "payload": {"text": "Why?"}, "tags": []}';
  expect(excerpt(text, 80)).toBe('type: Question\npayload: {"text":"Why?"}\ntags: []');
});

test('an excerpt of a large object ends after some lines', () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`n${n}`, n]));
  const lines = excerpt(JSON.stringify(many), 80).split('\n');
  expect(lines).toHaveLength(10);
  expect(lines.at(-1)).toBe('…');
});

test('an excerpt of another text is one line', () => {
  expect(excerpt('a\n b', 80)).toBe('a b');
  expect(excerpt('{not JSON', 80)).toBe('{not JSON');
  expect(excerpt('x'.repeat(90), 80)).toHaveLength(80);
});
