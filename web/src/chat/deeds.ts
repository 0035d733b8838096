/** What agents did beside talking, folded from the log of a run: tools, and variables that changed. */

import type { LogEvent } from '../api/events';
import type { Fold } from '../api/log';
import { preview } from '../shared/format';

export interface Deed {
  seq: number;
  /** As in `InterviewAgent called save_plan` or `interview_complete became true`. */
  words: string;
}

interface Data {
  agent?: string;
  tool?: string;
  name?: string;
  value?: unknown;
  removed?: boolean;
  voided?: [number, number][];
}

class DeedsFold implements Fold<readonly Deed[]> {
  private found: Deed[] = [];

  push(event: LogEvent): void {
    const data = event.data as Data;
    for (const [first, last] of data.voided ?? []) {
      this.found = this.found.filter((each) => each.seq < first || each.seq > last);
    }
    const words = wordsOf(event.kind, data);
    if (words !== null) this.found.push({ seq: event.seq, words });
  }

  value(): readonly Deed[] {
    return this.found.slice();
  }
}

function wordsOf(kind: string, data: Data): string | null {
  switch (kind) {
    case 'tool.called':
      return `${data.agent ?? ''} called ${data.tool ?? ''}`;
    case 'tool.failed':
      return `${data.tool ?? ''} failed`;
    case 'context.changed':
      return data.removed === true
        ? `${data.name ?? ''} lost its value`
        : `${data.name ?? ''} became ${preview(data.value, 60)}`;
    default:
      return null;
  }
}

export const makeDeeds = (): Fold<readonly Deed[]> => new DeedsFold();

/** The deeds before each of some messages, by their positions, and those after the last. */
export function between(deeds: readonly Deed[], messages: readonly { seq: number }[]): Deed[][] {
  const found: Deed[][] = messages.map(() => []);
  const after: Deed[] = [];
  let at = 0;
  for (const deed of deeds) {
    while (at < messages.length && (messages[at]?.seq ?? 0) < deed.seq) at += 1;
    (found[at] ?? after).push(deed);
  }
  return [...found, after];
}
