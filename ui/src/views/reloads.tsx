// What changed, when, and how long each step took.

import { getJSON, type Reload } from "../api";
import type { Mark } from "../parts/chart";
import { type Loaded, useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { NodeLink } from "../parts/name";
import { useStatus } from "../status";
import { clock, duration, printable, short } from "../text";

/** The records of reloads, newest first. They are loaded again when the server announces another one. */
export function useReloads() {
  const { reloads } = useStatus();
  return useLoad(
    async (signal) => (await getJSON<{ reloads: Reload[] }>("/api/v0/reloads", signal)).reloads.toReversed(),
    [reloads],
  );
}

/** The reloads as marks of charts: those of one node, or all. */
export function marksOf(reloads: Reload[] | undefined, node?: string): Mark[] {
  return (reloads ?? [])
    .filter((r) => !node || r.nodes.some((n) => n.id === node))
    .map((r) => ({ time: Date.parse(r.time) / 1000, color: tones[r.outcome] === "bad" ? "bad" : "soft" }));
}

export function Timeline({ reloads, most }: { reloads: Loaded<Reload[]>; most: number }) {
  const { value, error } = reloads;
  if (error) return <ErrorBox title="Cannot load the reloads." text={error.message} />;
  if (!value) return <Loading />;
  return (
    <ol class="timeline">
      {value.slice(0, most).map((r) => (
        <Entry key={r.id} r={r} open={false} />
      ))}
    </ol>
  );
}

export function Reloads() {
  const { value, error } = useReloads();
  return (
    <>
      <h1>Reloads</h1>
      <p class="soft">The last 100 changes of the running graph, the start included.</p>
      {error && <ErrorBox title="Cannot load the reloads." text={error.message} />}
      {value ? (
        <ol class="timeline">
          {value.map((r, i) => (
            <Entry key={r.id} r={r} open={i === 0} />
          ))}
        </ol>
      ) : (
        <Loading />
      )}
    </>
  );
}

const order = ["detect", "compile", "check", "test", "shadow", "canary", "build", "swap"];

const triggers: Record<string, string> = {
  request: "on request",
  files: "files changed",
  graph: "exports changed, or a restart",
};

const tones: Record<string, string> = { applied: "good", partial: "warn", refused: "bad" };

function Entry({ r, open }: { r: Reload; open: boolean }) {
  const steps = Object.entries(r.steps)
    .filter(([, s]) => s >= 0.0005)
    .toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  const total = steps.reduce((t, [, s]) => t + s, 0) || 1;
  return (
    <li class={`box ${tones[r.outcome] ?? ""}`}>
      <details open={open}>
        <summary>
          <time dateTime={r.time}>{clock(r.time)}</time> <strong>{r.outcome}</strong>{" "}
          <span class="soft">
            {triggers[r.trigger.kind] ?? r.trigger.kind}, {duration(r.seconds * 1000)}
          </span>{" "}
          {printable(r.message.split("\n")[0] ?? "", 300)}
        </summary>
        {r.message.includes("\n") && !r.nodes.some((n) => n.message) && <Pre>{printable(r.message)}</Pre>}
        {!!r.trigger.files?.length && <p>Changed files: {printable(r.trigger.files.join(", "))}</p>}
        {steps.length > 0 && (
          <dl class="steps">
            {steps.map(([name, s]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <meter min={0} max={total} value={s} aria-label={`${name}: ${duration(s * 1000)}`} />
                  {duration(s * 1000)}
                </dd>
              </div>
            ))}
          </dl>
        )}
        <ul class="plain">
          {r.nodes.map((n) => (
            <li key={n.id}>
              <NodeLink id={n.id} /> {n.action}
              {n.from && n.to && ` ${short(n.from)} → ${short(n.to)}`}
              {n.step && ` by ${n.step}`}
              {n.message && <Pre>{printable(n.message)}</Pre>}
            </li>
          ))}
        </ul>
        <p class="soft">
          {r.rebuilt} rebuilt, {r.untouched} untouched{r.omitted ? `, ${r.omitted} more nodes` : ""}
        </p>
      </details>
    </li>
  );
}
