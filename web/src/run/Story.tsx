/** Why a variable has its value: where it is from, and each change with its cause. */

import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';

import { api } from '../api/client';
import { counted, preview } from '../shared/format';

export function Story({ run, name, at }: { run: string; name: string; at: number }) {
  const { data, error } = useQuery({
    queryKey: ['variable', run, name, at],
    queryFn: () => api.variable(run, name, at),
    staleTime: Infinity,
  });
  if (error !== null) return <p className="problem">{error.message}</p>;
  if (data === undefined) return <p className="soft story">Reading …</p>;
  const readers = new Set(data.conditions.map((each) => `${each.source} ${each.rule}`)).size;
  return (
    <div className="story">
      {data.description !== '' && <p>{data.description}</p>}
      <ol>
        <li>
          At first <code>{preview(data.first)}</code>, from its source {data.source || 'elsewhere'}
          {data.place === '' ? '' : ` (${data.place})`}
          {data.defaulted ? ', by default' : ''}.
        </li>
        {data.changes.map((change) => (
          <li key={change.seq}>
            <code>{change.removed === true ? 'removed' : preview(change.value)}</code> by{' '}
            {change.writer} (
            <Link href={`/runs/${run}/timeline?at=${change.seq}`}>event {change.seq}</Link>)
            {change.causes[0] !== undefined && <>, because {change.causes[0].says}</>}.
          </li>
        ))}
        {data.refused.map((each) => (
          <li key={each.seq}>
            A write by {each.writer} was refused: {each.reason} (
            <Link href={`/runs/${run}/timeline?at=${each.seq}`}>event {each.seq}</Link>).
          </li>
        ))}
      </ol>
      <p className="soft">
        {counted(data.frames.length, 'prompt')} showed it, {counted(readers, 'rule')} read it.
      </p>
    </div>
  );
}
