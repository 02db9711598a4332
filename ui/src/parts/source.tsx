// The text of a file with numbered lines, what is wrong with them below each, and what
// tests and profiles say about them in columns beside the text.

import { useLayoutEffect, useRef } from "preact/hooks";
import { duration, plural, printable } from "../text";
import { Pre } from "./message";

export interface Remark {
  line?: number;
  severity: string;
  text: string;
}

/** What tests ran of a file. */
export interface Coverage {
  file: string;
  text: string;
  lines: { line: number; hits: number }[];
  branches: { line: number; arms: number[] }[];
}

/** The time that a script spent in its lines, in seconds. */
export interface Profile {
  seconds: number;
  busy: number;
  version: string;
  lines: { file: string; line: number; self: number; total: number }[];
}

export function Source(props: {
  name: string;
  text: string;
  remarks?: Remark[];
  coverage?: Coverage;
  profile?: Profile;
  /** The line to show first. */
  at?: number;
}) {
  const { name, text, remarks = [], coverage, profile, at } = props;
  const figure = useRef<HTMLElement>(null);
  const first = at ?? Math.min(...remarks.map((r) => r.line ?? Number.POSITIVE_INFINITY));
  useLayoutEffect(() => {
    const box = figure.current?.querySelector("pre, .tall");
    const line = box?.querySelectorAll(":scope > div, tbody > tr")[first - 1];
    if (!box || !line) return;
    box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
    if (at) figure.current?.scrollIntoView({ block: "nearest" });
  }, [first, at, text]);
  const lines = text.replace(/\n$/, "").split("\n");
  const below = (line: number) =>
    remarks
      .filter((r) => r.line === line)
      .map((r) => (
        <div key={r.text} class={r.severity}>
          {r.severity}: {printable(r.text)}
        </div>
      ));
  return (
    <figure class="source" ref={figure}>
      <figcaption>{printable(name)}</figcaption>
      {coverage || profile ? (
        <Margins name={name} lines={lines} below={below} coverage={coverage} profile={profile} />
      ) : (
        <Pre>
          {lines.map((l, i) => (
            <div key={i}>
              <span class="number" aria-hidden="true">
                {i + 1}
              </span>
              {printable(l)}
              {below(i + 1)}
            </div>
          ))}
        </Pre>
      )}
    </figure>
  );
}

function Margins(props: {
  name: string;
  lines: string[];
  below: (line: number) => preact.ComponentChildren;
  coverage?: Coverage;
  profile?: Profile;
}) {
  const { name, coverage, profile } = props;
  const hits = new Map(coverage?.lines.map((l) => [l.line, l.hits]));
  const arms = new Map<number, number[]>();
  for (const b of coverage?.branches ?? []) arms.set(b.line, [...(arms.get(b.line) ?? []), ...b.arms]);
  const cost = new Map(profile?.lines.filter((l) => l.file === name).map((l) => [l.line, l]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <div class="scroll tall" tabIndex={0} role="group" aria-label={`Source of ${printable(name)}`}>
      <table>
        <caption class="hidden">Source of {printable(name)}</caption>
        <thead>
          <tr>
            <th scope="col">Line</th>
            {coverage && <th scope="col">Tests</th>}
            {profile && <th scope="col">Time</th>}
            {profile && (
              <th scope="col" class="wide">
                With calls
              </th>
            )}
            <th scope="col">Code</th>
          </tr>
        </thead>
        <tbody>
          {props.lines.map((l, i) => {
            const c = cost.get(i + 1);
            return (
              <tr key={i}>
                <th scope="row" class="num">
                  {i + 1}
                </th>
                {coverage && (
                  <td>
                    <Ran hits={hits.get(i + 1)} arms={arms.get(i + 1) ?? []} />
                  </td>
                )}
                {profile && <td class="num">{c && c.self > 0 && <Time of={c.self} profile={profile} />}</td>}
                {profile && <td class="num wide">{c && <Time of={c.total} profile={profile} />}</td>}
                <td>
                  <code>{printable(l)}</code>
                  {props.below(i + 1)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** How often a line ran; nothing if no statement begins in it. */
function Ran({ hits, arms }: { hits?: number; arms: number[] }) {
  if (hits === undefined) return null;
  const taken = arms.filter((n) => n > 0).length;
  const [mark, name, text] =
    hits === 0
      ? ["✗", "missed", "did not run"]
      : taken < arms.length
        ? ["◐", "partly", `ran ${plural(hits, "time")}, ${taken} of ${plural(arms.length, "branch", "branches")}`]
        : ["✓", "ran", `ran ${plural(hits, "time")}`];
  return (
    <span class={name} title={text}>
      <span aria-hidden="true">
        {mark} {hits}
        {taken < arms.length && hits > 0 && ` (${taken}/${arms.length})`}
      </span>
      <span class="hidden">{text}</span>
    </span>
  );
}

/** A part of the time that a script used. */
function Time({ of, profile }: { of: number; profile: Profile }) {
  const share = (100 * of) / profile.busy;
  return (
    <span
      class={share >= 20 ? "hot" : undefined}
      title={`${duration(of * 1000)} in ${duration(profile.seconds * 1000)}`}
    >
      {share >= 20 && <span aria-hidden="true">▲ </span>}
      {share < 0.1 ? "< 0.1" : share.toFixed(share < 10 ? 1 : 0)} %
    </span>
  );
}
