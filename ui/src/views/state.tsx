// The state of a script.

import { useState } from "preact/hooks";
import { control, getJSON, type Node } from "../api";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { Table } from "../parts/table";
import { count, json, printable } from "../text";

interface Summary {
  name: string;
  kind: string;
  entries: number;
  max: number;
  bytes: number;
  max_bytes: number;
  evicted: number;
  refused: number;
  ttl?: string;
}

export function State({ node, now, sort }: { node: Node; now: number; sort: string }) {
  const [shown, show] = useState("");
  const { value, error } = useLoad(
    (signal) => getJSON<Summary[]>(control(node.id, "/state"), signal),
    [node.id, Math.floor(now / 10_000)],
  );
  if (error) return <ErrorBox title="Cannot load the state." text={error.message} />;
  if (!value) return <Loading />;
  return (
    <>
      <Table
        label="State"
        sort={sort}
        rows={value}
        id={(s) => s.name}
        empty="The script has no state."
        columns={[
          {
            name: "name",
            title: "Name",
            by: (s) => s.name,
            show: (s) => (
              <button
                type="button"
                aria-expanded={s.name === shown}
                onClick={() => show(s.name === shown ? "" : s.name)}
              >
                {printable(s.name)}
              </button>
            ),
          },
          { name: "kind", title: "Kind", by: (s) => s.kind, show: (s) => (s.ttl ? `${s.kind}, ${s.ttl}` : s.kind) },
          {
            name: "entries",
            title: "Entries",
            num: true,
            by: (s) => s.entries,
            show: (s) => `${count(s.entries)} of ${count(s.max)}`,
          },
          { name: "bytes", title: "Bytes", num: true, by: (s) => s.bytes, show: (s) => count(s.bytes) },
          {
            name: "evicted",
            title: "Evicted",
            num: true,
            by: (s) => s.evicted,
            show: (s) => count(s.evicted),
          },
          {
            name: "refused",
            title: "Refused",
            num: true,
            by: (s) => s.refused,
            show: (s) => count(s.refused),
          },
        ]}
      />
      {shown && <Entries key={shown} node={node} name={shown} now={now} />}
    </>
  );
}

function Entries({ node, name, now }: { node: Node; name: string; now: number }) {
  const { value, error } = useLoad(
    (signal) => getJSON<unknown>(control(node.id, `/state/${encodeURIComponent(name)}`), signal),
    [node.id, name, Math.floor(now / 10_000)],
  );
  if (error) return <ErrorBox title="Cannot load the entries." text={error.message} />;
  return (
    <section>
      <h2>{printable(name)}</h2>
      {value === undefined ? <Loading /> : <Pre>{json(value)}</Pre>}
    </section>
  );
}
