import type { ComponentChildren } from "preact";
import { setQuery } from "../route";

export interface Column<T> {
  name: string;
  title: string;
  /** The value to sort by. Without it, the table cannot be sorted by this column. */
  by?: (row: T) => number | string;
  show: (row: T) => ComponentChildren;
  num?: boolean;
}

/** A table that is sorted by the parameter sort of the URL: the name of a column, with "-" for descending. */
export function Table<T>(props: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  sort: string;
  empty: string;
}) {
  const { columns, sort } = props;
  const descending = sort.startsWith("-");
  const name = sort.replace(/^-/, "");
  const by = columns.find((c) => c.name === name)?.by;
  const rows = by ? props.rows.toSorted((a, b) => compare(by(a), by(b)) * (descending ? -1 : 1)) : props.rows;
  if (rows.length === 0) return <p class="soft">{props.empty}</p>;
  return (
    <div class="scroll">
      <table class="rows">
        <caption class="hidden">{props.label}</caption>
        <thead>
          <tr>
            {columns.map((c) => (
              <th
                key={c.name}
                scope="col"
                class={classes(c)}
                aria-sort={c.name === name && by ? (descending ? "descending" : "ascending") : undefined}
              >
                {c.by ? (
                  <button type="button" onClick={() => setQuery({ sort: next(c, name, descending) })}>
                    {c.title}
                    <span aria-hidden="true">{c.name === name ? (descending ? " ▾" : " ▴") : ""}</span>
                  </button>
                ) : (
                  c.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={props.id(row)}>
              {columns.map((c) => (
                <td key={c.name} class={classes(c)} data-title={c.title}>
                  {c.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classes<T>(c: Column<T>) {
  return c.num ? "num" : undefined;
}

/** Numbers begin with the largest, texts with the first. */
function next<T>(c: Column<T>, name: string, descending: boolean) {
  if (c.name !== name) return c.num ? `-${c.name}` : c.name;
  return descending ? c.name : `-${c.name}`;
}

function compare(a: number | string, b: number | string) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
