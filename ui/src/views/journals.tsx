// What waits on disk to be sent, per endpoint: how much, for how long, and why.

import { useState } from "preact/hooks";
import { getJSON, type Node } from "../api";
import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { Name, NodeLink } from "../parts/name";
import { Table } from "../parts/table";
import type { Route } from "../route";
import { useDetails, useStatus } from "../status";
import { age, bytes, count, messageOf, plural, printable } from "../text";

/** An endpoint in the debug information of a sink. The names of counters depend on the component. */
interface Endpoint {
  endpoint?: string;
  url?: string;
  journal: string;
  shards?: number;
  pending_blocks: number;
  journal_bytes: number;
  oldest_age: string;
  last_error?: string;
  last_error_time?: string;
  [counter: string]: unknown;
}

interface Limits {
  max_size?: number | string;
  max_age?: string;
  on_full?: string;
}

interface Row {
  node: Node;
  e: Endpoint;
  limits: Limits;
}

/** A journal as weir journal stats reports it. */
interface Journal {
  dir: string;
  endpoint: string;
  url: string;
  node: string;
  component: string;
  bytes: number;
  pending_blocks: number;
  pending_samples: number;
  pending_lines: number;
  pending_series: number;
  pending_streams: number;
  oldest?: string;
  newest?: string;
  shards: { next: number; pending_blocks: number; pending_samples: number }[] | null;
  segments: { file: string; damaged_bytes?: number }[] | null;
  set_aside?: string[];
  damage?: string[];
  problems?: string[];
  damaged_blocks?: Record<string, number>;
}

function rowsOf(nodes: Node[]): Row[] {
  return nodes.flatMap((node) => {
    const debug = node.debug as { endpoints?: Endpoint[]; sink?: Endpoint } | null;
    const list = Array.isArray(debug?.endpoints) ? debug.endpoints : debug?.sink ? [debug.sink] : [];
    const limits = (node.arguments as { journal?: Limits } | null)?.journal ?? {};
    return list.filter((e) => e.journal).map((e) => ({ node, e, limits }));
  });
}

/** The first value whose name begins with a kind of records: samples_sent, pending_lines. */
function counter(e: Endpoint, pattern: RegExp): unknown {
  return Object.entries(e).find(([name]) => pattern.test(name))?.[1];
}

const waiting = (e: Endpoint) => Number(counter(e, /^pending_(samples|lines|records)$/) ?? 0);
const sent = (e: Endpoint) => Number(counter(e, /^(samples|lines|records)_sent$/) ?? 0);
const dropped = (e: Endpoint) =>
  Object.entries((counter(e, /^(samples|lines|records)_dropped$/) ?? {}) as Record<string, number>).filter(
    ([, n]) => n,
  );

export function Journals({ route }: { route: Route }) {
  const { status, now } = useStatus();
  const rows = rowsOf(status?.components ?? []);
  useDetails([...new Set(rows.map((r) => r.node.id))]);
  if (!status) return <Loading />;
  const filter = route.query.get("filter") ?? "";
  return (
    <>
      <div class="bar">
        <h1>Journals</h1>
        <Filter name="filter" value={filter} label="Filter by node or endpoint" />
      </div>
      <p class="soft">A sink keeps what its endpoint has not accepted yet in a journal on disk.</p>
      <Table
        label="Journals"
        sort={route.query.get("sort") ?? ""}
        rows={rows.filter((r) => matches(filter, `${r.node.id} ${r.e.endpoint ?? ""} ${r.e.url ?? ""}`))}
        id={(r) => `${r.node.id} ${r.e.journal}`}
        empty="No sink with a journal, or none that matches the filter."
        columns={[
          {
            name: "node",
            title: "Sink",
            by: (r) => r.node.id,
            show: (r) => (
              <>
                <NodeLink id={r.node.id} />
                {r.e.url && (
                  <div class="soft">
                    <Name text={String(r.e.url)} />
                  </div>
                )}
              </>
            ),
          },
          { name: "state", title: "Endpoint", by: (r) => stateOf(r), show: (r) => <State row={r} now={now} /> },
          {
            name: "waiting",
            title: "Waiting",
            num: true,
            by: (r) => waiting(r.e),
            show: (r) => count(waiting(r.e)),
          },
          {
            name: "oldest",
            title: "Oldest",
            num: true,
            show: (r) => (r.e.pending_blocks ? printable(String(r.e.oldest_age)) : "–"),
          },
          {
            name: "size",
            title: "On disk",
            num: true,
            by: (r) => r.e.journal_bytes,
            show: (r) => bytes(r.e.journal_bytes),
          },
          {
            name: "limits",
            title: "Limits",
            show: (r) => limitText(r.limits),
          },
          {
            name: "sent",
            title: "Sent",
            num: true,
            by: (r) => sent(r.e),
            show: (r) => count(sent(r.e)),
          },
          {
            name: "dropped",
            title: "Dropped",
            by: (r) => dropped(r.e).reduce((t, [, n]) => t + n, 0),
            show: (r) =>
              dropped(r.e)
                .map(([why, n]) => `${count(n)} ${why}`)
                .join(", ") || "nothing",
          },
        ]}
      />
      <OnDisk now={now} />
    </>
  );
}

