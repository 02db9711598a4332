// The script of a node: its versions, the canary, and the way back.

import { useState } from "preact/hooks";
import { control, getJSON, type Node, type Report, request } from "../api";
import { ChangesOff, useAllowed } from "../parts/allowed";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { nodeLink } from "../route";
import { refresh, useDetails, useStatus } from "../status";
import { age, messageOf, printable, short } from "../text";
import { Diff } from "./diff";
import { ScriptSource } from "./source";

interface Version {
  id: string;
  active: string;
  passed?: string;
  nodes: string[];
  files: string[];
}

interface Refused {
  id: string;
  time: string;
  step: string;
  reason: string;
}

interface History {
  node: string;
  script: string;
  file: string;
  running: string;
  pinned: { id: string } | null;
  versions: Version[];
  refused: Refused[] | null;
}

interface File {
  path: string;
  text: string;
}

interface Comparison {
  old: string;
  new: string;
  files: [File[], File[]];
}

export function Script({ node, now }: { node: Node; now: number }) {
  const [changes, changed] = useState(0);
  const [outcome, setOutcome] = useState<{ title: string; text?: string; bad: boolean } | null>(null);
  const [compare, setCompare] = useState("");
  const shipped = node.sources.length === 0;
  const { value: h, error } = useLoad(
    async (signal) => (shipped ? undefined : getJSON<History>(control(node.id, "/history"), signal)),
    [node.id, node.version, changes],
  );
  const act = async (what: string, title: string) => {
    setOutcome(null);
    try {
      const text = await (await request(control(node.id, what), { method: "POST" })).text();
      setOutcome({ title, text: text.startsWith("{") ? undefined : text, bad: false });
    } catch (e) {
      setOutcome({
        title: "weir has refused the change.",
        text: messageOf(e),
        bad: true,
      });
    }
    changed((n) => n + 1);
    await refresh();
  };
  const allowed = useAllowed().changes;
  const canary = node.trial?.step === "canary";
  return (
    <>
      {outcome &&
        (outcome.bad ? (
          <ErrorBox title={outcome.title} text={outcome.text} />
        ) : (
          <p class="box good" role="status">
            {outcome.title} {outcome.text}
          </p>
        ))}
      <ChangesOff />
      {canary && (
        <div class="box warn">
          <p>Version {short(node.trial?.version ?? "")} runs as a canary.</p>
          <button type="button" disabled={!allowed} onClick={() => act("/canary/promote", "The canary was promoted.")}>
            Promote
          </button>{" "}
          <button
            type="button"
            disabled={!allowed}
            onClick={() => act("/canary/rollback", "The canary was rolled back.")}
          >
            Roll back
          </button>
        </div>
      )}
      <Reports node={node} />
      <ScriptSource key={node.id} node={node} />
      {error && <p class="soft">{printable(error.message)}</p>}
      {!h && !error && !shipped && <Loading />}
      {shipped && (
        <p class="soft">
          {node.name} has one version, which ships with weir. Copy it to the folder of scripts to change it.
        </p>
      )}
      {h && (
        <section aria-labelledby="versions">
          <h2 id="versions">Versions of {h.script}</h2>
          {h.pinned && (
            <p class="box warn">
              The node is pinned to version {short(h.pinned.id)}.{" "}
              <button
                type="button"
                disabled={!allowed}
                onClick={() => act("/unpin", "The node returns to the version on disk.")}
              >
                Unpin
              </button>
            </p>
          )}
          <ul class="plain">
            {h.versions.map((v) => (
              <li key={v.id} class="box">
                <strong>{short(v.id)}</strong> {v.id === h.running && <span class="health healthy">running</span>}{" "}
                <span class="soft">
                  {v.id === h.running ? `for ${age(v.active, now)}` : `last active ${age(v.active, now)} ago`}
                </span>{" "}
                {v.id !== h.running && (
                  <>
                    <button type="button" onClick={() => setCompare(compare === v.id ? "" : v.id)}>
                      {compare === v.id ? "Hide the difference" : "Compare with the running version"}
                    </button>{" "}
                    <button
                      type="button"
                      disabled={!allowed}
                      onClick={() => act(`/rollback?version=${v.id}`, `The node returns to version ${short(v.id)}.`)}
                    >
                      Roll back to this version
                    </button>
                  </>
                )}
                {compare === v.id && <Compared id={node.id} version={v.id} />}
              </li>
            ))}
          </ul>
          {!!h.refused?.length && (
            <>
              <h2>Refused versions</h2>
              <ul class="plain">
                {h.refused.map((v) => (
                  <li key={v.id + v.time} class="box bad">
                    <strong>{short(v.id)}</strong> by {v.step}, {age(v.time, now)} ago
                    <Pre>{printable(v.reason)}</Pre>
                  </li>
                ))}
              </ul>
            </>
          )}
        </section>
      )}
    </>
  );
}

/** What the comparison (shadow) and the canary of the new version say. */
export function Reports({ node }: { node: Node }) {
  useDetails([node.id]);
  const reports = (node.debug as { reports?: Report[] } | null)?.reports ?? [];
  return (
    <>
      {reports.map((t) => (
        <section key={t.name}>
          <h2>{t.name}</h2>
          <Pre>{printable(t.text, 100_000)}</Pre>
        </section>
      ))}
    </>
  );
}

function Compared({ id, version }: { id: string; version: string }) {
  const { value, error } = useLoad(
    (signal) => getJSON<Comparison>(control(id, `/history/diff?version=${version}`), signal),
    [id, version],
  );
  if (error) return <ErrorBox title="Cannot compare the versions." text={error.message} />;
  if (!value) return <Loading />;
  const paths = new Set([...value.files[0], ...value.files[1]].map((f) => f.path));
  const text = (i: 0 | 1, path: string) => value.files[i].find((f) => f.path === path)?.text ?? "";
  return (
    <>
      {[...paths]
        .filter((path) => text(0, path) !== text(1, path))
        .map((path) => (
          <Diff key={path} name={path} before={text(0, path)} after={text(1, path)} />
        ))}
    </>
  );
}

/** All nodes that run scripts. */
export function useScripted(): Node[] | undefined {
  return useStatus().status?.components.filter((n) => n.version !== "");
}

export const scriptLink = (id: string) => nodeLink(id, { tab: "script" });
