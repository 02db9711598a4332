// A copy of a script, or of the block of a node, in an editor. It processes records after each
// keystroke.

import { useEffect, useRef, useState } from "preact/hooks";
import { control, getJSON, type Name, type Node, nodePath, request, type TapEvent } from "../api";
import { Editor } from "../parts/editor";
import { Copy, Download } from "../parts/export";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre, useScrolling } from "../parts/message";
import { type RecordedTest, TestFile } from "../parts/record";
import { WriteToDisk } from "../parts/write";
import { useStatus } from "../status";
import { messageOf, plural, printable } from "../text";
import { EventLine } from "./live";
import { Steps } from "./why";

interface Start {
  file: string;
  text: string;
  /** The text of the file, if weir has not accepted it. */
  disk?: string;
  metrics: boolean;
  logs: boolean;
  targets?: boolean;
  input: string;
  names: Name[];
}

interface Result {
  records: number;
  seconds: number;
  events: TapEvent[];
  errors?: { file?: string; input?: boolean; line?: number; message: string }[];
  log?: string;
}

/** How long a change waits for the result of an earlier one, in ms. It then cancels it. */
const patience = 200;

/** The forms of records that can be pasted. */
const kinds = [
  { name: "metrics", title: "samples" },
  { name: "logs", title: "log lines with labels" },
  { name: "lines", title: "plain log lines" },
  { name: "targets", title: "targets" },
];

/** Scripts have a playground of their own. */
const isScript = (node: Node) => node.version !== "";
const pathOf = (node: Node) =>
  isScript(node) ? control(node.id, "/playground") : nodePath("/api/v0/playground/", node.id);

export function Playground({ node }: { node: Node }) {
  const { value: start, error } = useLoad(
    async (signal): Promise<Start> => {
      const start = await getJSON<Start>(pathOf(node), signal);
      if (!isScript(node)) start.file = `${node.id}.alloy`;
      const of = isScript(node) ? (start.file.endsWith(".lua") ? "lua" : "js") : node.name;
      start.names = (await getJSON<{ names: Name[] }>(nodePath("/api/v0/completions/", of), signal)).names;
      if (!start.targets) start.input = await lastBatch(node, signal);
      return start;
    },
    [node.id],
  );
  if (error) return <ErrorBox title="Cannot load the playground." text={error.message} />;
  return start ? <Bench key={node.id} node={node} start={start} /> : <Loading />;
}

async function lastBatch(node: Node, signal: AbortSignal): Promise<string> {
  return (await request(`${nodePath("/api/v0/batch/", node.id)}?of=in&rows=100`, { signal })).text();
}

