import { arg, defineSink, defineSource, state } from "weir";
import { parse } from "weir/prom";

export const odd = defineSource({
  args: { url: arg.string(), names: arg.map({ of: arg.string(), default: {} }) },
  interval: "1m",
  needs: { http: true },
  async poll(ctx) {
    const answer = await ctx.http.get(ctx.args.url, { timeout: "5s" });
    for (const sample of parse(answer.body)) {
      ctx.emit({ ...sample, name: ctx.args.names[sample.name] ?? sample.name });
    }
  },
});

export default defineSource({
  args: { label: arg.enum({ values: ["a", "b"] }) },
  exports: { targets: arg.targets(), every: arg.duration() },
  state: { seen: state.set() },
  sends: ["metrics", "logs"],
  http: {
    "POST /hook/{team}"(req, ctx) {
      if (!req.authorized({ bearer: ctx.secret("x") })) return 401;
      const team: string = req.params.team;
      if (!ctx.state.seen.add(team)) return { status: 409, json: { team } };
      ctx.emit({ line: req.body, labels: { team, kind: ctx.args.label } });
    },
    async "GET /health"(req, ctx) {
      await ctx.sleep(0.1);
      return "ok";
    },
  },
  every: {
    "30s"(ctx) {
      ctx.export({ targets: [{ __address__: "localhost:9100" }], every: "30s" });
    },
  },
  async run(ctx) {
    for (;;) {
      ctx.emit({ name: "alive", value: ctx.now() });
      await ctx.flush();
      await ctx.sleep(1);
    }
  },
});

export const metrics = defineSink({
  batch: { maxRecords: 500, maxWait: "5s" },
  needs: { http: true },
  async send(batch, ctx) {
    for (const record of batch) if (record.value < 0) ctx.reject(record, "it is negative");
    const answer = await ctx.http.post("https://hook.example/", batch.text());
    if (answer.status === 429) return ctx.retry({ after: "5s", reason: "too many" });
    if (answer.status === 400) return ctx.reject("they do not want it");
  },
});

export const logs = defineSink({
  accepts: ["logs"],
  send(batch, ctx) {
    for (const record of batch) ctx.log.info(record.line);
  },
});

export const both = defineSink({
  accepts: ["metrics", "logs"],
  send(batch, ctx) {
    ctx.log.info(batch.text());
  },
});
