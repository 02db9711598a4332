// What is inferred of a definition: each constant with a type would not
// compile if the inferred one were another.
import { arg, type Context, defineTransform, state } from "weir";
import { decode } from "weir/json";
import re, { type Pattern } from "weir/re";
import zones from "./zones.json";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

const ID: Pattern = re.compile("/(\\d+)");
const args = { url: arg.string(), n: arg.int({ optional: true }) };
const teams = state.map<string>({ max: 10 });

// A function outside of the definition says what it uses of it.
async function ask(ctx: Context<{ args: typeof args; state: { teams: typeof teams }; needs: { http: true } }>) {
  const answer = await ctx.http.get(ctx.args.url);
  ctx.state.teams.set("x", answer.json().team);
  const team: Same<ReturnType<typeof ctx.state.teams.get>, string | undefined> = true;
  const n: Same<typeof ctx.args.n, number | undefined> = true;
}

// One that does not say may be called with any ctx.
function count(ctx: Context) {
  ctx.state.anything.add(ctx.args.whatever);
}

export default defineTransform({
  args: {
    ...args,
    keep: arg.list({ of: arg.string(), default: [] }),
    plain: arg.list(),
    level: arg.enum({ values: ["low", "high"], default: "low" }),
    every: arg.duration({ default: "30s" }),
    size: arg.size({ default: "8MiB" }),
    on: arg.bool({ default: true }),
    rule: arg.block({ fields: { name: arg.string(), match: arg.regexp({ optional: true }) }, repeated: true }),
    one: arg.block({ fields: { deep: arg.block({ fields: { x: arg.number() } }) }, optional: true }),
    waits: arg.list({ of: arg.duration(), default: ["30s"] }),
    shards: arg.map({ of: arg.int(), default: { a: 1 } }),
    token: arg.secret(),
    from: arg.targets({ default: [] }),
  },
  state: { teams, seen: state.set({ onFull: "evict" }), hits: state.counter({ scope: "persistent" }), last: state.queue<number>(), cache: state.lru() },
  needs: { http: true, env: ["REGION"], read: ["/etc/weir/*"], exec: ["df"] },
  outputs: ["large", "errors"],
  version: 2,
  series(s, ctx) {
    if (s.labels.env === "dev") return s.drop();
    s.labels.region = ctx.args.level;
    s.labels.pod = undefined;
    const level: Same<typeof ctx.args.level, "low" | "high"> = true;
  },
  async metrics(batch, ctx) {
    const checks: true[] = [
      {} as Same<typeof ctx.args.keep, string[]>,
      {} as Same<typeof ctx.args.plain, string[]>,
      {} as Same<typeof ctx.args.every, number>,
      {} as Same<typeof ctx.args.size, number>,
      {} as Same<typeof ctx.args.on, boolean>,
      {} as Same<typeof ctx.args.waits, number[]>,
      {} as Same<typeof ctx.args.shards, { [key: string]: number }>,
      {} as Same<typeof ctx.args.from, { [label: string]: string }[]>,
      {} as Same<(typeof ctx.args.rule)[0]["match"], Pattern | undefined>,
      {} as Same<(typeof ctx.args.rule)[0]["name"], string>,
      {} as Same<NonNullable<typeof ctx.args.one>["deep"]["x"], number>,
      {} as Same<typeof ctx.env.REGION, string | undefined>,
      {} as Same<ReturnType<typeof ctx.state.last.pop>, number | undefined>,
      {} as Same<ReturnType<typeof ctx.state.hits.add>, number>,
      {} as Same<ReturnType<typeof ctx.state.seen.entries>, string[]>,
      {} as Same<typeof zones.eu, number>,
    ];
    batch.filter(["job", "value", "stale"], (job, value, stale) => {
      const fields: true[] = [{} as Same<typeof job, string | undefined>, {} as Same<typeof value, number>, {} as Same<typeof stale, boolean>];
      return job !== "api" || value > 10;
    });
    for (const [i, job, value] of batch.rows("job", "value")) batch.set(i, { value: value * 2, job: job ?? "none" });
    for (const [group, name] of batch.groupBy(["name"])) group[0].labels.of = `${name} ${group.length}`;
    for (const record of batch) record.name += "_total";
    batch.mapLabel("path", (path) => ID.replace(path, "/:id"));
    batch.each((record) => (record.labels.zone = "eu"));
    ctx.route("large", batch[0]);
    ctx.emit({ name: "seen", value: batch.length, labels: { job: "weir", n: 1 } });
    ctx.emit({ line: "seen", labels: { job: "weir" } });
    const answer = await ctx.http.request({ url: ctx.args.url, bearer: ctx.args.token, maxBytes: 1000 });
    ctx.log.info("asked", { status: answer.status, body: decode(answer.body) });
    const out = await ctx.exec("df", ["-h"], { timeout: "2s" });
    if (out.code !== 0) ctx.health("degraded", out.stderr);
  },
  logs(batch, ctx) {
    batch.json(["level", "user.id"], (level, id, record) => {
      record.labels.level = level;
      return id !== undefined;
    });
    for (const [i, line, trace] of batch.rows("line", "json.trace")) if (trace) batch.set(i, "meta.trace", line);
  },
  setup: ask,
  every: { "5m": ask, "30s": count, "1h"(ctx) { ctx.state.hits.add("x"); } },
  migrate(old, version, ctx) {
    if (version < 2) for (const [team, by] of Object.entries(old.teams.entries())) ctx.state.teams.set(team, String(by));
  },
});
