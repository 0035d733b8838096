import { expect, test } from 'vitest';

import type { LogEvent } from '../src/api/events';
import type { TurnExplained } from '../src/api/explanations';
import { folded } from '../src/api/log';
import { makeFrames } from '../src/context/frames';
import { nameOf, variableOf } from '../src/context/names';
import { blocksOf, callOf, firstToSee, isNew } from '../src/context/pieces';
import events from './fixtures/events.json';
import explained from './fixtures/turn.json';

const turn = explained as unknown as TurnExplained;
const { rows } = folded(events as unknown as LogEvent[], makeFrames);

test('the pieces of a call are its prompt: no token is lost', () => {
  const { pieces, number, of } = callOf(turn, 1);
  expect([number, of]).toEqual([1, 1]);
  expect(pieces).toHaveLength(14);
  expect(pieces.reduce((sum, each) => sum + each.tokens, 0)).toBe(turn.tokens);
  expect(new Set(pieces.map((each) => each.key)).size).toBe(14);
});

test('a call that does not exist is the nearest one', () => {
  expect(callOf(turn, 9).number).toBe(1);
});

test('the largest new piece is seen first', () => {
  const { pieces } = callOf(turn, 1);
  const before = rows[4];
  expect(pieces.filter((each) => isNew(each, before)).map((each) => each.key)).toEqual([
    'event 53',
    'event 59',
  ]);
  expect(firstToSee(pieces, before)?.key).toBe('event 53');
  const large = pieces.map((each, n) => (n === 0 ? { ...each, tokens: 999 } : each));
  expect(firstToSee(large, before)?.key).toBe('event 53');
  expect(firstToSee(pieces, undefined)?.tokens).toBe(Math.max(...pieces.map((p) => p.tokens)));
});

test('pieces have names', () => {
  const { pieces } = callOf(turn, 1);
  expect(pieces.slice(0, 5).map(nameOf)).toEqual([
    'Instructions of PlanArchitect',
    'Heading of the variables',
    'product_tier',
    'interview_complete',
    'workflow',
  ]);
  expect(pieces.map(variableOf).filter(Boolean)).toEqual(['product_tier', 'interview_complete']);
});

test('small pieces share a block of the minimap, and every piece is in one', () => {
  const { pieces } = callOf(turn, 1);
  const blocks = blocksOf(pieces, 40);
  expect(blocks.length).toBeLessThan(pieces.length);
  expect(blocks[0]?.from).toBe(0);
  expect(blocks.at(-1)?.to).toBe(pieces.length - 1);
  expect(blocks.reduce((sum, each) => sum + each.tokens, 0)).toBe(turn.tokens);
  expect(blocksOf(pieces, 4000)).toHaveLength(pieces.length);
});

test('an exchange and what the engine added are pieces of a later call', () => {
  const second = structuredClone(turn);
  const [call] = second.steps;
  if (call?.type !== 'model call') throw new Error('the fixture has changed');
  second.exchanges = [
    { text: '', calls: [{ tool: 'look', arguments: {} }], results: [{ value: 7 }] },
  ];
  const added = { type: 'added by engine' as const, seq: 1, texts: ['Go on.'] };
  second.steps = [call, { ...call, given: 1, within: [added] }];
  const { pieces, of } = callOf(second, 2);
  expect(of).toBe(2);
  expect(pieces.slice(-2).map((each) => [each.letter, each.text])).toEqual([
    ['X', 'look {} → 7'],
    ['E', 'Go on.'],
  ]);
});
