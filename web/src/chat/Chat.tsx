import type { RunViewProps } from '../shell/RunPage';

export default function Chat({ run }: RunViewProps) {
  return <p className="note">{run}</p>;
}
