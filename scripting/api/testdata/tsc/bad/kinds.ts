import { arg, defineSink, defineSource, defineTransform } from "weir";

export default defineSource({
  exports: { targets: arg.targets() },
  sends: ["traces"], // TS2322
});

export const hook = defineSource({
  metrics() {}, // TS2353
});

export const routes = defineSource({
  exports: { targets: arg.targets() },
  http: {
    "POST /hook"(req, ctx) { // TS2322
      req.bdoy; // TS2339
      return true;
    },
  },
  poll(ctx) {
    ctx.export({ target: [] }); // TS2561
    ctx.export({ targets: ["localhost:9100"] }); // TS2322
    ctx.state.x; // TS2339
  },
});

export const transform = defineTransform({
  interval: "1m", // TS2353
  series(s, ctx) {},
});

export const sink = defineSink({
  accepts: ["logs"],
  batch: { max_records: 5 }, // TS2561
  send(batch, ctx) {},
});

export const lines = defineSink({
  accepts: ["logs"],
  send(batch, ctx) {
    batch[0].value; // TS2339
    ctx.retry({ after: true }); // TS2322
    ctx.reject(5); // TS2769
  },
});
