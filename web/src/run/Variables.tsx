import type { RunViewProps } from '../shell/RunPage';

export default function Variables({ run }: RunViewProps) {
  return <p className="note">{run}</p>;
}
