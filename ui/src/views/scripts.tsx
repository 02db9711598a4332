// All nodes that run scripts, with their versions and the results of their tests.

import type { Node } from "../api";
import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { Loading } from "../parts/message";
import { Name } from "../parts/name";
import { Table } from "../parts/table";
import { runOf, runTests, scriptKey, summary, useRuns } from "../parts/tests";
import { nodeLink, type Route } from "../route";
import { count, printable, short } from "../text";
import { scriptLink, useScripted } from "./script";

export function Scripts({ route }: { route: Route }) {
  const nodes = useScripted();
  const runs = useRuns();
  if (!nodes) return <Loading />;
  const testable = new Map(nodes.filter((n) => n.sources.length > 0).map((n) => [scriptKey(n), n]));
  const running = [...testable.keys()].some((key) => runs.get(key)?.running);
  const filter = route.query.get("filter") ?? "";
  return (
    <>
      <div class="bar">
        <h1>Scripts</h1>
        <Filter name="filter" value={filter} label="Filter by node or file" />
        {testable.size > 0 && (
          <button type="button" disabled={running} onClick={() => Promise.all([...testable.values()].map(runTests))}>
            {running ? "Running the tests…" : "Run all tests"}
          </button>
        )}
      </div>
      <Table
        label="Scripts"
        sort={route.query.get("sort") ?? ""}
        rows={nodes.filter((n) => matches(filter, `${n.id} ${n.sources.join(" ")}`))}
        id={(n) => n.id}
        empty={nodes.length === 0 ? "No node runs a script." : "No script matches the filter."}
        columns={[
          {
            name: "id",
            title: "Node",
            by: (n) => n.id,
            show: (n) => (
              <a href={scriptLink(n.id)}>
                <Name text={n.id} />
              </a>
            ),
          },
          {
            name: "health",
            title: "Health",
            by: (n) => n.health.state,
            show: (n) => <HealthBadge state={n.health.state} />,
          },
          { name: "version", title: "Version", by: (n) => n.version, show: (n) => <code>{short(n.version)}</code> },
          { name: "tests", title: "Tests", show: (n) => <Outcome node={n} /> },
          {
            name: "step",
            title: "New version",
            show: (n) => (n.trial ? `${short(n.trial.version)}: ${n.trial.step}` : ""),
          },
          {
            name: "file",
            title: "File",
            by: (n) => n.sources[0] ?? "",
            show: (n) => (n.sources[0] ? <Name text={n.sources[0]} /> : "shipped with weir"),
          },
          {
            name: "quarantined",
            title: "Quarantined",
            num: true,
            by: (n) => n.quarantined ?? 0,
            show: (n) =>
              n.quarantined ? <a href={nodeLink(n.id, { tab: "quarantine" })}>{count(n.quarantined)}</a> : "0",
          },
        ]}
      />
    </>
  );
}

function Outcome({ node }: { node: Node }) {
  const run = runOf(useRuns(), node);
  if (node.sources.length === 0) return <span class="soft">none</span>;
  if (run?.running) return <span class="soft">running…</span>;
  if (run?.error) return <span class="missed">{printable(run.error, 200)}</span>;
  if (!run?.report) return <span class="soft">not run</span>;
  const { text, bad } = summary(run.report);
  return (
    <a class={bad ? "missed" : undefined} href={scriptLink(node.id)}>
      {text}
    </a>
  );
}
