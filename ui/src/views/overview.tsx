// Problems first, then the totals, the last reloads and all nodes.

import type { Node, Status } from "../api";
import { Charts, type History, useHistory } from "../parts/chart";
import { Filter, matches } from "../parts/filter";
import { WhatToDo } from "../parts/fix";
import { HealthBadge } from "../parts/health";
import { Loading, Pre } from "../parts/message";
import { NodeLink } from "../parts/name";
import { Table } from "../parts/table";
import { problemsOf, targetsOf } from "../problems";
import { nodeLink, type Route } from "../route";
import { flowOf, type Shown, useDetails, useStatus } from "../status";
import { age, count, duration, plural, printable, rate, trialText } from "../text";
import { marksOf, Timeline, useReloads } from "./reloads";

export function Overview({ route }: { route: Route }) {
  const shown = useStatus();
  const { status } = shown;
  const history = useHistory(null, shown.now);
  const reloads = useReloads();
  useDetails(
    (status?.components ?? [])
      .filter((n) => targetsOf(n))
      .map((n) => n.id)
      .slice(0, mostScrapes),
  );
  if (!status) return <Loading />;
  return (
    <>
      <h1>Overview</h1>
      <Problems status={status} now={shown.now} />
      <Totals shown={shown} status={status} history={history.value} />
      <Charts node={null} history={history} marks={marksOf(reloads.value)} />
      <section aria-labelledby="recent">
        <h2 id="recent">Recent reloads</h2>
        <Timeline reloads={reloads} most={5} />
      </section>
      <Nodes shown={shown} status={status} route={route} />
    </>
  );
}

/** Whose targets the overview follows: requesting all of them would cost too much. */
const mostScrapes = 20;

function Problems({ status, now }: { status: Status; now: number }) {
  const problems = problemsOf(status);
  const trials = status.components.filter((n) => n.trial);
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">{problems.length === 0 ? "All nodes are healthy" : plural(problems.length, "problem")}</h2>
      {problems.map((p) => (
        <article key={p.id} class="box bad">
          <strong>
            <a href={p.href}>{printable(p.title)}</a>
          </strong>
          {p.since && <span class="soft"> For {age(p.since, now)}.</span>}
          <Pre>{printable(p.text)}</Pre>
          <WhatToDo of={p} />
        </article>
      ))}
      {trials.map((n) => (
        <p key={n.id} class="box warn">
          <a href={nodeLink(n.id, { tab: "script" })}>{n.id}</a>: {n.trial && trialText(n.trial)}
        </p>
      ))}
    </section>
  );
}

function Totals({ shown, status, history }: { shown: Shown; status: Status; history?: History }) {
  const isSink = (n: Node) => n.sends_to.length === 0 && (flowOf(n).in > 0 || (n.live?.in ?? 0) > 0);
  const isSource = (n: Node) => n.sends_to.length > 0 && !status.components.some((o) => o.sends_to.includes(n.id));
  const sum = (nodes: Node[], of: (n: Node) => number) => nodes.reduce((t, n) => t + of(n), 0);
  const waiting = sum(status.components, (n) => flowOf(n).waiting ?? 0);
  // Other nodes drop records because the config says so.
  const lost = sum(status.components.filter(isSink), (n) => flowOf(n).dropped);
  const oldest = waiting > 0 ? history?.total.oldest?.at(-1) : 0;
  const figures: [string, string][] = [
    ["Nodes", String(status.components.length)],
    ["Records from sources", rate(sum(status.components.filter(isSource), (n) => shown.rates.get(n.id)?.out ?? 0))],
    ["Records to sinks", rate(sum(status.components.filter(isSink), (n) => shown.rates.get(n.id)?.in ?? 0))],
    ["Waiting in journals", count(waiting)],
    ["Oldest of them", oldest ? duration(oldest * 1000) : "–"],
    ["Lost by sinks", count(lost)],
  ];
  return (
    <dl class="totals">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Nodes({ shown, status, route }: { shown: Shown; status: Status; route: Route }) {
  const filter = route.query.get("filter") ?? "";
  const rows = status.components.filter((n) => matches(filter, `${n.id} ${n.health.state} ${n.health.message}`));
  const r = (n: Node) => shown.rates.get(n.id);
  return (
    <section aria-labelledby="nodes">
      <div class="bar">
        <h2 id="nodes">Nodes</h2>
        <Filter name="filter" value={filter} label="Filter by name or health" />
        <span class="soft">
          {rows.length} of {status.components.length}
        </span>
      </div>
      <Table
        label="Nodes"
        sort={route.query.get("sort") ?? ""}
        rows={rows}
        id={(n) => n.id}
        empty="No node matches the filter."
        columns={[
          { name: "id", title: "Node", by: (n) => n.id, show: (n) => <NodeLink id={n.id} /> },
          {
            name: "health",
            title: "Health",
            by: (n) => n.health.state,
            show: (n) => <HealthBadge state={n.health.state} />,
          },
          { name: "in", title: "In", num: true, by: (n) => r(n)?.in ?? 0, show: (n) => n.samples && rate(r(n)?.in) },
          {
            name: "out",
            title: "Out",
            num: true,
            by: (n) => r(n)?.out ?? 0,
            show: (n) => n.samples && rate(r(n)?.out),
          },
          {
            name: "dropped",
            title: "Dropped in total",
            num: true,
            by: (n) => flowOf(n).dropped,
            show: (n) => n.samples && count(flowOf(n).dropped),
          },
          {
            name: "waiting",
            title: "Waiting",
            num: true,
            by: (n) => flowOf(n).waiting ?? -1,
            show: (n) => {
              const w = flowOf(n).waiting;
              return w === undefined ? "" : count(w);
            },
          },
        ]}
      />
      <p class="soft">
        Services:{" "}
        {status.services.map((v, i) => (
          <span key={v.id}>
            {i > 0 && ", "}
            <a href={nodeLink(v.id)}>{v.id}</a> <HealthBadge state={v.health.state} />
          </span>
        ))}
      </p>
    </section>
  );
}
