// What each node does to a record, or a target, on its path through the graph.

import { useEffect, useState } from "preact/hooks";
import { APIError, lines, nodePath, type Path, type PathNode, type PathStep, type State, type TapRecord } from "../api";
import { ErrorBox, Pre } from "../parts/message";
import { NodeLink } from "../parts/name";
import { link, type Route, setQuery } from "../route";
import { expressionOf } from "../selector";
import { useStatus } from "../status";
import { clock, printable } from "../text";

const most = 5;

/** How long records are followed, in seconds. Most targets are scraped once a minute. */
const patience = 120;

export function Why({ route }: { route: Route }) {
  const where = route.query.get("where") ?? "";
  const node = route.query.get("node") ?? "";
  const targets = route.query.get("of") === "targets";
  const [typed, type] = useState(where);
  const [again, follow] = useState(0);
  useEffect(() => type(where), [where]);
  const nodes = useStatus().status?.components ?? [];
  return (
    <>
      <h1>Why</h1>
      <p>
        {targets
          ? "Follows targets from their discovery, and shows which rule changed or dropped them, and whether they are scraped. "
          : "Follows records through the graph, and shows which rule, stage, expression or line of a script changed or dropped them. "}
        {targets ? "Paste the address of a target" : "Paste a series or a log line with its labels"}, or write an{" "}
        <a href={link(["docs", "writing-components"], { at: "expressions" })}>expression</a>, which selects{" "}
        {targets ? "targets" : "records"} before or after any node.
      </p>
      <form
        class="bar"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery({ where: expressionOf(typed, targets) });
          follow((n) => n + 1);
        }}
      >
        <label>
          Follow{" "}
          <select value={targets ? "targets" : ""} onChange={(e) => setQuery({ of: e.currentTarget.value, where: "" })}>
            <option value="">records</option>
            <option value="targets">targets</option>
          </select>
        </label>
        <label class="grow">
          {targets ? "Address or expression" : "Series or expression"}
          <input
            type="text"
            spellcheck={false}
            placeholder={targets ? "10.0.0.7:9100" : 'http_requests_total{job="api"}'}
            value={typed}
            onInput={(e) => type(e.currentTarget.value)}
          />
        </label>
        <label>
          From{" "}
          <select value={node} onChange={(e) => setQuery({ node: e.currentTarget.value })}>
            <option value="">any node</option>
            {nodes.map((n) => (
              <option key={n.id} value={n.id}>
                {n.id}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" disabled={typed.trim() === ""}>
          Follow
        </button>
      </form>
      {where && (
        <Paths key={`${where} ${node} ${targets} ${again}`} where={where} node={node || "*"} targets={targets} />
      )}
    </>
  );
}

function Paths({ where, node, targets }: { where: string; node: string; targets: boolean }) {
  const [paths, setPaths] = useState<Path[]>([]);
  const [notes, setNotes] = useState<string[]>([]);
  const [ended, setEnded] = useState("");
  const [error, setError] = useState("");
  const [invalid, setInvalid] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    (async () => {
      const query = { where, limit: String(most), targets: String(targets), seconds: String(patience) };
      for await (const p of follow(node, query, abort.signal)) {
        if (p.kind === "end") setEnded(p.text);
        else if (p.kind === "error") setError(p.text);
        else if (p.kind === "note") setNotes((old) => [...old, p.text]);
        else setPaths((old) => [...old, p]);
      }
    })().catch((e) => {
      if (abort.signal.aborted) return;
      setError(e.message);
      setInvalid(e instanceof APIError && e.status === 400);
    });
    return () => abort.abort();
  }, []);
  return (
    <div aria-live="polite">
      {error && <ErrorBox title={`Cannot follow the ${targets ? "targets" : "records"}.`} text={error} />}
      {invalid && !targets && (
        <button type="button" onClick={() => setQuery({ where: `line contains ${JSON.stringify(where)}` })}>
          Follow log lines that contain this text
        </button>
      )}
      {!ended && !error && (
        <p class="soft">
          Waiting for {targets ? "targets" : "records"} that match, for at most {patience / 60} minutes…
        </p>
      )}
      {paths.map((p, i) => (
        <PathBox key={i} p={p} />
      ))}
      {notes.map((text) => (
        <p key={text} class="box warn">
          {printable(text)}
        </p>
      ))}
      {ended && <p class="soft">Ended: {printable(ended)}.</p>}
    </div>
  );
}

