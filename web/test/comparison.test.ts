import { expect, test } from 'vitest';

import type { TurnDiff, TurnExplained } from '../src/api/explanations';
import { becauseOf, comparisonRows } from '../src/context/comparison';
import { callOf } from '../src/context/pieces';
import found from './fixtures/diff.json';
import explained from './fixtures/turn.json';

const { pieces } = callOf(explained as unknown as TurnExplained, 1);
const diff = found as unknown as TurnDiff;

test('changes stand in their places, the rest is folded, and nothing is lost', () => {
  const rows = comparisonRows(pieces, diff, 173);
  expect(rows.map((row) => row.type)).toEqual(['same', 'cache', 'change', 'change']);
  const [first] = rows;
  expect(first?.type === 'same' && first.pieces.length).toBe(12);
});

test('without a previous prompt there is no line of the cache', () => {
  expect(comparisonRows(pieces, diff, null).some((row) => row.type === 'cache')).toBe(false);
});

test('what is gone stands before what follows it', () => {
  const [change] = diff.changes;
  if (change === undefined) throw new Error('the fixture has changed');
  const gone = { ...change, change: 'gone' as const, origin: 'context_variables.region' };
  const rows = comparisonRows(pieces, { ...diff, changes: [gone, ...diff.changes] }, 0);
  expect(rows.map((row) => row.type)).toEqual(['cache', 'change', 'same', 'change', 'change']);
});

test('a cause ends a sentence', () => {
  const cause = { run: 'r', seq: 1, kind: 'user.text', says: 'said by Ann' };
  expect(becauseOf(cause)).toBe('Ann said it');
});
