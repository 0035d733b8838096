import { expect, test } from 'vitest';

import { money, unpriced } from '../src/shared/cost';

test.each([
  [{ dollars: 1234.5 }, '$1,234.50'],
  [{ dollars: 0.25 }, '$0.25'],
  [{ dollars: 0.00042 }, '$0.00042'],
  [{ dollars: 0 }, '$0.00'],
  [{ dollars: 2.5, unpriced: ['mystery'] }, 'at least $2.50'],
  [{ dollars: null, unpriced: ['mystery'] }, 'unknown'],
])('%j is %s', (cost, words) => {
  expect(money(cost)).toBe(words);
});

test('models without a price are named', () => {
  expect(unpriced({ dollars: null, unpriced: ['a', 'b'] })).toBe('No price for a and b');
  expect(unpriced({ dollars: 1 })).toBe('');
});
