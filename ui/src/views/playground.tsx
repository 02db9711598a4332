// A copy of a script in an editor, which processes records after each keystroke.

import { useEffect, useState } from "preact/hooks";
import { control, getJSON, type Node, nodePath, request, type TapEvent } from "../api";
import { Editor } from "../parts/editor";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre, useScrolling } from "../parts/message";
import { plural, printable } from "../text";
import { EventLine } from "./live";

interface Start {
  file: string;
  text: string;
  metrics: boolean;
  logs: boolean;
  input: string;
}

interface Result {
  records: number;
  seconds: number;
  events: TapEvent[];
  errors?: { file?: string; line?: number; message: string }[];
  log?: string;
}

/** How long the user must pause before the script runs. */
const pause = 80;

export function Playground({ node }: { node: Node }) {
  const { value: start, error } = useLoad(
    async (signal): Promise<Start> => ({
      ...(await getJSON<Omit<Start, "input">>(control(node.id, "/playground"), signal)),
      input: await (await request(`${nodePath("/api/v0/batch/", node.id)}?of=in&rows=100`, { signal })).text(),
    }),
    [node.id],
  );
  if (error) return <ErrorBox title="Cannot load the script." text={error.message} />;
  return start ? <Bench key={node.id} node={node} start={start} /> : <Loading />;
}

function Bench({ node, start }: { node: Node; start: Start }) {
  const [text, setText] = useState(start.text);
  const [input, setInput] = useState(start.input);
  const [signal, setSignal] = useState(start.metrics ? "metrics" : "logs");
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const res = await request(control(node.id, "/playground"), {
          method: "POST",
          body: JSON.stringify({ text, [signal]: input }),
          signal: abort.signal,
        });
        setResult((await res.json()) as Result);
        setError("");
      } catch (e) {
        if (!abort.signal.aborted) setError(e instanceof Error ? e.message : String(e));
      }
    }, pause);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, input, signal]);
  const errors = result?.errors ?? [];
  return (
    <>
      <p class="soft">
        The script has the arguments of the node and a copy of its state. Nothing that it does has an effect: it sends
        nothing, and requests get recent answers of the node.
      </p>
      {error && <ErrorBox title="Cannot run the script." text={error} />}
      <div class="bench">
        <section aria-labelledby="bench-script">
          <div class="bar">
            <h2 id="bench-script">{printable(start.file)}</h2>
            <button type="button" onClick={() => navigator.clipboard.writeText(text)}>
              Copy
            </button>
            <a
              download={start.file.split("/").pop()}
              href={`data:text/plain;charset=utf-8,${encodeURIComponent(text)}`}
              class="button"
            >
              Download
            </a>
          </div>
          <Editor
            file={start.file}
            text={start.text}
            label="Script"
            errors={errors.filter((e) => !e.file || e.file === start.file)}
            onChange={setText}
          />
          <div class="bar">
            <h2 id="bench-input">Input</h2>
            {start.metrics && start.logs && (
              <select aria-label="Signal" value={signal} onChange={(e) => setSignal(e.currentTarget.value)}>
                <option value="metrics">metrics</option>
                <option value="logs">log lines</option>
              </select>
            )}
            <span class="soft">The last batch of the node, or what you paste.</span>
          </div>
          <textarea
            aria-labelledby="bench-input"
            spellcheck={false}
            rows={10}
            value={input}
            onInput={(e) => setInput(e.currentTarget.value)}
          />
        </section>
        <section aria-labelledby="bench-output" aria-live="polite">
          <div class="bar">
            <h2 id="bench-output">Difference</h2>
            {result && result.records > 0 && (
              <span class="soft">
                {plural(result.records, "record")}, {((result.seconds / result.records) * 1e6).toFixed(1)} µs each
              </span>
            )}
          </div>
          {errors.map((e, i) => (
            <div key={i} class="box bad">
              <strong>
                {e.file ? `${printable(e.file)}${e.line ? `:${e.line}` : ""}` : "The script did not process the input."}
              </strong>
              <Pre>{printable(e.message)}</Pre>
            </div>
          ))}
          {result && (result.events.length > 0 || errors.length === 0) && <Events events={result.events} />}
          {result?.log && (
            <>
              <h3>Log</h3>
              <Pre>{printable(result.log, 20_000)}</Pre>
            </>
          )}
        </section>
      </div>
    </>
  );
}

function Events({ events }: { events: TapEvent[] }) {
  const list = useScrolling<HTMLOListElement>();
  if (events.length === 0) return <p class="soft">The script leaves no records and drops none.</p>;
  return (
    <ol ref={list} class="live" aria-label="Records">
      {events.map((e, i) => (
        <li key={i} class={e.kind}>
          <EventLine e={e} />
        </li>
      ))}
    </ol>
  );
}
