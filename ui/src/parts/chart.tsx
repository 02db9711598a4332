// Charts of the last hour, which weir itself keeps.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { getJSON } from "../api";
import { count } from "../text";
import { useLoad } from "./load";
import { Loading } from "./message";

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
  weir?: { cpu?: Values; memory?: Values; samples?: Values; lines?: Values; unhealthy?: Values; reloads?: Values };
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
    nodes: h.nodes.map((n, i) => ({ id: n.id, ...series(old.nodes[i], n) })),
    health: [...old.health, ...h.health],
  };
}

interface Line {
  name: string;
  values: Values | undefined;
  color: string;
}

/** Lines over time, and the last values as text. */
export function Chart({ title, times, lines }: { title: string; times: number[]; lines: Line[] }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = lines.filter((l) => l.values);
  const key = [document.documentElement.dataset.theme, ...shown.map((l) => l.name)].join();
  const data: uPlot.AlignedData = [times, ...shown.map((l) => l.values ?? [])];
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: color("soft"), grid: { stroke: color("line") }, ticks: { stroke: color("line") } };
    const p = new uPlot(
      {
        width: el.clientWidth,
        height: 160,
        cursor: { y: false },
        legend: { live: true },
        scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [axis, { ...axis, size: 56, values: (_, v) => v.map(count) }],
        series: [
          {},
          ...shown.map((l) => ({
            label: l.name,
            stroke: color(l.color),
            width: 1.5,
            value: (_: uPlot, v: number | null) => (v === null ? "–" : count(v)),
          })),
        ],
      },
      data,
      el,
    );
    plot.current = p;
    const resize = new ResizeObserver(() => p.setSize({ width: el.clientWidth, height: 160 }));
    resize.observe(el);
    return () => {
      resize.disconnect();
      p.destroy();
      plot.current = null;
    };
  }, [key]);
  useEffect(() => plot.current?.setData(data), [data]);
  if (shown.length === 0) return null;
  const last = shown.map((l) => `${l.name} ${count(l.values?.at(-1) ?? 0)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={box} role="img" aria-label={`${title} over the last hour. Now: ${last}`} />
    </figure>
  );
}

/** The charts of a node, or of all nodes together. */
export function Charts({ node, now }: { node: string | null; now: number }) {
  const { value: h } = useHistory(node, now);
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
      />
      <Chart
        title="Records that wait"
        times={h.times}
        lines={[{ name: "waiting", values: s.waiting, color: "warn" }]}
      />
      <Chart
        title="Age of the oldest record that waits, in seconds"
        times={h.times}
        lines={[{ name: "age", values: s.oldest, color: "warn" }]}
      />
    </div>
  );
}
