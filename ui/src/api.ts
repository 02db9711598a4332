// The documented HTTP API of weir. The shapes are those of /api/v0/openapi.json.

/** The path of the browser's session, /s/ID, or "" with other credentials. */
export const base = location.pathname.replace(/\/$/, "");

export type State = "unknown" | "healthy" | "unhealthy" | "exited";

export interface Health {
  state: State;
  message: string;
  time: string;
}

export interface Samples {
  in: number;
  out: number;
  sent?: number;
  waiting?: number;
  dropped: Record<string, number>;
}

export interface Trial {
  version: string;
  step: string;
  since: string;
}

export interface Report {
  name: string;
  text: string;
}

export interface Node {
  id: string;
  name: string;
  health: Health;
  problems?: Health[];
  last_error: Health | null;
  position: string;
  depends_on: string[];
  sends_to: string[];
  sources: string[];
  version: string;
  trial?: Trial;
  builds: number;
  restarts: number;
  samples: Samples | null;
  lines?: Samples;
  quarantined?: number;
  /** Whether it has a playground for its block. */
  playground?: boolean;
  arguments: unknown;
  exports: unknown;
  omitted?: number;
  debug: unknown;
  /** What the stream of events says about it. */
  live?: LiveNode;
}

/** A node in /api/v0/events. Rates are per second, in the last minute. */
export interface LiveNode {
  id: string;
  state: State;
  message?: string;
  since: string;
  in: number;
  out: number;
  dropped: number;
  waiting?: number;
  version?: string;
  step?: string;
  dropped_total?: number;
  quarantined?: number;
}

export interface LiveStatus {
  time: string;
  ready: boolean;
  stopping: boolean;
  config_error?: string;
  stalled?: string[];
  nodes: LiveNode[];
  removed?: string[];
}

/** What the block ui allows. */
export interface Allowed {
  live_data: boolean;
  changes: boolean;
  edit: boolean;
}

export interface Status {
  time: string;
  version: string;
  config: string;
  config_error?: string;
  started: string;
  ready: boolean;
  stopping: boolean;
  reload: { time: string; seconds: number; outcome: string; message: string } | null;
  stalled?: string[];
  allowed: Allowed;
  services: Node[];
  components: Node[];
}

export interface ReloadNode {
  id: string;
  action: string;
  from?: string;
  to?: string;
  step?: string;
  message?: string;
}

export interface Reload {
  id: number;
  follows?: number[];
  time: string;
  seconds: number;
  trigger: { kind: string; files?: string[] };
  outcome: string;
  message: string;
  nodes: ReloadNode[];
  omitted?: number;
  rebuilt: number;
  untouched: number;
  steps: Record<string, number>;
}

/** One line of /api/v0/tap/NODE?format=json. */
export interface TapEvent {
  kind: "record" | "changed" | "dropped" | "added" | "unchanged" | "note" | "end" | "error";
  time?: string;
  record?: TapRecord;
  becomes?: TapRecord;
  changes?: string[];
  text?: string;
  /** Of the playground of blocks. */
  reason?: string;
  steps?: PathStep[];
}

export interface TapRecord {
  name?: string;
  labels?: Record<string, string>;
  value?: number | string;
  time?: string;
  line?: string;
  meta?: Record<string, string>;
}

/** One line of /api/v0/why/NODE. */
export interface Path {
  kind: "path" | "note" | "end" | "error";
  time?: string;
  text: string;
  record?: TapRecord;
  nodes?: PathNode[];
}

export interface PathNode {
  node: string;
  position?: string;
  result: string;
  reason?: string;
  before?: TapRecord;
  after?: TapRecord;
  changes?: string[];
  steps?: PathStep[];
}

export interface PathStep {
  within?: string;
  kind: string;
  index?: number;
  name?: string;
  detail?: string;
  dropped?: boolean;
  changes?: string[];
  depends?: string;
}

/** A name of /api/v0/completions. */
export interface Name {
  name: string;
  of: string;
  call: string;
  doc: string;
  function?: boolean;
  block?: boolean;
}

export class APIError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Requests a path below the session. It throws an APIError unless the status is 2xx. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const res = await fetch(base + path, { cache: "no-store", ...init });
  if (!res.ok) throw new APIError(res.status, (await res.text()).trim() || res.statusText);
  return res;
}

export async function getJSON<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, { signal })).json();
}

/** The path of an API below a node. IDs contain slashes, which stay. */
export function nodePath(prefix: string, id: string): string {
  return prefix + id.split("/").map(encodeURIComponent).join("/");
}

/** The path of a route of the script of a node, such as /history. */
export const control = (id: string, what: string) => nodePath("/api/v0/control/", id) + what;

/** Reads the lines of a response until it or the signal ends. */
export async function* lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
  const body = (await request(path, { signal })).body;
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } finally {
    reader.cancel().catch(() => {}); // the response has ended already
  }
  if (rest) yield rest;
}
