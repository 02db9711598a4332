// Charts of the last hour, which weir itself keeps.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { getJSON } from "../api";
import { clock, count } from "../text";
import { type Loaded, useLoad } from "./load";
import { ErrorBox, Loading } from "./message";

type Values = (number | null)[];

interface Series {
  in?: Values;
  out?: Values;
  dropped?: Values;
  waiting?: Values;
  oldest?: Values;
}

export interface HealthChange {
  time: string;
  node: string;
  state: string;
  message?: string;
}

export interface History {
  step: number;
  times: number[];
  total: Series;
  weir?: Record<string, Values>;
  nodes: (Series & { id: string })[];
  health: HealthChange[];
}

/** The history of a node, or of all nodes together. Each new point is loaded and appended. */
export function useHistory(node: string | null, now: number) {
  const step = 10_000;
  const last = useRef<{ node: string | null; h: History } | null>(null);
  return useLoad(
    async (signal) => {
      const old = last.current?.node === node ? last.current.h : null;
      const q = new URLSearchParams(node === null ? {} : { node });
      const since = old?.times.at(-1);
      if (since !== undefined) q.set("since", String(since));
      const h = appended(old, await getJSON<History>(`/api/v0/history?${q}`, signal));
      last.current = { node, h };
      return h;
    },
    [node, Math.floor(now / step)],
  );
}

/** A history and what followed, without what is older than an hour. */
function appended(old: History | null, h: History): History {
  if (!old) return h;
  const times = [...old.times, ...h.times];
  const first = times.findIndex((t) => t > (times.at(-1) ?? 0) - 3600);
  const values = (a: Values | undefined, b: Values | undefined) =>
    (a || b) && [...(a ?? old.times.map(() => 0)), ...(b ?? h.times.map(() => 0))].slice(first);
  const series = (a: Series | undefined, b: Series): Series => ({
    in: values(a?.in, b.in),
    out: values(a?.out, b.out),
    dropped: values(a?.dropped, b.dropped),
    waiting: values(a?.waiting, b.waiting),
    oldest: values(a?.oldest, b.oldest),
  });
  return {
    ...h,
    times: times.slice(first),
    total: series(old.total, h.total),
    weir:
      (old.weir || h.weir) &&
      Object.fromEntries(
        [...new Set([...Object.keys(old.weir ?? {}), ...Object.keys(h.weir ?? {})])].map((name) => [
          name,
          values(old.weir?.[name], h.weir?.[name]) ?? [],
        ]),
      ),
    nodes: h.nodes.map((n, i) => ({ id: n.id, ...series(old.nodes[i], n) })),
    health: [...old.health, ...h.health],
  };
}

interface Line {
  name: string;
  values: Values | undefined;
  color: string;
}

/** A moment that a chart marks with a line, such as a reload. */
export interface Mark {
  /** In seconds. */
  time: number;
  color: string;
}

/** Lines over time, with the values at the cursor or the last ones as text. */
export function Chart(props: { title: string; times: number[]; lines: Line[]; marks?: Mark[] }) {
  const { title, times, marks = [] } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const [at, setAt] = useState<number | null>(null);
  const shown = props.lines.filter((l) => l.values);
  const key = [document.documentElement.dataset.theme, ...shown.map((l) => l.name)].join();
  const data: uPlot.AlignedData = [times, ...shown.map((l) => l.values ?? [])];
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: color("soft"), grid: { stroke: color("line") }, ticks: { stroke: color("line") } };
    const time = (_: uPlot, at: number[], __: number, ___: number, step: number) =>
      at.map((t) => clock(new Date(t * 1000).toISOString(), step < 60));
    const p = new uPlot(
      {
        width: el.clientWidth,
        height: 140,
        cursor: { y: false },
        legend: { show: false },
        scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, space: 90, size: 30, values: time },
          { ...axis, size: 56, values: (_, v) => v.map(count) },
        ],
        series: [{}, ...shown.map((l) => ({ label: l.name, stroke: color(l.color), width: 1.5 }))],
        hooks: {
          setCursor: [(u) => setAt(u.cursor.idx ?? null)],
          draw: [
            (u) => {
              for (const m of marked.current) {
                const { min = 0, max = 0 } = u.scales.x ?? {};
                if (m.time < min || m.time > max) continue;
                const x = Math.round(u.valToPos(m.time, "x", true));
                u.ctx.fillStyle = color(m.color);
                u.ctx.fillRect(x, u.bbox.top, devicePixelRatio, u.bbox.height);
              }
            },
          ],
        },
      },
      data,
      el,
    );
    plot.current = p;
    const resize = new ResizeObserver(() => p.setSize({ width: el.clientWidth, height: 140 }));
    resize.observe(el);
    return () => {
      resize.disconnect();
      p.destroy();
      plot.current = null;
    };
  }, [key]);
  useEffect(() => plot.current?.setData(data), [times, marks.length]);
  if (shown.length === 0) return null;
  const value = (l: Line, i: number) => {
    const v = l.values?.at(i);
    return v === null || v === undefined ? "–" : count(v);
  };
  const index = at !== null && at < times.length ? at : -1;
  const last = shown.map((l) => `${l.name} ${value(l, -1)}`).join(", ");
  const moment = times.at(index);
  return (
    <figure class="chart">
      <figcaption>
        {title}
        {shown.map((l) => (
          <span key={l.name} class={`legend ${l.color}`}>
            {shown.length > 1 && l.name} <b>{value(l, index)}</b>
          </span>
        ))}
        {index >= 0 && moment !== undefined && <span>at {clock(new Date(moment * 1000).toISOString())}</span>}
      </figcaption>
      <div ref={box} role="img" aria-label={`${title} over the last hour. Now: ${last}`} />
    </figure>
  );
}

/** The charts of a history: of a node, or of all nodes together. */
export function Charts(props: { node: string | null; history: Loaded<History>; marks?: Mark[] }) {
  const { node, marks } = props;
  const { value: h, error } = props.history;
  if (error && !h) return <ErrorBox title="Cannot load the charts." text={error.message} />;
  if (!h) return <Loading />;
  const s = node === null ? h.total : h.nodes[0];
  if (h.times.length < 2 || !s) return <p class="soft">The charts begin 20 seconds after the start.</p>;
  return (
    <div class="charts">
      <Chart
        title={node === null ? "Records per second from sources and to sinks" : "Records per second"}
        times={h.times}
        lines={[
          { name: "in", values: s.in, color: "link" },
          { name: "out", values: s.out, color: "good" },
          { name: "dropped", values: s.dropped, color: "bad" },
        ]}
        marks={marks}
      />
      <Chart
        title="Records that wait"
        times={h.times}
        lines={[{ name: "waiting", values: s.waiting, color: "warn" }]}
        marks={marks}
      />
      <Chart
        title="Age of the oldest record that waits, in seconds"
        times={h.times}
        lines={[{ name: "age", values: s.oldest, color: "warn" }]}
        marks={marks}
      />
    </div>
  );
}
