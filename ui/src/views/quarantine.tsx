// The records on which a script failed.

import { useState } from "preact/hooks";
import { control, getJSON, type Node, request } from "../api";
import { ChangesOff, useAllowed } from "../parts/allowed";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { Table } from "../parts/table";
import { refresh } from "../status";
import { age, count, messageOf, plural, printable, short } from "../text";

interface Entry {
  id: number;
  time: string;
  signal: string;
  records: number;
  version: string;
  error: string;
}

interface List {
  total: number;
  entries: Entry[];
  set_aside?: string[];
}

interface Outcome {
  id: number;
  gone: boolean;
  error?: string;
}

export function Quarantine({ node, now, sort }: { node: Node; now: number; sort: string }) {
  const [changes, changed] = useState(0);
  const allowed = useAllowed().changes;
  const [shown, show] = useState(0);
  const [outcome, setOutcome] = useState<{ text: string; failed: string } | null>(null);
  const { value, error } = useLoad(
    (signal) => getJSON<List>(control(node.id, "/quarantine"), signal),
    [node.id, node.quarantined, changes],
  );
  const act = async (what: "replay" | "drop", ids: number[]) => {
    setOutcome(null);
    try {
      const res = await request(control(node.id, `/quarantine/${what}`), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ids }),
      });
      const all = (await res.json()) as Outcome[];
      const failed = all.filter((o) => o.error);
      setOutcome({
        text: `${plural(all.length - failed.length, "entry", "entries")} ${what === "drop" ? "dropped" : "replayed"}.`,
        failed: failed.map((o) => `Entry ${o.id}: ${o.error}`).join("\n"),
      });
    } catch (e) {
      setOutcome({ text: "", failed: messageOf(e) });
    }
    changed((n) => n + 1);
    await refresh();
  };
  if (error) return <ErrorBox title="Cannot load the quarantine." text={error.message} />;
  if (!value) return <Loading />;
  return (
    <>
      {outcome?.text && (
        <p class="box good" role="status">
          {outcome.text}
        </p>
      )}
      {outcome?.failed && <ErrorBox title="Some entries stay in quarantine." text={outcome.failed} />}
      <p>
        Records on which the script failed. After you have fixed the script, replay them: they pass through the running
        version and on to the receivers.
      </p>
      <ChangesOff />
      {value.total > 0 && (
        <div class="bar">
          <button type="button" disabled={!allowed} onClick={() => act("replay", [])}>
            Replay all
          </button>
          <button
            type="button"
            disabled={!allowed}
            onClick={() =>
              confirm(`Drop ${plural(value.total, "entry", "entries")}? They are lost.`) && act("drop", [])
            }
          >
            Drop all
          </button>
          {value.total > value.entries.length && (
            <span class="soft">
              The newest {value.entries.length} of {value.total} are shown.
            </span>
          )}
        </div>
      )}
      {shown > 0 && <Data key={shown} node={node} id={shown} />}
      <Table
        label="Quarantine"
        sort={sort}
        rows={value.entries}
        id={(e) => String(e.id)}
        empty="There is nothing in quarantine."
        columns={[
          {
            name: "id",
            title: "Entry",
            num: true,
            by: (e) => e.id,
            show: (e) => (
              <button type="button" aria-expanded={e.id === shown} onClick={() => show(e.id === shown ? 0 : e.id)}>
                {e.id}
              </button>
            ),
          },
          { name: "age", title: "Age", num: true, by: (e) => -Date.parse(e.time), show: (e) => age(e.time, now) },
          { name: "records", title: "Records", num: true, by: (e) => e.records, show: (e) => count(e.records) },
          { name: "version", title: "Version", show: (e) => <code>{short(e.version)}</code> },
          { name: "error", title: "Error", by: (e) => e.error, show: (e) => <Pre>{printable(e.error, 2000)}</Pre> },
          {
            name: "do",
            title: "Actions",
            show: (e) => (
              <>
                <button
                  type="button"
                  aria-label={`Replay entry ${e.id}`}
                  disabled={!allowed}
                  onClick={() => act("replay", [e.id])}
                >
                  Replay
                </button>{" "}
                <button
                  type="button"
                  aria-label={`Drop entry ${e.id}`}
                  disabled={!allowed}
                  onClick={() => act("drop", [e.id])}
                >
                  Drop
                </button>
              </>
            ),
          },
        ]}
      />
      {value.set_aside && <ErrorBox title="These files cannot be read." text={value.set_aside.join("\n")} />}
    </>
  );
}

function Data({ node, id }: { node: Node; id: number }) {
  const { value, error } = useLoad(
    (signal) => getJSON<{ data: string; cut?: boolean }>(control(node.id, `/quarantine/${id}`), signal),
    [node.id, id],
  );
  if (error) return <ErrorBox title={`Cannot load entry ${id}.`} text={error.message} />;
  return (
    <section>
      <h2>Entry {id}</h2>
      {value ? <Pre>{printable(value.data, 300_000)}</Pre> : <Loading />}
      {value?.cut && <p class="soft">Only the beginning is shown; weir quarantine show prints all of it.</p>}
    </section>
  );
}
