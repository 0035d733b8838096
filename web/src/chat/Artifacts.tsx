/** What a run made, beside its chat: each artifact with who made it, and why. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';

import { api } from '../api/client';
import { folded, useRunLog } from '../api/log';
import { clock } from '../shared/format';
import { Fields } from './Fields';
import { makeArtifacts, type MadeArtifact } from './artifacts';

interface ArtifactsProps {
  run: string;
  mayExplain: boolean;
  /** How many events of the chat there are: with each, there may be further artifacts. */
  events: number;
}

export function Artifacts({ run, mayExplain, events }: ArtifactsProps) {
  return mayExplain ? (
    <RecordedArtifacts run={run} />
  ) : (
    <VisibleArtifacts run={run} events={events} />
  );
}

/** All artifacts of the log, with the way to their explanations. */
function RecordedArtifacts({ run }: { run: string }) {
  const found = folded(useRunLog(run).events, makeArtifacts);
  return (
    <Column>
      {found.map((made) => (
        <Artifact key={made.seq} artifact={made.artifact} isPublished={made.isPublished}>
          <p className="small under">
            {made.turn > 0 && <Link href={`/runs/${run}/context?turn=${made.turn}`}>Why?</Link>}
            <Link href={`/runs/${run}/timeline?at=${made.seq}`}>event {made.seq}</Link>
          </p>
        </Artifact>
      ))}
    </Column>
  );
}

/** What the board shows to its reader. */
function VisibleArtifacts({ run, events }: { run: string; events: number }) {
  const { data } = useQuery({
    queryKey: ['artifacts', run, events],
    queryFn: () => api.artifacts(run),
    placeholderData: keepPreviousData,
    retry: false,
  });
  return (
    <Column>
      {(data?.items ?? []).map((artifact) => (
        <Artifact key={artifact.id} artifact={artifact} isPublished />
      ))}
    </Column>
  );
}

function Column({ children }: { children: React.ReactElement[] }) {
  if (children.length === 0) return null;
  return (
    <aside className="artifacts" aria-labelledby="artifacts">
      <h2 id="artifacts">
        Artifacts <span className="faint numbers">{children.length}</span>
      </h2>
      <ul>
        {children.map((each) => (
          <li key={each.key}>{each}</li>
        ))}
      </ul>
    </aside>
  );
}

interface ArtifactProps {
  artifact: MadeArtifact['artifact'];
  isPublished: boolean;
  children?: React.ReactNode;
}

function Artifact({ artifact, isPublished, children }: ArtifactProps) {
  const type = artifact.type.split('.').at(-1) ?? artifact.type;
  return (
    <details open>
      <summary>
        <b className="cut" title={artifact.type}>
          {type}
        </b>
        <span className="soft small cut">
          by {artifact.produced_by}, {clock(artifact.created_at)}
          {isPublished ? '' : ', not published'}
        </span>
      </summary>
      <Fields value={artifact.payload} />
      {children}
    </details>
  );
}
