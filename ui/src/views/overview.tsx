// Problems first, then the totals, the last reloads and all nodes.

import type { Node, Status } from "../api";
import { Charts, type History, useHistory } from "../parts/chart";
import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { Loading, Pre } from "../parts/message";
import { Table } from "../parts/table";
import { link, nodeLink, type Route } from "../route";
import { flowOf, type Shown, useDetails, useStatus } from "../status";
import { age, count, duration, plural, printable, rate } from "../text";
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

export interface Problem {
  id: string;
  title: string;
  text: string;
  since?: string;
  /** What to do, and where. */
  fix: string;
  links: { title: string; href: string }[];
  /** The view of what has the problem. */
  href: string;
}

/** Whose targets the overview follows: requesting all of them would cost too much. */
const mostScrapes = 20;

const targetsOf = (n: Node) => {
  const list = (n.debug as { targets?: { health: string; url: string; error?: string }[] } | null)?.targets;
  return Array.isArray(list) ? list : undefined;
};

const sick = (n: Node) => n.health.state === "unhealthy" || n.health.state === "exited";

/** The problems of weir and its nodes, the most severe first. */
export function problemsOf(s: Status): Problem[] {
  const out: Problem[] = [];
  if (s.config_error) {
    out.push({
      id: "config",
      title: "The config on disk was refused. An older one runs.",
      text: s.config_error,
      fix: "Correct the file at the position in the message and save it.",
      links: [{ title: "All mistakes, at their lines", href: link(["config"], { tab: "disk" }) }],
      href: link(["config"]),
    });
  }
  for (const text of s.stalled ?? []) {
    out.push({
      id: `stalled ${text}`,
      title: "An operation of weir does not return.",
      text,
      fix: "Check whether the file system or the network that the message names responds.",
      links: [{ title: "Log", href: link(["log"]) }],
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
        ...fixOf(n, h.message),
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
        fix: "Look at them, correct the script and replay them.",
        links: [
          { title: "Quarantine", href: nodeLink(n.id, { tab: "quarantine" }) },
          { title: "Playground", href: nodeLink(n.id, { tab: "playground" }) },
        ],
        href: nodeLink(n.id, { tab: "quarantine" }),
      });
    }
    const down = targetsOf(n)?.filter((t) => t.health === "down") ?? [];
    if (down.length > 0) {
      const view = link(["targets"], { filter: `down ${n.id}` });
      out.push({
        id: `${n.id} targets`,
        title: `${n.id} cannot scrape ${plural(down.length, "target")}.`,
        text: down
          .slice(0, 3)
          .map((t) => `${t.url}: ${t.error ?? "down"}`)
          .join("\n"),
        fix: "Check whether the target is running and its address is right. weir tries again at the next interval.",
        links: [{ title: down.length > 3 ? "All targets that are down" : "Targets", href: view }],
        href: view,
      });
    }
  }
  return out;
}

function fixOf(n: Node, message: string): Pick<Problem, "fix" | "links"> {
  const script = { title: "Versions of the script", href: nodeLink(n.id, { tab: "script" }) };
  const playground = { title: "Playground", href: nodeLink(n.id, { tab: "playground" }) };
  if (/refused by test/.test(message))
    return {
      fix: `Correct the script or its test. 'weir test ${n.sources[0] ?? ""}' runs the tests.`,
      links: [playground, script],
    };
  if (/refused by (shadow|canary)/.test(message))
    return { fix: "Compare the versions, and correct the script.", links: [script, playground] };
  if (/refused by (compile|check)/.test(message))
    return {
      fix: "Correct the script at the position in the message and save it. The running version stays active.",
      links: [playground, script],
    };
  if (/unreachable|connection refused|no such host|timeout|deadline/.test(message))
    return {
      fix: "Check the address in the arguments and whether the endpoint is running. weir tries again by itself.",
      links: n.sends_to.length === 0 ? [{ title: "Journals", href: link(["journals"]) }] : [],
    };
  if (/queue does not drain/.test(message))
    return {
      fix: "Check whether the endpoint accepts data. weir keeps what waits and tries again by itself.",
      links: [{ title: "Journals", href: link(["journals"]) }],
    };
  if (/permission denied/.test(message))
    return { fix: "Give the user that weir runs as access to the file.", links: [] };
  if (/no such file/.test(message)) return { fix: "Create the file, or correct its path in the config.", links: [] };
  const log = { title: "Log", href: link(["log"], { filter: n.id }) };
  if (n.health.state === "exited")
    return { fix: "The component restarts by itself. The log has more about the reason.", links: [log] };
  return { fix: "Look at the details of the node and the log.", links: [log] };
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
          <p>
            {printable(p.fix)}{" "}
            {p.links.map((l) => (
              <span key={l.href}>
                {" "}
                <a href={l.href}>{l.title}</a>
              </span>
            ))}
          </p>
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
          { name: "id", title: "Node", by: (n) => n.id, show: (n) => <a href={nodeLink(n.id)}>{n.id}</a> },
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
            title: "Dropped",
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
