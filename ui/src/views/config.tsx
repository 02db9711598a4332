// The config that runs, the one on disk with what is wrong with it, and what a reload would change.

import { useState } from "preact/hooks";
import { APIError, getJSON, request } from "../api";
import { type Loaded, useLoad } from "../parts/load";
import { ErrorBox, Loading } from "../parts/message";
import { NodeLink } from "../parts/name";
import { Source } from "../parts/source";
import { Table } from "../parts/table";
import { link, type Route } from "../route";
import { useStatus } from "../status";
import { plural, printable, short } from "../text";
import { Diff } from "./diff";

interface ConfigFile {
  path: string;
  text: string;
  formatted?: string;
}

interface Running {
  path: string;
  files: ConfigFile[];
}

interface Diagnostic {
  severity: "error" | "warning";
  file: string;
  line?: number;
  column?: number;
  message: string;
  hint?: string;
  detail?: string;
}

interface Checked extends Running {
  diagnostics: Diagnostic[];
  mistakes: number;
}

interface PreviewNode {
  id: string;
  action: string;
  from?: string;
  to?: string;
  why: string;
}

interface Preview {
  nodes: PreviewNode[];
  untouched: number;
}

const tabs = [
  { name: "", title: "Running" },
  { name: "disk", title: "On disk" },
  { name: "diff", title: "Difference" },
  { name: "format", title: "Format" },
];

export function Config({ route }: { route: Route }) {
  const [asked, ask] = useState(0);
  const { reloads } = useStatus();
  const running = useLoad((signal) => getJSON<Running>("/api/v0/config", signal), [reloads, asked]);
  const checked = useLoad((signal) => getJSON<Checked>("/api/v0/config/check", signal), [reloads, asked]);
  const tab = route.query.get("tab") ?? "";
  return (
    <>
      <div class="bar">
        <h1>Config</h1>
        {running.value && <code>{printable(running.value.path)}</code>}
        <button type="button" onClick={() => ask((n) => n + 1)}>
          Check again
        </button>
      </div>
      <p class="soft">Secrets are masked. A block with a syntax error is shown without its strings.</p>
      <Diagnostics checked={checked} />
      <Changes deps={[reloads, asked]} sort={route.query.get("sort") ?? ""} />
      <nav class="tabs" aria-label="Texts">
        {tabs.map((t) => (
          <a key={t.name} href={link(["config"], { tab: t.name })} aria-current={t.name === tab ? "page" : undefined}>
            {t.title}
          </a>
        ))}
      </nav>
      {running.error && <ErrorBox title="Cannot load the config." text={running.error.message} />}
      {running.value && checked.value ? (
        <Text
          tab={tab}
          running={running.value.files}
          checked={checked.value}
          at={{ file: route.query.get("file") ?? "", line: Number(route.query.get("line")) }}
        />
      ) : (
        !running.error && !checked.error && <Loading />
      )}
    </>
  );
}

function Diagnostics({ checked: { value, error } }: { checked: Loaded<Checked> }) {
  if (error) return <ErrorBox title="Cannot check the config on disk." text={error.message} />;
  if (!value) return <Loading />;
  const warnings = value.diagnostics.length - value.mistakes;
  const title = value.mistakes
    ? `The config on disk has ${plural(value.mistakes, "mistake")}`
    : "The config on disk has no mistakes";
  return (
    <section aria-labelledby="diagnostics">
      <h2 id="diagnostics">
        {title}
        {warnings > 0 && ` and ${plural(warnings, "warning")}`}
      </h2>
      {value.diagnostics.map((d, i) => (
        <article key={i} class={`box ${d.severity === "error" ? "bad" : "warn"}`}>
          <p>
            <strong>{d.severity}</strong>{" "}
            {value.files.some((f) => f.path === d.file) ? (
              <a href={link(["config"], { tab: "disk", file: d.file, line: String(d.line ?? "") })}>
                <code>{printable(position(d))}</code>
              </a>
            ) : (
              <code>{printable(position(d))}</code>
            )}
            : {printable(d.message)}
          </p>
          {d.hint && <p>{printable(d.hint)}</p>}
          {d.detail && <pre>{printable(d.detail)}</pre>}
        </article>
      ))}
    </section>
  );
}

