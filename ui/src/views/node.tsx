// One node: what it is, what it does now, its live records and its script.

import type { ComponentChildren } from "preact";
import { getJSON, type Node, nodePath } from "../api";
import { Charts, type HealthChange, useHistory } from "../parts/chart";
import { WhatToDo } from "../parts/fix";
import { HealthBadge } from "../parts/health";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { Name, NodeLink } from "../parts/name";
import { fixesOf, messagesOf, sick } from "../problems";
import { nodeLink, type Route } from "../route";
import { flowOf, type Shown, useDetails, useStatus } from "../status";
import { age, clock, count, isEmpty, json, printable, rate, short } from "../text";
import { Live } from "./live";
import { Quarantine } from "./quarantine";
import { marksOf, useReloads } from "./reloads";
import { Reports, Script } from "./script";
import { State } from "./state";

const tabs = [
  { name: "", title: "Details" },
  { name: "live", title: "Live records" },
  { name: "script", title: "Script" },
  { name: "state", title: "State" },
  { name: "quarantine", title: "Quarantine" },
  { name: "playground", title: "Playground" },
];

const scriptTabs = ["script", "state", "quarantine"];

export function NodeView({ route }: { route: Route }) {
  const shown = useStatus();
  if (!shown.status) return <Loading />;
  const id = route.path.slice(1).join("/");
  const all = [...shown.status.components, ...shown.status.services];
  const n = all.find((n) => n.id === id);
  if (!n) return <ErrorBox title={`There is no node ${printable(id)}.`} text="It may have been removed by a reload." />;
  const tab = route.query.get("tab") ?? "";
  const scripted = n.version !== "";
  const playable = n.playground || (scripted && n.samples && n.sends_to.length > 0);
  return (
    <>
      <div class="bar">
        <h1>
          <Name text={n.id} />
        </h1>
        <HealthBadge state={n.health.state} />
        <span class="soft">for {age(n.health.time, shown.now)}</span>
      </div>
      <nav class="tabs" aria-label="Node">
        {tabs
          .filter(
            (t) =>
              (t.name !== "live" || n.samples) &&
              (!scriptTabs.includes(t.name) || scripted) &&
              (t.name !== "playground" || playable),
          )
          .map((t) => (
            <a key={t.name} href={nodeLink(n.id, { tab: t.name })} aria-current={t.name === tab ? "page" : undefined}>
              {t.title}
            </a>
          ))}
      </nav>
      {tab === "live" ? (
        <Live key={n.id} node={n} route={route} />
      ) : tab === "script" ? (
        <Script node={n} now={shown.now} />
      ) : tab === "state" ? (
        <State node={n} now={shown.now} sort={route.query.get("sort") ?? ""} />
      ) : tab === "quarantine" ? (
        <Quarantine node={n} now={shown.now} sort={route.query.get("sort") ?? ""} />
      ) : tab === "playground" ? (
        <Playground key={n.id} node={n} />
      ) : (
        <Details n={n} all={all} shown={shown} />
      )}
    </>
  );
}

/** The playground with its editor, which is most of the code of the web UI. */
function Playground({ node }: { node: Node }) {
  const { value, error } = useLoad(() => import("./playground"), []);
  if (error) return <ErrorBox title="Cannot load the playground. Load the page again." text={error.message} />;
  return value ? <value.Playground node={node} /> : <Loading />;
}

