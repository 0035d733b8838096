import { useLetters } from '../shared/keys';
import { Modal } from '../shared/Modal';

const KEYS: [string[], string][] = [
  [['←', '→'], 'the turn before, the turn after'],
  [['⇧ ←', '⇧ →'], 'the same agent’s turn before, and after'],
  [['j', 'k'], 'the next piece, the piece before'],
  [['Enter'], 'the card of the piece'],
  [['d'], 'compare with the agent’s previous turn'],
  [['/'], 'find a sentence in every prompt'],
  [['Esc'], 'close what is open'],
  [['?'], 'these keys'],
];

export function KeysHelp({ close }: { close: () => void }) {
  const [work, choose] = useLetters();
  return (
    <Modal title="Keys" close={close}>
      <dl className="keys">
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label className="letters">
        <input type="checkbox" checked={work} onChange={(event) => choose(event.target.checked)} />
        Single letters and signs are keys
      </label>
      <button type="button" className="button" onClick={close}>
        Close
      </button>
    </Modal>
  );
}
