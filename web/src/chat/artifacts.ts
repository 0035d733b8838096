/** The artifacts of a run, folded from its log. */

import type { LogEvent } from '../api/events';
import type { Artifact } from '../api/explanations';
import type { Fold } from '../api/log';

export interface MadeArtifact {
  seq: number;
  turn: number;
  artifact: Artifact;
  /** Whether others may take it; one that is not published is for its caller only. */
  isPublished: boolean;
}

interface Data {
  turn?: number;
  artifact?: MadeArtifact['artifact'];
  voided?: [number, number][];
}

class ArtifactsFold implements Fold<readonly MadeArtifact[]> {
  private found: MadeArtifact[] = [];

  push({ kind, seq, data }: LogEvent): void {
    const { artifact, turn, voided } = data as Data;
    for (const [first, last] of voided ?? []) {
      this.found = this.found.filter((each) => each.seq < first || each.seq > last);
    }
    const isPublished = kind === 'artifact.published';
    if (artifact === undefined || !(isPublished || kind === 'artifact.made')) return;
    this.found.push({ seq, turn: turn ?? 0, artifact, isPublished });
  }

  value(): readonly MadeArtifact[] {
    return this.found.slice();
  }
}

export const makeArtifacts = (): Fold<readonly MadeArtifact[]> => new ArtifactsFold();
