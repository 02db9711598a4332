import { printable } from "../text";

/** An error with its text. The text may come from data, so it is shown as text only. */
export function ErrorBox({ title, text }: { title: string; text?: string }) {
  return (
    <div class="box bad" role="alert">
      <strong>{title}</strong>
      {text && <pre>{printable(text)}</pre>}
    </div>
  );
}

export function Loading() {
  return <p class="soft">Loading…</p>;
}
