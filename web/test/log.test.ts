import { expect, test } from 'vitest';

import { SseParser } from '../src/api/sse';
import { parsePlace, writePlace } from '../src/context/place';
import { counted, duration, listed, preview } from '../src/shared/format';

test('events are cut out of chunks, wherever those end', () => {
  const text =
    'retry: 2000\n\n: ping\n\nid: 7\ndata: {"a":\ndata: 1}\n\nevent: end\r\ndata: {}\r\n\r\n';
  for (const size of [1, 3, 1000]) {
    const parser = new SseParser();
    const sent = [];
    for (let at = 0; at < text.length; at += size)
      sent.push(...parser.push(text.slice(at, at + size)));
    expect(sent).toEqual([
      { event: 'message', id: '7', data: '{"a":\n1}' },
      { event: 'end', id: '', data: '{}' },
    ]);
  }
});

test('an address survives being read and written', () => {
  for (const text of [
    'turn=7&call=2&piece=event+65',
    'turn=7&against=previous',
    'turn=7&against=run%3Aa%3A5&find=two+words',
  ]) {
    expect(writePlace(parsePlace(text))).toBe(text);
  }
  expect(parsePlace('turn=x&call=-1&against=no')).toEqual({
    turn: null,
    call: 1,
    piece: null,
    against: null,
    find: null,
  });
});

test('numbers and values as people read them', () => {
  expect([counted(1, 'piece'), counted(4812, 'token')]).toEqual(['1 piece', '4,812 tokens']);
  expect([0.0004, 0.25, 4.2, 75, 600, 90_000].map(duration)).toEqual([
    '< 1 ms',
    '250 ms',
    '4.2 s',
    '75 s',
    '10 min',
    '25 h',
  ]);
  expect(listed(['a', 'b', 'c'])).toBe('a, b and c');
  expect(preview({ a: ['x'.repeat(200)] }, 12)).toHaveLength(12);
});
