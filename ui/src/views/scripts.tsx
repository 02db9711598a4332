// All nodes that run scripts, with their versions.

import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { Loading } from "../parts/message";
import { Table } from "../parts/table";
import { nodeLink, type Route } from "../route";
import { count, short } from "../text";
import { scriptLink, useScripted } from "./script";

export function Scripts({ route }: { route: Route }) {
  const nodes = useScripted();
  if (!nodes) return <Loading />;
  const filter = route.query.get("filter") ?? "";
  return (
    <>
      <div class="bar">
        <h1>Scripts</h1>
        <Filter name="filter" value={filter} label="Filter by node or file" />
      </div>
      <Table
        label="Scripts"
        sort={route.query.get("sort") ?? ""}
        rows={nodes.filter((n) => matches(filter, `${n.id} ${n.sources.join(" ")}`))}
        id={(n) => n.id}
        empty={nodes.length === 0 ? "No node runs a script." : "No script matches the filter."}
        columns={[
          { name: "id", title: "Node", by: (n) => n.id, show: (n) => <a href={scriptLink(n.id)}>{n.id}</a> },
          {
            name: "health",
            title: "Health",
            by: (n) => n.health.state,
            show: (n) => <HealthBadge state={n.health.state} />,
          },
          { name: "version", title: "Version", by: (n) => n.version, show: (n) => <code>{short(n.version)}</code> },
          {
            name: "step",
            title: "New version",
            show: (n) => (n.trial ? `${short(n.trial.version)}: ${n.trial.step}` : ""),
          },
          {
            name: "file",
            title: "File",
            by: (n) => n.sources[0] ?? "",
            show: (n) => n.sources[0] ?? "shipped with weir",
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
