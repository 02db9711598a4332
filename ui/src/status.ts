// The status of weir, which all views share, with rates over the last minute.

import { useEffect, useState } from "preact/hooks";
import { APIError, getJSON, type Node, type Samples, type Status } from "./api";

export interface Rates {
  in: number;
  out: number;
  dropped: number;
}

interface Point extends Rates {
  at: number;
}

export interface Shown {
  status: Status | null;
  /** Rates per second by node. A node has none before its second response. */
  rates: Map<string, Rates>;
  /** Weir's clock at the last response. */
  now: number;
  problem: "" | "lost" | "ended";
}

const period = 2000;
const window_ = 60_000;

export function flowOf(n: Node): { in: number; out: number; dropped: number; waiting?: number } {
  const both = [n.samples, n.lines].filter((s): s is Samples => !!s);
  const sum = (of: (s: Samples) => number) => both.reduce((t, s) => t + of(s), 0);
  return {
    in: sum((s) => s.in),
    out: sum((s) => s.out),
    dropped: sum((s) => Object.values(s.dropped ?? {}).reduce((a, b) => a + b, 0)),
    waiting: both.some((s) => s.waiting !== undefined) ? sum((s) => s.waiting ?? 0) : undefined,
  };
}

const points = new Map<string, Point[]>();

function measure(status: Status): Map<string, Rates> {
  const at = Date.parse(status.time);
  const rates = new Map<string, Rates>();
  const seen = new Set<string>();
  for (const n of status.components) {
    seen.add(n.id);
    const p = { at, ...flowOf(n) };
    // Counters of a node that was added again begin at zero.
    const old = (points.get(n.id) ?? []).filter(
      (q) => q.at < at && at - q.at < window_ && q.in <= p.in && q.out <= p.out,
    );
    const first = old[0];
    if (first) {
      const t = (at - first.at) / 1000;
      rates.set(n.id, {
        in: (p.in - first.in) / t,
        out: (p.out - first.out) / t,
        dropped: (p.dropped - first.dropped) / t,
      });
    }
    points.set(n.id, [...old, p]);
  }
  for (const id of points.keys()) if (!seen.has(id)) points.delete(id);
  return rates;
}

let shown: Shown = { status: null, rates: new Map(), now: 0, problem: "" };
const listeners = new Set<(s: Shown) => void>();

export async function refresh() {
  try {
    const status = await getJSON<Status>("/api/v0/status");
    shown = { status, rates: measure(status), now: Date.parse(status.time), problem: "" };
  } catch (e) {
    shown = { ...shown, problem: e instanceof APIError && e.status === 401 ? "ended" : "lost" };
  }
  for (const f of listeners) f(shown);
}

let timer = 0;

function schedule() {
  clearTimeout(timer);
  if (document.hidden || shown.problem === "ended") return; // a page that nobody sees costs nothing
  timer = setTimeout(() => refresh().then(schedule), period);
}

export function start() {
  refresh().then(schedule);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh().then(schedule);
  });
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
