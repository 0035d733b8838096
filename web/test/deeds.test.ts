import { expect, test } from 'vitest';

import events from './fixtures/events.json';
import type { LogEvent } from '../src/api/events';
import { between, makeDeeds } from '../src/chat/deeds';

const folded = (given: readonly unknown[]) => {
  const fold = makeDeeds();
  for (const each of given) fold.push(each as LogEvent);
  return fold.value();
};

test('variables that changed are told in the order of the log', () => {
  const deeds = folded(events);
  expect(deeds.map((each) => each.words)).toContain('interview_complete became true');
});

test('what a retry voided is not told', () => {
  const called = { seq: 5, kind: 'tool.called', data: { agent: 'A', tool: 'save', turn: 1 } };
  expect(folded([called])).toEqual([{ seq: 5, words: 'A called save' }]);
  expect(folded([called, { seq: 9, kind: 'run.retried', data: { voided: [[4, 8]] } }])).toEqual([]);
});

test('deeds stand before the message that follows them', () => {
  const deeds = [3, 5, 6, 20].map((seq) => ({ seq, words: String(seq) }));
  const found = between(deeds, [{ seq: 4 }, { seq: 10 }]);
  expect(found.map((each) => each.map((deed) => deed.seq))).toEqual([[3], [5, 6], [20]]);
});
