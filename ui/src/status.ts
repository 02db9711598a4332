// The status of weir, which all views share. The page follows a stream of changes, and requests
// details, such as arguments and exports, only of nodes that have changed or that a view shows.

import { useEffect, useState } from "preact/hooks";
import { APIError, getJSON, type LiveNode, type LiveStatus, lines, type Node, type Samples, type Status } from "./api";

export interface Rates {
  in: number;
  out: number;
  dropped: number;
}

export interface Shown {
  status: Status | null;
  /** Rates per second in the last minute, by node. */
  rates: Map<string, Rates>;
  /** Weir's clock. */
  now: number;
  problem: "" | "lost" | "ended";
  /** Grows with each reload. */
  reloads: number;
}

/** The time between two requests for details, and before the page connects again. */
const period = 2000;
/** Weir sends something every 15 seconds. Without it, the connection is dead. */
const silence = 40_000;
/** How many nodes a request may name. */
const mostNodes = 100;

export function flowOf(n: Node): { in: number; out: number; dropped: number; waiting?: number } {
  const both = [n.samples, n.lines].filter((s): s is Samples => !!s);
  const sum = (of: (s: Samples) => number) => both.reduce((t, s) => t + of(s), 0);
  return {
    in: sum((s) => s.in),
    out: sum((s) => s.out),
    dropped: n.live?.dropped_total ?? sum((s) => Object.values(s.dropped ?? {}).reduce((a, b) => a + b, 0)),
    waiting: both.some((s) => s.waiting !== undefined) ? (n.live?.waiting ?? sum((s) => s.waiting ?? 0)) : undefined,
  };
}

let details: Status | null = null;
let head: LiveStatus | null = null;
let live = new Map<string, LiveNode>();
let shown: Shown = { status: null, rates: new Map(), now: 0, problem: "", reloads: 0 };
const listeners = new Set<(s: Shown) => void>();

/** A node with what the stream says about it. */
function current(n: Node): Node {
  const l = live.get(n.id);
  if (!l) return n;
  return {
    ...n,
    health: { state: l.state, message: l.message ?? "", time: l.since },
    problems: outdated(n, l) ? undefined : n.problems,
    version: l.version ?? "",
    trial: n.trial && l.step ? { ...n.trial, step: l.step } : undefined,
    quarantined: l.quarantined,
    live: { ...l, dropped_total: l.dropped_total ?? 0, waiting: l.waiting ?? 0 },
  };
}

/** Whether the details of a node are older than what the stream says. */
const outdated = (n: Node, l: LiveNode) =>
  n.health.time !== l.since ||
  n.health.state !== l.state ||
  n.health.message !== (l.message ?? "") ||
  n.version !== (l.version ?? "") ||
  (n.trial?.step ?? "") !== (l.step ?? "");

let ahead = 0; // of weir's clock

function show(change: Partial<Shown>) {
  let { status } = shown;
  if (details) {
    const { ready, stopping, config_error, stalled } = head ?? details;
    const components = details.components.map(current);
    status = {
      ...details,
      ready,
      stopping,
      config_error,
      stalled,
      components,
      services: details.services.map(current),
    };
  }
  shown = { ...shown, status, rates: live, now: Date.now() + ahead, ...change };
  for (const f of listeners) f(shown);
}

const problemOf = (e: unknown) => (e instanceof APIError && e.status === 401 ? "ended" : "lost");

// Details.

let whole = false; // the next request is for all nodes
const stale = new Set<string>();
const watched = new Map<string, number>(); // how many views show the details of a node
let loading: Promise<void> | null = null;
let loaded = 0;

async function load(): Promise<void> {
  const ids = [...new Set([...stale, ...watched.keys()])];
  const all = whole || ids.length > mostNodes;
  if (!all && ids.length === 0) return;
  whole = false;
  stale.clear();
  loaded = Date.now();
  const query = all ? "" : `?${new URLSearchParams(ids.map((id) => ["node", id]))}`;
  const next = await getJSON<Status>(`/api/v0/status${query}`);
  ahead = Date.parse(next.time) - Date.now();
  const replace = (old: Node[], some: Node[]) => {
    const byID = new Map(some.map((n) => [n.id, n]));
    return old.map((n) => byID.get(n.id) ?? n);
  };
  details =
    all || !details
      ? next
      : {
          ...next,
          components: replace(details.components, next.components),
          services: replace(details.services, next.services),
        };
  show({ problem: "" });
}

