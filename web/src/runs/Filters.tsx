/** Search and filters of the list of runs. */

import { useQuery } from '@tanstack/react-query';

import { api } from '../api/client';
import type { Listing } from './filters';

const STATUSES = ['unfinished', 'waiting', 'collecting', 'finished', 'failed', 'cancelled'];
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
  const known =
    listing.workflow === undefined || names.includes(listing.workflow)
      ? names
      : [...names, listing.workflow];
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
        options={Object.fromEntries(known.map((each) => [each, each]))}
        choose={(workflow) => set({ workflow })}
      />
      <Choice
        label="Status"
        all="Every status"
        value={listing.status}
        options={Object.fromEntries(STATUSES.map((each) => [each, each]))}
        choose={(status) => set({ status })}
      />
      <Choice
        label="Time"
        all="Any time"
        value={listing.since}
        options={AGES}
        choose={(since) => set({ since })}
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

function Choice({ label, all, value, options, choose }: ChoiceProps) {
  return (
    <select
      className="field"
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => choose(event.target.value)}
    >
      <option value="">{all}</option>
      {Object.entries(options).map(([name, words]) => (
        <option key={name} value={name}>
          {words}
        </option>
      ))}
    </select>
  );
}