const position = (d: Diagnostic) => [d.file, d.line, d.column].filter(Boolean).join(":");

/** What a reload would do to the nodes. */
function Changes({ deps, sort }: { deps: unknown[]; sort: string }) {
  const { value, error } = useLoad(
    async (signal): Promise<Preview> => (await request("/-/reload/preview", { method: "POST", signal })).json(),
    deps,
  );
  if (error instanceof APIError && error.status === 400) return <p>A reload would be refused and change nothing.</p>;
  if (error) return <ErrorBox title="Cannot find out what a reload would change." text={error.message} />;
  if (!value) return <Loading />;
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">
        A reload would change {value.nodes.length === 0 ? "no node" : plural(value.nodes.length, "node")}
      </h2>
      {value.nodes.length > 0 && (
        <Table
          label="Changes of a reload"
          sort={sort}
          rows={value.nodes}
          id={(n) => n.id}
          empty=""
          columns={[
            {
              name: "id",
              title: "Node",
              by: (n) => n.id,
              show: (n) => (n.action === "added" ? printable(n.id) : <NodeLink id={n.id} />),
            },
            { name: "action", title: "Change", by: (n) => n.action, show: (n) => n.action },
            {
              name: "version",
              title: "Version",
              show: (n) => (n.from && n.to && n.from !== n.to ? `${short(n.from)} → ${short(n.to)}` : ""),
            },
            { name: "why", title: "Why", show: (n) => printable(n.why) },
          ]}
        />
      )}
      <p class="soft">{plural(value.untouched, "node")} untouched. The tests of scripts are not run here.</p>
    </section>
  );
}

function Text(props: {
  tab: string;
  running: ConfigFile[];
  checked: Checked;
  /** The line of the text on disk to show first. */
  at: { file: string; line: number };
}) {
  const { tab, running, checked, at } = props;
  if (tab === "diff") return <Differences before={running} after={checked.files} />;
  if (tab === "format") return <Formatted files={checked.files} />;
  const files = tab === "disk" ? checked.files : running;
  return (
    <>
      {files.map((f) => (
        <Source
          key={f.path}
          name={f.path}
          text={f.text}
          at={tab === "disk" && f.path === at.file && at.line > 0 ? at.line : undefined}
          remarks={
            tab === "disk"
              ? checked.diagnostics
                  .filter((d) => d.file === f.path)
                  .map((d) => ({ line: d.line, severity: d.severity, text: d.message }))
              : []
          }
        />
      ))}
    </>
  );
}

function Differences({ before, after }: { before: ConfigFile[]; after: ConfigFile[] }) {
  const text = (files: ConfigFile[], path: string) => files.find((f) => f.path === path)?.text ?? "";
  const changed = [...new Set([...before, ...after].map((f) => f.path))].filter(
    (path) => text(before, path) !== text(after, path),
  );
  if (changed.length === 0)
    return <p>The files on disk are those that run, except for secrets, which are not compared here.</p>;
  return (
    <>
      <p class="soft">− runs, + is on disk</p>
      {changed.map((path) => (
        <Diff key={path} name={path} before={text(before, path)} after={text(after, path)} />
      ))}
    </>
  );
}

function Formatted({ files }: { files: ConfigFile[] }) {
  return (
    <>
      {files.map((f) =>
        f.formatted === undefined ? (
          <p key={f.path} class="box bad">
            {printable(f.path)} cannot be formatted before its syntax errors are corrected.
          </p>
        ) : f.formatted === f.text ? (
          <p key={f.path} class="box good">
            {printable(f.path)} is formatted.
          </p>
        ) : (
          <section key={f.path}>
            <p class="box warn">
              <code>weir fmt -w {printable(f.path)}</code> would change the file:
            </p>
            <Diff name={f.path} before={f.text} after={f.formatted} />
          </section>
        ),
      )}
    </>
  );
}
