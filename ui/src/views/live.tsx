// The live records of a node: input, output or the difference, through the tap API.

import { useEffect, useRef, useState } from "preact/hooks";
import { lines, type Node, nodePath, request, type TapEvent, type TapRecord } from "../api";
import { Copy } from "../parts/export";
import { useLoad } from "../parts/load";
import { ErrorBox, Pre, useScrolling } from "../parts/message";
import { RecordTest } from "../parts/record";
import { nodeLink, type Route, setQuery } from "../route";
import { clock, printable } from "../text";
import { whyLink } from "./why";

const most = 500;

/** How many records a second the tap shows, at most. */
const rates = ["1", "5", "20", "100", "1000"];
const usualRate = "20";

export function Live({ node, route }: { node: Node; route: Route }) {
  const side = route.query.get("side") || (node.sends_to.length > 0 ? "out" : "in");
  const where = route.query.get("where") ?? "";
  const rate = route.query.get("rate") || usualRate;
  const [typed, setTyped] = useState(where);
  const [recording, record] = useState(false);
  const [paused, pause] = useState(false);
  const [ended, setEnded] = useState("");
  const [error, setError] = useState("");
  const [events, setEvents] = useState<{ key: number; e: TapEvent }[]>([]);
  const [again, restart] = useState(0);
  const key = useRef(0);
  const list = useScrolling<HTMLOListElement>();

  // Records of another selection do not stay.
  useEffect(() => {
    pause(false);
    setEvents([]);
    setTyped(where);
  }, [node.id, side, where, rate]);

  useEffect(() => {
    if (paused) return;
    setError("");
    setEnded("");
    const abort = new AbortController();
    let fresh: { key: number; e: TapEvent }[] = [];
    // Records arrive faster than a screen shows them: they are shown together.
    const show = () => {
      if (fresh.length === 0) return;
      const add = fresh;
      fresh = [];
      setEvents((old) => [...old, ...add].slice(-most));
    };
    const draw = setInterval(show, 250);
    const q = new URLSearchParams({ format: "json", side, rate });
    if (where) q.set("where", where);
    (async () => {
      let reason: string | undefined;
      for await (const line of lines(`${nodePath("/api/v0/tap/", node.id)}?${q}`, abort.signal)) {
        if (line === "") continue;
        const e = JSON.parse(line) as TapEvent;
        if (e.kind === "end" || e.kind === "error") reason = e.text;
        else fresh.push({ key: key.current++, e });
        if (fresh.length > most) fresh = fresh.slice(-most);
      }
      if (!abort.signal.aborted) setEnded(reason ?? "the connection to weir was closed");
    })().catch((e) => abort.signal.aborted || setError(e.message));
    return () => {
      abort.abort();
      clearInterval(draw);
      show();
    };
  }, [node.id, side, where, rate, paused, again]);

  const text = () => events.map(({ e }) => lineOf(e)).join("\n");
  return (
    <>
      <form
        class="bar"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery({ where: typed });
        }}
      >
        <label>
          Show{" "}
          <select value={side} onChange={(e) => setQuery({ side: e.currentTarget.value })}>
            <option value="in">the input</option>
            {node.sends_to.length > 0 && <option value="out">the output</option>}
            {node.sends_to.length > 0 && <option value="diff">the difference</option>}
          </select>
        </label>
        <label>
          At most{" "}
          <select value={rate} onChange={(e) => setQuery({ rate: e.currentTarget.value })}>
            {[...new Set([...rates, rate])].map((r) => (
              <option key={r} value={r}>
                {r} a second
              </option>
            ))}
          </select>
        </label>
        <label class="grow">
          Where{" "}
          <input
            type="text"
            value={typed}
            spellcheck={false}
            placeholder={'name startsWith "http_" && value > 0'}
            onInput={(e) => setTyped(e.currentTarget.value)}
          />
        </label>
        <button type="submit">Apply</button>
        <button type="button" aria-pressed={paused} onClick={() => pause(!paused)}>
          {paused ? "Resume" : "Pause"}
        </button>
        <Copy text={text} disabled={events.length === 0} />
        {node.sources.length > 0 && (
          <button type="button" aria-expanded={recording} onClick={() => record(!recording)}>
            Record as test
          </button>
        )}
      </form>
      {recording && <RecordTest key={node.id} node={node} where={where} />}
      {node.sources.length === 0 && (
        <p class="soft">
          Only scripts can be recorded as a test.
          {node.playground && (
            <>
              {" "}
              <a href={nodeLink(node.id, { tab: "playground" })}>The playground</a> runs a copy of this node on its last
              batch.
            </>
          )}
        </p>
      )}
      {error && <ErrorBox title="Cannot show the records." text={error} />}
      {ended && (
        <p class="box warn">
          The tap has ended: {printable(ended)}{" "}
          <button type="button" onClick={() => restart((n) => n + 1)}>
            Start again
          </button>
        </p>
      )}
      {events.length === 0 && !error && <p class="soft">No records yet{where && ", or none that match"}.</p>}
      {events.length === 0 && <LastBatch node={node} side={side} />}
      <ol ref={list} class="live" hidden={events.length === 0} aria-live="off" aria-label="Records">
        {events.map(({ key, e }) => (
          <li key={key} class={e.kind}>
            <EventLine e={e} />
          </li>
        ))}
      </ol>
    </>
  );
}

const marks: Record<string, string> = { changed: "~", dropped: "−", added: "+", note: "#", record: " " };

export function EventLine({ e }: { e: TapEvent }) {
  return (
    <>
      <span class="mark" aria-hidden="true">
        {marks[e.kind] ?? " "}
      </span>
      <span class="hidden">{e.kind} </span>
      {e.time && <time dateTime={e.time}>{clock(e.time)}</time>}{" "}
      {e.record && <code>{printable(recordText(e.record))}</code>}{" "}
      {e.record && (
        <a class="why" href={whyLink(e.record)} title="Follow this record through the graph">
          why
        </a>
      )}{" "}
      {e.changes && <span class="changes">{printable(e.changes.join(", "))}</span>}
      {e.text && <span class="soft">{printable(e.text)}</span>}
    </>
  );
}

function lineOf(e: TapEvent): string {
  const parts = [marks[e.kind], e.record && recordText(e.record), e.changes?.join(", "), e.text];
  return parts.filter(Boolean).join(" ");
}

/** A record in the notation of Prometheus or Loki. */
export function recordText(r: TapRecord): string {
  const labels = (of: Record<string, string> | undefined) =>
    Object.entries(of ?? {})
      .map(([k, v]) => `${k}=${JSON.stringify(v)}`)
      .join(",");
  const set = labels(r.labels);
  const head = `${r.name ?? ""}${set || r.name === undefined ? `{${set}}` : ""}`;
  if (r.line !== undefined) return `${head} ${r.line}${r.meta ? ` (${labels(r.meta)})` : ""}`;
  return `${head} ${r.value ?? ""}`;
}

/** The last batch, until the first live records arrive. */
function LastBatch({ node, side }: { node: Node; side: string }) {
  const of = side === "in" ? "in" : "out";
  const { value } = useLoad(
    async (signal) => (await request(`${nodePath("/api/v0/batch/", node.id)}?of=${of}&rows=50`, { signal })).text(),
    [node.id, of],
  );
  if (!value) return null;
  return (
    <section>
      <h2>Last batch</h2>
      <Pre>{printable(value, 100_000)}</Pre>
    </section>
  );
}
