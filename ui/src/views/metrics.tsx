// Weir's own metrics: charts of the last hour, and the present values.

import { request } from "../api";
import { Chart, useHistory } from "../parts/chart";
import { Filter, matches } from "../parts/filter";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading } from "../parts/message";
import { Table } from "../parts/table";
import type { Route } from "../route";
import { useStatus } from "../status";
import { count, plural, printable } from "../text";

export interface Metric {
  name: string;
  labels: string;
  value: number;
  help: string;
}

/** The series of the text format of Prometheus: name{labels} value. */
export function parseMetrics(text: string): Metric[] {
  const help = new Map<string, string>();
  const out: Metric[] = [];
  for (const line of text.split("\n")) {
    const about = /^# HELP (\S+) (.*)$/.exec(line);
    if (about) help.set(about[1] ?? "", about[2] ?? "");
    const series = /^([A-Za-z_:][\w:]*)(\{.*\})? (\S+)( \d+)?$/.exec(line);
    if (!series) continue;
    const [, name = "", labels = "", value = ""] = series;
    out.push({
      name,
      labels,
      value: Number(value.replace(/^([+-]?)Inf$/, "$1Infinity")),
      help: help.get(name) ?? help.get(name.replace(/_(bucket|sum|count)$/, "")) ?? "",
    });
  }
  return out;
}

const most = 300;

export function Metrics({ route }: { route: Route }) {
  const { status, now } = useStatus();
  if (!status) return <Loading />;
  return (
    <>
      <h1>Metrics of weir</h1>
      <History now={now} />
      <Values now={now} route={route} />
    </>
  );
}

function History({ now }: { now: number }) {
  const { value: h, error } = useHistory(null, now);
  if (error) return <ErrorBox title="Cannot load the history." text={error.message} />;
  if (!h) return <Loading />;
  if (h.times.length < 2) return <p class="soft">The charts begin 20 seconds after the start.</p>;
  const w = h.weir ?? {};
  const megabytes = w.memory?.map((v) => (v === null ? null : v / (1 << 20)));
  return (
    <div class="charts">
      <Chart title="CPU, in cores" times={h.times} lines={[{ name: "cpu", values: w.cpu, color: "link" }]} />
      <Chart title="Memory, in MiB" times={h.times} lines={[{ name: "memory", values: megabytes, color: "link" }]} />
      <Chart
        title="Samples per second from sources"
        times={h.times}
        lines={[{ name: "samples", values: w.samples, color: "good" }]}
      />
      <Chart
        title="Log lines per second from sources"
        times={h.times}
        lines={[{ name: "lines", values: w.lines, color: "good" }]}
      />
      <Chart
        title="Dropped records per second"
        times={h.times}
        lines={[{ name: "dropped", values: h.total.dropped, color: "bad" }]}
      />
      <Chart
        title="Nodes and services that are not healthy"
        times={h.times}
        lines={[{ name: "unhealthy", values: w.unhealthy, color: "bad" }]}
      />
      <Chart
        title="Age of the oldest record in a queue, in seconds"
        times={h.times}
        lines={[{ name: "age", values: h.total.oldest, color: "warn" }]}
      />
      <Chart
        title="Reloads in 10 seconds"
        times={h.times}
        lines={[{ name: "reloads", values: w.reloads, color: "warn" }]}
      />
    </div>
  );
}

function Values({ now, route }: { now: number; route: Route }) {
  const { value, error } = useLoad(
    async (signal) => parseMetrics(await (await request("/metrics", { signal })).text()),
    [Math.floor(now / 10_000)],
  );
  const filter = route.query.get("filter") ?? "";
  const found = value?.filter((m) => matches(filter, `${m.name}${m.labels} ${m.help}`)) ?? [];
  return (
    <section aria-labelledby="values">
      <div class="bar">
        <h2 id="values">Values</h2>
        <Filter name="filter" value={filter} label="Filter by name, label or description" />
        {value && (
          <span class="soft">
            {found.length} of {plural(value.length, "series", "series")}
            {found.length > most && `; the first ${most} are shown`}
          </span>
        )}
      </div>
      {error && <ErrorBox title="Cannot load the metrics." text={error.message} />}
      {value && (
        <Table
          label="Metrics"
          sort={route.query.get("sort") ?? ""}
          rows={found.slice(0, most)}
          id={(m) => m.name + m.labels}
          empty="No metric matches the filter."
          columns={[
            {
              name: "name",
              title: "Series",
              by: (m) => m.name + m.labels,
              show: (m) => (
                <>
                  <code>
                    {m.name}
                    {printable(m.labels, 500)}
                  </code>
                  <div class="soft">{printable(m.help, 300)}</div>
                </>
              ),
            },
            { name: "value", title: "Value", num: true, by: (m) => m.value, show: (m) => exact(m.value) },
          ]}
        />
      )}
    </section>
  );
}

const exact = (n: number) => (Math.abs(n) < 1e6 ? String(Number(n.toPrecision(6))) : count(n));
