// The source of the script of a node, with the outcome of its tests, the lines that they
// ran, its errors, and the time that it spends in each line.

import { useEffect, useRef, useState } from "preact/hooks";
import { control, getJSON, type Node } from "../api";
import { useLoad } from "../parts/load";
import { ErrorBox, Loading, Pre } from "../parts/message";
import { type Coverage, type Profile, type Remark, Source } from "../parts/source";
import { type Problem, runOf, runTests, summary, type Test, type TestReport, useRuns } from "../parts/tests";
import { clock, duration, messageOf, plural, printable, short } from "../text";

export function ScriptSource({ node }: { node: Node }) {
  const run = runOf(useRuns(), node);
  const { value: start, error } = useLoad(
    (signal) => getJSON<{ file: string; text: string }>(control(node.id, "/playground"), signal),
    [node.id, node.version],
  );
  const [profile, setProfile] = useState<Profile>();
  const [seconds, setSeconds] = useState(10);
  const [measuring, setMeasuring] = useState(false);
  const [failure, setFailure] = useState("");
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), [node.id]);
  const measure = async () => {
    setMeasuring(true);
    setFailure("");
    abort.current = new AbortController();
    const { signal } = abort.current;
    try {
      setProfile(await getJSON<Profile>(control(node.id, `/profile?format=json&seconds=${seconds}`), signal));
    } catch (e) {
      if (!signal.aborted) setFailure(messageOf(e));
    }
    setMeasuring(false);
  };
  const report = run?.report;
  const problems = report ? problemsOf(report) : [];
  // Lines of an older version say nothing about this text.
  const current = profile?.version === node.version ? profile : undefined;
  const tested = report?.coverage.filter((c) => c.lines.length > 0 || c.file === start?.file) ?? [];
  const same = (c: Coverage) => c.file === start?.file && c.text === start.text;
  return (
    <section aria-labelledby="source">
      <div class="bar">
        <h2 id="source">Source and tests</h2>
        {node.sources.length > 0 ? (
          <button type="button" disabled={run?.running} onClick={() => runTests(node)}>
            {run?.running ? "Running the tests…" : "Run the tests"}
          </button>
        ) : (
          <span class="soft">The script ships with weir, without its tests.</span>
        )}
        <span>
          <button type="button" disabled={measuring} onClick={measure}>
            {measuring ? "Measuring…" : "Measure cost"}
          </button>{" "}
          <label>
            for{" "}
            <select
              aria-label="Duration of the measurement"
              value={seconds}
              disabled={measuring}
              onChange={(e) => setSeconds(Number(e.currentTarget.value))}
            >
              {[2, 10, 30, 60].map((n) => (
                <option key={n} value={n}>
                  {n} s
                </option>
              ))}
            </select>
          </label>
        </span>
      </div>
      <div role="status">
        {measuring && (
          <p class="soft">weir takes samples for {seconds} s while the node works. The script is slower meanwhile.</p>
        )}
        {profile && !measuring && <Measured profile={profile} current={!!current} />}
        {report && <Summary report={report} time={run?.time ?? ""} />}
      </div>
      {failure && <ErrorBox title="Cannot measure the cost." text={failure} />}
      {run?.error && <ErrorBox title="Cannot run the tests." text={run.error} />}
      {report && <Results report={report} />}
      {report && start && !tested.some(same) && (
        <p class="box warn">
          The file on disk differs from the version that runs. The tests ran with the file on disk.
        </p>
      )}
      {tested.some((c) => c.lines.length > 0) && (
        <p class="soft">
          <span class="ran">✓</span> ran in the tests, <span class="partly">◐</span> ran without some branches,{" "}
          <span class="missed">✗</span> did not run. Other lines begin no statement.
        </p>
      )}
      {!start && !error && <Loading />}
      {error && <p class="soft">{printable(error.message)}</p>}
      {start && (
        <Source
          name={start.file}
          text={start.text}
          coverage={tested.find(same)}
          profile={current?.lines.length ? current : undefined}
          remarks={[
            ...healthRemarks(node, start.file, start.text),
            ...(tested.some(same) ? remarks(problems, start.file) : []),
          ]}
        />
      )}
      {tested
        .filter((c) => !same(c))
        .map((c) => (
          <details key={c.file} open={c.file === start?.file}>
            <summary>
              {c.file === start?.file ? `${printable(c.file)} on disk` : printable(c.file)}
              {c.lines.length > 0 &&
                `: ${c.lines.filter((l) => l.hits > 0).length} of ${plural(c.lines.length, "line")} ran`}
            </summary>
            <Source
              name={c.file}
              text={c.text}
              coverage={c}
              profile={c.file !== start?.file && current?.lines.some((l) => l.file === c.file) ? current : undefined}
              remarks={remarks(problems, c.file)}
            />
          </details>
        ))}
    </section>
  );
}

