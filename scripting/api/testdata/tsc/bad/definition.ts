// Each line with a number must be an error of that number, and no other line.
import { arg, defineTransform, state, type Context } from "weir";
import { nothing } from "weir"; // TS2305
import yaml from "weir/yamel"; // TS2307
import fs from "fs"; // TS2591

const wrongDefault = arg.int({ default: "8080" }); // TS2769
const noValues = arg.enum({}); // TS2769
const notAValue = arg.enum({ values: ["low", "high"], default: "mid" }); // TS2769
const both = arg.string({ default: "eu", optional: true }); // TS2769
const misspelt = arg.string({ defualt: "eu" }); // TS2769
const element = arg.list({ of: arg.int(), default: ["a"] }); // TS2769
const noSecret = arg.secret({ default: "s3cret" }); // TS2769
const snake = state.set({ max_bytes: 10 }); // TS2561
const noKind = state.stack({}); // TS2339
const big = 12345678901234567890n; // TS2737

export default defineTransform({
  args: { n: 5 }, // TS2322
});

export const misspeltHook = defineTransform({
  metircs() {}, // TS2561
});

export const hooks = defineTransform({
  args: { region: arg.string(), list: arg.list() },
  state: { seen: state.set(), teams: state.map<string>() },
  outputs: ["large"],
  series(s, ctx) {
    s.value = 1; // TS2339
    s.help = "x"; // TS2540
    s.labels.region = ctx.args.regoin; // TS2551
    ctx.state.seen.add("x"); // TS2339
    ctx.log.info("x"); // TS2339
  },
  metrics(batch, ctx) {
    batch.drop_where("value > 1"); // TS2551
    batch.dropWhere(1); // TS2345
    batch.dropWhere(); // TS2554
    batch.setLabel("a", {}); // TS2345
    batch.each(async (r) => { r.drop(); }); // TS2345
    batch.mapValue((v) => String(v)); // TS2322
    batch.filter(["value"], (v) => v.length > 1); // TS2339
    batch.filter(["job"], (job) => job.length > 1); // TS18048
    batch[0].type = "counter"; // TS2540
    batch[0].labels.n.length; // TS2532
    batch[0].valeu = 1; // TS2551
    for (const [i, v] of batch.rows("value")) batch.set(i, "value", String(v) + ""); // TS2345
    ctx.args.list = []; // TS2540
    ctx.args.list[0].toFixed(); // TS2551
    ctx.state.teams.set("x", 1); // TS2345
    ctx.state.gone.add("x"); // TS2339
    ctx.state.seen.push("x"); // TS2339
    ctx.http.get("https://x/"); // TS2339
    ctx.env.REGION; // TS2339
    ctx.route("lagre", batch[0]); // TS2345
    ctx.emit({ name: "x", lables: {} }); // TS2561
    ctx.emit({ value: 1 }); // TS2345
    ctx.emit("x"); // TS2345
    ctx.sleep("1s"); // TS2345
    setTimeout(() => {}, 1); // TS2304
    fetch("https://x/"); // TS2304
    process.exit(1); // TS2591
    console.debug("x"); // TS2584
    require("fs"); // TS2591
  },
});

export const waits = defineTransform({
  args: { url: arg.string() },
  needs: { http: true, env: ["REGION"] },
  async metrics(batch, ctx) {
    const answer = ctx.http.get(ctx.args.url);
    answer.status; // TS2339
    (await answer).statsu; // TS2551
    ctx.http.get(ctx.args.url, { time_out: "2s" }); // TS2561
    ctx.env.ZONE; // TS2339
    await ctx.read("/etc/x"); // TS2339
  },
});

function ask(ctx: Context<{ args: { url: typeof noKind }; needs: { http: true } }>) {}
function needy(ctx: Context<{ needs: { exec: ["df"] } }>) {
  ctx.exec(1); // TS2345
}
