// The last lines of weir's log.

import { useState } from "preact/hooks";
import { request } from "../api";
import { Filter, matches } from "../parts/filter";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { type Route, setQuery } from "../route";
import { plural, printable } from "../text";

const levels = ["debug", "info", "warn", "error"];
const most = 1000;

/** The level of a line in logfmt or JSON. A line without one belongs to every level. */
export function levelOf(line: string): string {
  return (/\blevel=(\w+)/.exec(line) ?? /"level":"(\w+)"/.exec(line))?.[1]?.toLowerCase() ?? "";
}

export function Log({ route }: { route: Route }) {
  const [asked, ask] = useState(0);
  const { value, error } = useLoad(
    async (signal) => (await (await request("/api/v0/log", { signal })).text()).split("\n").filter(Boolean),
    [asked],
  );
  const level = route.query.get("level") ?? "";
  const filter = route.query.get("filter") ?? "";
  const found = value
    ?.map((text) => ({ text, level: levelOf(text) }))
    .filter((l) => !level || !l.level || levels.indexOf(l.level) >= levels.indexOf(level))
    .filter((l) => matches(filter, l.text));
  return (
    <>
      <div class="bar">
        <h1>Log</h1>
        <label>
          Level{" "}
          <select value={level} onChange={(e) => setQuery({ level: e.currentTarget.value })}>
            <option value="">all</option>
            <option value="info">info and above</option>
            <option value="warn">warn and above</option>
            <option value="error">error</option>
          </select>
        </label>
        <Filter name="filter" value={filter} label="Filter lines" />
        <button type="button" onClick={() => ask((n) => n + 1)}>
          Load again
        </button>
      </div>
      {error && <ErrorBox title="Cannot load the log." text={error.message} />}
      {!value && !error && <Loading />}
      {found && (
        <>
          <p class="soft">
            {plural(found.length, "line")}, the newest first
            {found.length > most && `; the first ${most} are shown`}. weir keeps the last 512 KiB.
          </p>
          {found.length > 0 && (
            <Pre class="log">
              {found.slice(-most).map((l, i, all) => {
                const line = all[all.length - 1 - i] ?? l;
                return (
                  <div key={i} class={line.level}>
                    {printable(line.text)}
                  </div>
                );
              })}
            </Pre>
          )}
        </>
      )}
    </>
  );
}
