// Ways to take text out of the page.

import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../text";

/** A button that copies text and reports the outcome. */
export function Copy({ text, disabled }: { text: () => string; disabled?: boolean }) {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    const timer = outcome && setTimeout(() => setOutcome(""), 3000);
    return () => clearTimeout(timer || undefined);
  }, [outcome]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setOutcome("Copied");
    } catch (e) {
      setOutcome(`Cannot copy: ${messageOf(e)}`);
    }
  };
  return (
    <span>
      <button type="button" onClick={copy} disabled={disabled}>
        Copy
      </button>{" "}
      <span class="soft" role="status">
        {outcome}
      </span>
    </span>
  );
}

/** A link that saves text as a file. */
export function Download({ name, text }: { name: string; text: string }) {
  return (
    <a download={name} href={`data:text/plain;charset=utf-8,${encodeURIComponent(text)}`} class="button">
      Download
    </a>
  );
}
