// What is scraped and read, when, for how long, and with which error.

import { useState } from "preact/hooks";
import type { Node, Path } from "../api";
import { Filter, matches } from "../parts/filter";
import { HealthBadge } from "../parts/health";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { Name, NodeLink } from "../parts/name";
import { Table } from "../parts/table";
import type { Route } from "../route";
import { useDetails, useStatus } from "../status";
import { age, count, duration, plural, printable } from "../text";
import { follow, Result, whyTargetLink } from "./why";

/** A target in the debug information of prometheus.scrape. */
interface Target {
  url: string;
  labels: Record<string, string>;
  health: "up" | "down" | "unknown";
  error?: string;
  last_scrape?: string;
  last_scrape_seconds: number;
  last_scrape_samples: number;
}

/** A file in the debug information of loki.source.file. */
interface File {
  path: string;
  labels: string;
  offset: number;
  size: number;
  acknowledged_offset: number;
  rotated?: boolean;
  refusal?: string;
  error?: string;
}

interface Debug {
  targets?: Target[];
  more_targets?: number;
  invalid?: string[];
  surplus?: number;
  files?: File[];
}

type Of<T> = T & { node: string };

function listOf<K extends "targets" | "files">(nodes: Node[], what: K): Of<NonNullable<Debug[K]>[number]>[] {
  return nodes.flatMap((n) => {
    const list = (n.debug as Debug | null)?.[what];
    return Array.isArray(list) ? list.map((e) => ({ ...e, node: n.id })) : [];
  });
}

export function Targets({ route }: { route: Route }) {
  const { status, now } = useStatus();
  useDetails(status?.components.filter((n) => n.debug).map((n) => n.id) ?? []);
  if (!status) return <Loading />;
  const filter = route.query.get("filter") ?? "";
  const sort = route.query.get("sort") ?? "";
  const targets = listOf(status.components, "targets");
  const files = listOf(status.components, "files");
  return (
    <>
      <div class="bar">
        <h1>Targets and files</h1>
        <Filter name="filter" value={filter} label="Filter targets and files" />
      </div>
      <NotScraped nodes={status.components} />
      <h2>{plural(targets.length, "scraped target")}</h2>
      <TargetTable rows={targets.filter((t) => matches(filter, JSON.stringify(t)))} now={now} sort={sort} />
      <Discovered filter={filter} sort={sort} targets={targets} />
      <h2>{plural(files.length, "file")}</h2>
      <FileTable rows={files.filter((f) => matches(filter, JSON.stringify(f)))} sort={sort} />
    </>
  );
}

/** Targets that a component has, but does not scrape. */
function NotScraped({ nodes }: { nodes: Node[] }) {
  return (
    <>
      {nodes.map((n) => {
        const d = n.debug as Debug | null;
        const reasons = [
          ...(d?.invalid ?? []),
          ...(d?.surplus ? [`${plural(d.surplus, "target")} above target_limit`] : []),
        ];
        if (reasons.length === 0) return null;
        return (
          <div key={n.id} class="box bad">
            <strong>
              <NodeLink id={n.id} /> does not scrape all of its targets.
            </strong>
            <Pre>{printable(reasons.join("\n"))}</Pre>
          </div>
        );
      })}
    </>
  );
}

const states = { up: "healthy", down: "unhealthy", unknown: "unknown" } as const;

function labelText(labels: Record<string, string>): string {
  return printable(
    Object.entries(labels)
      .map(([k, v]) => `${k}=${JSON.stringify(v)}`)
      .join(", "),
    1000,
  );
}

/** A label in each line, and what differs from the labels before. */
function Labels({ labels, before }: { labels: Record<string, string>; before?: Record<string, string> }) {
  return (
    <ul class="plain labels">
      {Object.entries(labels).map(([k, v]) => {
        // A label may be named constructor or __proto__.
        const change = !before ? "" : !Object.hasOwn(before, k) ? "added" : before[k] === v ? "" : "changed";
        return (
          <li key={k} class={change}>
            <code>{labelText({ [k]: v })}</code> {change}
          </li>
        );
      })}
    </ul>
  );
}

function TargetTable({ rows, now, sort }: { rows: Of<Target>[]; now: number; sort: string }) {
  return (
    <Table
      label="Targets"
      sort={sort}
      rows={rows}
      id={(t) => `${t.node} ${t.url} ${JSON.stringify(t.labels)}`}
      empty="No target, or none that matches the filter."
      columns={[
        {
          name: "url",
          title: "URL",
          by: (t) => t.url,
          show: (t) => (
            <>
              <Name text={t.url} />
              {t.error && <Pre class="error">{printable(t.error)}</Pre>}
            </>
          ),
        },
        {
          name: "health",
          title: "Health",
          by: (t) => t.health,
          show: (t) => <HealthBadge state={states[t.health] ?? "unknown"} text={t.health} />,
        },
        {
          name: "last",
          title: "Last scrape",
          num: true,
          by: (t) => Date.parse(t.last_scrape ?? "") || 0,
          show: (t) => (t.last_scrape ? `${age(t.last_scrape, now)} ago` : "never"),
        },
        {
          name: "took",
          title: "Took",
          num: true,
          by: (t) => t.last_scrape_seconds,
          show: (t) => duration(t.last_scrape_seconds * 1000),
        },
        {
          name: "samples",
          title: "Samples",
          num: true,
          by: (t) => t.last_scrape_samples,
          show: (t) => count(t.last_scrape_samples),
        },
        { name: "labels", title: "Labels", show: (t) => <code>{labelText(t.labels)}</code> },
        {
          name: "node",
          title: "Node",
          by: (t) => t.node,
          show: (t) => <NodeLink id={t.node} />,
        },
      ]}
    />
  );
}

