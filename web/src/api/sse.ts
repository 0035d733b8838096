/** Server-sent events over `fetch`, so that a stream can begin at any position. */

import { problemOf, unreachable } from './problems';
import { credentials } from './session';

export interface Sent {
  event: string;
  id: string;
  data: string;
}

/** Cuts a stream of text into server-sent events. */
export class SseParser {
  private rest = '';
  private event = '';
  private id = '';
  private data: string[] = [];

  /** The events that are complete with this piece of the stream. */
  push(chunk: string): Sent[] {
    const lines = (this.rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? '';
    const sent: Sent[] = [];
    for (const line of lines) {
      if (line === '') this.dispatch(sent);
      else this.field(line);
    }
    return sent;
  }

  private dispatch(sent: Sent[]): void {
    if (this.data.length > 0 || this.event !== '') {
      sent.push({ event: this.event || 'message', id: this.id, data: this.data.join('\n') });
    }
    this.event = '';
    this.id = '';
    this.data = [];
  }

  private field(line: string): void {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.event = value;
    else if (name === 'id') this.id = value;
    else if (name === 'data') this.data.push(value);
  }
}

/** Read a stream to its end, or until it is aborted; `receive` gets the events of each chunk, and
 * `opened` is called before. */
export async function readStream(
  url: string,
  receive: (sent: Sent[]) => void,
  signal: AbortSignal,
  opened: () => void = () => undefined,
): Promise<void> {
  const response = await fetch(url, {
    signal,
    credentials: 'same-origin',
    headers: { Accept: 'text/event-stream', ...credentials() },
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw unreachable();
  });
  if (!response.ok) throw await problemOf(response);
  if (response.status === 204 || response.body === null) {
    receive([{ event: 'end', id: '', data: '{}' }]); // nothing is left to give
    return;
  }
  opened();
  const parser = new SseParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const sent = parser.push(value);
    if (sent.length > 0) receive(sent);
  }
}
