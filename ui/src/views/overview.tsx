// Problems first, then the totals, the last reloads and all nodes.

import type { Node, Status } from "../api";
import { Charts } from "../parts/chart";
import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { Loading, Pre } from "../parts/message";
import { Table } from "../parts/table";
import { link, nodeLink, type Route } from "../route";
import { flowOf, type Shown, useStatus } from "../status";
import { age, count, plural, printable, rate } from "../text";
import { Timeline } from "./reloads";

export function Overview({ route }: { route: Route }) {
  const shown = useStatus();
  const { status } = shown;
  if (!status) return <Loading />;
  return (
    <>
      <h1>Overview</h1>
      <Problems status={status} now={shown.now} />
      <Totals shown={shown} status={status} />
      <Charts node={null} now={shown.now} />
      <section aria-labelledby="recent">
        <h2 id="recent">Recent reloads</h2>
        <Timeline most={5} />
      </section>
      <Nodes shown={shown} status={status} route={route} />
    </>
  );
}

export interface Problem {
  id: string;
  title: string;
  text: string;
  since?: string;
  /** What to do. */
  fix: string;
  href: string;
}

const sick = (n: Node) => n.health.state === "unhealthy" || n.health.state === "exited";

/** The problems of weir and its nodes, the most severe first. */
export function problemsOf(s: Status): Problem[] {
  const out: Problem[] = [];
  if (s.config_error) {
    out.push({
      id: "config",
      title: "The config on disk was refused. An older one runs.",
      text: s.config_error,
      fix: "Correct the file at the position in the message and save it. 'weir check' finds all mistakes.",
      href: link(["reloads"]),
    });
  }
  for (const text of s.stalled ?? []) {
    out.push({
      id: `stalled ${text}`,
      title: "An operation of weir does not return.",
      text,
      fix: "Check whether the file system or the network that the message names responds.",
      href: link(["reloads"]),
    });
  }
  for (const n of [...s.components, ...s.services].filter(sick)) {
    for (const h of n.problems?.length ? n.problems : [n.health]) {
      out.push({
        id: `${n.id} ${h.message}`,
        title: `${n.id} is ${n.health.state}.`,
        text: h.message,
        since: h.time,
        fix: fixOf(n, h.message),
        href: nodeLink(n.id),
      });
    }
  }
  for (const n of s.components) {
    if (n.quarantined) {
      out.push({
        id: `${n.id} quarantine`,
        title: `${n.id} has ${plural(n.quarantined, "record")} in quarantine.`,
        text: "The script failed on these records.",
        fix: `Look at them with 'weir quarantine show ${n.id}', correct the script and replay them.`,
        href: nodeLink(n.id),
      });
    }
  }
  return out;
}

function fixOf(n: Node, message: string): string {
  if (/refused by test/.test(message))
    return `Run 'weir test ${n.sources[0] ?? ""}' and correct the script or its test.`;
  if (/refused by (shadow|canary)/.test(message)) return "Compare the versions in the view of the node.";
  if (/refused by (compile|check)/.test(message))
    return `Run 'weir check ${n.sources[0] ?? ""}' and correct the script.`;
  if (/unreachable|connection refused|no such host|timeout|deadline/.test(message)) {
    return "Check the address in the arguments and whether the endpoint is running. weir tries again by itself.";
  }
  if (/permission denied/.test(message)) return "Give the user that weir runs as access to the file.";
  if (/no such file/.test(message)) return "Create the file, or correct its path in the config.";
  if (n.health.state === "exited") return "The component restarts by itself. The log has more about the reason.";
  return "Look at the node, its last records and the log.";
}

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
          {p.since && <span class="soft"> for {age(p.since, now)}</span>}
          <Pre>{printable(p.text)}</Pre>
          <p>{printable(p.fix)}</p>
        </article>
      ))}
      {trials.map((n) => (
        <p key={n.id} class="box warn">
          <a href={nodeLink(n.id, { tab: "script" })}>{n.id}</a>: version {n.trial?.version.slice(0, 7)} is in the step{" "}
          {n.trial?.step}.
        </p>
      ))}
    </section>
  );
}

function Totals({ shown, status }: { shown: Shown; status: Status }) {
  const isSink = (n: Node) => n.sends_to.length === 0 && (flowOf(n).in > 0 || (n.live?.in ?? 0) > 0);
  const isSource = (n: Node) => n.sends_to.length > 0 && !status.components.some((o) => o.sends_to.includes(n.id));
  const sum = (nodes: Node[], of: (n: Node) => number) => nodes.reduce((t, n) => t + of(n), 0);
  const waiting = sum(status.components, (n) => flowOf(n).waiting ?? 0);
  // Other nodes drop records because the config says so.
  const lost = sum(status.components.filter(isSink), (n) => flowOf(n).dropped);
  const figures: [string, string][] = [
    ["Nodes", String(status.components.length)],
    ["Records from sources", rate(sum(status.components.filter(isSource), (n) => shown.rates.get(n.id)?.out ?? 0))],
    ["Records to sinks", rate(sum(status.components.filter(isSink), (n) => shown.rates.get(n.id)?.in ?? 0))],
    ["Waiting in journals", count(waiting)],
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
          { name: "id", title: "Node", by: (n) => n.id, show: (n) => <a href={nodeLink(n.id)}>{n.id}</a> },
          {
            name: "health",
            title: "Health",
            by: (n) => n.health.state,
            show: (n) => <HealthBadge state={n.health.state} />,
          },
          { name: "in", title: "In", num: true, by: (n) => r(n)?.in ?? 0, show: (n) => rate(r(n)?.in) },
          { name: "out", title: "Out", num: true, by: (n) => r(n)?.out ?? 0, show: (n) => rate(r(n)?.out) },
          {
            name: "dropped",
            title: "Dropped",
            num: true,
            wide: true,
            by: (n) => flowOf(n).dropped,
            show: (n) => count(flowOf(n).dropped),
          },
          {
            name: "waiting",
            title: "Waiting",
            num: true,
            wide: true,
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
