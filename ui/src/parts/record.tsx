// Records live calls of a script and shows them as a test, to copy, download or write to disk.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Node, nodePath, request } from "../api";
import { messageOf, plural, printable } from "../text";
import { Copy, Download } from "./export";
import { ErrorBox, Pre } from "./message";
import { WriteToDisk } from "./write";

/** A test of /api/v0/recording. */
export interface RecordedTest {
  name: string;
  text: string;
  calls: number;
  differ?: number[];
  notes?: string[];
}

/** The form that records a test. where selects records of the input. */
export function RecordTest({ node, where }: { node: Node; where: string }) {
  const [calls, setCalls] = useState(1);
  const [seconds, setSeconds] = useState(10);
  const [mask, setMask] = useState("");
  const [test, setTest] = useState<RecordedTest | null>(null);
  const [error, setError] = useState("");
  const [recording, setRecording] = useState<AbortController | null>(null);
  const running = useRef<AbortController | null>(null);
  running.current = recording;
  useEffect(() => () => running.current?.abort(), []);
  const record = async () => {
    const abort = new AbortController();
    setRecording(abort);
    setTest(null);
    setError("");
    try {
      const res = await request(nodePath("/api/v0/recording/", node.id), {
        method: "POST",
        body: JSON.stringify({ calls, seconds, where, mask: mask.split(/[\s,]+/).filter(Boolean) }),
        signal: abort.signal,
      });
      setTest((await res.json()) as RecordedTest);
    } catch (e) {
      if (!abort.signal.aborted) setError(messageOf(e));
    }
    setRecording(null);
  };
  return (
    <section class="box" aria-labelledby="record-title">
      <h2 id="record-title">Record as test</h2>
      <p class="soft">
        weir records the next calls of the script: their input, the state, and answers from outside. The test sends the
        same input to the script and expects the same output. Secrets of the config are masked; read the test before you
        commit it.
        {where && " Only records that match the expression above are recorded."}
      </p>
      <form
        class="bar"
        onSubmit={(e) => {
          e.preventDefault();
          record();
        }}
      >
        <Count label="Calls" value={calls} most={100} set={setCalls} />
        <Count label="Within seconds" value={seconds} most={60} set={setSeconds} />
        <label class="grow">
          Labels to mask{" "}
          <input
            type="text"
            value={mask}
            spellcheck={false}
            placeholder="pod, instance"
            onInput={(e) => setMask(e.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={recording !== null}>
          Record
        </button>
        {recording && (
          <button type="button" onClick={() => recording.abort()}>
            Cancel
          </button>
        )}
      </form>
      <p role="status" class="soft">
        {recording && `Recording ${plural(calls, "call")}, for at most ${plural(seconds, "second")}…`}
      </p>
      {error && <ErrorBox title="No test was recorded." text={error} />}
      {test && <TestFile key={test.text} node={node} test={test} />}
    </section>
  );
}

function Count({ label, value, most, set }: { label: string; value: number; most: number; set: (n: number) => void }) {
  return (
    <label>
      {label}{" "}
      <input
        type="number"
        min={1}
        max={most}
        required
        value={value}
        onInput={(e) => set(e.currentTarget.valueAsNumber)}
      />
    </label>
  );
}

/** A test of a script, to copy, download or write to disk. */
export function TestFile({ node, test }: { node: Node; test: RecordedTest }) {
  const [name, setName] = useState(test.name);
  return (
    <>
      {test.differ && (
        <p class="box warn">
          The running node sent a different output in these calls: {test.differ.join(", ")}. The test expects the output
          that the script had when the calls were repeated. Comments in the test name possible reasons.
        </p>
      )}
      {test.notes?.map((n) => (
        <p key={n} class="soft">
          {printable(n)}
        </p>
      ))}
      <div class="bar">
        <label class="grow">
          {plural(test.calls, "call")} in{" "}
          <input
            type="text"
            aria-label="File of the test"
            value={name}
            spellcheck={false}
            onInput={(e) => setName(e.currentTarget.value.trim())}
          />
        </label>
        <Copy text={() => test.text} />
        <Download name={name} text={test.text} />
        <WriteToDisk key={name} node={node} start="" text={test.text} test={name} />
      </div>
      <Pre class="testfile">{printable(test.text, 300_000)}</Pre>
    </>
  );
}
