// The outcome of the tests of scripts, as long as the page is open.

import { useEffect, useState } from "preact/hooks";
import { control, type Node, request } from "../api";
import { messageOf } from "../text";
import type { Coverage } from "./source";

export interface Problem {
  file: string;
  line?: number;
  message: string;
  diff?: string;
}

export interface Test {
  name: string;
  line: number;
  status: "passed" | "failed" | "error" | "pending";
  seconds: number;
  problem?: Problem;
  output?: string[];
}

/** The response of POST /api/v0/control/NODE/tests. */
export interface TestReport {
  passed: number;
  failed: number;
  errors: number;
  pending: number;
  seconds: number;
  stopped?: string;
  files: { file: string; seconds: number; problem?: Problem; tests: Test[]; omitted?: number }[];
  coverage: Coverage[];
}

export interface Run {
  running?: boolean;
  report?: TestReport;
  error?: string;
  /** When it ended. */
  time?: string;
  /** The version of the script that ran. */
  version?: string;
}

const runs = new Map<string, Run>();
const listeners = new Set<() => void>();

/** Several nodes of a module may run the same script. */
export const scriptKey = (n: Node) => n.id.slice(0, n.id.lastIndexOf("/") + 1) + n.name;

function set(key: string, run: Run) {
  runs.set(key, run);
  for (const changed of listeners) changed();
}

/** The outcome for the script of a node, unless another version runs since. */
export function runOf(runs: ReadonlyMap<string, Run>, n: Node): Run | undefined {
  const run = runs.get(scriptKey(n));
  return run?.version === undefined || run.version === n.version ? run : undefined;
}

/** The outcomes by script. */
export function useRuns(): ReadonlyMap<string, Run> {
  const [, changed] = useState(0);
  useEffect(() => {
    const listener = () => changed((n) => n + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return runs;
}

/** Runs the tests of the script of a node. */
export async function runTests(n: Node) {
  const key = scriptKey(n);
  if (runs.get(key)?.running) return;
  set(key, { running: true });
  try {
    const report = await (await request(control(n.id, "/tests"), { method: "POST" })).json();
    set(key, { report, time: new Date().toISOString(), version: n.version });
  } catch (e) {
    set(key, { error: messageOf(e) });
  }
}

/** Summary of a report, such as "✗ 1 of 3 tests failed". */
export function summary(r: TestReport): { text: string; bad: boolean } {
  const bad = r.failed + r.errors;
  const all = bad + r.passed;
  const skipped = r.pending ? `, ${r.pending} skipped` : "";
  if (bad > 0) return { text: `✗ ${bad} of ${all} failed${skipped}`, bad: true };
  if (r.stopped) return { text: `✗ stopped, ${r.passed} passed${skipped}`, bad: true };
  return {
    text: all ? `✓ ${r.passed} passed${skipped}` : r.pending ? `○ ${r.pending} skipped` : "no tests",
    bad: false,
  };
}