function limitText(l: Limits): string {
  const size = typeof l.max_size === "number" ? bytes(l.max_size) : l.max_size;
  const full = l.on_full === "drop_oldest" ? "then the oldest is dropped" : "then sources wait";
  return [size && `${size}, ${full}`, l.max_age && `data is dropped after ${l.max_age}`].filter(Boolean).join("; ");
}

const stateOf = (r: Row) =>
  r.node.health.state === "unhealthy" ? "unhealthy" : r.e.pending_blocks > 0 && r.e.last_error ? "unknown" : "healthy";

/** Whether the endpoint accepts data. The last error may be over. */
function State({ row, now }: { row: Row; now: number }) {
  const state = stateOf(row);
  const text = { healthy: "accepts data", unknown: "repeats requests", unhealthy: "does not accept data" }[state];
  const at = row.e.last_error_time;
  return (
    <>
      <HealthBadge state={state} text={text} />
      {row.e.last_error && (
        <div class="soft">
          last error{at ? ` ${age(at, now)} ago` : ""}: {printable(String(row.e.last_error), 500)}
        </div>
      )}
    </>
  );
}

/** The files of all journals, which are read when somebody asks for them. */
function OnDisk({ now }: { now: number }) {
  const [state, set] = useState<{ busy?: boolean; error?: string; found?: Journal[] }>({});
  const read = async () => {
    set({ busy: true });
    try {
      const { journals, error } = await getJSON<{ journals: Journal[]; error?: string }>("/api/v0/journals");
      set({ found: journals, error });
    } catch (e) {
      set({ error: messageOf(e) });
    }
  };
  return (
    <section aria-labelledby="files">
      <div class="bar">
        <h2 id="files">Files</h2>
        <button type="button" disabled={state.busy} onClick={read}>
          {state.busy ? "Reading…" : "Read the journals"}
        </button>
      </div>
      <p class="soft">
        This reads everything that waits, as <code>weir journal stats</code> does, also for nodes that were removed.
      </p>
      {state.error && <ErrorBox title="Cannot read the journals." text={state.error} />}
      {state.found?.length === 0 && <p>There are no journals.</p>}
      {state.found?.map((j) => (
        <File key={j.dir} j={j} now={now} />
      ))}
    </section>
  );
}

function File({ j, now }: { j: Journal; now: number }) {
  const records = [
    j.pending_samples && `${plural(j.pending_samples, "sample")} of ${count(j.pending_series)} series`,
    j.pending_lines && `${plural(j.pending_lines, "line")} of ${plural(j.pending_streams, "stream")}`,
  ].filter(Boolean);
  const bad = [
    ...(j.problems ?? []),
    ...(j.damage ?? []),
    ...Object.entries(j.damaged_blocks ?? {}).map(([why, n]) => `${plural(n, "block")} cannot be read: ${why}`),
    ...(j.segments ?? [])
      .filter((s) => s.damaged_bytes)
      .map((s) => `${s.file}: ${s.damaged_bytes} bytes are no blocks`),
    ...(j.set_aside ?? []).map((f) => `set aside: ${f}`),
  ];
  return (
    <details class={`box ${bad.length > 0 ? "bad" : ""}`}>
      <summary>
        <strong>{printable(j.node || j.component)}</strong> {bytes(j.bytes)} in{" "}
        {plural(j.segments?.length ?? 0, "segment")}, waiting: {records.length > 0 ? records.join(", ") : "nothing"}
        {j.oldest && `, the oldest for ${age(j.oldest, now)}`}
      </summary>
      <dl class="pairs">
        <dt>Directory</dt>
        <dd>
          <code>{printable(j.dir)}</code>
        </dd>
        <dt>Endpoint</dt>
        <dd>{printable(`${j.endpoint} ${j.url}`)}</dd>
      </dl>
      {bad.length > 0 && <Pre>{printable(bad.join("\n"))}</Pre>}
      <Table
        label="Shards"
        sort=""
        rows={(j.shards ?? []).map((s, i) => ({ ...s, i }))}
        id={(s) => String(s.i)}
        empty="No shards."
        columns={[
          { name: "shard", title: "Shard", show: (s) => s.i },
          { name: "blocks", title: "Blocks that wait", num: true, show: (s) => count(s.pending_blocks) },
          { name: "records", title: "Records that wait", num: true, show: (s) => count(s.pending_samples) },
          { name: "next", title: "Next block", num: true, show: (s) => String(s.next) },
        ]}
      />
    </details>
  );
}
