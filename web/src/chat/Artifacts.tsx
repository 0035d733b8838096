/** What a run made, beside its chat: each artifact with who made it, and why. */

import { Link } from 'wouter';

import { folded, useRunLog } from '../api/log';
import { clock } from '../shared/format';
import { Fields } from './Fields';
import { makeArtifacts, type MadeArtifact } from './artifacts';

export function Artifacts({ run }: { run: string }) {
  const found = folded(useRunLog(run).events, makeArtifacts);
  if (found.length === 0) return null;
  return (
    <aside className="artifacts" aria-labelledby="artifacts">
      <h2 id="artifacts">
        Artifacts <span className="faint numbers">{found.length}</span>
      </h2>
      <ul>
        {found.map((each) => (
          <li key={each.seq}>
            <Artifact run={run} made={each} />
          </li>
        ))}
      </ul>
    </aside>
  );
}

function Artifact({ run, made }: { run: string; made: MadeArtifact }) {
  const { artifact, turn, seq, isPublished } = made;
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
      <p className="small under">
        {turn > 0 && <Link href={`/runs/${run}/context?turn=${turn}`}>Why?</Link>}
        <Link href={`/runs/${run}/timeline?at=${seq}`}>event {seq}</Link>
      </p>
    </details>
  );
}
