import { expect, test } from 'vitest';

import { leftOutGroups, shortName, whyOut } from '../src/context/leftOut';

const below = (name: string, score: number) => ({
  origin: `context[1] from_retrieval(library): ${name}`,
  reason: 'low_relevance',
  detail: `score ${score} is below 0.2`,
});

test('reasons are groups, and nothing is lost', () => {
  const withheld = [
    { origin: 'artifact a.email', reason: 'redacted', detail: 'Redacting' },
    below('bees.md#1', 0.14),
    { origin: 'artifact a.phone', reason: 'redacted', detail: 'Other' },
    below('tides.md#0', 0.09),
  ];
  const groups = leftOutGroups(withheld);
  expect(groups.map((each) => [each.reason, each.items.length])).toEqual([
    ['low_relevance', 2],
    ['redacted', 1],
    ['redacted', 1],
  ]);
  expect(groups[0]?.threshold).toBe(0.2);
  expect(groups[0]?.items.map((each) => [each.name, each.figure])).toEqual([
    ['bees.md#1', '0.14'],
    ['tides.md#0', '0.09'],
  ]);
});

test('a reason that is not known is shown as it is', () => {
  const [group] = leftOutGroups([{ origin: 'x', reason: 'odd' }]);
  expect(group?.sentence).toContain('odd');
});

test('names without the place of their declaration', () => {
  expect(shortName('context_variables.region')).toBe('region');
  expect(shortName('context[1] from_retrieval(library): bees.md#1')).toBe('bees.md#1');
});

test('a group says in a sentence what was left out, and by how much', () => {
  const scores = [0.69, 0.641, 0.51];
  const [found] = leftOutGroups(
    scores.map((score, n) => ({ ...below(`${n}`, 0), detail: `score ${score} is below 0.7` })),
  );
  expect(found?.sentence).toBe('3 search results were below 0.70 (0.69, 0.64, 0.51).');
  const origin = 'context[0] from_provider(shelf): art-4';
  const [large] = leftOutGroups([{ origin, reason: 'over_budget', detail: '612 tokens, 90 free' }]);
  expect(large?.sentence).toBe('1 artifact did not fit: 612 tokens, 90 free.');
});

test('two thresholds are two groups', () => {
  const other = { ...below('tides.md#0', 0.6), detail: 'score 0.6 is below 0.7' };
  const groups = leftOutGroups([below('bees.md#1', 0.14), other]);
  expect(groups.map((each) => each.threshold)).toEqual([0.2, 0.7]);
});

test('why one thing was left out', () => {
  expect(whyOut(below('bees.md#1', 0.14))).toBe('its score 0.14 was below 0.20');
  expect(whyOut({ origin: 'x', reason: 'filtered', detail: 'beyond top_k=2' })).toBe(
    'beyond top_k=2',
  );
  expect(whyOut({ origin: 'x', reason: 'over_budget', detail: '71 tokens, 9 free' })).toContain(
    '71',
  );
});
