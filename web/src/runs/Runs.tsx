export default function Runs() {
  return <p className="note">Runs</p>;
}