function Measured({ profile, current }: { profile: Profile; current: boolean }) {
  if (!current) {
    return <p class="soft">The cost was measured for version {short(profile.version)}, which no longer runs.</p>;
  }
  if (profile.busy === 0) {
    return (
      <p class="soft">
        The script ran for less than 10 ms in {duration(profile.seconds * 1000)}, so there is no cost to show. Measure
        for longer.
      </p>
    );
  }
  return (
    <p>
      The script used {duration(profile.busy * 1000)} of CPU time in {duration(profile.seconds * 1000)}. The column Time
      has the share of each line.
    </p>
  );
}

function Summary({ report, time }: { report: TestReport; time: string }) {
  const { text, bad } = summary(report);
  const lines = report.coverage[0]?.lines ?? [];
  return (
    <div class={`box ${bad ? "bad" : "good"}`}>
      <p>
        <strong>{text}</strong> in {duration(report.seconds * 1000)}, at {clock(time)}.
        {lines.length > 0 &&
          ` ${lines.filter((l) => l.hits > 0).length} of ${plural(lines.length, "line")} of the script ran.`}
      </p>
      {report.stopped && <p>{printable(report.stopped)}</p>}
      {report.files.length === 0 && (
        <p>The script has no tests. Add a test file next to it or an example to its header comment.</p>
      )}
    </div>
  );
}

const marks = {
  passed: { text: "✓ passed", name: "ran" },
  failed: { text: "✗ failed", name: "missed" },
  error: { text: "✗ error", name: "missed" },
  pending: { text: "○ skipped", name: "soft" },
};

function Results({ report }: { report: TestReport }) {
  return (
    <>
      {report.files.map((f) => (
        <section key={f.file}>
          <h3>{printable(f.file)}</h3>
          {f.problem && <Trouble problem={f.problem} />}
          <ul class="plain tests">
            {f.tests.map((t, i) => (
              <Result key={i} test={t} />
            ))}
          </ul>
          {f.omitted && <p class="soft">{plural(f.omitted, "more test")} ran.</p>}
        </section>
      ))}
    </>
  );
}

function Result({ test }: { test: Test }) {
  const { text, name } = marks[test.status];
  return (
    <li>
      <span class={name}>{text}</span> <span>{printable(test.name, 300)}</span>{" "}
      <span class="soft">
        line {test.line}
        {test.status !== "pending" && `, ${duration(test.seconds * 1000)}`}
      </span>
      {test.problem && <Trouble problem={test.problem} />}
      {!!test.output?.length && (
        <details>
          <summary>Output</summary>
          <Pre>{printable(test.output.join("\n"), 20_000)}</Pre>
        </details>
      )}
    </li>
  );
}

function Trouble({ problem: p }: { problem: Problem }) {
  return (
    <div class="box bad">
      <strong>
        {printable(p.file)}
        {p.line ? `:${p.line}` : ""}
      </strong>
      <Pre>
        {printable(p.message)}
        {p.diff && `\n${printable(p.diff)}`}
      </Pre>
    </div>
  );
}

const problemsOf = (r: TestReport) =>
  r.files
    .flatMap((f) => [f.problem, ...f.tests.filter((t) => t.status !== "pending").map((t) => t.problem)])
    .filter((p) => !!p);

const remarks = (problems: Problem[], file: string): Remark[] =>
  problems.filter((p) => p.file === file).map((p) => ({ line: p.line, severity: "error", text: p.message }));

/**
 * The errors of a node whose text begins with the position. An error of a version that was refused is
 * about another text, so the line that it quotes must be there.
 */
function healthRemarks(n: Node, file: string, source: string): Remark[] {
  const lines = source.split("\n");
  const out = new Map<string, Remark>();
  for (const h of [n.health, ...(n.problems ?? []), n.last_error]) {
    const at = h?.message.indexOf(`${file}:`) ?? -1;
    if (!h || at < 0) continue;
    const [, line, text] = /^(\d+)(?::\d+)?:? ?([\s\S]*)/.exec(h.message.slice(at + file.length + 1)) ?? [];
    if (!line || !text) continue;
    const quoted = /^ *\d+ \| (.*)$/m.exec(text)?.[1];
    if (quoted === undefined ? !/ refused by /.test(h.message) : lines[Number(line) - 1]?.trim() === quoted.trim())
      out.set(line + text, { line: Number(line), severity: "error", text });
  }
  return [...out.values()];
}
