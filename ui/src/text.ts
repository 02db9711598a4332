// Numbers, durations and foreign text as people read them.

export function count(n: number): string {
  if (!Number.isFinite(n)) return String(n);
  for (const [limit, unit] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    if (n >= limit) return (n / (unit === "k" ? 1e3 : limit)).toFixed(1) + unit;
  }
  if (Math.abs(n) < 1) return String(Number(n.toPrecision(2)));
  return n >= 100 || Number.isInteger(n) ? n.toFixed(0) : n.toFixed(1);
}

/** A size with a binary unit. */
export function bytes(n: number): string {
  let unit = 0;
  let v = n;
  while (v >= 1024 && unit < 4) {
    v /= 1024;
    unit++;
  }
  return `${unit === 0 ? v : v.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

export const rate = (n: number | undefined) => (n === undefined ? "–" : `${count(n)}/s`);

export function duration(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 90) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 5400) return `${Math.floor(s / 60)} min`;
  if (s < 129600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

/** Time since a moment, by the clock of weir and not of the browser. */
export const age = (since: string, now: number) => duration(now - Date.parse(since));

const minutes = { hour: "2-digit", minute: "2-digit" } as const;
const clockTime = new Intl.DateTimeFormat(undefined, { ...minutes, second: "2-digit" });
const clockMinutes = new Intl.DateTimeFormat(undefined, minutes);
export const clock = (time: string, seconds = true) => (seconds ? clockTime : clockMinutes).format(new Date(time));

export const short = (version: string) => version.slice(0, 7);

export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const maxText = 4000;

/** Makes control characters and bidirectional overrides visible, and shortens long text. */
export function printable(text: string, limit = maxText): string {
  const cut = text.length > limit ? `${text.slice(0, limit)}… (${count(text.length - limit)} more characters)` : text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape
  return cut.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** The message of something that was thrown. */
export const messageOf = (e: unknown) => (e instanceof Error ? e.message : String(e));

export const json = (v: unknown) => printable(JSON.stringify(v, null, 2) ?? "", 200_000);

export function isEmpty(v: unknown): boolean {
  return v === null || v === undefined || (typeof v === "object" && Object.keys(v).length === 0);
}

const steps: Record<string, string> = {
  test: "is being tested",
  shadow: "is being compared with the running version",
  canary: "runs as a canary",
};

/** What happens to the new version of a script. */
export const trialText = (t: { version: string; step: string }) =>
  `version ${short(t.version)} ${steps[t.step] ?? `is in the step ${t.step}`}.`;
