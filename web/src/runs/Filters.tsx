/** Search and filters of the list of runs. */

import { useQuery } from '@tanstack/react-query';

import { api, OPEN } from '../api/client';
import type { Listing } from './filters';

const STATUSES = {
  [OPEN]: 'not ended',
  unfinished: 'unfinished',
  waiting: 'waiting',
  limited: 'waiting for limit',
  collecting: 'collecting',
  stranded: 'stranded',
  finished: 'finished',
  failed: 'failed',
  cancelled: 'cancelled',
  broken: 'broken',
};
// The thumbs of a chat are scores of 1 and 0.
const THUMBS = { 'thumbs>0.5': 'thumbs up', 'thumbs<0.5': 'thumbs down' };
const AGES: Record<string, string> = {
  '1h': 'the last hour',
  '1d': 'the last day',
  '7d': 'the last week',
};

interface Props {
  listing: Listing;
  set: (next: Listing) => void;
}

export function Filters({ listing, set }: Props) {
  const { data } = useQuery({ queryKey: ['workflows'], queryFn: api.workflows });
  const names = (data?.items ?? []).map((each) => each.name);
  return (
    <div className="filters" role="search">
      <input
        className="field"
        type="search"
        aria-label="Search runs"
        placeholder="Search"
        value={listing.find ?? ''}
        onChange={(event) => set({ find: event.target.value })}
      />
      <Choice
        label="Workflow"
        all="All workflows"
        value={listing.workflow}
        options={Object.fromEntries(names.map((each) => [each, each]))}
        choose={(workflow) => set({ workflow })}
      />
      <Choice
        label="Status"
        all="Every status"
        value={listing.status}
        options={STATUSES}
        choose={(status) => set({ status })}
      />
      <Choice
        label="Time"
        all="Any time"
        value={listing.since}
        options={AGES}
        choose={(since) => set({ since })}
      />
      <Choice
        label="Feedback"
        all="Any feedback"
        value={listing.feedback}
        options={THUMBS}
        choose={(feedback) => set({ feedback })}
      />
      <input
        className="field user"
        aria-label="User"
        placeholder="Any user"
        value={listing.user ?? ''}
        onChange={(event) => set({ user: event.target.value })}
      />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  all: string;
  value: string | undefined;
  options: Record<string, string>;
  choose: (value: string) => void;
}

/** A choice, also of what only the address names. */
function Choice({ label, all, value, options, choose }: ChoiceProps) {
  const known = value === undefined || value in options ? options : { ...options, [value]: value };
  return (
    <select
      className="field"
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => choose(event.target.value)}
    >
      <option value="">{all}</option>
      {Object.entries(known).map(([name, words]) => (
        <option key={name} value={name}>
          {words}
        </option>
      ))}
    </select>
  );
}
