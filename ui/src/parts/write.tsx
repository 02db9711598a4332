// The button that writes the script of a node or a test of it to disk, where the block ui allows it.

import { useState } from "preact/hooks";
import { APIError, control, type Node, request } from "../api";
import { refresh } from "../status";
import { messageOf, printable } from "../text";
import { useAllowed } from "./allowed";
import { ErrorBox, Pre } from "./message";

interface Conflict {
  message: string;
  text: string;
}

/**
 * Writes text to the file of the script, which had the text of start when it was read. With test, it
 * writes the test with this name in the folder of the script; without start, the file may not exist.
 */
export function WriteToDisk({ node, start, text, test }: { node: Node; start: string; text: string; test?: string }) {
  const { edit } = useAllowed();
  const [known, setKnown] = useState(start);
  const [busy, setBusy] = useState(false);
  const [written, setWritten] = useState(false);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [error, setError] = useState("");
  if (!edit || node.sources.length === 0) return null;
  const write = async (replaces: string) => {
    setBusy(true);
    setWritten(false);
    setError("");
    setConflict(null);
    try {
      await request(control(node.id, "/source"), { method: "PUT", body: JSON.stringify({ text, replaces, test }) });
      setKnown(text);
      setWritten(true);
      await refresh();
    } catch (e) {
      const found = e instanceof APIError && e.status === 409 ? parse(e.message) : null;
      if (found) setConflict(found);
      else setError(messageOf(e));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={busy || text === known} onClick={() => write(known)}>
        Write to disk
      </button>
      <span class="soft" role="status">
        {written &&
          text === known &&
          (test === undefined ? "Written. weir tests and reloads the script." : "Written. 'weir test' runs it.")}
      </span>
      {error && <ErrorBox title="The file was not written." text={error} />}
      {conflict && (
        <div class="box bad" role="alert">
          <strong>The file was not written: {printable(conflict.message)}.</strong>
          {conflict.text && (
            <>
              <p>Its present text:</p>
              <Pre>{printable(conflict.text, 100_000)}</Pre>
              <button type="button" disabled={busy} onClick={() => write(conflict.text)}>
                Replace this text
              </button>{" "}
            </>
          )}
          <button type="button" onClick={() => setConflict(null)}>
            Keep the file
          </button>
        </div>
      )}
    </>
  );
}

function parse(text: string): Conflict | null {
  try {
    return JSON.parse(text) as Conflict;
  } catch {
    return null; // another conflict, as text
  }
}