/** Requests the details that are needed, unless a request is under way. */
function update(): Promise<void> {
  loading ??= load().finally(() => {
    loading = null;
  });
  return loading;
}

/** Requests the whole status. */
export async function refresh() {
  await loading?.catch(() => {});
  whole = true;
  await update().catch((e) => show({ problem: problemOf(e) }));
}

// The stream.

function receive(name: string, data: unknown) {
  if (name === "reload") {
    whole = true;
    show({ reloads: shown.reloads + 1 });
  } else if (name === "status" || name === "change") {
    const s = data as LiveStatus;
    const known = details ? new Map([...details.components, ...details.services].map((n) => [n.id, n])) : new Map();
    // The page has missed events: weir was restarted, or it sent them faster than they were read.
    const again = name === "status" && head !== null;
    live = new Map(name === "status" ? [] : live);
    for (const l of s.nodes) {
      live.set(l.id, l);
      const n = known.get(l.id);
      if (!n) whole = true;
      else if (outdated(n, l)) stale.add(l.id);
    }
    for (const id of s.removed ?? []) live.delete(id);
    if (s.removed || again) whole = true;
    head = s;
    ahead = Date.parse(s.time) - Date.now();
    show({ problem: "", reloads: shown.reloads + (again ? 1 : 0) });
  }
  if ((whole || stale.size > 0) && Date.now() - loaded > period) update().catch((e) => show({ problem: problemOf(e) }));
}

let connection: AbortController | null = null;
let heard = 0;

function disconnect() {
  connection?.abort();
  connection = null;
}

async function connect() {
  disconnect();
  const c = new AbortController();
  connection = c;
  heard = Date.now();
  const tick = setInterval(() => {
    if (Date.now() - heard > silence) connect();
    else if (head) {
      update().catch((e) => show({ problem: problemOf(e) }));
      show({}); // times advance
    }
  }, period);
  c.signal.addEventListener("abort", () => clearInterval(tick));
  while (!c.signal.aborted) {
    try {
      await loading?.catch(() => {});
      whole = true;
      await update();
      let name = "";
      for await (const line of lines("/api/v0/events", c.signal)) {
        heard = Date.now();
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) receive(name, JSON.parse(line.slice(6)));
      }
    } catch (e) {
      if (c.signal.aborted) return;
      // With too many streams, weir refuses another one, and the page shows what it loads again and again.
      if (!(e instanceof APIError && e.status === 503 && details)) show({ problem: problemOf(e) });
    }
    if (shown.problem === "ended") return disconnect();
    heard = Date.now();
    await new Promise((done) => setTimeout(done, period));
  }
}

/** Follows the status while somebody can see the page. */
export function start() {
  const change = () => (document.hidden ? disconnect() : connect());
  document.addEventListener("visibilitychange", change);
  change();
}

export function useStatus(): Shown {
  const [s, set] = useState(shown);
  useEffect(() => {
    listeners.add(set);
    set(shown);
    return () => {
      listeners.delete(set);
    };
  }, []);
  return s;
}

/** Keeps the details of nodes up to date, such as exports, while a view shows them. */
export function useDetails(ids: string[]) {
  useEffect(() => {
    for (const id of ids) watched.set(id, (watched.get(id) ?? 0) + 1);
    // What the view shows first is at most as old as a click.
    if (details && ids.length > 0 && Date.now() - loaded > 200) update().catch((e) => show({ problem: problemOf(e) }));
    return () => {
      for (const id of ids) {
        const n = (watched.get(id) ?? 1) - 1;
        if (n === 0) watched.delete(id);
        else watched.set(id, n);
      }
    };
  }, [ids.join(" ")]);
}
