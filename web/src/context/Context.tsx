import type { RunViewProps } from '../shell/RunPage';

export default function Context({ run }: RunViewProps) {
  return <p className="note">{run}</p>;
}