/** Follows records or targets from a node, or "*", as weir why does. */
export async function* follow(node: string, query: Record<string, string>, signal: AbortSignal): AsyncGenerator<Path> {
  for await (const line of lines(`${nodePath("/api/v0/why/", node)}?${new URLSearchParams(query)}`, signal))
    if (line !== "") yield JSON.parse(line);
}

const tone: Record<string, State> = {
  changed: "exited",
  dropped: "unhealthy",
  missing: "unhealthy",
  refused: "unhealthy",
  down: "unhealthy",
  accepted: "healthy",
  up: "healthy",
};

/** What a node did to a record or a target. */
export function Result({ n }: { n: PathNode }) {
  return <strong class={`health ${tone[n.result] ?? ""}`}>{n.result}</strong>;
}

function PathBox({ p }: { p: Path }) {
  return (
    <article class="box">
      <Pre>{printable(p.text)}</Pre>
      {p.time && (
        <p class="soft">
          <time dateTime={p.time}>{clock(p.time)}</time>
        </p>
      )}
      <ol class="path">
        {p.nodes?.map((n, i) => (
          <PathEntry key={`${n.node} ${i}`} n={n} />
        ))}
      </ol>
    </article>
  );
}

function PathEntry({ n }: { n: PathNode }) {
  return (
    <li>
      <NodeLink id={n.node} /> <Result n={n} /> {n.position && <span class="soft">{printable(n.position)}</span>}
      {n.reason && <p>{printable(n.reason)}</p>}
      {n.steps?.length ? <Steps steps={n.steps} /> : <Changes changes={n.changes} />}
    </li>
  );
}

/** The steps of a node that changed or dropped a record, or decided where it goes. */
export function Steps({ steps }: { steps: PathStep[] }) {
  return (
    <ul>
      {steps.map((s, i) => (
        <Step key={i} s={s} />
      ))}
    </ul>
  );
}

function Step({ s }: { s: PathStep }) {
  const name = [s.within, s.kind, s.index, s.name].filter(Boolean).join(" ");
  return (
    <li>
      {printable(name)} {s.dropped && <strong class="health unhealthy">dropped</strong>}
      {s.detail && <Pre>{printable(s.detail)}</Pre>}
      {s.depends && <p class="soft">{printable(s.depends)}</p>}
      <Changes changes={s.changes} />
    </li>
  );
}

function Changes({ changes }: { changes?: string[] }) {
  if (!changes?.length) return null;
  return (
    <ul class="plain">
      {changes.map((c) => (
        <li key={c}>
          <code>{printable(c)}</code>
        </li>
      ))}
    </ul>
  );
}

const equal = (name: string, value: string) => `${name} == ${JSON.stringify(value)}`;

const labelTerms = (r: TapRecord) =>
  Object.entries(r.labels ?? {}).map(([k, v]) => equal(`labels[${JSON.stringify(k)}]`, v));

/** The view that follows a target. */
export function whyTargetLink(r: TapRecord): string {
  return link(["why"], { of: "targets", where: labelTerms(r).join(" && ") });
}

/** The view that follows the series or the lines of a record. */
export function whyLink(r: TapRecord): string {
  const terms = labelTerms(r);
  if (r.name !== undefined) terms.unshift(equal("name", r.name));
  if (r.line !== undefined) terms.push(equal("line", r.line));
  return link(["why"], { where: terms.join(" && ") });
}
