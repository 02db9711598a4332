// The version and the settings of weir, and the support bundle.

import { base, getJSON } from "../api";
import { Filter, matches } from "../parts/filter";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading } from "../parts/message";
import { Name } from "../parts/name";
import { Table } from "../parts/table";
import type { Route } from "../route";
import { useStatus } from "../status";
import { age, printable } from "../text";

interface Build {
  version: string;
  revision?: string;
  modified?: boolean;
  go_version: string;
  platform: string;
  tags: string[];
  licence: string;
  storage_path: string;
  settings: { name: string; value: string; default: string; set_by: string; doc: string }[];
}

export function BuildView({ route }: { route: Route }) {
  const { status, now } = useStatus();
  const { value, error } = useLoad((signal) => getJSON<Build>("/api/v0/build", signal), [status?.started]);
  if (error) return <ErrorBox title="Cannot load the build." text={error.message} />;
  if (!value || !status) return <Loading />;
  const filter = route.query.get("filter") ?? "";
  return (
    <>
      <h1>Build and flags</h1>
      <dl class="pairs">
        <dt>Version</dt>
        <dd>{printable(value.version)}</dd>
        <dt>Revision</dt>
        <dd>
          {value.revision ? <code>{value.revision}</code> : "not recorded in this build"}
          {value.modified && ", with changes"}
        </dd>
        <dt>Go</dt>
        <dd>
          {value.go_version}, {value.platform}
        </dd>
        <dt>Build tags</dt>
        <dd>{value.tags.length > 0 ? value.tags.join(", ") : "none"}</dd>
        <dt>Licence</dt>
        <dd>{value.licence}</dd>
        <dt>Storage path</dt>
        <dd>
          <code>{printable(value.storage_path)}</code>
        </dd>
        <dt>Config</dt>
        <dd>
          <code>{printable(status.config)}</code>
        </dd>
        <dt>Up</dt>
        <dd>
          {age(status.started, now)}, since {new Date(status.started).toLocaleString()}
        </dd>
      </dl>
      <h2>Support bundle</h2>
      {status.allowed.live_data ? (
        <p>
          <a href={`${base}/api/v0/support-bundle`} download>
            Download a support bundle
          </a>{" "}
          (takes 5 seconds): the config, status, reloads, log, metrics and profiles in one ZIP file, as{" "}
          <code>weir support-bundle</code> writes it. Secrets are masked. Read it before you send it to somebody: it
          contains names of hosts, paths and labels.
        </p>
      ) : (
        <p>
          Live data is off, so the log and a support bundle, which contains it, cannot be downloaded. Run{" "}
          <code>weir support-bundle</code> on the machine that weir runs on.
        </p>
      )}
      <div class="bar">
        <h2 id="flags">Flags and environment variables</h2>
        <Filter name="filter" value={filter} label="Filter settings" />
      </div>
      <Table
        label="Flags and environment variables"
        sort={route.query.get("sort") ?? ""}
        rows={value.settings.filter((s) => matches(filter, `${s.name} ${s.value} ${s.set_by} ${s.doc}`))}
        id={(s) => s.name}
        empty="No setting matches the filter."
        columns={[
          {
            name: "name",
            title: "Name",
            by: (s) => s.name,
            show: (s) => (
              <>
                <code>{s.name}</code>
                <div class="soft">{printable(s.doc)}</div>
              </>
            ),
          },
          {
            name: "value",
            title: "Value",
            by: (s) => s.value,
            show: (s) => (
              <code>
                <Name text={s.value || "(empty)"} limit={4000} />
              </code>
            ),
          },
          { name: "set", title: "Set by", by: (s) => s.set_by, show: (s) => s.set_by },
          {
            name: "default",
            title: "Default",
            show: (s) => (
              <code>
                <Name text={s.default || "(empty)"} limit={4000} />
              </code>
            ),
          },
        ]}
      />
    </>
  );
}
