import type { RunViewProps } from '../shell/RunPage';

export default function TimelineView({ run }: RunViewProps) {
  return <p className="note">{run}</p>;
}
