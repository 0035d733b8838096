import { expect, test } from 'vitest';

import type { RunSummary } from '../src/api/explanations';
import { withMoved } from '../src/runs/live';

const run = (id: string, events: number): RunSummary => ({
  run: id,
  workflow: 'Interview',
  status: 'unfinished',
  tenant: 'local',
  user: 'local',
  started: '2026-01-01T00:00:00Z',
  latest: '2026-01-01T00:00:00Z',
  events,
  reason: '',
  collected: null,
  wanted: null,
  continues: '',
});

test('a run that moved is put in its place, on any page', () => {
  const pages = [
    { items: [run('c', 1), run('b', 2)], next: 'b' },
    { items: [run('a', 3)], next: null },
  ];
  const after = withMoved({ pages, pageParams: [undefined, 'b'] }, [run('a', 9)]);
  expect(after?.pages.map((page) => page.items.map((each) => each.events))).toEqual([[1, 2], [9]]);
  expect(after?.pages.map((page) => page.next)).toEqual(['b', null]);
});

test('a list that was not read yet stays so', () => {
  expect(withMoved(undefined, [run('a', 1)])).toBeUndefined();
});