function Details({ n, all, shown }: { n: Node; all: Node[]; shown: Shown }) {
  useDetails([n.id]);
  const from = all.filter((o) => o.sends_to.includes(n.id)).map((o) => o.id);
  const usedBy = all.filter((o) => o.depends_on.includes(n.id) && !o.sends_to.includes(n.id)).map((o) => o.id);
  const refersTo = n.depends_on.filter((id) => !n.sends_to.includes(id));
  const history = useHistory(n.id, shown.now);
  const reloads = useReloads();
  const f = flowOf(n);
  const r = shown.rates.get(n.id);
  const dropped = Object.entries({ ...n.samples?.dropped, ...n.lines?.dropped });
  return (
    <div class="beside">
      <div>
        {sick(n) ? (
          <div class="box bad" role="alert">
            <strong>
              {n.health.state} for {age(n.health.time, shown.now)}
            </strong>
            <Pre>{printable(messagesOf(n).join("\n"))}</Pre>
            <WhatToDo of={fixesOf(n)} />
          </div>
        ) : (
          n.health.message !== "running" && n.health.message && <p class="box">{printable(n.health.message)}</p>
        )}
        {!sick(n) && n.last_error && (
          <details class="box">
            <summary>
              Last error, {age(n.last_error.time, shown.now)} ago ({n.last_error.state})
            </summary>
            <Pre>{printable(n.last_error.message)}</Pre>
          </details>
        )}
        <Reports node={n} />
        {n.samples && <Charts node={n.id} history={history} marks={marksOf(reloads.value, n.id)} />}
        <dl class="pairs">
          <Pair name="Component">{n.name}</Pair>
          {n.position && <Pair name="Config">{n.position}</Pair>}
          {n.sources.length > 0 && <Pair name="Files">{n.sources.join(", ")}</Pair>}
          {n.version && <Pair name="Version">{short(n.version)}</Pair>}
          {n.trial && (
            <Pair name="New version">
              {short(n.trial.version)}: {n.trial.step} for {age(n.trial.since, shown.now)}
            </Pair>
          )}
          {from.length > 0 && <Links name="Gets records from" ids={from} />}
          {n.sends_to.length > 0 && <Links name="Sends records to" ids={n.sends_to} />}
          {refersTo.length > 0 && <Links name="Refers to" ids={refersTo} />}
          {usedBy.length > 0 && <Links name="Used by" ids={usedBy} />}
          {n.samples && (
            <>
              <Pair name="Records in">
                {count(f.in)} ({rate(r?.in)})
              </Pair>
              <Pair name="Records out">
                {count(f.out)} ({rate(r?.out)})
              </Pair>
            </>
          )}
          {f.waiting !== undefined && <Pair name="Waiting">{count(f.waiting)}</Pair>}
          {dropped.length > 0 && (
            <Pair name="Dropped">{dropped.map(([why, n]) => `${why}: ${count(n)}`).join(", ")}</Pair>
          )}
          {!!n.quarantined && <Pair name="In quarantine">{count(n.quarantined)}</Pair>}
          {n.restarts > 0 && <Pair name="Restarts">{n.restarts}</Pair>}
        </dl>
        <HealthHistory changes={history.value?.health ?? []} />
        <Value title="Arguments" value={n.arguments} open />
        <Value title="Exports" value={n.exports} open />
        <Value title="Debug information" value={n.debug} />
        {!!n.omitted && <p class="soft">{count(n.omitted)} elements of long lists are not shown.</p>}
      </div>
      <aside aria-labelledby="manual">
        <h2 id="manual">Documentation</h2>
        <Manual name={n.name} />
      </aside>
    </div>
  );
}

/** The changes of health in the last hour. */
function HealthHistory({ changes }: { changes: HealthChange[] }) {
  if (changes.length < 2) return null;
  return (
    <details class="value">
      <summary>Changes of health in the last hour ({changes.length})</summary>
      <ol class="plain">
        {changes.toReversed().map((c) => (
          <li key={c.time}>
            <time dateTime={c.time}>{clock(c.time)}</time> {c.state}{" "}
            <span class="soft">{printable(c.message ?? "")}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function Pair({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Links({ name, ids }: { name: string; ids: string[] }) {
  return (
    <Pair name={name}>
      {ids.map((id, i) => (
        <span key={id}>
          {i > 0 && ", "}
          <NodeLink id={id} />
        </span>
      ))}
    </Pair>
  );
}

function Value({ title, value, open }: { title: string; value: unknown; open?: boolean }) {
  if (isEmpty(value)) return null;
  const text = json(value);
  return (
    <details class="value" open={open && text.length < 3000}>
      <summary>{title}</summary>
      <Pre>{text}</Pre>
    </details>
  );
}

/** The manual of a component. */
function Manual({ name }: { name: string }) {
  const { value, error } = useLoad(
    (signal) => getJSON<{ text: string }>(nodePath("/api/v0/manual/", name), signal),
    [name],
  );
  if (error) return <p class="soft">{printable(error.message)}</p>;
  return value ? <Pre>{printable(value.text, 200_000)}</Pre> : <Loading />;
}
