export default function Start() {
  return <p className="note">Start</p>;
}