function Bench({ node, start }: { node: Node; start: Start }) {
  const [running, setRunning] = useState(start.disk === undefined);
  const began = running ? start.text : (start.disk ?? start.text);
  const [text, setText] = useState(began);
  const [input, setInput] = useState(start.input);
  const [kind, setKind] = useState(firstKind(start, start.input));
  const [mine, setMine] = useState(false); // the user has changed the input
  const [version] = useState(node.version);
  // A node that has just started has its first batch later.
  const { now } = useStatus();
  const waiting = !start.targets && !mine && input === "";
  const { value: batch } = useLoad(
    async (signal) => (waiting ? lastBatch(node, signal) : ""),
    [waiting && Math.floor(now / 2000)],
  );
  useEffect(() => {
    if (!waiting || !batch) return;
    setInput(batch);
    setKind(firstKind(start, batch));
  }, [batch]);
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState("");
  const last = useRef({ abort: new AbortController(), done: Promise.resolve() });
  useEffect(() => {
    let newest = true;
    const run = async (signal: AbortSignal) => {
      try {
        const res = await request(pathOf(node), {
          method: "POST",
          body: JSON.stringify({ text, [kind]: input }),
          signal,
        });
        setResult((await res.json()) as Result);
        setError("");
      } catch (e) {
        if (!signal.aborted) setError(messageOf(e));
      }
    };
    // Without a pause between the keystrokes, a result is shown as well.
    Promise.race([last.current.done, new Promise((wake) => setTimeout(wake, patience))]).then(() => {
      if (!newest) return;
      last.current.abort.abort();
      const abort = new AbortController();
      last.current = { abort, done: run(abort.signal) };
    });
    return () => {
      newest = false;
    };
  }, [text, input, kind]);
  useEffect(() => () => last.current.abort.abort(), []);
  const errors = result?.errors ?? [];
  const what = isScript(node) ? "script" : "block";
  const offered = kinds.filter((k) => accepts(start, k.name));
  return (
    <>
      <p class="soft">
        {isScript(node)
          ? "The script has the arguments of the node and a copy of its state. Nothing that it does has an effect: it sends nothing, and requests get recent answers of the node."
          : "A copy of the node processes the input. It sends nothing, and the node stays as it is."}
      </p>
      {start.disk !== undefined && version === node.version && (
        <div class="box warn">
          {running ? (
            <p>This is the version that the node runs. weir has not accepted the text on disk.</p>
          ) : (
            <p>This is the text on disk, which weir has not accepted. The node runs an older version.</p>
          )}
          {node.health.state === "unhealthy" && <Pre>{printable(node.health.message)}</Pre>}
          <button
            type="button"
            onClick={() => {
              setRunning(!running);
              setText(running ? (start.disk ?? "") : start.text);
            }}
          >
            {running ? "Edit the text on disk" : "Edit the running version"}
          </button>
        </div>
      )}
      {error && <ErrorBox title={`Cannot run the ${what}.`} text={error} />}
      <div class="bench">
        <section aria-labelledby="bench-script">
          <div class="bar">
            <h2 id="bench-script">{printable(start.file)}</h2>
            <Copy text={() => text} />
            <Download name={start.file.split("/").pop() ?? ""} text={text} />
            <WriteToDisk node={node} start={start.disk ?? start.text} text={text} />
          </div>
          <Editor
            key={String(running)}
            file={start.file}
            text={began}
            names={start.names}
            label={isScript(node) ? "Script" : "Block"}
            errors={errors.filter((e) => !e.input && (!e.file || e.file === start.file))}
            onChange={setText}
          />
          <div class="bar">
            <h2 id="bench-input">Input</h2>
            {offered.length > 1 && (
              <select
                aria-label="Form of the input"
                value={kind}
                onChange={(e) => {
                  setKind(e.currentTarget.value);
                  setMine(true);
                }}
              >
                {offered.map((k) => (
                  <option key={k.name} value={k.name}>
                    {k.title}
                  </option>
                ))}
              </select>
            )}
            <span class="soft">
              {start.targets
                ? "Targets of the node, or those that you paste: a JSON object in each line."
                : waiting
                  ? "The first batch of the node, when it arrives, or what you paste."
                  : "The last batch of the node, or what you paste."}
            </span>
          </div>
          <textarea
            aria-labelledby="bench-input"
            spellcheck={false}
            rows={10}
            value={input}
            onInput={(e) => {
              setInput(e.currentTarget.value);
              setMine(true);
            }}
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
              <strong>{errorTitle(e, what)}</strong>
              <Pre>{printable(e.message)}</Pre>
            </div>
          ))}
          {result && (result.events.length > 0 || errors.length === 0) && <Events events={result.events} what={what} />}
          {isScript(node) && (
            <Export key={`${text}\n${kind}\n${input}`} node={node} script={text} kind={kind} input={input} />
          )}
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

/** A button that makes a test from the script, the input and the output of the playground. */
function Export({ node, script, kind, input }: { node: Node; script: string; kind: string; input: string }) {
  const [test, setTest] = useState<RecordedTest | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const write = async () => {
    setBusy(true);
    setError("");
    try {
      const path = nodePath("/api/v0/recording/", node.id);
      const res = await request(path, { method: "POST", body: JSON.stringify({ script, [kind]: input }) });
      setTest((await res.json()) as RecordedTest);
    } catch (e) {
      setError(messageOf(e));
    }
    setBusy(false);
  };
  return (
    <>
      <p>
        <button type="button" disabled={busy || input.trim() === ""} onClick={write}>
          Export as test
        </button>{" "}
        <span class="soft">with this input and the output of the script, without the state of the node</span>
      </p>
      {error && <ErrorBox title="Cannot write a test." text={error} />}
      {test && <TestFile node={node} test={test} />}
    </>
  );
}

type PlayError = NonNullable<Result["errors"]>[number];

function errorTitle(e: PlayError, what: string): string {
  if (e.file) return `${printable(e.file)}${e.line ? `:${e.line}` : ""}`;
  if (e.line) return `${e.input ? "Input" : "Block"}, line ${e.line}`;
  return `The ${what} did not process the input.`;
}

function accepts(start: Start, kind: string): boolean {
  switch (kind) {
    case "metrics":
      return start.metrics;
    case "logs":
      return start.logs;
    case "lines":
      return start.logs;
  }
  return start.targets === true;
}

/** The form of a batch of the node. */
function firstKind(start: Start, input: string): string {
  if (start.targets) return "targets";
  return start.metrics && !(start.logs && input.startsWith("{")) ? "metrics" : "logs";
}

function Events({ events, what }: { events: TapEvent[]; what: string }) {
  const list = useScrolling<HTMLOListElement>();
  if (events.length === 0) return <p class="soft">The {what} leaves no records and drops none.</p>;
  return (
    <ol ref={list} class="live" aria-label="Records">
      {events.map((e, i) => (
        <li key={i} class={e.kind}>
          <EventLine e={e} />
          {e.reason && <p class="soft">{printable(e.reason)}</p>}
          {e.steps && <Steps steps={e.steps} />}
        </li>
      ))}
    </ol>
  );
}