/** The most targets whose way from the discovery is shown. */
const mostDiscovered = 1000;

/** The targets of all discoveries with what became of them: the labels before and after the rules. */
function Discovered({ filter, sort, targets }: { filter: string; sort: string; targets: Of<Target>[] }) {
  const [again, refresh] = useState(0);
  const { value, error } = useLoad(
    async (signal) => {
      const paths: Path[] = [];
      for await (const p of follow("*", { where: "true", targets: "true", limit: String(mostDiscovered) }, signal))
        if (p.kind === "path") paths.push(p);
      return paths;
    },
    [again],
  );
  if (error) return <ErrorBox title="Cannot follow the discovered targets." text={error.message} />;
  if (!value) return <Loading />;
  const last = (p: Path) => p.nodes?.at(-1);
  const rules = (p: Path) =>
    (last(p)?.steps ?? [])
      .filter((s) => s.dropped || s.kind === "limit")
      .map((s) => [s.kind, s.index, s.name, s.detail && `(${s.detail})`].filter(Boolean).join(" "))
      .join("\n");
  // A scrape adds labels such as instance, and removes those that begin with "__".
  const final = (p: Path) => {
    const n = last(p);
    const labels = (n?.after ?? n?.before ?? p.record)?.labels ?? {};
    if (n?.result !== "up" && n?.result !== "down") return labels;
    const kept = Object.entries(labels).filter(([k]) => !k.startsWith("__"));
    const scraped = targets.find(
      (t) =>
        t.node === n.node &&
        t.url.includes(labels.__address__ ?? "") &&
        t.url.includes(labels.__metrics_path__ ?? "") &&
        kept.every(([k, v]) => t.labels[k] === v),
    );
    return scraped?.labels ?? Object.fromEntries(kept);
  };
  return (
    <>
      <div class="bar">
        <h2>
          {value.length === mostDiscovered
            ? `The first ${mostDiscovered} discovered targets`
            : plural(value.length, "discovered target")}
        </h2>
        <button type="button" onClick={() => refresh(again + 1)}>
          Refresh
        </button>
      </div>
      <p class="soft">Each target at its last node. Why shows every rule on its way.</p>
      <Table
        label="Discovered targets"
        sort={sort}
        rows={value.filter((p) => matches(filter, JSON.stringify(p)))}
        id={(p) => `${p.nodes?.[0]?.node} ${last(p)?.node} ${p.text}`}
        empty="No discovered target, or none that matches the filter."
        columns={[
          {
            name: "discovered",
            title: "Discovered labels",
            by: (p) => p.text,
            show: (p) => (
              <>
                <Labels labels={p.record?.labels ?? {}} />
                {p.record && (
                  <p>
                    <a href={whyTargetLink(p.record)}>why</a>
                  </p>
                )}
              </>
            ),
          },
          {
            name: "result",
            title: "Result",
            by: (p) => last(p)?.result ?? "",
            show: (p) => {
              const n = last(p);
              return (
                n && (
                  <>
                    <Result n={n} /> <NodeLink id={n.node} />
                    {rules(p) && <Pre>{printable(rules(p))}</Pre>}
                    {n.result === "down" && n.reason && <Pre class="error">{printable(n.reason)}</Pre>}
                  </>
                )
              );
            },
          },
          {
            name: "final",
            title: "Final labels",
            show: (p) =>
              last(p)?.result === "dropped" ? "–" : <Labels labels={final(p)} before={p.record?.labels ?? {}} />,
          },
        ]}
      />
    </>
  );
}

function FileTable({ rows, sort }: { rows: Of<File>[]; sort: string }) {
  return (
    <Table
      label="Files"
      sort={sort}
      rows={rows}
      id={(f) => `${f.node} ${f.path} ${f.labels}`}
      empty="No file, or none that matches the filter."
      columns={[
        {
          name: "path",
          title: "File",
          by: (f) => f.path,
          show: (f) => (
            <>
              <Name text={f.path} />
              {f.rotated && <span class="soft"> (rotated)</span>}
              {(f.error || f.refusal) && <Pre class="error">{printable(f.error ?? f.refusal ?? "")}</Pre>}
            </>
          ),
        },
        { name: "read", title: "Read", num: true, by: (f) => f.offset, show: (f) => percent(f.offset, f.size) },
        {
          name: "stored",
          title: "Stored",
          num: true,
          by: (f) => f.acknowledged_offset,
          show: (f) => percent(f.acknowledged_offset, f.size),
        },
        {
          name: "size",
          title: "Bytes",
          num: true,
          by: (f) => f.size,
          show: (f) => count(f.size),
        },
        { name: "labels", title: "Labels", show: (f) => <code>{printable(f.labels, 1000)}</code> },
        {
          name: "node",
          title: "Node",
          by: (f) => f.node,
          show: (f) => <NodeLink id={f.node} />,
        },
      ]}
    />
  );
}

const percent = (part: number, of: number) => (of > 0 ? `${Math.floor((100 * part) / of)} %` : "–");
